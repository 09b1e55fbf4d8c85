"""An optimisation that is killed (SIGKILL) and resumed ends with the same bits."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from physax.runtime import latest_step
from tests.design.driven_design import STEPS, designed


pytestmark = [pytest.mark.slow, pytest.mark.f32]

ROOT = Path(__file__).parents[2]


# The functions of `python -m` are of another module, `__main__`: another problem.
RUN = "import sys; from tests.design.driven_design import main; main(*sys.argv[1:])"


def start(folder, *what):
    command = [sys.executable, "-c", RUN, str(folder), *what]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def finish(folder, *what):
    """Lets a design end; gives its status and digest."""
    out, _ = start(folder, *what).communicate()
    return out.split()[-2:]


def test_a_killed_optimisation_resumes_to_the_same_bits(tmp_path):
    process = start(tmp_path / "killed")
    process.stdout.readline()
    time.sleep(0.02)
    process.kill()
    process.communicate()
    assert (latest_step(tmp_path / "killed") or 0) < STEPS
    found = designed(tmp_path / "killed")
    assert latest_step(tmp_path / "killed") == STEPS
    assert found == designed(tmp_path / "whole")
    assert found[0] == "SUCCESSFUL"
