"""Several processes of one script on this computer."""

import os
import signal
import subprocess
import sys
import time

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


# As a run with checkpoints does: it saves at the first signal, and dies of the second.
SAVING = """
import os, pathlib, signal, sys, time

asked = []


def ask(number, frame):
    asked.append(number)
    signal.signal(number, signal.SIG_DFL)


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, ask)
sys.stdout.buffer.write(b"caf\\xe9\\n")
sys.stdout.flush()
pathlib.Path("ready" + os.environ["PHYSAX_PROCESS"]).touch()
end = time.monotonic() + 60
while time.monotonic() < end and ("deaf" in sys.argv or not asked):
    time.sleep(0.01)
time.sleep(0.4)
print("saved after", signal.Signals(asked[0]).name)
sys.exit(4)
"""


# A job in the background of a script inherits that Ctrl-C is ignored.
LAUNCH = """
import runpy, signal

signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("physax", run_name="__main__", alter_sys=True)
"""


def start(folder, job, *words):
    """Starts `physax launch` in a process of its own: tests may open no socket."""
    path = folder / "job.py"
    path.write_text(job)
    environment = {
        **os.environ,
        "XLA_FLAGS": "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCH, "launch", "-n", "2", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def result(process, timeout=200):
    """Returns what a process printed, and how it ended."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def launch(folder, *words):
    return result(start(folder, JOB, *words))


def signalled(folder, name, *words, group=False):
    """Launches what saves, and signals it once all processes are ready for that."""
    process = start(folder, SAVING, *words)
    ready = [folder / f"ready{number}" for number in range(2)]
    end = time.monotonic() + 30
    while not all(path.exists() for path in ready) and time.monotonic() < end:
        time.sleep(0.02)
    (os.killpg if group else os.kill)(process.pid, signal.Signals[name])
    return result(process, 30)


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


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("name", "group"),
    # A terminal signals the group of the launcher at Ctrl-C, `kill` it alone.
    [("SIGINT", True), ("SIGTERM", False), ("SIGUSR1", False), ("SIGTERM", True)],
)
def test_a_signal_lets_all_processes_save_and_tells_their_exit_code(
    tmp_path, name, group
):
    done = signalled(tmp_path, name, "job.py", group=group)
    assert done.returncode == ExitCode.CHECKPOINTED, done.stderr
    for number in (0, 1):
        # The job says something that is not UTF-8, too.
        assert f"[{number}] caf\ufffd\n" in done.stdout
        assert f"[{number}] saved after {name}\n" in done.stdout
    assert "physax: 2 of 2 ended with 4." in done.stderr


@pytest.mark.slow
def test_what_does_not_answer_is_ended(tmp_path):
    # The first SIGTERM is heard and not followed, the second is the end.
    done = signalled(tmp_path, "SIGTERM", "--grace", "1", "job.py", "deaf")
    assert done.returncode == 128 + signal.SIGTERM
    assert "physax: 2 of 2 ended by signal 15." in done.stderr
