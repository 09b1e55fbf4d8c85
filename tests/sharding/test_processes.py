"""Light and training by several processes: the numbers of one."""

import shutil

import numpy as np
import pytest

from tests.sharding.processes import together
from tests.sharding.solvers import results


pytestmark = [pytest.mark.x64, pytest.mark.slow]


@pytest.mark.parametrize("count", [2, 4])
def test_s_parameters_gradients_and_training_agree_with_one_process(count):
    expected = results(1)
    found = together("tests.sharding.solve_together", count=count)
    assert all(other == found[0] for other in found)
    for (value, array), (mine, wanted) in zip(found[0], expected, strict=True):
        np.testing.assert_allclose(value, mine, rtol=1e-12)
        largest = np.max(np.abs(wanted))
        np.testing.assert_allclose(array, wanted, rtol=0, atol=1e-12 * largest)


SIMULATE = "tests.sharding.run_together"


def test_a_run_of_four_processes_goes_on_with_two_or_one(tmp_path):
    (whole,) = together(SIMULATE, str(tmp_path / "whole"), "60", "20", count=1)
    begun, copy = tmp_path / "begun", tmp_path / "copy"
    # A signal to one process ends all, with a checkpoint to which each has written.
    told = ("60", "20", "SIGTERM", "20")
    for one in together(SIMULATE, str(begun), *told, count=4):
        assert one[:3] == ["INTERRUPTED", 0, 20]
    assert (begun / "step-000000000020.shards").is_dir()
    shutil.copytree(begun, copy)
    for folder, count in ((begun, 2), (copy, 1)):
        for one in together(SIMULATE, str(folder), "60", "20", count=count):
            assert one[:3] == ["SUCCESSFUL", 20, 60]
            for array, wanted in zip(one[3], whole[3], strict=True):
                largest = np.max(np.abs(wanted))
                np.testing.assert_allclose(array, wanted, rtol=0, atol=1e-12 * largest)


def test_mistakes_are_told_in_all_processes(tmp_path):
    both = together("tests.sharding.mistakes_together", str(tmp_path))
    (done, size, dtype, problem, folder, further, alone), second = both
    assert second == [done, size, dtype, problem, second[4], further, alone]
    assert (done, further) == (28 + 8 * 10, 28 + 8 * 20)
    assert "must be float64[12], but is float64[8]" in size
    assert "must be float32[8], but is float64[8]" in dtype
    assert "What is computed must be the same in all processes" in problem
    for index, text in enumerate((folder, second[4])):
        assert f"own {index}` must be the same in all processes" in text
    assert alone == [2, list(range(8))]
