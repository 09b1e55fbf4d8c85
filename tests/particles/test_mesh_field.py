"""Fields on meshes: exactness, and what is said outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import Delaunay

from physax import PhysaxError
from physax.grid import Clamp
from physax.particles import Mesh, MeshField, ParticleStatus
from physax.particles._cell_field import CellField, centres_and_corners

from .meshes import MESHES, delaunay, grid, places_inside, solids


ALIVE, LEFT_DATA = int(ParticleStatus.ALIVE), int(ParticleStatus.LEFT_DATA)


def rotation(ndim):
    """A turn about no axis of the coordinates."""
    turn, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(ndim, ndim)))
    return turn * np.sign(np.linalg.det(turn))


SOLIDS = ["prism", "pyramid", "polyhedron", "mixed"]
# Single precision is what is hard; of the thin ones, double as well.
CASES = [
    pytest.param(name, ndim, marks=[] if name == "thin" else pytest.mark.f32)
    for ndim, names in ((2, MESHES), (3, ["curvilinear", "random", "thin", *SOLIDS]))
    for name in names
]


def build(name, ndim):
    return MESHES[name](ndim) if name in MESHES else solids(name)


def look(field, x, t=0.0):
    seen = look_compiled(field, jnp.asarray(x, float), jnp.asarray(t, float))
    return [np.asarray(part) for part in seen]


@jax.jit
def look_compiled(field, x, t):
    seen = jax.vmap(lambda x: field.look(t, x, field.start(x)))(x)
    return seen.value, seen.status


def linear(x):
    """A linear function, for its places in float64."""
    slopes = np.array([[1.0, -2, 0.5], [0.3, 1, 4]])[:, : x.shape[-1]]
    return x @ slopes.T


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("name", "ndim"), CASES)
def test_a_linear_function_is_exact_everywhere_inside(name, ndim):
    points, elements = build(name, ndim)
    inside = places_inside(points, 20_000)
    # The sizes take turns; a random mesh has them all.
    sizes = (1e-4, 1.0, 1e4)
    turn = rotation(ndim)
    for size in sizes if name == "random" and ndim == 3 else sizes[len(name) % 3 :][:1]:
        mesh = Mesh(size * points @ turn, elements, orient=True)
        x = jnp.asarray(size * inside @ turn)
        assert_linear(MeshField, mesh, size * points @ turn, x)
        if name in ("thin", "mixed"):
            assert_linear(CellField, mesh, centres_and_corners(mesh)[0], x)


def assert_linear(field, mesh, places, x):
    values = linear(places)
    got, status = look(field(mesh, values), x)
    assert np.all(status == ALIVE)
    # Against the function at the place that the device was given. 1e-7 is the rounding
    # of the values; in float64 slopes lose some digits in flat elements.
    error = np.abs(got.astype(float) - linear(np.asarray(x, float)))
    double = 1e-15 if field is MeshField else 1e-12
    limit = 1e-6 if got.dtype == np.float32 else double
    assert error.max() < limit * np.abs(values).max()


@pytest.mark.slow
@pytest.mark.parametrize("field", [MeshField, CellField])
def test_nothing_is_lost_far_from_the_origin(field):
    # A mesh of a metre, 10 km away, in places that float32 knows to a millimetre: the
    # function at just those places, which vanishes in the middle of the mesh.
    points, elements = delaunay(3, 200)
    away = np.array([1e4, -1e4, 1e4])
    mesh = Mesh(points + away, elements, orient=True)
    places = points if field is MeshField else centres_and_corners(mesh)[0] - away
    x = jnp.asarray(np.random.default_rng(1).uniform(0.01, 0.99, (250, 3)) + away)
    got, status = look(field(mesh, linear(places)), x)
    assert np.all(status == ALIVE)
    exact = linear(np.asarray(x, float) - away)
    # float64 coordinates know places to 1e-12 here.
    limit = 1e-6 if got.dtype == np.float32 else 1e-11
    np.testing.assert_allclose(got, exact, rtol=0, atol=limit * np.abs(exact).max())


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("ndim", [2, 3])
def test_any_values_at_nodes_are_what_scipy_interpolates(ndim):
    points, elements = delaunay(ndim, 200)
    mesh = Mesh(points, elements, orient=True)
    values = np.random.default_rng(0).normal(size=(len(points), 3))
    x = np.random.default_rng(1).uniform(-0.1, 1.1, (250, ndim))
    got, status = look(MeshField(mesh, values), x)
    expected = LinearNDInterpolator(Delaunay(points), values)(x)
    inside = np.isfinite(expected[:, 0])
    np.testing.assert_array_equal(status, np.where(inside, ALIVE, LEFT_DATA))
    assert np.all(np.isfinite(got))
    # Weights are known to 1e-7 of the longest edge over the height, up to 1e3.
    atol = 1e-4 if got.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got[inside], expected[inside], rtol=0, atol=atol)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", ["hexahedron", "mixed"])
def test_the_field_is_continuous_across_faces(kind):
    # Bent elements and random values: what neighbours say of a shared face agrees.
    points, elements = solids(kind)
    points = points + 0.03 * np.sin(3 * points[:, [1, 2, 0]])
    values = np.random.default_rng(0).normal(size=len(points))
    mesh = Mesh(points, elements)
    field = MeshField(mesh, values)
    links = np.asarray(mesh.links)
    simplex, face = np.nonzero(links[:, :4] >= 0)
    nodes = np.array(
        [np.delete(c, k) for c, k in zip(links[simplex, 4:], face, strict=True)]
    )
    places = np.asarray(mesh.points)
    centre, node = np.asarray(mesh.averages)
    if len(centre):
        extra = np.zeros((mesh.centre_count, 3))
        np.add.at(extra, centre, places[node])
        places = np.concatenate([places, extra / np.bincount(centre)[:, None]])
    x = jnp.asarray(places[nodes].mean(1), mesh.points.dtype)
    both = [simplex, links[simplex, face]]
    weights = [jax.vmap(mesh.weights)(x, jnp.asarray(side)) for side in both]
    mine, theirs = (
        sum(w * field.values[links[side, 4 + k]] for k, w in enumerate(weight))
        for side, weight in zip(both, weights, strict=True)
    )
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-5)


def test_without_slopes_the_value_is_that_of_the_element():
    points, elements = solids("mixed")
    mesh = Mesh(points, elements)
    values = np.arange(mesh.elements)
    got, status = look(CellField(mesh, values, constant=True), mesh.centres)
    np.testing.assert_array_equal(got, values)
    assert np.all(status == ALIVE)


@pytest.mark.slow
@pytest.mark.x64
def test_order_two_for_smooth_functions():
    def errors(count):
        coordinates = grid(*[np.linspace(0, 1, count)] * 2)
        coordinates[..., 0] += 0.05 * np.sin(np.pi * coordinates).prod(-1)
        mesh = Mesh.structured(coordinates)

        def wave(x):
            return np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1])

        x = np.random.default_rng(0).uniform(0, 1, (256, 2))
        for field, places in ((MeshField, mesh.points), (CellField, mesh.centres)):
            got, _ = look(field(mesh, wave(np.asarray(places))), x)
            yield np.sqrt(np.mean((got - wave(x)) ** 2))

    orders = np.log2(np.array(list(errors(17))) / np.array(list(errors(33))))
    # One-sided fits at the edge of the mesh have larger errors, of the same order.
    np.testing.assert_allclose(orders, 2, atol=0.15)


@pytest.mark.slow
def test_time_between_and_beyond_the_instants():
    points, elements = delaunay(2, 10)
    mesh = Mesh(points, elements)
    times = np.array([0.0, 1.0, 3.0])
    # x t at the nodes; linear in time between instants.
    values = np.stack([t * points for t in times])
    x = jnp.asarray([[0.3, 0.6], [2.0, 0.5]])
    steady = np.stack([t * np.asarray(mesh.centres) for t in times])
    for field in (
        MeshField(mesh, values, times),
        CellField(mesh, steady, times),
    ):
        assert [float(end) for end in field.span()] == [0, 3]
        got, status = look(field, x, 2.0)
        np.testing.assert_allclose(got[0], 2 * x[0], rtol=1e-5)
        np.testing.assert_array_equal(status, [ALIVE, LEFT_DATA])
        got, status = look(field, x, 4.0)
        np.testing.assert_array_equal(status, [ParticleStatus.LEFT_TIME, LEFT_DATA])
        assert np.all(np.isfinite(got))
    clamped = MeshField(mesh, values, times, time_outside=Clamp())
    got, status = look(clamped, x, 5.0)
    np.testing.assert_allclose(got[0], 3 * x[0], rtol=1e-5)
    assert status[0] == ALIVE
    assert np.all(np.isinf(clamped.span()))
    periodic = MeshField(mesh, values[:2], times[:2], time_period=2.0)
    np.testing.assert_allclose(look(periodic, x, 5.5)[0][0], 0.5 * x[0], rtol=1e-4)


@pytest.mark.slow
def test_outside_is_said_and_spoils_no_gradient():
    mesh = Mesh(*solids("hexahedron"))
    field = MeshField(mesh, mesh.points)
    x = jnp.asarray([[0.5, 0.5, 0.5], [1.5, 0.5, 0.5], [1e30, 0, 0], [jnp.nan, 0, 0]])
    got, status = look(field, x)
    np.testing.assert_array_equal(status, [ALIVE, LEFT_DATA, LEFT_DATA, LEFT_DATA])
    assert np.all(np.isfinite(got))
    slope = jax.grad(lambda x: jnp.sum(look_compiled(field, x, jnp.zeros(()))[0]))(x)
    assert np.all(np.isfinite(slope))
    np.testing.assert_allclose(slope[0], 1, rtol=1e-5)
    assert np.all(np.isnan(field(jnp.zeros(()), x[1])))


@pytest.mark.slow
def test_a_mesh_may_be_mapped_over():
    points, elements = delaunay(2, 10)
    meshes = [Mesh(size * points, elements) for size in (1.0, 2.0)]
    # The bins of meshes of the same form have the same shapes here.
    both = jax.tree.map(lambda *parts: jnp.stack(parts), *meshes)
    x = jnp.asarray([[0.2, 0.7], [1.5, 1.2]])

    def value(mesh, x):
        field = MeshField(mesh, mesh.points)
        return field.look(jnp.zeros(()), x, field.start(x))

    seen = jax.vmap(jax.vmap(value, (None, 0)), (0, None))(both, x)
    np.testing.assert_array_equal(seen.status, [[ALIVE, LEFT_DATA], [ALIVE, ALIVE]])
    np.testing.assert_allclose(seen.value[1], x, rtol=1e-5)


def test_a_second_field_compiles_nothing_new():
    traces = 0

    @jax.jit
    def run(field, x):
        nonlocal traces
        traces += 1
        return field.look(jnp.zeros(()), x, field.start(x)).value

    points, elements = delaunay(2, 10)
    mesh = Mesh(points, elements)
    for factor in (1, 2.0):
        run(MeshField(mesh, factor * points), jnp.asarray([0.5, 0.5]))
    assert traces == 1


def test_bad_arguments_are_refused():
    points, elements = delaunay(2, 10)
    mesh = Mesh(points, elements)
    n = mesh.elements
    with pytest.raises(
        PhysaxError, match=r"number of nodes, \(14,\), but .* \(13, 2\)"
    ):
        MeshField(mesh, np.zeros((13, 2)))
    with pytest.raises(
        PhysaxError, match=rf"number of elements, \({n},\), but .* \(14,"
    ):
        CellField(mesh, np.zeros(14))
    with pytest.raises(PhysaxError, match=r"number of times and of nodes, \(3, 14\)"):
        MeshField(mesh, np.zeros((2, 14)), np.arange(3.0))
    with pytest.raises(PhysaxError, match="`times` must increase, but entries 1 and 2"):
        MeshField(mesh, np.zeros((3, 14)), np.array([0.0, 2.0, 1.0]))
    with pytest.raises(PhysaxError, match="`times` must be given with `time_period`"):
        MeshField(mesh, np.zeros(14), time_period=1.0)
    with pytest.raises(PhysaxError, match=r"must have 2 coordinates, .* \(3,\)"):
        MeshField(mesh, np.zeros(14)).start(jnp.zeros(3))
    with pytest.raises(
        PhysaxError, match="`mesh` must be known here, .* `constant=True`"
    ):
        jax.jit(lambda mesh: CellField(mesh, jnp.zeros(n)).values)(mesh)
