"""What stands for numbers, and what does not."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax._checks import as_array, check


pytestmark = pytest.mark.f32


@pytest.mark.parametrize(
    "value",
    [{}, {"a": 1.0}, object(), [[0.1], [0.2, 0.3]], 10**400, [10**400, float]],
    ids=lambda x: type(x).__name__,
)
def test_what_is_no_number_is_refused_by_its_name(value):
    with pytest.raises(ArgumentError, match="`x` must be a number or an array of num"):
        inspect.unwrap(as_array)(value, "x")


def test_whole_numbers_of_any_size_are_floating_point():
    assert np.array_equal(as_array([2 * 10**14, 1]), np.float32([2e14, 1]))
    assert as_array(2**70) == np.float32(2.0**70)


def test_what_fails_under_jit_is_nan_and_so_is_its_derivative():
    def total(x):
        return jnp.sum(check(x, x > 0, "`x` must be positive"))

    x = jnp.asarray([1.0, -1.0, 2.0])
    value, slope = jax.jit(jax.value_and_grad(total))(x)
    assert np.isnan(value)
    assert np.array_equal(slope, [1.0, np.nan, 1.0], equal_nan=True)
