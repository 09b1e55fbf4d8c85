"""NIST's nonlinear regression sets, both starts, with the default options."""

import numpy as np
import pytest

from physax.fit import LeastSquares, least_squares
from tests.validation import nist_strd


def digits(found, certified):
    """Correct digits of the worst value."""
    error = np.abs(np.asarray(found) / certified - 1)
    return float(-np.log10(np.maximum(error, 1e-15)).min())


@pytest.mark.slow(after=3)
@pytest.mark.parametrize("name", nist_strd.MODELS)
def test_certified_values_are_found(name):
    case = nist_strd.read(name)
    for start in case.starts:
        result = least_squares(LeastSquares(case.residual, start, case.data))
        assert result.success, result.message
        assert digits(result.values, case.values) >= 8
        # Lanczos1's residuals are the rounding of its data.
        least = 2.5 if name == "Lanczos1" else 6
        assert digits(result.standard_errors, case.errors) >= least
