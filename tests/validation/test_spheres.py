"""Dielectric spheres against Mie's series."""

import pytest

from tests.validation.spheres import gap


pytestmark = pytest.mark.slow


def test_sphere_scatters_as_the_series():
    # 0.24 %; by volume it is 3.6 % at 12 cells.
    assert abs(gap(1.0, 1.5, 8)) <= 0.005


def test_dense_sphere_scatters_as_the_series_on_few_cells():
    # 19 cells per wavelength inside: 1.15 %, and 0.77 % with an index of 1.5.
    assert abs(gap(1.0, 2.0, 6)) <= 0.015
