"""Fractions of solids of triangles against their volumes and the sides of points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import ConvexHull

from physax import em
from physax.grid import Grid


SPACING = 0.1
# Wide enough for what would lie outside of the body.
GRID = Grid.centred((30, 30, 30), SPACING)
TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])


def hull(points):
    """Returns corners and triangles of a convex body."""
    hull = ConvexHull(points)
    corners = points[hull.simplices]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.sum(normal * hull.equations[:, :3], axis=1) < 0
    turned = np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices)
    # Off the borders of the cells.
    return points - points.mean(axis=0) + 0.013, turned


def star():
    """An octahedron with a spike on each face."""
    points, faces = hull(np.concatenate([np.eye(3), -np.eye(3)]) * 0.4)
    tips = points[faces].mean(axis=1) * 6
    tip = np.arange(len(faces)) + len(points)
    sides = [np.c_[faces[:, [k, (k + 1) % 3]], tip] for k in range(3)]
    return np.concatenate([points, tips]), np.concatenate(sides)


def cavity():
    points, faces = hull(np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T)
    inner, sides = hull(TETRAHEDRON)
    return (
        np.concatenate([points, inner]),
        np.concatenate([faces, sides[:, ::-1] + len(points)]),
    )


def random(count):
    return hull(np.random.default_rng(count).uniform(-1, 1, (count, 3)))


BODIES = {
    "tetrahedron": hull(TETRAHEDRON * 1.1),
    "pyramid": hull(np.array([*TETRAHEDRON[:3] * 0.6, [0.2, 0.2, 2.0]])),
    "blade of 2 degrees": hull(
        np.array(
            [[0, 0, z] for z in (0, 1)]
            + [[1, y, z] for y in (0, 0.035) for z in (0, 1)]
        )
    ),
    "star": star(),
    "cavity": cavity(),
    **{f"hull of {n} points": random(n) for n in (5, 6, 8)},
}


def fractions(points, faces):
    return em.fill_fraction(em.TriangleMesh(points, faces), GRID, (0.5, 0.5, 0.5))


def volume(points, faces):
    """By the divergence theorem."""
    return jnp.sum(jnp.linalg.det(points[faces])) / 6


def within(points, faces):
    """Whether the middles of cells are inside, by the solid angle of the surface."""
    x = (np.arange(30) - 14.5) * SPACING
    places = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
    angle = np.zeros(places.shape[:3])
    for corners in points[faces]:
        a, b, c = (corner - places for corner in corners)
        la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
        ab, bc, ca = (np.sum(x * y, axis=-1) for x, y in ((a, b), (b, c), (c, a)))
        over = la * lb * lc + ab * lc + bc * la + ca * lb
        angle += 2 * np.arctan2(np.sum(a * np.cross(b, c), axis=-1), over)
    return angle > 2 * np.pi


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_where_its_surface_is(name):
    points, faces = BODIES[name]
    found = np.asarray(fractions(points, faces))
    whole = (found == 0) | (found == 1)
    assert np.array_equal(found[whole] == 1, within(points, faces)[whole])
    # Edges err by some 0.02 of their length times the square of the cells, sharp ones
    # by more.
    rel = 0.5 if "blade" in name else 0.04
    total = found.sum() * SPACING**3
    assert total == pytest.approx(float(volume(points, faces)), rel=rel)


@pytest.mark.slow
def test_the_volume_has_the_derivative_by_its_corners():
    points, faces = BODIES["hull of 6 points"]
    found = jax.grad(lambda x: fractions(x, faces).sum())(jnp.asarray(points))
    wanted = jax.grad(volume)(jnp.asarray(points), faces)
    # What edges err by depends on where they are in the cells.
    error = found * SPACING**3 - wanted
    assert jnp.linalg.norm(error) < 0.03 * jnp.linalg.norm(wanted)


def test_corners_at_one_place_need_no_common_index():
    # A frustum whose upper end has no size, against a pyramid.
    square = np.array([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1]]) * 0.7
    tip = np.array([[0, 0, 0.9]])
    base, top = [(0, 2, 1), (0, 3, 2)], [(4, 5, 6), (4, 6, 7)]
    sides = [(k, (k + 1) % 4) for k in range(4)]
    frustum = [*base, *top, *[(i, j, j + 4) for i, j in sides]]
    frustum += [(i, j + 4, i + 4) for i, j in sides]
    pyramid = [*base, *[(i, j, 4) for i, j in sides]]
    found = fractions(np.concatenate([square, tip, tip, tip, tip]), frustum)
    wanted = fractions(np.concatenate([square, tip]), pyramid)
    assert jnp.allclose(found, wanted, atol=1e-5)
