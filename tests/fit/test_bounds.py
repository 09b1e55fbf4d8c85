"""Bounds that are active at the solution, beside scipy's reflective method."""

import jax
import numpy as np
import pytest
from scipy import optimize

from physax.fit import LeastSquares, least_squares
from tests.validation import nist_strd


SETS = {
    name: nist_strd.read(name)
    for name in ("Misra1a", "Chwirut2", "Rat43", "MGH09", "Thurber")
}
CUTS = [
    (name, place, side)
    for name, case in SETS.items()
    for place in range(case.values.size)
    for side in (-1, 1)
]


def cut(case, place, side):
    """Bounds that keep one parameter a tenth away from its best value."""
    low = np.full(case.values.size, -np.inf)
    high = -low
    limit = case.values[place] + side * 0.1 * abs(case.values[place])
    (low if side > 0 else high)[place] = limit
    start = np.clip(case.starts[1], low, high)
    return start, low, high


@pytest.fixture(scope="module")
def compiled():
    return {name: jax.jit(case.residual) for name, case in SETS.items()}, {
        name: jax.jit(jax.jacfwd(case.residual)) for name, case in SETS.items()
    }


@pytest.mark.slow(after=5)
@pytest.mark.parametrize(("name", "place", "side"), CUTS)
def test_cost_is_not_above_scipys(name, place, side, compiled):
    case = SETS[name]
    start, low, high = cut(case, place, side)
    result = least_squares(
        LeastSquares(case.residual, start, case.data, bounds=(low, high))
    )
    residual, jacobian = (kind[name] for kind in compiled)
    reference = optimize.least_squares(
        lambda p: np.asarray(residual(p, case.data)),
        start,
        lambda p: np.asarray(jacobian(p, case.data)),
        bounds=(low, high),
        x_scale="jac",
        max_nfev=2000,
        **dict.fromkeys(("ftol", "xtol", "gtol"), 1e-14),
    )
    assert result.success, result.message
    values = np.asarray(result.values)
    assert np.all((values >= low) & (values <= high))
    # An interior method stops short of the bound, ours stands on it.
    assert float(result.chi2) <= 2 * reference.cost * (1 + 1e-9)


def test_a_parameter_at_its_bound_is_said_to_be_there():
    case = SETS["Misra1a"]
    start, low, high = cut(case, 0, 1)
    result = least_squares(
        LeastSquares(case.residual, start, case.data, bounds=(low, high)), throw=True
    )
    assert list(result.active) == [True, False]
    assert float(result.values[0]) == low[0]
    assert float(result.standard_errors[0]) == 0
    assert float(result.standard_errors[1]) > 0
    assert int(result.degrees_of_freedom) == case.data[0].size - 1
    assert "(at a bound)" in str(result)
