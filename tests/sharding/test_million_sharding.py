"""A million points on several devices, and in two processes: the same answer."""

import numpy as np
import pytest

from physax import runtime
from physax.fit import least_squares
from tests.fit.exponentials import assert_same, problem
from tests.sharding.processes import together


pytestmark = pytest.mark.x64


@pytest.fixture(scope="module")
def expected():
    result = least_squares(problem(), throw=True)
    return np.asarray(result.values), np.asarray(result.covariance)


@pytest.mark.parametrize("devices", [2, 4])
def test_devices_agree(expected, devices):
    assert_same(least_squares(problem(), mesh=runtime.mesh(devices)), expected)


def test_two_processes_agree(expected):
    first, second = together("tests.sharding.fit_in_two")
    assert first == second
    values, covariance = first
    np.testing.assert_allclose(values, expected[0], rtol=1e-9)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-7)
