import jax.numpy as jnp
import pytest

from physax import ArgumentError
from physax.em import Boundaries, Medium, cross_section_modes
from physax.grid import Grid
from physax.plot import cross_section_mode


@pytest.fixture(scope="module")
def modes():
    return cross_section_modes(
        Grid.uniform((8, 4), 2.4e-3),
        Medium(conductivity=jnp.asarray(1e-3)),
        12e9,
        boundaries=Boundaries(),
    )


def test_the_larger_component_is_drawn_with_index_and_loss(modes):
    axes = cross_section_mode(modes)
    assert axes.get_title().startswith("mode 1: index 0.7")
    assert "i" in axes.get_title().split()[-1]
    # Ey lies between its nodes along y.
    assert axes.images[0].get_array().shape == (4, 9)
    assert axes.get_xlabel() == "x (mm)"


def test_what_is_not_there_is_refused(modes):
    with pytest.raises(ArgumentError, match="`index` must be one of 1 modes"):
        cross_section_mode(modes, 1)
    with pytest.raises(ArgumentError, match="`component` must be one of"):
        cross_section_mode(modes, 0, "Er")
