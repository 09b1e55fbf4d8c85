import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import soft_max, soft_min


pytestmark = pytest.mark.f32

VALUES = jnp.asarray(np.random.default_rng(0).random((4, 6)), float)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("sharpness", [1, 10.0, 300.0])
def test_between_mean_and_extreme(axis, sharpness):
    n = VALUES.size if axis is None else VALUES[0].size
    highest, mean = jnp.max(VALUES, axis), jnp.mean(VALUES, axis)
    found = soft_max(VALUES, sharpness, axis)
    assert found.shape == highest.shape
    assert found.dtype == VALUES.dtype
    assert jnp.all((found >= mean - 1e-6) & (found <= highest + 1e-6))
    assert jnp.all(highest - found <= np.log(max(n, 24)) / sharpness)
    assert jnp.allclose(
        soft_min(VALUES, sharpness, axis), -soft_max(-VALUES, sharpness, axis)
    )


def test_equal_values_stay_and_large_ones_do_not_overflow():
    assert soft_min(jnp.full(7, 0.4), 20.0) == pytest.approx(0.4)
    assert soft_max(jnp.array([1e4, 0.0]), 1e3) == pytest.approx(1e4)


def test_the_gradient_is_a_mean_that_prefers_the_worst():
    gradient = jax.jit(jax.grad(lambda v: soft_min(v, 30.0)))(VALUES)
    assert jnp.sum(gradient) == pytest.approx(1, rel=1e-5)
    assert jnp.argmax(gradient) == jnp.argmin(VALUES)


def test_a_sharpness_of_nothing_is_refused():
    with pytest.raises(PhysaxError, match="`sharpness` must be positive, but is 0"):
        soft_max(VALUES, 0.0)
