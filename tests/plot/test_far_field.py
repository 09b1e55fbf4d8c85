"""Polar diagrams of far fields."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.plot import far_field


pytestmark = pytest.mark.f32
ANGLES = np.linspace(0, 1.5, 4)


def pattern(*theta):
    units = em.direction(jnp.asarray(ANGLES), *theta)
    return em.FarField(jnp.ones(1), units, {}, jnp.array([[1.0, 4.0, 2.0, 0.0]]))


def test_intensity_is_drawn_over_angle():
    axes = far_field(pattern())
    (line,) = axes.lines
    assert line.get_xdata() == pytest.approx(ANGLES, abs=1e-6)
    assert line.get_ydata() == pytest.approx([1, 4, 2, 0])
    assert "W fs²/(m rad)" in axes.get_title()
    assert axes.get_xlabel() == "φ (degrees)"
    axes = far_field(pattern(ANGLES), angles=ANGLES, decibel=True)
    assert axes.lines[0].get_ydata() == pytest.approx([-6.02, 0, -3.01, -40], abs=0.01)
    assert "dB" in axes.get_title()


def test_what_cannot_be_drawn():
    with pytest.raises(ArgumentError, match="`angles` must be given in 3-D"):
        far_field(pattern(ANGLES))
    with pytest.raises(ArgumentError, match="one entry for each of the 4 directions"):
        far_field(pattern(), angles=ANGLES[:2])
    wide = em.FarField(jnp.ones(1), jnp.ones((2, 2, 2)), {}, jnp.ones((1, 2, 2)))
    with pytest.raises(ArgumentError, match="one row of directions"):
        far_field(wide)
