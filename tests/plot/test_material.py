import numpy as np
import pytest

from physax import ArgumentError, em
from physax.plot import material
from physax.units import MICRO, SPEED_OF_LIGHT


WAVES = np.linspace(0.5, 1.0, 11) * MICRO


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_n_and_k_are_drawn_over_nanometres():
    gold = em.library("Au")
    axes = material(gold, WAVES, label="gold")
    n, k = axes.lines
    index = np.sqrt(np.asarray(em.complex_permittivity(gold, SPEED_OF_LIGHT / WAVES)))
    assert np.allclose(n.get_xdata(), WAVES * 1e9)
    assert np.allclose(n.get_ydata(), index.real)
    assert np.allclose(k.get_ydata(), index.imag)
    assert labels(axes) == ["gold n", "gold k"]
    assert axes.get_xlabel() == "wavelength (nm)"
    assert axes.get_ylabel() == "n, k (dimensionless)"


def test_without_losses_there_is_no_k():
    axes = material(em.library("SiO2"), WAVES)
    assert labels(axes) == ["n"]
    # A second material on the same axes.
    material(em.library("SF11"), WAVES[::-1], label="SF11", axes=axes)
    assert labels(axes) == ["n", "SF11 n"]
    assert np.all(np.diff(axes.lines[1].get_xdata()) > 0)


def test_a_material_with_three_indices_has_three_curves():
    axes = material(em.Material((2.0, 3.0, 4.0)), WAVES)
    assert labels(axes) == ["n x", "n y", "n z"]
    assert np.allclose(axes.lines[2].get_ydata(), 2)


@pytest.mark.slow
def test_a_fit_is_drawn_beside_its_table():
    n, k = 1.5 + 0.1 * WAVES / MICRO, 0.01 * np.ones(11)
    fit = em.fit_material(WAVES, n, k, poles=1)
    axes = material(fit)
    curve, dots = axes.lines[:2]
    assert len(curve.get_xdata()) > len(WAVES)
    assert np.allclose(curve.get_xdata()[[0, -1]], [500, 1000])
    assert np.allclose(dots.get_xdata(), WAVES * 1e9)
    assert np.allclose(dots.get_ydata(), n)
    assert dots.get_color() == curve.get_color()
    assert labels(axes) == ["n", "n, table", "k", "k, table"]


@pytest.mark.parametrize("bad", [None, [0.0], [], np.array([[1e-6]])])
def test_bad_wavelengths_are_refused(bad):
    with pytest.raises(ArgumentError, match="`wavelengths` must be"):
        material(em.library("SiO2"), bad)
