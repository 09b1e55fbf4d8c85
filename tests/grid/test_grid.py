import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.grid import Grid
from physax.units import MICRO, NANO


EDGES = np.array([0.0, 1.0, 3.0, 4.5]) * MICRO

GRIDS = [
    Grid.uniform((6,), 20 * NANO, origin=-1e-6),
    Grid.centred((6, 5, 4), (20 * NANO, 10 * NANO, 40 * NANO)),
    Grid.graded([EDGES, EDGES[::-1][0] - EDGES[::-1]]),
    Grid((jnp.asarray(1e-7), jnp.asarray([1e-7, 2e-7])), (0.0, 1.0), (3, 2)),
]


@pytest.mark.parametrize("grid", GRIDS)
def test_positions_agree_with_the_definitions(grid):
    eps = jnp.finfo(grid.widths[0].dtype).eps
    for axis in range(grid.ndim):
        edges = np.asarray(grid.edges(axis), np.float64)
        # Each position is rounded at most once per cell.
        atol = grid.shape[axis] * eps * np.max(np.abs(edges))
        centres = (edges[1:] + edges[:-1]) / 2
        np.testing.assert_allclose(grid.centres(axis), centres, rtol=0, atol=atol)
        np.testing.assert_allclose(
            grid.cell_widths(axis), np.diff(edges), rtol=0, atol=2 * atol
        )
        np.testing.assert_allclose(
            grid.dual_widths(axis)[1:], np.diff(centres), rtol=0, atol=4 * atol
        )
        assert grid.dual_widths(axis)[0] == grid.cell_widths(axis)[0]
        np.testing.assert_allclose(
            grid.size(axis), edges[-1] - edges[0], rtol=0, atol=2 * atol
        )
        assert jnp.array_equal(grid.coordinates(axis, 0.0), grid.edges(axis)[:-1])
        assert jnp.array_equal(grid.coordinates(axis, 0.5), grid.centres(axis))


@pytest.mark.parametrize("grid", GRIDS)
def test_every_array_has_the_precision_of_the_widths(grid):
    for axis in range(grid.ndim):
        for array in (
            grid.edges(axis),
            grid.centres(axis),
            grid.cell_widths(axis),
            grid.dual_widths(axis),
            grid.size(axis),
            grid.smallest_width,
        ):
            assert array.dtype == jnp.zeros(()).dtype
            assert not array.weak_type
        assert grid.edges(axis).shape == (grid.shape[axis] + 1,)
        assert grid.centres(axis).shape == (grid.shape[axis],)
        assert grid.dual_widths(axis).shape == (grid.shape[axis],)


def test_axes_are_named_and_uniformity_is_static():
    grid = GRIDS[3]
    assert (grid.ndim, grid.axes) == (2, ("x", "y"))

    @eqx.filter_jit
    def uniform(grid):
        return grid.is_uniform(0), grid.is_uniform(1)

    assert uniform(grid) == (True, False)


def test_centred_grid_is_symmetric():
    grid = GRIDS[1]
    for axis in range(3):
        edges = grid.edges(axis)
        # The largest position, 8e-8 m, rounds by 1e-14 m in float32.
        np.testing.assert_allclose(edges, -edges[::-1], rtol=0, atol=1e-13)


def test_edges_in_float64_give_widths_without_their_rounding():
    # 2000 cells of 1 nm, 1 mm from the origin: float32 edges there are 0.06 nm apart.
    edges = 1e-3 + np.arange(2001) * NANO
    grid = Grid.graded([edges])
    # The host's edges themselves are rounded to 2e-19 m: 2e-10 of a width.
    np.testing.assert_allclose(grid.widths[0], NANO, rtol=1e-6)
    assert grid.shape == (2000,)


START, STOP = -1.3 * MICRO, 0.9 * MICRO


@pytest.mark.parametrize(
    "edges",
    [
        np.linspace(START, STOP, 78),
        START + np.arange(78) * ((STOP - START) / 77),
        START + np.cumsum(np.full(78, (STOP - START) / 77)),
        1e-3 + np.arange(2001) * NANO,
        np.array([0.0, 0.1, 0.2, 0.1 + 0.2]),
        np.array([0.0, 2.0]),
    ],
)
def test_edges_that_are_equally_spaced_to_rounding_make_a_uniform_axis(edges):
    grid = Grid.graded([EDGES, edges])
    assert not grid.is_uniform(0)
    assert grid.is_uniform(1)
    assert grid.shape == (3, len(edges) - 1)
    size = edges[-1] - edges[0]
    np.testing.assert_allclose(grid.size(1), size, rtol=1e-6)
    np.testing.assert_allclose(grid.cell_widths(1), size / grid.shape[1], rtol=1e-6)
    scale = np.max(np.abs(edges))
    np.testing.assert_allclose(grid.edges(1), edges, rtol=0, atol=3e-7 * scale)


@pytest.mark.parametrize(
    "edges",
    [
        # Of which the rounding is known to be smaller than the differences.
        np.linspace(0, 1, 51) + 1e-9 * (np.arange(51) == 20),
        np.linspace(START, STOP, 78).astype(np.float32),
        jnp.linspace(0, 1, 51),
        jnp.arange(4.0),
    ],
)
def test_other_edges_stay_graded(edges):
    grid = Grid.graded([edges])
    assert not grid.is_uniform(0)
    assert grid.widths[0].shape == (len(edges) - 1,)


