"""The wheel installs and runs where there is no checkout."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


pytestmark = [pytest.mark.f32, pytest.mark.slow]

ROOT = Path(__file__).parents[1]


def run(*command, **options):
    out = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, **options
    )
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


def pip(*arguments):
    # Offline: neither command may look for packages or for a newer pip.
    return run("-m", "pip", "--disable-pip-version-check", "--quiet", *arguments)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-w", str(folder))
    (path,) = folder.glob("physax-*.whl")
    return path


def test_wheel_holds_the_package_its_licence_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (record,) = [n for n in names if n.endswith("METADATA")]
        metadata = archive.read(record).decode()
    source = ROOT / "src"
    files = {
        str(path.relative_to(source))
        for path in (source / "physax").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packaged = {name for name in names if not name.split("/")[0].endswith("dist-info")}
    assert packaged == files
    assert "physax/py.typed" in packaged
    assert any(name.endswith("licenses/LICENSE") for name in names)
    for extra in ("cuda12", "cuda13", "tpu"):
        assert f"Requires-Dist: jax[{extra}]; extra == '{extra}'" in metadata


def test_installed_wheel_runs_from_another_folder(wheel, tmp_path):
    site = tmp_path / "site"
    pip("install", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(site)}}

    where = run("-c", "import physax; print(physax.__file__)", **options)
    assert Path(where.strip()).is_relative_to(site)

    report = json.loads(run("-m", "physax", "info", "--json", **options))
    assert report["devices"]
    script = run(str(site / "bin" / "physax"), "--version", **options)
    assert script.split() == ["physax", report["versions"]["physax"]]
