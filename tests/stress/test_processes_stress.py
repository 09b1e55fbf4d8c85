"""Kills one of two processes many times: the other ends, and nothing is lost."""

import random
import time

import pytest

from physax.runtime import latest_step
from tests.sharding.processes import start, together


pytestmark = [pytest.mark.stress, pytest.mark.x64]

SIMULATE = "tests.sharding.run_together"
STEPS, EVERY, KILLS = 400_000, 2_000, 20


def test_one_of_two_processes_killed_20_times(tmp_path):
    moments, folder = random.Random(5), tmp_path / "killed"
    words = (str(folder), str(STEPS), str(EVERY))
    step = 0
    for kill in range(KILLS):
        with (tmp_path / f"{kill}.log").open("w+") as log:
            workers = start(SIMULATE, *words, files=[log, log], errors=log)
            until = time.monotonic() + 240
            while (latest_step(folder) or 0) <= step and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(moments.uniform(0, 1.0))
            lost, left = moments.sample(workers, 2)
            assert lost.poll() is left.poll() is None
            lost.kill()
            began = time.monotonic()
            assert left.wait(timeout=60) != 0
            print(kill, step, f"ended after {time.monotonic() - began:.1f} s")
            lost.wait()
            log.seek(0)
            said = log.read()
            assert "could not go on together" in said or "another task died" in said
        step = latest_step(folder)
    # The last job goes on to the end; another is never disturbed.
    stop = (step // EVERY + 2) * EVERY
    found = together(SIMULATE, str(folder), str(stop), str(EVERY))
    whole = together(SIMULATE, str(tmp_path / "whole"), str(stop), str(EVERY))
    assert (found[0][1], whole[0][1]) == (step, 0)
    assert found[0][2:] == whole[0][2:] == found[1][2:]
