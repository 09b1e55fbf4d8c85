"""What is left of a driven run whose process is ended from outside."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from physax.runtime import checkpoint_steps, latest_step, load_checkpoint


pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("driven_run.py")
FOREVER = 10**9


def start(folder, stop):
    """Starts a run in a process of its own, and waits until it has made some steps."""
    command = [sys.executable, str(SCRIPT), str(folder), str(stop)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    return process


def finish(folder, stop):
    """Runs to the end; gives status and digest."""
    process = start(folder, stop)
    out, _ = process.communicate()
    assert process.returncode == 0
    return out.split()


def kill_and_resume(folder, kills, seed):
    """Kills a run again and again at random moments, and then lets it end.

    Returns:
        The step at its end, and the digest of its state.
    """
    moments = random.Random(seed)
    before = -1
    for _ in range(kills):
        process = start(folder / "killed", FOREVER)
        time.sleep(moments.uniform(0, 0.2))
        process.kill()
        process.communicate()
        step = latest_step(folder / "killed")
        assert step >= before
        # Warnings are errors here: the newest is whole.
        assert load_checkpoint(folder / "killed", "chaos").step == step
        before = step
    stop = before + 25
    status, digest = finish(folder / "killed", stop)
    assert status == "SUCCESSFUL"
    # Neither drafts nor the lock are left.
    assert len(list((folder / "killed").iterdir())) == 2
    assert checkpoint_steps(folder / "killed")[-1] == stop
    return stop, digest


def test_killed_run_resumes_to_the_same_bits(tmp_path):
    stop, digest = kill_and_resume(tmp_path, kills=2, seed=0)
    assert finish(tmp_path / "whole", stop) == ["SUCCESSFUL", digest]


def test_sigterm_ends_in_time_with_a_checkpoint(tmp_path):
    process = start(tmp_path, FOREVER)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=10)
    assert time.monotonic() - began < 10
    assert process.returncode == 0
    assert out.split()[0] == "INTERRUPTED"
    assert latest_step(tmp_path) is not None
    assert load_checkpoint(tmp_path, "chaos").step == latest_step(tmp_path)
