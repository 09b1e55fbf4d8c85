"""What is left of a fit whose process is ended from outside."""

import subprocess
import sys
import time

import pytest

from physax.runtime import latest_step
from tests.fit import fit_run


pytestmark = pytest.mark.slow

STEPS = fit_run.COUNT // fit_run.PIECE  # of one pass
COMMAND = [sys.executable, "-m", "tests.fit.fit_run"]


def kill_within_a_pass(folder, step):
    process = subprocess.Popen([*COMMAND, str(folder)], stdout=subprocess.DEVNULL)
    limit = time.monotonic() + 120
    while (latest_step(folder) or 0) < step:
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.005)
    process.kill()
    process.wait(timeout=10)
    assert latest_step(folder) % STEPS


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    folder = tmp_path / "killed"
    folder.mkdir()
    kill_within_a_pass(folder, 2 * STEPS + 5)
    assert fit_run.fit(folder) == fit_run.fit(tmp_path / "whole")
