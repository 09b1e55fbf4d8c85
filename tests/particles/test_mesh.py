"""Splitting into simplices, the tables, the locator, and what a mesh refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import Delaunay

from physax import PhysaxError
from physax.particles import Mesh
from physax.particles._locate import locate

from .meshes import FACES


# Finding places is harder in single precision; the fields' tests see both.
pytestmark = pytest.mark.f32

CUBE = np.array(
    [
        [0, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [0, 1, 0],
        [0, 0, 1],
        [1, 0, 1],
        [1, 1, 1],
        [0, 1, 1],
    ],
    float,
)
HEXAHEDRON = {"hexahedron": [[0, 1, 2, 3, 4, 5, 6, 7]]}


def delaunay(ndim, count, seed=0):
    """Random points in the unit cube with its corners; slivers are left out."""
    rng = np.random.default_rng(seed)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * ndim), -1).reshape(-1, ndim)
    points = np.concatenate([corners, rng.uniform(0, 1, (count, ndim))])
    found = Delaunay(points)
    edges = points[found.simplices[:, 1:]] - points[found.simplices[:, :1]]
    kept = np.abs(np.linalg.det(edges)) > 1e-12
    return points, found.simplices[kept], found


def volumes(mesh):
    """Volume of each element, from the places of the corners of its simplices."""
    points, n = np.asarray(mesh.points, float), mesh.ndim
    centre, node = np.asarray(mesh.averages)
    extra = np.zeros((mesh.centre_count, n))
    np.add.at(extra, centre, points[node])
    points = np.concatenate([points, extra / np.bincount(centre)[:, None]])
    places = points[np.asarray(mesh.links)[:, n + 1 :]]
    size = np.abs(np.linalg.det(places[:, 1:] - places[:, :1])) / (2 if n == 2 else 6)
    return np.bincount(mesh.owner, size)


@jax.jit
def search_compiled(mesh, x, memory):
    if memory is None:
        memory = jax.vmap(mesh.first_guess)(x)
    return jax.vmap(locate, in_axes=(None, 0, 0))(mesh, x, memory)


def search(mesh, x, memory=None):
    at, found = search_compiled(mesh, jnp.asarray(x, float), memory)
    return np.asarray(at), np.asarray(found)


@pytest.mark.parametrize("number", [0, 3, 5, 6])
def test_a_cube_is_split_into_six_from_its_smallest_node(number):
    # Whatever corner has the smallest number.
    names = np.roll(np.arange(8), number)
    points = np.empty_like(CUBE)
    points[names] = CUBE
    mesh = Mesh(points, {"hexahedron": names[None]})
    assert len(mesh.links) == 6
    np.testing.assert_allclose(volumes(mesh), 1, rtol=1e-6)
    np.testing.assert_allclose(mesh.centres, [[0.5, 0.5, 0.5]], rtol=1e-6)


# Volumes in closed form: half a cube, a third of one, and the sixth of one.
@pytest.mark.parametrize(
    ("kind", "nodes", "volume", "simplices"),
    [
        ("tetrahedron", [0, 1, 3, 4], 1 / 6, 1),
        ("pyramid", [0, 1, 2, 3, 4], 1 / 3, 2),
        ("prism", [0, 1, 3, 4, 5, 7], 1 / 2, 3),
        ("prism", [4, 5, 7, 0, 1, 3], 1 / 2, 3),
        ("hexahedron", [0, 1, 2, 3, 4, 5, 6, 7], 1, 6),
        ("polyhedron", FACES, 1, 12),
        # Faces seen now from outside, now from inside.
        (
            "polyhedron",
            [f[::-1] if k % 2 else f for k, f in enumerate(FACES)],
            1,
            12,
        ),
    ],
)
def test_solids_have_their_volume_and_fill_it(kind, nodes, volume, simplices):
    mesh = Mesh(CUBE, {kind: [nodes]})
    assert len(mesh.links) == simplices
    np.testing.assert_allclose(volumes(mesh), [volume], rtol=1e-6)
    x = np.random.default_rng(0).uniform(0, 1, (250, 3))
    inside = {
        "tetrahedron": x.sum(1) < 1,
        "pyramid": x[:, 2] < 1 - np.maximum(x[:, 0], x[:, 1]),
        "prism": x[:, 0] + x[:, 1] < 1,
    }.get(kind, np.ones(250, bool))
    _, found = search(mesh, x)
    np.testing.assert_array_equal(found, inside)


def test_a_prism_of_six_sides_has_face_centres_and_fills_its_place():
    angle = np.arange(6) * np.pi / 3
    ring = np.stack([np.cos(angle), np.sin(angle)], -1)
    points = np.concatenate([np.c_[ring, np.zeros(6)], np.c_[ring, np.ones(6)]])
    sides = [[k, (k + 1) % 6, (k + 1) % 6 + 6, k + 6] for k in range(6)]
    faces = [list(range(6))[::-1], list(range(6, 12)), *sides]
    mesh = Mesh(points, {"polyhedron": [faces]})
    np.testing.assert_allclose(volumes(mesh), [1.5 * np.sqrt(3)], rtol=1e-6)
    # Two hexagons and the element itself.
    assert mesh.centre_count == 3


def test_kinds_of_elements_meet_without_gaps():
    # A hexahedron, on it a pyramid, beside it a prism: every inner face has two sides.
    points = np.concatenate([CUBE, [[0.5, 0.5, 2.0], [2, 0, 0], [2, 0, 1]]])
    blocks = {
        "hexahedron": [[0, 1, 2, 3, 4, 5, 6, 7]],
        "pyramid": [[4, 5, 6, 7, 8]],
        "prism": [[1, 9, 2, 5, 10, 6]],
    }
    for order in (blocks, dict(reversed(blocks.items()))):
        mesh = Mesh(points, order)
        np.testing.assert_allclose(volumes(mesh).sum(), 1 + 1 / 3 + 1 / 2, rtol=1e-6)
        beside = np.asarray(mesh.links)[:, :4]
        # Outer faces: 5 - 1 squares, 4 triangles, 2 squares and 2 triangles, halved.
        assert np.sum(beside < 0) == 2 * 4 + 4 + 2 * 2 + 2
        x = np.random.default_rng(0).uniform([0, 0, 0], [1, 1, 1], (250, 3))
        assert np.all(search(mesh, x)[1])


def test_the_diagonal_of_a_quadrilateral_lies_inside():
    # An arrowhead: from node 0 the diagonal to node 2 would run outside.
    points = np.array([[0.0, 1], [1, 0], [2, 1], [1, 0.8]])
    mesh = Mesh(points, {"quadrilateral": [[0, 1, 2, 3]]})
    _, found = search(mesh, [[1, 0.5], [1, 0.9], [0.3, 0.85]])
    np.testing.assert_array_equal(found, [True, False, True])


def test_strongly_warped_hexahedra_leave_no_gaps():
    # The lid is twisted so far that the star of the smallest node has negative parts.
    shape = (5, 5, 5)
    rng = np.random.default_rng(2)
    axes = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    coordinates = np.stack(axes, -1)
    inner = coordinates[1:-1, 1:-1, 1:-1]
    inner += rng.uniform(-0.14, 0.14, inner.shape)
    mesh = Mesh.structured(coordinates)
    # Some were split from their centres.
    assert mesh.centre_count > 0
    _, found = search(mesh, rng.uniform(0, 1, (20_000, 3)))
    assert np.all(found)


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_simplex_is_the_one_that_scipy_finds(ndim):
    points, simplices, oracle = delaunay(ndim, 400)
    mesh = Mesh(points, {["triangle", "tetrahedron"][ndim - 2]: simplices}, orient=True)
    x = np.random.default_rng(1).uniform(-0.2, 1.2, (250 if ndim == 2 else 5000, ndim))
    found_at, found = search(mesh, x)
    expected = oracle.find_simplex(x)
    np.testing.assert_array_equal(found, expected >= 0)
    corners = np.sort(np.asarray(mesh.links)[found_at[found], ndim + 1 :], 1)
    np.testing.assert_array_equal(
        corners, np.sort(oracle.simplices[expected[found]], 1)
    )


@pytest.mark.slow
def test_the_walk_and_the_bins_find_the_same_from_anywhere():
    # Remembered places at random: most walks are too long and end in the bins.
    points, simplices, _ = delaunay(2, 3000)
    mesh = Mesh(points, {"triangle": simplices})
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (2000, 2))
    memory = jnp.asarray(rng.integers(0, len(simplices), 2000), jnp.int32)
    near, found = search(mesh, x)
    far, found_far = search(mesh, x, memory)
    assert np.all(found & found_far)
    np.testing.assert_array_equal(near, far)
    # One at a time, in batches of batches, and a few at a time.
    np.testing.assert_array_equal(
        locate(mesh, jnp.asarray(x[3]), memory[3])[0], near[3]
    )
    twice = jax.vmap(jax.vmap(locate, (None, 0, 0)), (None, 0, 0))
    some = jnp.asarray(x[:200]).reshape(4, 50, 2)
    at, found = jax.jit(twice)(mesh, some, memory[:200].reshape(4, 50))
    np.testing.assert_array_equal(at.reshape(-1), near[:200])
    at, _ = search(mesh, x[:7], jnp.broadcast_to(memory[0], 7))
    np.testing.assert_array_equal(at, near[:7])
    # The same place from many memories.
    same = jax.vmap(locate, (None, None, 0))
    at, _ = jax.jit(same)(mesh, jnp.asarray(x[0]), memory[:7])
    np.testing.assert_array_equal(at, jnp.broadcast_to(near[0], 7))


def test_a_walk_that_meets_a_hole_goes_around():
    # A ring of quadrilaterals; across the hole no face leads.
    angle = np.linspace(0, 2 * np.pi, 41)[:-1]
    ring = np.stack([np.cos(angle), np.sin(angle)], -1)
    k = np.arange(40)
    nodes = np.stack([k, k + 40, (k + 1) % 40 + 40, (k + 1) % 40], -1)
    mesh = Mesh(np.concatenate([ring, 2 * ring]), {"quadrilateral": nodes})
    x = np.array([[1.5, 0.01], [-1.5, 0.01], [0, 0.5]])
    memory = jnp.broadcast_to(search(mesh, x[:1])[0], 3)
    at, found = search(mesh, x, memory)
    np.testing.assert_array_equal(found, [True, True, False])
    middle = np.asarray(mesh.centres)[mesh.owner[at[1]]]
    assert np.linalg.norm(middle - x[1]) < 0.2


def test_hanging_nodes_are_crossed():
    # Two squares beside one: there is no neighbour to walk to.
    points = [[0, 0], [1, 0], [1, 2], [0, 2], [2, 0], [2, 1], [1, 1], [2, 2]]
    nodes = [[0, 1, 2, 3], [1, 4, 5, 6], [6, 5, 7, 2]]
    mesh = Mesh(np.array(points, float), {"quadrilateral": nodes})
    x = np.random.default_rng(0).uniform(0, 2, (250, 2))
    at, found = search(mesh, x, jnp.zeros(250, jnp.int32))
    assert np.all(found)
    expected = np.where(x[:, 0] < 1, 0, np.where(x[:, 1] < 1, 1, 2))
    np.testing.assert_array_equal(mesh.owner[at], expected)


def test_nothing_is_found_where_numbers_end():
    mesh = Mesh(CUBE, HEXAHEDRON)
    x = [[np.nan, 0.5, 0.5], [np.inf, 0.5, 0.5], [0.5, 1e30, 0.5], [0.5, 0.5, 0.5]]
    at, found = search(mesh, x)
    np.testing.assert_array_equal(found, [False, False, False, True])
    assert np.all((at >= 0) & (at < 6))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("ndim", [2, 3])
def test_lists_of_bins_stay_within_their_budget(ndim):
    points, simplices, _ = delaunay(ndim, 800)
    kind = ["triangle", "tetrahedron"][ndim - 2]
    mesh = Mesh(points**3, {kind: simplices}, orient=True)
    assert mesh.bins.entries.size <= 16 * len(simplices)
    assert mesh.bins.starts.size <= 8 * len(simplices) + 1
    # Every element is in the bin of its centre.
    start, stop = jax.vmap(mesh.bins.candidates)(mesh.centres)
    assert np.all(stop > start)


@pytest.mark.parametrize("ndim", [2, 3])
def test_structured_grids_of_either_hand(ndim):
    axes = np.meshgrid(*[np.linspace(0, 1, n) for n in (4, 3, 5)[:ndim]], indexing="ij")
    coordinates = np.stack(axes, -1)
    for hand in (coordinates, coordinates[::-1]):
        mesh = Mesh.structured(hand)
        assert mesh.elements == (6, 24)[ndim - 2]
        np.testing.assert_allclose(volumes(mesh).sum(), 1, rtol=1e-6)
    with pytest.raises(PhysaxError, match="inverted"):
        Mesh.structured(coordinates[::-1], orient=False)


def test_precision_is_the_default_one():
    mesh = Mesh(CUBE.astype(np.float32), HEXAHEDRON)
    assert mesh.points.dtype == mesh.rows.dtype == jnp.result_type(float)


FLAT = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("points", "elements", "message"),
    [
        (
            FLAT,
            {"triangle": [[0, 1, 2], [0, 3, 4]]},
            r"element 1 of `elements\['triangle'\]` has none \(0\)",
        ),
        (
            # Thirds and sixths are on one line only to rounding.
            np.array([[0.1, 0.3], [0.2, 0.6], [0.3, 0.9]]) + 1e3,
            {"triangle": [[0, 1, 2]]},
            r"element 0 of `elements\['triangle'\]` has none",
        ),
        (
            FLAT,
            {"triangle": [[0, 1, 2]], "quadrilateral": [[0, 1, 3, 2], [0, 2, 3, 1]]},
            r"element 1 of `elements\['quadrilateral'\]` is inverted: .*`orient=True`",
        ),
        (
            CUBE,
            {"tetrahedron": [[0, 1, 2, 3]]},
            r"element 0 of `elements\['tetrahedron'\]` has none",
        ),
        (
            CUBE,
            {"hexahedron": [[4, 5, 6, 7, 0, 1, 2, 3]]},
            r"element 0 of `elements\['hexahedron'\]` is inverted",
        ),
        (
            FLAT,
            {"triangle": [[0, 1, 5]]},
            r"`elements\['triangle'\]` must hold node numbers from 0 to 4, but hold 5",
        ),
        (
            FLAT,
            {"triangle": [[0, 1, 2, 3]]},
            r"`elements\['triangle'\]` must have shape \(elements, 3\), .* \(1, 4\)",
        ),
        (
            FLAT,
            {"triangle": [[0.0, 1.0, 2.0]]},
            "must hold numbers of nodes, but .*float",
        ),
        (FLAT, HEXAHEDRON, "of the kinds triangle, quadrilateral, but include 'hexa"),
        (
            CUBE,
            {"triangle": [[0, 1, 2]]},
            "3 coordinates .*polyhedron, but .*'triangle'",
        ),
        (FLAT, {}, "`elements` must hold at least one element"),
        (np.zeros((4, 1)), {}, r"`points` must have two or three .*shape \(4, 1\)"),
        (
            np.where(np.arange(5)[:, None] == 3, np.nan, FLAT),
            {"triangle": [[0, 1, 2]]},
            "`points` must be finite, but node 3 is",
        ),
        (
            CUBE,
            {"polyhedron": [FACES, FACES[1:]]},
            r"must be closed, .* in element 1 of `elements\['polyhedron'\]` 1 faces",
        ),
    ],
)
def test_bad_meshes_are_refused(points, elements, message):
    with pytest.raises(PhysaxError, match=message):
        Mesh(points, elements)


def test_bad_grids_and_traced_points_are_refused():
    with pytest.raises(PhysaxError, match=r"`coordinates` must .* have \(4, 1, 2\)"):
        Mesh.structured(np.zeros((4, 1, 2)))
    with pytest.raises(PhysaxError, match="`points` must be known here, .* outside"):
        jax.jit(lambda p: Mesh(p, {"triangle": [[0, 1, 2]]}).rows)(FLAT)
