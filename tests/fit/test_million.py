"""One answer at every size: a million points by each strategy."""

import dataclasses

import numpy as np
import pytest

from physax.fit import Strategy, least_squares, plan
from tests.fit.exponentials import COUNT, X, Y, assert_same, problem


PLAN = plan(COUNT, 5)


@pytest.fixture(scope="module")
def standard():
    whole = dataclasses.replace(PLAN, strategy=Strategy.STANDARD, chunk=COUNT)
    result = least_squares(problem(), plan=whole, throw=True)
    return result.values, result.covariance


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["LARGE", "CHUNKED"])
def test_strategies_agree_in_memory(standard, strategy):
    chosen = dataclasses.replace(PLAN, strategy=Strategy[strategy])
    result = least_squares(problem(), plan=chosen, progress=False)
    assert result.plan.strategy is Strategy[strategy]
    assert_same(result, standard)


def test_streaming_from_disk_agrees(standard, tmp_path):
    np.save(tmp_path / "data.npy", [X, Y])
    mapped = np.load(tmp_path / "data.npy", mmap_mode="r")
    result = least_squares(problem((mapped[0], mapped[1])), progress=False)
    assert result.plan.strategy is Strategy.STREAMING
    assert_same(result, standard)
