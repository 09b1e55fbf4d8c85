"""An optimisation that is killed (SIGKILL) and resumed ends with the same bits."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from physax.runtime import latest_step


pytestmark = [pytest.mark.slow, pytest.mark.f32]

ROOT = Path(__file__).parents[2]


def start(folder, *what):
    script = [sys.executable, "-m", "tests.design.driven_design"]
    command = [*script, str(folder), *what]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def finish(folder, *what):
    """Lets a design end; gives its status and digest."""
    out, _ = start(folder, *what).communicate()
    return out.split()[-2:]


def kill_and_resume(folder, kills, seed):
    """Kills a run again and again after a few steps, and then lets it end."""
    moments = random.Random(seed)
    for _ in range(kills):
        process = start(folder)
        process.stdout.readline()
        time.sleep(moments.uniform(0, 0.2))
        process.kill()
        process.communicate()
    return finish(folder), latest_step(folder)


def test_a_killed_optimisation_resumes_to_the_same_bits(tmp_path):
    found, step = kill_and_resume(tmp_path / "killed", kills=1, seed=0)
    assert step == 100
    assert found == finish(tmp_path / "whole")
    assert found[0] == "SUCCESSFUL"
