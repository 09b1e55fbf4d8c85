"""Several processes of one script on this computer."""

import os
import subprocess
import sys

import pytest

from physax.cli import ExitCode, main


JOB = """
import sys
from physax import runtime

me = runtime.initialize(timeout=60)

import jax
import numpy as np

mesh = runtime.mesh()
placed = jax.sharding.NamedSharding(mesh, jax.P("x"))
whole = np.arange(4.0 * me.count)
x = jax.make_array_from_callback(whole.shape, placed, lambda part: whole[part])
total = float(jax.jit(lambda x: x.sum())(x))
if me.first:
    print(f"{me.count} processes, {len(jax.devices())} devices, sum {total}")
if "differ" in sys.argv:
    runtime.check_same("Options", f"digest {me.index}")
if "die" in sys.argv and me.index == 1:
    sys.exit(7)
"""


def launch(folder, *words):
    """Runs `physax launch` in a process of its own: tests may open no socket."""
    path = folder / "job.py"
    path.write_text(JOB)
    environment = {
        **os.environ,
        "XLA_FLAGS": "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.run(
        [sys.executable, "-m", "physax", "launch", "-n", "2", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.mark.slow
def test_processes_see_the_devices_of_all(tmp_path):
    done = launch(tmp_path, "job.py")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "[0] 2 processes, 2 devices, sum 28.0" in done.stdout


@pytest.mark.slow
def test_other_options_in_one_process_are_refused_in_all(tmp_path):
    done = launch(tmp_path, "job.py", "differ")
    assert done.returncode == ExitCode.REFUSED
    for number in (0, 1):
        message = f"[{number}] physax.runtime._initialize.ProcessesError: Options must"
        assert message in done.stdout
    assert "those of process 1 differ from those of process 0" in done.stdout
    assert "of 2 ended with 1" in done.stderr


@pytest.mark.slow
def test_a_process_that_fails_ends_the_job(tmp_path):
    done = launch(tmp_path, "--grace", "1", "job.py", "die")
    assert done.returncode == ExitCode.REFUSED
    assert "process 1 of 2 ended with 7" in done.stderr


def test_what_can_not_be_launched(tmp_path, capsys):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    assert main(["launch", "-n", "2", "no-such.py"]) == ExitCode.REFUSED
    assert "no-such.py" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["launch", "-n", "2"])
    assert "arguments are required: script\n" in capsys.readouterr().err
