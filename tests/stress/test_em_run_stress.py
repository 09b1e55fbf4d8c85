"""Kills driven runs of light many times: whatever the moment, nothing is lost."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from physax.runtime import checkpoint_steps, latest_step, load_checkpoint


pytestmark = [pytest.mark.stress, pytest.mark.f32]

SCRIPT = Path(__file__).parents[1] / "em" / "driven_light.py"
FOREVER = 10**9


def start(folder, stop):
    """Starts a run in a process of its own, and waits until it has made some steps."""
    command = [sys.executable, str(SCRIPT), str(folder), str(stop)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def finish(folder, stop):
    """Runs to the end; gives status and digest of the last state."""
    process = start(folder, stop)
    out, _ = process.communicate()
    assert process.returncode == 0
    return out.split()


@pytest.mark.filterwarnings("error")
def test_run_killed_50_times_ends_with_the_same_bits(tmp_path):
    moments, folder = random.Random(2), tmp_path / "killed"
    before, drafts = -1, 0
    for _ in range(50):
        process = start(folder, FOREVER)
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        process.communicate()
        step = latest_step(folder)
        if step is None:
            assert before == -1
            continue
        assert step >= before
        # A torn one would be a warning, and so an error here.
        assert load_checkpoint(folder).step == step
        drafts += any(".tmp" in path.name for path in folder.iterdir())
        before = step
    # One chunk past a checkpoint, so that the last one is not at a multiple.
    stop = before + 60
    killed = finish(folder, stop)
    # Neither drafts nor the lock are left.
    assert len(list(folder.iterdir())) == 2
    assert checkpoint_steps(folder)[-1] == stop
    print(f"{stop} steps, {drafts} of 50 kills fell into the writing of a checkpoint")
    assert killed == finish(tmp_path / "whole", stop)
    assert killed[0] == "SUCCESSFUL"


def test_sigterm_ends_in_time_with_a_checkpoint(tmp_path):
    process = start(tmp_path, FOREVER)
    time.sleep(0.2)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    seconds = time.monotonic() - began
    print(f"{seconds:.2f} s from SIGTERM to the end")
    assert seconds < 10
    assert out.split() == ["INTERRUPTED"]
    assert load_checkpoint(tmp_path).step == latest_step(tmp_path)
