"""Kills a design by gradients of light 20 times: it ends with the same bits."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from physax.runtime import latest_step


pytestmark = [pytest.mark.stress, pytest.mark.slow, pytest.mark.f32]

ROOT = Path(__file__).parents[2]


def start(folder):
    """Starts a design in a process of its own."""
    command = [sys.executable, "-m", "tests.design.driven_design", str(folder), "light"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def finish(folder):
    """Lets a design end; gives its status and digest."""
    out, _ = start(folder).communicate()
    return out.split()[-2:]


def test_design_killed_20_times_ends_with_the_same_bits(tmp_path):
    moments, folder, steps = random.Random(3), tmp_path / "killed", []
    for _ in range(20):
        process = start(folder)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(moments.uniform(0, 1))
        process.kill()
        process.communicate()
        steps.append(latest_step(folder))
    print("steps after each kill:", steps)
    found = finish(folder)
    assert latest_step(folder) == 100 > steps[-1]
    assert found == finish(tmp_path / "whole")
    assert found[0] == "SUCCESSFUL"
