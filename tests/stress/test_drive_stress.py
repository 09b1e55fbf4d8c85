"""Kills runs and writers many times: whatever the moment, nothing is lost."""

import subprocess
import sys
from pathlib import Path

import pytest


sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from test_drive_killed import finish, kill_and_resume


pytestmark = [pytest.mark.stress, pytest.mark.f32]


def test_run_killed_50_times_ends_with_the_same_bits(tmp_path):
    stop, digest = kill_and_resume(tmp_path, kills=50, seed=1)
    assert finish(tmp_path / "whole", stop) == ["SUCCESSFUL", digest]


# Runs in a process of its own, which can fork since it has not started JAX's backend.
WRITERS = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from physax.runtime import latest_step, load_checkpoint, save_checkpoint, writer_lock

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
moments = random.Random(0)
arrays = {"x": np.zeros(500_000)}

def write_forever(first, acknowledge):
    with writer_lock(folder):
        step = first
        while True:
            arrays["x"][:] = step
            save_checkpoint(folder, step, arrays)
            os.write(acknowledge, step.to_bytes(8, "little"))
            step += 1

known = -1
for _ in range(kills):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        write_forever(known + 1, write)
    os.close(write)
    time.sleep(moments.uniform(0, 0.08))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    told = os.read(read, 1 << 20)
    os.close(read)
    if told:
        known = int.from_bytes(told[-8:], "little")
    step = latest_step(folder)
    if step is None:
        assert known == -1
        continue
    # Never older than the last acknowledged; at most the one that was being told.
    assert step in (known, known + 1), (step, known)
    found = load_checkpoint(folder, step=step)
    assert (found.arrays["x"] == step).all()
    known = step
with writer_lock(folder):
    pass
assert len(list(folder.iterdir())) == 2
print(known)
"""


def test_writer_killed_1000_times_loses_nothing(tmp_path):
    command = [sys.executable, "-W", "error", "-c", WRITERS, str(tmp_path), "1000"]
    subprocess.run(command, check=True)
