"""Runs of particles that are killed again and again end with the same bits."""

import random
import subprocess
import sys
import time

import numpy as np
import pytest

from physax.runtime import latest_step
from tests.particles import particle_run


pytestmark = [pytest.mark.stress, pytest.mark.f32]

KILLS = 30
COMMAND = [sys.executable, "-m", "tests.particles.particle_run"]


def killed_soon(folder, delay):
    """Lets a run go on for a checkpoint or two; whether it had to be killed."""
    process = subprocess.Popen([*COMMAND, str(folder)])
    before = latest_step(folder / "checkpoints") or 0
    while process.poll() is None and (
        (latest_step(folder / "checkpoints") or 0) <= before
    ):
        time.sleep(0.002)
    time.sleep(delay)
    process.kill()
    return process.wait(timeout=10) != 0


def test_thirty_kills_change_no_bit(tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    particle_run.follow(whole)
    expected = np.load(whole / "tracks.npy")
    delays, kills, runs = random.Random(5), 0, 0
    while kills < KILLS:
        folder = tmp_path / f"run{runs}"
        folder.mkdir()
        runs += 1
        while killed_soon(folder, delays.uniform(0, 0.3)):
            kills += 1
        np.testing.assert_array_equal(np.load(folder / "tracks.npy"), expected)
