"""Fits while JAX computes in float32."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax.fit import Parameters, least_squares
from physax.runtime import PrecisionError
from tests.fit.decays import TRUE, X, Y, problem


pytestmark = pytest.mark.f32

SINGLE = X.astype(np.float32), Y.astype(np.float32)


def test_a_fit_converges_to_what_it_can_resolve():
    result = least_squares(problem(data=SINGLE), throw=True)
    assert result.values.dtype == jnp.float32
    assert result.covariance.dtype == jnp.float32
    pulls = (np.asarray(result.values) - TRUE) / np.asarray(result.standard_errors)
    assert np.abs(pulls).max() < 4
    # The minimum of the same data in float64: within a hundredth of an error.
    best = np.array([1.99948, 1.28572, 0.49534])
    assert np.abs((result.values - best) / result.standard_errors).max() < 0.02


def test_double_data_are_refused_rather_than_rounded():
    with pytest.raises(PrecisionError, match="`data`"):
        least_squares(problem(data=(X, Y)))


@pytest.mark.parametrize("bounds", [(0.1, None), (None, 0.1), (0.3, 1.0), (0.0, 0.3)])
def test_a_start_on_a_bound_lies_within_it(bounds):
    """0.1 rounds up in single precision, 0.3 too: bounds round as they do."""
    start = 0.3 if 0.3 in bounds else 0.1
    parameters = Parameters({"rate": start}, bounds)
    assert parameters.names == ("rate",)
    assert parameters.low <= parameters.vector <= parameters.high
    assert parameters.low.dtype == jnp.float32
    # Each number in its own precision.
    half = {"rate": np.float16(start), "other": 1.0}
    narrow = tuple(None if b is None else {"rate": b, "other": None} for b in bounds)
    assert len(Parameters(half, narrow).names) == 2
