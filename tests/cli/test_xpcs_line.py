"""What is wrong on a line of `physax xpcs`, and what its words are."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from physax.cli import ExitCode, _xpcs, main
from physax.io import read_two_time
from physax.xpcs import MODES


SOURCE = Path(__file__).parents[2] / "src"
STATIC_FILE = "mode: static_isotropic\nparameters: {alpha: {bounds: [0, 2]}}\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["none.hdf"], "none.hdf"),
        ([], "`FILE` must be given"),
        (["a.yaml"], "`FILE` must be data, HDF5 or npz, but is 'a.yaml'"),
        (["x", "--mode", "static_isotropic", "--gap", "1"], "`--gap` must go with"),
        (
            ["x", "--mode", "static_isotropic", "--convention", "homodyne"],
            "`--convention` must go with the mode laminar_flow",
        ),
        (["x", "--config", "FILE", "--mode", "laminar_flow"], "`--mode` must be that"),
        (["x", "--set", "D=1"], "`--set` must be NAME=NUMBER with one of D0"),
        (["x", "--set", "D0=x"], "`--set D0` must be a number, but is 'x'"),
        (["x", "--set", "D0=inf"], "`--set D0` must be finite, but is inf"),
        (
            ["x", "--config", "FILE", "--set", "alpha=5"],
            "`--set alpha` must lie within [0, 2], but is 5. Change `bounds`",
        ),
        (["x", "--set", "D0=nan"], "`--set D0` must be finite, but is nan"),
        (
            ["x", "--mode", "static_isotropic", "--set", "D0=-5"],
            "`--set D0` must be at least 0, but is -5. Where a fit may go below 0",
        ),
        (
            ["x", "--set", "D0=1", "alpha=0", "D0=2"],
            "`--set D0` must be given once, but is so again, as '2'",
        ),
        (["x", "--frames", "5", "2"], "`frames` must be the first and the last"),
        (["x", "--threads", "100000"], "`--threads` must lie between 1 and"),
    ],
)
def test_what_is_wrong_on_the_line_is_named(more, message, tmp_path, capsys):
    path = tmp_path / "fit.yaml"
    path.write_text(STATIC_FILE)
    line = ["xpcs", "fit", "--output-dir", str(tmp_path / "out")]
    line += [str(path) if word == "FILE" else word for word in more]
    assert main(line) == ExitCode.REFUSED
    assert re.search(re.escape(message), capsys.readouterr().err)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--layout", "npz"], "`--layout` must be npz for an `--output` that ends"),
        (
            ["-o", "a.NPZ", "--layout", "aps"],
            "`--layout` must be npz for an `--output`",
        ),
        (["--mode", "static_isotropic", "--gap", "5"], "`--gap` must go with the mode"),
        (["-o", "maps.txt"], "`--output` must end in .hdf"),
        (["--q", "0.01", "0.01"], "or `--layout aps` on the command line"),
    ],
)
def test_what_cannot_be_simulated_is_named(more, message, tmp_path, capsys):
    line = ["xpcs", "simulate", "-o", str(tmp_path / "a.hdf"), *more]
    assert main(line) == ExitCode.REFUSED
    assert message in capsys.readouterr().err
    assert not (tmp_path / "a.hdf").exists()


@pytest.mark.parametrize("line", [["fit"], ["fit", "x"], ["config"], ["unknown"], []])
def test_wrong_usage_exits_with_2(line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["xpcs", *line])
    assert stop.value.code == ExitCode.USAGE
    assert "usage: physax xpcs" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs processor affinity")
def test_threads_limits_the_processors_of_jax():
    there = sorted(os.sched_getaffinity(0))
    script = (
        "import os, jax, jax.numpy as jnp\n"
        "from physax.cli._session import limit_threads\n"
        "limit_threads(1)\n"
        "x = jnp.ones((300, 300)); (x @ x).block_until_ready()\n"
        "sets = [os.sched_getaffinity(int(t)) for t in os.listdir('/proc/self/task')]\n"
        "print(len(set().union(*sets)), len(sets))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    out = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    # Every thread, also those of NumPy that were there before, has one processor.
    assert out.stdout.split()[0] == "1"
    assert sorted(os.sched_getaffinity(0)) == there


@pytest.mark.slow
def test_the_words_are_known_without_loading_what_they_do():
    script = (
        "import sys\n"
        "from physax.cli import main\n"
        "try:\n    main(['xpcs', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'matplotlib', 'h5py', 'optimistix', 'diffrax', 'scipy.optimize',\n"
        "         'physax.io', 'physax.plot', 'physax.xpcs', 'physax.fit'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, timeout=120
    )


@pytest.mark.parametrize("name", ["a.hdf", "a.npz"])
def test_simulated_maps_do_not_take_the_place_of_a_file(name, tmp_path, capsys):
    measured = tmp_path / name
    measured.write_bytes(b"measured")
    assert main(["xpcs", "simulate", "-o", str(measured)]) == ExitCode.REFUSED
    assert f"must be a new file, but {measured} exists" in capsys.readouterr().err
    assert measured.read_bytes() == b"measured"
    assert list(tmp_path.iterdir()) == [measured]


def test_modes_are_those_of_the_library():
    assert _xpcs.MODES == MODES


def test_every_set_counts(tmp_path):
    out = tmp_path / "maps.npz"
    line = ["xpcs", "simulate", "-o", str(out), "--mode", "static_isotropic"]
    small = ["--frames", "8", "--noise", "1e-6"]
    flat = ["--set", "D0=0", "--set", "D_offset=0"]
    assert main([*line, *small, *flat]) == ExitCode.DONE
    np.testing.assert_allclose(read_two_time(out).c2, 1.25, atol=1e-4)
