"""Derivatives of fractions by the numbers of shapes and by the place of the cells."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em

from .shape_checks import check_derivatives, covered


CORNERS = np.array([[-0.82, -0.71], [0.77, -0.73], [0.52, 0.83], [-0.63, 0.68]])
CUBE = np.array(
    [[x, y, z] for x in (-0.5, 0.5) for y in (-0.6, 0.6) for z in (-0.4, 0.4)]
)
FACES = np.array(
    [
        *[(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)],
        *[(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)],
    ]
)
TILT = np.array([[0.8, 0.6, 0.0], [-0.6, 0.8, 0.0], [0.1, 0.3, 1.0]])
# Name: the shape of some numbers, the numbers, the dimension of the grid.
SHAPES = {
    "polygon": (
        lambda p: em.Polygon(jnp.asarray(CORNERS) * p[0] + p[1:3]),
        [1.0, 0.05, 0.03],
        2,
    ),
    "ellipsoid": (
        lambda p: em.Ellipsoid(p[:3], p[3:]),
        [0.01, 0.02, -0.03, 0.83, 0.64, 0.71],
        3,
    ),
    "cone": (
        lambda p: em.Cone(p[:3], p[3:5], p[5]),
        [0.01, 0.02, -0.03, 0.8, 0.33, 1.17],
        3,
    ),
    "ring": (lambda p: em.Ring(p[:2], p[2], p[3]), [0.01, 0.02, 0.7, 0.31], 2),
    "prism": (
        lambda p: em.Prism(jnp.asarray(CORNERS) * p[0], p[1], p[2], sidewall=p[3]),
        [1.0, -0.43, 0.51, 0.23],
        3,
    ),
    "union": (
        lambda p: em.Box(p[:2], (0.83, 0.93)) | em.Circle(p[2:4], p[4]),
        [0.01, 0.02, 0.4, 0.41, 0.53],
        2,
    ),
    "difference": (
        lambda p: (
            em.Box(p[:2], (1.53, 0.93)) - em.Circle(p[2:4], p[4]) & em.Box(0, 2.3)
        ),
        [0.01, 0.02, 0.4, 0.41, 0.53],
        2,
    ),
    "turned": (
        lambda p: em.rotate(em.Cylinder(p[:3], p[3], "z", 1.1), p[4], "x", parts=2),
        [0.01, 0.02, 0.03, 0.5, 0.4],
        3,
    ),
    "stretched and mirrored": (
        lambda p: em.scale(em.mirror(em.Polygon(CORNERS + p[:2]), "x", p[2]), p[3:6]),
        [0.01, 0.02, 0.03, 0.9, 0.83, 1.0],
        2,
    ),
    "repeated": (
        lambda p: em.repeat(em.Circle(p[:2], p[2]), (2, 2), [p[3:5], p[5:7]]),
        [-0.5, -0.5, 0.33, 0.8, 0.03, 0.13, 0.83],
        2,
    ),
    "mesh": (
        lambda p: em.TriangleMesh(CUBE @ TILT * p[3:6] + p[:3], FACES, 1),
        [0.01, 0.02, 0.03, 1.03, 0.98, 1.07],
        3,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_are_right_to_second_order(name):
    # The normals of the others are made of these.
    normals = name in ("polygon", "ellipsoid", "prism", "turned", "mesh")
    check_derivatives(*SHAPES[name], normals=normals)


TILTED = (math.cos(0.4), math.sin(0.4), 0.0)
# A face far larger than a cell, and its normal.
PLANES = {
    "polygon": (
        em.Polygon([(0.1, 0.0), (-2.0, 5.0), (-20.0, 0.0), (2.2, -5.0)]),
        (5.0, 2.1, 0.0),
    ),
    "sloped side": (
        em.Prism([(-9, -9), (0.1, -9), (0.1, 9), (-9, 9)], -3.0, 3.0, sidewall=0.3),
        (math.cos(0.3), 0.0, math.sin(0.3)),
    ),
    "turned box": (em.rotate(em.Box((-4, 0, 0), (8.2, 20, 20)), 0.4), TILTED),
    "turned prism": (
        em.rotate(
            em.Polygon([(-9, -9), (0.1, -9), (0.1, 9), (-9, 9)], low=-9, high=9),
            0.3,
            "y",
        ),
        (math.cos(0.3), 0.0, -math.sin(0.3)),
    ),
    "image": (
        em.mirror(em.rotate(em.Box((-4, 0), (8.2, 20)), 0.4), "x"),
        (-TILTED[0], TILTED[1], 0),
    ),
    "stretched": (
        em.scale(em.rotate(em.Box((-4, 0, 0), (8.2, 20, 20)), 0.4), (2.0, 1.0, 1.0)),
        (TILTED[0] / 2, TILTED[1], 0.0),
    ),
    "mesh": (
        em.TriangleMesh(CUBE * 8 + np.array([-4.1, 1.0, 2.0]), FACES),
        (1.0, 0, 0),
    ),
    "sphere": (em.Sphere((-500.0, 0, 0), 500.1), (1.0, 0.0, 0.0)),
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", PLANES)
def test_derivative_by_position_is_along_the_normal_of_a_flat_face(name):
    shape, normal = PLANES[name]
    slope = np.asarray(jax.jit(jax.jacfwd(lambda s: covered(shape, s)))(jnp.zeros(3)))
    assert np.all(np.isfinite(slope))
    size = np.linalg.norm(slope, axis=-1)
    # Cells at the ends of the grid may hold other faces; those around its middle not.
    size, slope = size[:, 2:4, 2:4], slope[:, 2:4, 2:4]
    found = slope[size > 1e-6] / size[size > 1e-6][:, None]
    assert len(found) >= 4
    wanted = -np.asarray(normal) / np.linalg.norm(normal)
    # The sphere bends by a cell of 0.4 in 500.
    tolerance = 2e-3 if name == "sphere" else 1e-9
    assert np.max(np.abs(found - wanted)) < tolerance


@pytest.mark.slow
def test_polygon_with_corners_on_corners_of_cells_keeps_its_derivative_under_jit():
    # Which of the cells at a corner rounding picks must not matter.
    from .shape_checks import MIDDLE, SPACING

    origin = np.array(MIDDLE[:2]) - np.array([3.5, 3.0]) * SPACING
    corners = origin + SPACING * np.array([[1, 1], [5, 1.2], [6, 5], [2, 4.65]])
    polygon = em.Polygon(corners)
    run = lambda s: covered(polygon, jnp.append(s, 0.0), 2)  # noqa: E731
    one = jax.jacfwd(run)(jnp.zeros(2))
    other = jax.jit(jax.jacfwd(run))(jnp.zeros(2))
    assert jnp.allclose(one, other, atol=1e-9)
    # No border of a cell is longer than the cell.
    assert jnp.max(jnp.abs(other)) < (1 + 1e-9) / SPACING
