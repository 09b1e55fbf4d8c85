"""Spheres of several sizes against Mie's series, and the order of their error."""

import numpy as np
import pytest

from tests.validation.spheres import gap


pytestmark = [pytest.mark.stress, pytest.mark.x64]


@pytest.mark.parametrize(("size", "index"), [(1, 1.5), (1, 2.0), (2, 2.0), (3, 1.5)])
def test_sphere_scatters_as_the_series(size, index):
    error = abs(gap(size, index, 12))
    print(f"x = {size}, m = {index}: {error:.2%} off at 12 cells per radius")
    assert error <= 0.02


@pytest.mark.parametrize("index", [1.5, 2.0])
def test_error_falls_by_the_square_of_the_cells(index):
    order = np.log2(abs(gap(1, index, 6) / gap(1, index, 12)))
    print(f"m = {index}: order {order:.2f} from 6 to 12 cells per radius")
    assert order >= 1.8
