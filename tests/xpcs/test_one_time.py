import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.xpcs import OneTime


LAGS = np.array([0.1, 0.2, 0.4])
G2 = np.ones((2, 3), np.float32)
Q = np.array([0.01, 0.02])


def test_curves_keep_their_precision():
    data = OneTime(LAGS, G2, 0.01, Q)
    assert data.g2.dtype == jnp.float32
    assert data.curves == 2
    assert data.phi is None
    assert OneTime(LAGS, G2[:1], 0.01, 0.01, 0.5).phi.shape == (1,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lags": LAGS[::-1]}, "`lags` must increase strictly"),
        ({"lags": LAGS - 0.1}, "`lags` must be positive, but is 0"),
        (
            {"lags": LAGS[:2]},
            "each of the 3 values of a curve, but has 2",
        ),
        ({"lags": LAGS[None]}, r"`lags` must have shape \(lags,\)"),
        ({"g2": G2[0]}, r"shape \(curves, lags\), but has shape \(3,\)"),
        ({"g2": G2 * np.nan}, r"`g2` must be finite \(cut the lags .*\), but is nan"),
        ({"sigma": 0.0}, r"`sigma`, .* positive and finite \(cut the .*\), but is 0"),
        ({"sigma": np.inf}, r"positive and finite \(cut the .*\), but is inf"),
        ({"sigma": np.ones(3)}, r"one number or have the shape \(2, 3\)"),
        ({"q": -Q}, "`q` must be positive, but is -0.01"),
        ({"q": Q[:1]}, r"`q` must have one entry for each of the 2 curves"),
        ({"phi": 90.0}, "`phi` must be in radians, .*, but is 90"),
        ({"g2": G2 * 1j}, "`g2` must be real, but has dtype complex64"),
        ({"lags": LAGS * 1j}, "`lags` must be real, but has dtype complex"),
        ({"sigma": 1j}, "`sigma` must be real, but has dtype complex"),
        ({"phi": np.zeros(3)}, r"`phi` must have one entry for each of the 2 curves"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    given = {"lags": LAGS, "g2": G2, "sigma": 0.01, "q": Q} | changes
    with pytest.raises(ArgumentError, match=message):
        OneTime(**given)
