import math

import numpy as np
import pytest

from physax import PhysaxError
from physax.design import Constant, EarlyStop, Geometric, Stages


pytestmark = pytest.mark.f32


def test_strengths():
    stages = Stages((8, 16, math.inf), every=10)
    assert [stages.at(n) for n in (0, 9, 10, 19, 20, 99)] == [8, 8, 16, 16] + 2 * [
        math.inf
    ]
    growing = Geometric(4, 64, steps=40)
    assert [growing.at(n) for n in (0, 20, 40, 90)] == pytest.approx([4, 16, 64, 64])
    assert Constant(3).at(7) == 3


def test_early_stop_looks_back_over_the_last_strength_only():
    rule = EarlyStop(patience=3, tolerance=1e-3)
    flat = np.array([5.0, 1.0, 1.0, 1.0, 1.0])
    one, two = np.full(5, 8.0), np.array([4.0, 8, 8, 8, 8])
    assert rule.reached(flat, two, 8.0)
    assert not rule.reached(flat[:4], two[:4], 8.0)
    assert not rule.reached(flat, one, 16.0)
    assert not rule.reached(np.array([5.0, 4, 3, 2, 1]), one, 8.0)
    assert rule.reached(flat, np.full(5, np.inf), np.inf)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stages((), 3), "`values` must have at least one entry, but is empty"),
        (lambda: Stages((1, -2), 3), "`values` must be at least 0, but is -2"),
        (lambda: Stages((1,), 0), "`every` must be an integer of at least 1, but is 0"),
        (lambda: Geometric(0, 4, 3), "must be positive and finite, but are 0 and 4"),
        (
            lambda: Geometric(1, 4, 0),
            "`steps` must be an integer of at least 1, but is 0",
        ),
        (lambda: Constant(-1), "`value` must be at least 0, but is -1"),
        (lambda: EarlyStop(0), "`patience` must be an integer of at least 1, but is 0"),
        (lambda: EarlyStop(1, -1.0), "`tolerance` must be at least 0, but is -1"),
    ],
)
def test_bad_schedules_are_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()
