"""A library is a guest: importing it changes nothing and loads little."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


pytestmark = pytest.mark.f32

SOURCE = Path(__file__).parents[1] / "src"

# Runs in a new interpreter; what stands in `STATEMENTS` is the import under test.
PROBE = """
import os, socket, sys, warnings

import equinox, jax

warnings.simplefilter("error")


def refuse(*args, **kwargs):
    raise OSError("an import must not use the network")


def state():
    files = sorted(os.path.join(at, n) for at, _, names in os.walk(".") for n in names)
    return {
        "environment": dict(os.environ),
        "jax configuration": dict(jax.config.values),
        "folder": os.getcwd(),
        "files": files,
        "log handlers": list(__import__("logging").root.handlers),
        "working threads": __import__("threading").active_count(),
    }


socket.socket = socket.create_connection = refuse
before = state()
loaded = set(sys.modules)
STATEMENTS
after = state()
for what in before:
    assert before[what] == after[what], f"the import changed: {what}"
import jax._src.xla_bridge as bridge
assert not bridge._backends, "the import started a backend"
print(*sorted(set(sys.modules) - loaded))
"""


def modules():
    """Names of all modules of physax but the one that runs the command line."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] != "__main__":
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def loaded_by(statements, folder):
    out = subprocess.run(
        [sys.executable, "-c", PROBE.replace("STATEMENTS", statements)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 0, out.stderr
    return set(out.stdout.split())


def test_import_changes_nothing_and_loads_only_itself(tmp_path):
    loaded = loaded_by("import physax", tmp_path)
    assert loaded == {"physax", "physax._checks"}


@pytest.mark.slow
def test_no_module_changes_anything_when_imported(tmp_path):
    loaded = loaded_by("\n".join(f"import {name}" for name in modules()), tmp_path)
    assert set(modules()) <= loaded


def test_subpackages_load_when_first_used(tmp_path):
    loaded = loaded_by("import physax; physax.units.NANO", tmp_path)
    assert "physax.units" in loaded
    assert "physax.em" not in loaded
