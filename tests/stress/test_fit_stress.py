"""Kills a fit that is read block by block 50 times: it ends with the same bits."""

import random
import subprocess
import time

import pytest

from physax.runtime import latest_step
from tests.fit import fit_run
from tests.fit.test_fit_killed import COMMAND, STEPS


pytestmark = [pytest.mark.stress, pytest.mark.x64]


def test_fit_killed_50_times_ends_with_the_same_bits(tmp_path):
    moments, folder, steps = random.Random(5), tmp_path / "killed", [0]
    folder.mkdir()
    for _ in range(50):
        process = subprocess.Popen([*COMMAND, str(folder)], stdout=subprocess.DEVNULL)
        limit = time.monotonic() + 120
        # A fit that was killed before it wrote anything would stay where it is.
        while (latest_step(folder) or 0) <= steps[-1]:
            assert process.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.02))
        process.kill()
        process.wait(timeout=10)
        steps.append(latest_step(folder))
    print("blocks done after each kill:", steps)
    assert any(step % STEPS for step in steps)
    assert fit_run.fit(folder) == fit_run.fit(tmp_path / "whole")
