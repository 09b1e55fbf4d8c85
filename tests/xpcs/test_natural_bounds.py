"""Rates and exponents keep their natural bounds beside ties."""

import jax
import numpy as np
import pytest

from physax.fit import Tie
from physax.xpcs import (
    Diffusion,
    LaminarFlow,
    Shear,
    WhiteNoise,
    fit_two_time,
    simulate_two_time,
    two_time_problem,
)


pytestmark = pytest.mark.x64

START = LaminarFlow(Diffusion(1e6, 0.5), Shear(0.03, -0.1), 2e6)


@pytest.fixture(scope="module")
def data():
    true = LaminarFlow(Diffusion(6e4, -0.35), Shear(3e-3, -0.2), 2e6)
    return simulate_two_time(
        *(true, 0.1 * np.arange(20), 0.0054, np.deg2rad([-80.0, -30.0, 10.0, 60.0])),
        contrast=0.25,
        key=jax.random.key(0),
        noise=WhiteNoise(0.01),
    )


def offsets(model):
    return model.diffusion.D_offset, model.shear.offset


# Ties, and how many rates are free beside them.
TIED = {
    "direction": (Tie(lambda m: m.shear.phi0, lambda m: 0.1 * m.shear.beta), 2),
    "exponent": (Tie(lambda m: m.shear.beta, lambda m: m.diffusion.alpha / 2), 2),
    "rate": (Tie(lambda m: m.shear.rate, lambda m: 3e-8 * m.diffusion.D0), 1),
}


def lower_bounds(problem):
    found = zip(problem.parameters.names, problem.parameters.low, strict=True)
    return {name: float(low) for name, low in found}


@pytest.mark.parametrize("name", TIED)
def test_what_is_free_beside_a_tie_is_bounded_as_without_one(name, data):
    tie, rates = TIED[name]
    without = lower_bounds(two_time_problem(data, START, fixed=offsets))
    found = lower_bounds(two_time_problem(data, START, fixed=offsets, ties=tie))
    assert found == {name: low for name, low in without.items() if name in found}
    assert list(found.values()).count(0.0) == rates


def test_a_rate_whose_offset_is_tied_may_be_negative(data):
    tie = Tie(lambda m: m.diffusion.D_offset, lambda m: 3e4 + m.diffusion.D0)
    hold = lambda m: m.shear.offset  # noqa: E731
    found = lower_bounds(two_time_problem(data, START, fixed=hold, ties=tie))
    assert found["diffusion.D0"] == -np.inf
    assert found["shear.rate"] == 0


def test_a_direction_tied_to_a_number_is_a_fixed_one(data):
    # Without bounds this search ends at D0 = -1e5.
    tie = Tie(lambda m: m.shear.phi0, lambda m: 0.0)
    held = lambda m: (*offsets(m), m.shear.phi0)  # noqa: E731
    expected = fit_two_time(data, START, fixed=held).result
    found = fit_two_time(data, START, fixed=offsets, ties=tie).result
    assert found.names == expected.names
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    assert found.values[0] >= 0