def test_float32_widths_stay_float32():
    grid = Grid.uniform((4, 4), jnp.float32(1e-6), origin=(0.0, 1e-6))
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(grid))
    assert grid.edges(0).dtype == jnp.float32


def test_smallest_width():
    grid = Grid((jnp.asarray(3e-7), jnp.asarray([4e-7, 2e-7])), (0.0, 0.0), (3, 2))
    assert grid.smallest_width == jnp.asarray(2e-7)


def test_integer_spacing_is_the_equal_float():
    assert eqx.tree_equal(Grid.uniform((3, 3), 2, 1), Grid.uniform((3, 3), 2.0, 1.0))


def test_jit_vmap_and_grad():
    def length(spacing):
        grid = Grid.uniform((10, 4), spacing, origin=-spacing)
        return grid.edges(0)[-1] + grid.size(1)

    spacing = jnp.asarray([1.0, 2.0])
    # 9 w + 4 w.
    np.testing.assert_allclose(jax.jit(jax.vmap(length))(spacing), 13 * spacing)
    np.testing.assert_allclose(jax.grad(length)(spacing[0]), 13)

    def middle(widths):
        return Grid((widths,), (0.0,), (3,)).centres(0)[1]

    widths = jnp.asarray([1.0, 2.0, 3.0])
    np.testing.assert_allclose(jax.grad(middle)(widths), [1, 0.5, 0], atol=1e-6)
    edges = jnp.asarray([0.0, 1.0, 3.0])
    slope = jax.grad(lambda edges: Grid.graded([edges]).centres(0)[1])(edges)
    np.testing.assert_allclose(slope, [0, 0.5, 0.5], atol=1e-6)


def test_grids_of_equal_shape_compile_once():
    traces = 0

    @eqx.filter_jit
    def run(grid):
        nonlocal traces
        traces += 1
        return grid.centres(0)

    run(Grid.uniform((4,), 1e-6))
    run(Grid.uniform((4,), jnp.asarray(2e-6), origin=1))
    assert traces == 1


BAD_GRIDS = [
    (lambda: Grid.uniform((4,), 0.0), r"`widths` along x .* but the spacing is 0 m"),
    (lambda: Grid.uniform((4,), np.nan), r"positive and finite, .* spacing is nan m"),
    (lambda: Grid.uniform((4, 4), (1.0, -2.0)), r"along y .* the spacing is -2 m"),
    (lambda: Grid.graded([np.array([0.0, 1, 3, 3])]), r"along x .* cell 2 has 0 m"),
    (
        lambda: Grid.graded([EDGES, np.array([0.0, np.inf])]),
        r"`widths` along y .* cell 0 has inf m. Edges must increase strictly",
    ),
    (
        lambda: Grid.uniform((4,), 1.0, origin=np.nan),
        r"`origin` along x must be finite",
    ),
    (lambda: Grid.graded([np.zeros(1)]), r"`edges` along x .* at least 2 .* \(1,\)"),
    (lambda: Grid.graded([EDGES] * 4), r"`edges` must have 1 to 3 entries, .* has 4"),
    (lambda: Grid.uniform((2,) * 4, 1.0), r"`shape` must have 1 to 3 axes"),
    (lambda: Grid.uniform((), 1.0), r"`shape` must have 1 to 3 axes, but is \(\)"),
    (lambda: Grid.graded([]), r"`edges` must have 1 to 3 entries, but has 0"),
    (lambda: Grid.uniform((True, 3), 1.0), r"whole numbers of cells, .* \(True, 3\)"),
    (lambda: Grid.uniform((4, 0), 1.0), r"`shape` must be at least 1 along y, .* is 0"),
    (lambda: Grid.uniform((4, 4), (1.0,)), r"`spacing` .* per axis \(2\), but has 1"),
    (lambda: Grid((jnp.ones(3),), (0.0,), (4,)), r"\(4,\), but has shape \(3,\)"),
    (lambda: Grid((1.0,), (0.0,), (4, 4)), r"`widths` must have one entry per axis"),
    (lambda: Grid((1.0, 1.0), (0.0,), (4, 4)), r"`origin` must have one entry per"),
]


@pytest.mark.parametrize(("make", "message"), BAD_GRIDS)
def test_bad_grid_is_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()


@pytest.mark.parametrize("stagger", [0.25, 1.0])
def test_bad_stagger_is_refused(stagger):
    with pytest.raises(PhysaxError, match=r"`stagger` must be 0 or 0\.5, but is"):
        GRIDS[0].coordinates(0, stagger)


def test_bad_width_poisons_under_jit():
    centres = jax.jit(lambda spacing: Grid.uniform((4,), spacing).centres(0))
    assert jnp.all(jnp.isnan(centres(jnp.asarray(-1.0))))


def test_known_grids_stay_known_under_jit():
    def made():
        grids.append(Grid.centred((6, 5), 20 * NANO))
        return grids[-1].size(0)

    grids = []
    jax.jit(made)()
    made()
    assert eqx.tree_equal(*grids)
