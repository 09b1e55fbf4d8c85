"""Flows that tests of particles share."""

import jax.numpy as jnp
import numpy as np

from physax.particles import GriddedField


def gyre(t, x):
    """The double gyre of Shadden, Lekien and Marsden (2005)."""
    a, w = 0.25 * jnp.sin(2 * jnp.pi * t / 10), 0.1 * jnp.pi
    f, slope = a * x[0] ** 2 + (1 - 2 * a) * x[0], 2 * a * x[0] + 1 - 2 * a
    u = -w * jnp.sin(jnp.pi * f) * jnp.cos(jnp.pi * x[1])
    return jnp.stack([u, w * jnp.cos(jnp.pi * f) * jnp.sin(jnp.pi * x[1]) * slope])


def gridded_gyre(nodes=24, instants=9, last=4.0, **options):
    """The same on a grid of [0, 2] x [0, 1]."""
    t, x, y = (
        np.linspace(0, last, instants),
        np.linspace(0, 2, 2 * nodes),
        np.linspace(0, 1, nodes),
    )
    at = np.meshgrid(t, x, y, indexing="ij")
    values = gyre(jnp.asarray(at[0]), (jnp.asarray(at[1]), jnp.asarray(at[2])))
    return GriddedField(jnp.moveaxis(values, 0, -1), (x, y), t, **options)


def seeds(count=6):
    """Places in [0, 2] x [0, 1] away from the walls."""
    return np.random.default_rng(3).uniform((0.2, 0.1), (1.8, 0.9), (count, 2))
