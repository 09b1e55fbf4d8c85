import re

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


def test_a_power_law_is_printed_in_numbers():
    law = power_law(Q, 3e4 * Q**1.5, 300 * Q**1.5)
    # Rates at the mean wavevector of 1 %, over the square root of three.
    q0 = np.exp(np.log(Q).mean())
    scale, spread = 3e4 * q0**1.5, np.log(Q) - np.log(Q).mean()
    expected = (
        rf"q0 {q0:.5g}: scale {scale:.3f} ± {0.01 * scale / 3**0.5:.3f}, exponent "
        rf"1.500 ± {0.01 / np.linalg.norm(spread):.3f}, reduced chi-square \S+"
    )
    assert re.fullmatch(expected, str(law)), str(law)


def test_power_law_refuses_what_has_no_logarithm():
    message = "`rate` must be positive and finite, but is -1"
    with pytest.raises(ArgumentError, match=message):
        power_law(Q, -np.ones(3), np.ones(3))
    with pytest.raises(ArgumentError, match="at least 3 wavevectors .* but has 2"):
        power_law(Q[:2], np.ones(2), np.ones(2))
