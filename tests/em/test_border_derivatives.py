"""Derivatives by sizes that are whole numbers of cells, where fractions have kinks."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em import fill_fraction
from physax.grid import Grid


# No binary fraction: each border is rounded, and from both sides not alike.
SPACING = 0.07
SPACE = Grid.centred((18, 16, 14), SPACING)
PLANE = Grid.centred((40, 16), SPACING)
LINE = np.array([(-0.5, -0.2), (0.5, -0.2), (0.5, 0.2), (-0.5, 0.2)])


def rectangle(size):
    return jnp.asarray(LINE) * jnp.stack([size, jnp.ones_like(size)])


# Name: the shape of a size, the cells of this size, its volume per size.
SHAPES = {
    "slab": (lambda s: em.Box(0.0, (s, 0.3)), range(2, 36, 2), 0.3),
    "half space": (
        lambda s: em.Box.from_corners((-9.0, -0.15), (s, 0.15)),
        range(-16, 17),
        0.3,
    ),
    "union": (
        lambda s: em.Box(0.0, (s, 0.3)) | em.Box((0, 0.4), (0.5, 0.3)),
        range(8, 30, 2),
        0.3,
    ),
    "copies": (
        lambda s: em.repeat(em.Box((-0.7, 0), (s, 0.3)), (2,), [(1.4, 0)]),
        range(2, 16, 2),
        0.6,
    ),
    "outline beside a cut": (
        lambda s: em.repeat(
            em.Polygon(rectangle(s), "y", -0.15, 0.15), (1,), [(0, 0, 0.05)]
        ),
        range(8, 36, 2),
        0.3,
    ),
    "cylinder": (
        lambda s: em.Cylinder(0.0, 0.45, "x", s),
        range(2, 18, 2),
        math.pi * 0.45**2,
    ),
    "cone": (
        lambda s: em.Cone(0.0, (0.41, 0.23), s, "x"),
        range(2, 18, 2),
        math.pi / 3 * (0.41**2 + 0.41 * 0.23 + 0.23**2),
    ),
    "ellipsoid": (
        lambda s: em.Ellipsoid(0.0, jnp.stack([0.41 + 0 * s, 0.33 + 0 * s, s / 2])),
        range(2, 14, 2),
        math.pi * 2 / 3 * 0.41 * 0.33,
    ),
    "prism": (
        lambda s: em.Prism(LINE, -0.31, s),
        (-2, 1, 2),
        0.4,
    ),
    "turned outline": (
        lambda s: em.rotate(em.Polygon(rectangle(s), low=-0.19, high=0.19), 0.0, "y"),
        range(4, 18, 2),
        0.4 * 0.38,
    ),
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", SHAPES)
def test_derivative_of_a_volume_counts_each_end_on_a_border_once(name):
    make, counts, wanted = SHAPES[name]
    flat = name in ("slab", "half space", "union", "copies", "outline beside a cut")
    grid = PLANE if flat else SPACE

    @jax.jit
    def slope(size):
        whole = lambda s: jnp.sum(fill_fraction(make(s), grid, (0.5,) * grid.ndim))  # noqa: E731
        return jax.grad(whole)(size) * SPACING**grid.ndim

    found = [float(slope(jnp.asarray(n * SPACING, float))) for n in counts]
    # Fractions are rounded in units of a cell; counted twice an end adds a half.
    eps = float(jnp.finfo(jnp.zeros(())).eps)
    assert found == pytest.approx([wanted] * len(found), rel=1000 * eps)


def test_beside_borders_of_unequal_cells_each_end_counts_once():
    edges = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.53, 0.7, 0.9, 1.1])
    grid = Grid.graded([edges])

    @jax.jit
    def slope(size):
        whole = lambda s: jnp.sum(  # noqa: E731
            fill_fraction(em.Box.from_corners((-1.0,), (s,)), grid, (0.5,))
            * jnp.diff(jnp.asarray(edges))
        )
        return jax.grad(whole)(size)

    beside = np.array([0, 1, -1, 2.5, -2.5, 3.8, -3.8, 4.2, 5, -5, 9]) * 1e-5
    found = [float(slope(jnp.asarray(b + d))) for b in (0.4, 0.53) for d in beside]
    assert found == pytest.approx([1.0] * len(found), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("averaging", ["volume", "polarised"])
def test_derivative_of_each_cell_is_the_mean_of_both_sides(averaging):
    glass, silicon = em.Material(2.085), em.Material(12.11)
    cells = Grid.centred((12, 12), SPACING)

    @jax.jit
    def medium(size):
        guide = em.Structure(em.Box(0.0, (math.inf, size)), silicon)
        return em.rasterise(
            [guide],
            cells,
            background=glass,
            components=("Hz", "Ex", "Ey"),
            averaging=averaging,
        ).permittivity["Ey"][5]

    size = 6 * SPACING
    found = jax.jacfwd(medium)(jnp.asarray(size, float)) * SPACING
    # By the filled part f the permittivity is low + (high - low) f, or of its inverse
    # the mean: with the slopes below at f = 0, outside, and at f = 1, inside.
    low, high = 2.085, 12.11
    outside = inside = high - low
    if averaging == "polarised":
        outside, inside = outside * low / high, inside * high / low
    # Each end moves by half of the size, and of both sides this is the mean.
    expected = np.zeros(12)
    expected[[2, 9]], expected[[3, 8]] = outside / 4, inside / 4
    tolerance = 1e-12 if found.dtype == jnp.float64 else 1e-4
    assert np.asarray(found) == pytest.approx(expected, rel=tolerance)


@pytest.mark.slow
def test_second_derivative_is_right_on_a_border():
    grid = Grid.centred((12, 12, 12), SPACING)

    def volume(size):
        box = em.Box(0.0, jnp.stack([size, 2 * size, size]))
        return jnp.sum(fill_fraction(box, grid, (0.5,) * 3)) * SPACING**3

    size = jnp.asarray(4 * SPACING, float)
    found = float(jax.jit(jax.grad(jax.grad(volume)))(size))
    # Of 2 s^3.
    assert found == pytest.approx(12 * 4 * SPACING, rel=1e-4)
