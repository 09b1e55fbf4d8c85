"""Warnings name the line of the user, whatever stands between it and the check."""

import linecache
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from physax import PhysaxWarning, em
from physax.grid import Grid


def thin_layers():
    faces = em.Boundaries.all(em.CPML(4))
    return em.Simulation(Grid.uniform((40,), 1e-6), boundaries=faces, steps=1).dt


def negative(x):
    return em.Medium(conductivity=-1.0).permittivity + x


@pytest.mark.parametrize(
    "call",
    [
        thin_layers,
        lambda: negative(1.0),
        lambda: jax.jit(negative)(1.0),
        lambda: eqx.filter_vmap(negative)(jnp.ones(2)),
        lambda: em.Material(conductivity=-1.0),
    ],
)
def test_a_warning_names_a_line_of_the_user(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PhysaxWarning)
        call()
    ours = [one for one in caught if issubclass(one.category, PhysaxWarning)]
    assert ours
    for one in ours:
        assert one.filename == __file__
        assert " em." in linecache.getline(__file__, one.lineno)
