"""Kills a design by gradients of light 20 times: it ends with the same bits."""

import random
import time

import pytest

from physax.runtime import latest_step
from tests.design.test_optimise_killed import finish, start


pytestmark = [pytest.mark.stress, pytest.mark.f32]


def test_design_killed_20_times_ends_with_the_same_bits(tmp_path):
    moments, folder, steps = random.Random(3), tmp_path / "killed", []
    for _ in range(20):
        process = start(folder, "light")
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(moments.uniform(0, 0.5))
        process.kill()
        process.communicate()
        steps.append(latest_step(folder))
    print("steps after each kill:", steps)
    found = finish(folder, "light")
    assert latest_step(folder) == 400 > steps[-1]
    assert found == finish(tmp_path / "whole", "light")
    assert found[0] == "SUCCESSFUL"
