import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.xpcs import power_law


Q = np.array([0.003, 0.005, 0.008])


def test_an_exact_power_is_found_from_numbers_of_the_host():
    """NumPy's are float64 where JAX has it off, too."""
    law = power_law(Q, 3e4 * Q**1.5, 300 * Q**1.5)
    assert np.isclose(law.exponent, 1.5, rtol=1e-5)
    assert np.allclose(law(jnp.asarray(Q)), 3e4 * Q**1.5, rtol=1e-5)
    # Equal relative errors of 1 %: that of a slope over logarithms.
    spread = np.log(Q) - np.log(Q).mean()
    expected = 0.01 / np.linalg.norm(spread)
    place = law.result.names.index("exponent")
    assert np.isclose(law.result.standard_errors[place], expected, rtol=1e-4)


def test_power_law_refuses_what_has_no_logarithm():
    message = "`rate` must be positive and finite, but is -1"
    with pytest.raises(ArgumentError, match=message):
        power_law(Q, -np.ones(3), np.ones(3))
    with pytest.raises(ArgumentError, match="at least 3 wavevectors .* but has 2"):
        power_law(Q[:2], np.ones(2), np.ones(2))
