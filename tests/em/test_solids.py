"""Ellipsoids, cones, rings and prisms against closed forms and counted points."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid

from .shape_checks import SPACING, counted, covered


SQUARE = np.array([[-0.8, -0.7], [0.8, -0.7], [0.8, 0.7], [-0.8, 0.7]])
# Two arms of it end at a gap of 0.3, in front of a wider room.
NOTCHED = np.array(
    [
        *[(-1, -1), (1, -1), (1, 1), (0.15, 1), (0.15, 0.6), (0.6, 0.6)],
        *[(0.6, -0.6), (-0.6, -0.6), (-0.6, 0.6)],
        *[(-0.15, 0.6), (-0.15, 1.1), (-1, 1.1)],
    ]
)
# Name: the shape, its volume.
VOLUMES = {
    "ellipsoid": (
        em.Ellipsoid((0.01, 0.02, -0.03), (0.83, 0.64, 0.71)),
        4 / 3 * math.pi * 0.83 * 0.64 * 0.71,
    ),
    "frustum along x": (
        em.Cone((0.01, 0.02, -0.03), (0.8, 0.3), 1.1, "x"),
        math.pi * 1.1 / 3 * (0.64 + 0.24 + 0.09),
    ),
    "cone": (em.Cone(0.0, (0.8, 0.0), 1.1), math.pi * 1.1 / 3 * 0.64),
    "ring": (em.Ring(0.0, 0.6, 0.3, "y", 0.93), 2 * math.pi * 0.6 * 0.3 * 0.93),
    # Between parallel faces of a prismoid, by Simpson's rule.
    "prism": (
        em.Prism(SQUARE, -0.5, 0.6, sidewall=0.2, drawn_at=0.1),
        1.1
        / 6
        * sum(
            w * (1.6 - 2 * h * math.tan(0.2)) * (1.4 - 2 * h * math.tan(0.2))
            for w, h in ((1, -0.6), (4, -0.05), (1, 0.5))
        ),
    ),
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", VOLUMES)
def test_volume_is_exact(name):
    shape, volume = VOLUMES[name]
    found = float(jnp.sum(covered(shape))) * SPACING**3
    assert found == pytest.approx(volume, rel=1e-6 if name == "prism" else 1e-12)


def _in_prism(x, y, z, holes=()):
    inward = (z + 0.45) * math.tan(0.25)
    inside = np.maximum(abs(x) - 0.8, abs(y) - 0.7) < -inward
    for half in holes:
        inside &= np.maximum(abs(x), abs(y)) > half + inward
    return inside & (z > -0.45) & (z < 0.55)


POINTS = {
    "ellipsoid": (
        em.Ellipsoid((0.1, 0.02, -0.03), (0.83, 0.64, 0.71)),
        lambda x, y, z: (
            ((x - 0.1) / 0.83) ** 2
            + ((y - 0.02) / 0.64) ** 2
            + ((z + 0.03) / 0.71) ** 2
            < 1
        ),
    ),
    "cone": (
        em.Cone((0.1, 0.02, 0.05), (0.9, 0.2), 1.1, "y"),
        lambda x, y, z: (
            (np.hypot(x - 0.1, z - 0.05) < 0.9 - 0.7 * (y - 0.02 + 0.55) / 1.1)
            & (abs(y - 0.02) < 0.55)
        ),
    ),
    "ring": (
        em.Ring((0.1, 0.02, 0.05), 0.7, 0.25, "x", 1.3),
        lambda x, y, z: (
            (abs(np.hypot(y - 0.02, z - 0.05) - 0.7) < 0.125) & (abs(x - 0.1) < 0.65)
        ),
    ),
    "prism": (em.Prism(SQUARE, -0.45, 0.55, sidewall=0.25), _in_prism),
    "prism with a hole": (
        em.Prism(
            np.concatenate([SQUARE, SQUARE[::-1] * [0.12 / 0.8, 0.12 / 0.7]]),
            -0.45,
            0.55,
            sidewall=0.25,
            outlines=(4, 4),
        ),
        lambda x, y, z: _in_prism(x, y, z, [0.12]),
    ),
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", POINTS)
def test_fractions_are_those_of_counted_points(name):
    shape, inside = POINTS[name]
    found, wanted = np.asarray(covered(shape)), counted(inside)
    # A surface of one cell is off by half a layer of 16 at most where it is along them.
    assert np.max(np.abs(found - wanted)) < 0.5 / 16 + 0.005
    assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.006
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize("name", POINTS)
def test_bounds_hold_the_shape_and_no_more(name):
    shape, inside = POINTS[name]
    axes = [np.linspace(-1.2, 1.2, 121)] * 3
    hit = inside(*np.meshgrid(*axes, indexing="ij"))
    for axis, (low, high) in enumerate(zip(*shape.bounds(), strict=True)):
        along = axes[axis][hit.any(axis=tuple(k for k in range(3) if k != axis))]
        assert float(low) == pytest.approx(along[0], abs=0.03)
        assert float(high) == pytest.approx(along[-1], abs=0.03)


@pytest.mark.slow
def test_a_grid_of_fewer_axes_cuts_the_solids_at_zero():
    plane = Grid.centred((30, 28), 0.1)

    def area(shape):
        return float(jnp.sum(em.fill_fraction(shape, plane, (0.5, 0.5)))) * 0.01

    half = math.sqrt(1 - 0.25)
    ellipsoid = em.Ellipsoid((0, 0, 0.4), (1.0, 0.7, 0.8))
    assert area(ellipsoid) == pytest.approx(math.pi * 0.7 * half**2)
    cone = em.Cone((0, 0, 0.2), (1.0, 0.4), 1.2)
    assert area(cone) == pytest.approx(math.pi * (1.0 - 0.6 / 3) ** 2)
    assert area(em.Cone((0, 0, 0.7), (1.0, 0.4), 1.2)) == 0
    prism = em.Prism(SQUARE, -0.5, 0.6, sidewall=math.atan(0.2))
    assert area(prism) == pytest.approx((1.6 - 0.2) * (1.4 - 0.2))
    assert area(em.Ring(0.0, 0.6, 1.2)) == pytest.approx(math.pi * 1.44)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: em.Ellipsoid(0.0, (1, 1)), r"`radii` must have shape \(3,\)"),
        (lambda: em.Ellipsoid(0.0, (1, 1, 0)), "`radii` must be positive .* but is 0"),
        (lambda: em.Cone(0.0, 1.0, 1.0), r"`radii` must have shape \(2,\)"),
        (lambda: em.Cone(0.0, (1, -1), 1.0), "`radii` must be finite and at least 0"),
        (lambda: em.Cone(0.0, (0, 0), 1.0), "One of `radii` must be positive"),
        (
            lambda: em.Cone(0.0, (1, 1), math.inf),
            "`length` must be positive and finite",
        ),
        (lambda: em.Cone(0.0, (1, 1), 1.0, "r"), "`axis` must be one of"),
        (
            lambda: em.Ring(0.0, 1.0, 2.1),
            r"`width` must be at most twice `radius` \(1\)",
        ),
        (lambda: em.Ring(0.0, 1.0, -2.1), "`width` must be positive and finite"),
        (lambda: em.Ring(0.0, 1.0, 1.0, "z", 0.0), "`length` must be positive"),
        (lambda: em.Prism(SQUARE, 0.0, math.inf), "`high` must be finite, but is inf"),
        (lambda: em.Prism(SQUARE, 1.0, 0.0), r"`high` must be above `low` \(1\)"),
        (lambda: em.Prism(SQUARE, 0, 1, sidewall=85.0), "`sidewall` must lie in"),
        (lambda: em.Prism(SQUARE, 0, 1, sidewall=0.7), "from vertex 0 vanishes before"),
        (lambda: em.Prism(SQUARE, 0, 1, axis="q"), "`axis` must be one of"),
        (lambda: em.Prism(SQUARE, np.zeros(2), 1), "`low` must be one number"),
        (
            lambda: em.Prism(SQUARE, 0, 1, outlines=(3,)),
            "must add up to the 4 vertices",
        ),
        (lambda: em.Prism(SQUARE[[0, 2, 1, 3]], 0, 1), "must not cross itself"),
        (
            lambda: em.Prism(NOTCHED, 0, 1, sidewall=-0.2),
            "at high` must not cross itself, .* choose a smaller `sidewall`",
        ),
    ],
)
def test_bad_solids_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_ends_that_are_known_are_refused_under_jit_too():
    good = jax.jit(lambda: em.Polygon(SQUARE, low=0.0, high=1.0).high)
    assert good() == 1
    with pytest.raises(ArgumentError, match=r"`high` must be above `low` \(1\)"):
        jax.jit(lambda: em.Polygon(SQUARE, low=1.0, high=0.0).high)()
