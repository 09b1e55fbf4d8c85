import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from physax import PhysaxError
from physax.grid import (
    Clamp,
    Cubic,
    CubicHermite,
    Field,
    Fill,
    Grid,
    Linear,
    Nearest,
    sample as eager_sample,
)


sample = jax.jit(eager_sample, static_argnames="periodic")


def stretched(cells, low=0.0, size=1.0):
    """Edges of a grid that is a smooth image of a uniform one."""
    s = np.linspace(0, 1, cells + 1)
    return low + size * (s + 0.3 * np.sin(2 * np.pi * s) / (2 * np.pi))


def grids(cells, ndim=2):
    shape = (cells, cells + 1, cells + 2)[:ndim]
    low = (-0.3, 0.1, 0.0)[:ndim]
    return {
        "uniform": Grid.uniform(shape, tuple(1 / n for n in shape), low),
        "graded": Grid.graded(
            [stretched(n, start) for n, start in zip(shape, low, strict=True)]
        ),
    }


def fill(function, grid, stagger):
    """The field whose samples are the function's values."""
    field = Field(jnp.zeros(grid.shape), stagger, grid)
    return field + Field(
        function(*jnp.meshgrid(*field.coordinates(), indexing="ij")), stagger, grid
    )


def points_inside(grid, count=200, seed=0):
    unit = jax.random.uniform(jax.random.key(seed), (count, grid.ndim))
    low = jnp.stack(grid.origin)
    size = jnp.stack([grid.size(axis) for axis in range(grid.ndim)])
    return low + unit * size


METHODS = [(Nearest(), 0), (Linear(), 1), (CubicHermite(), 2), (Cubic(), 3)]
KINDS = ["uniform", "graded"]
# Each kind of sample along one axis.
STAGGER = (0.0, 0.5)


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(("method", "degree"), METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_polynomials_of_the_methods_degree_are_exact(method, degree, kind):
    # Also between the outermost samples and the faces, where the polynomial goes on.
    grid = grids(7)[kind]

    def polynomial(x, y):
        return (1 + x) ** degree * (2 - y) ** degree

    field = fill(polynomial, grid, STAGGER)
    points = points_inside(grid)
    out = sample(field, points, method)
    # Values reach 1.7^3 2^3 = 39, and weights of 4 outermost samples add to about 15.
    atol = 600 * jnp.finfo(out.dtype).eps
    np.testing.assert_allclose(out, polynomial(*points.T), rtol=0, atol=atol)
    assert out.dtype == field.values.dtype


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("method", "order"), [(Linear(), 2), (CubicHermite(), 3), (Cubic(), 4)]
)
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_order_of_convergence(kind, method, order, ndim):
    def wave(*x):
        return jnp.sin(3 * x[0]) * jnp.prod(jnp.stack([jnp.cos(2 * u) for u in x]), 0)

    def errors(cells):
        grid = grids(cells, ndim)[kind]
        field = fill(wave, grid, (0.5, 0.0, 0.5)[:ndim])
        points = points_inside(grid, 2000)
        error = jnp.abs(sample(field, points, method) - wave(*points.T))
        low = jnp.stack(grid.origin)
        inner = jnp.all(jnp.abs(points - low - 0.5) < 0.35, axis=-1)
        return np.array([jnp.sqrt(jnp.mean(error[inner] ** 2)), jnp.max(error)])

    inside, everywhere = np.log2(errors(24) / errors(48))
    # The cells that random points fall into vary.
    np.testing.assert_allclose(inside, order, atol=0.1)
    # At the faces the polynomial is continued: larger errors, of the same order.
    assert everywhere > order - 0.3


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["nearest", "linear"])
def test_agrees_with_scipy(kind, name):
    method = {"nearest": Nearest(), "linear": Linear()}[name]
    grid = grids(6, 3)[kind]
    values = jax.random.normal(jax.random.key(0), grid.shape)
    field = Field(values, (0.0, 0.5, 0.5), grid)
    axes = [np.asarray(x, np.float64) for x in field.coordinates()]
    points = points_inside(grid)
    oracle = RegularGridInterpolator(
        axes, np.asarray(values, np.float64), name, bounds_error=False, fill_value=None
    )
    # Differences of positions near 1 are known to 6e-8 / 0.1 cell in float32, times
    # weights and slopes of size 4 between samples.
    atol = 100 * jnp.finfo(values.dtype).eps
    np.testing.assert_allclose(
        sample(field, points, method), oracle(np.asarray(points)), rtol=0, atol=atol
    )


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("method", "order"),
    [(Nearest(), 1), (Linear(), 2), (CubicHermite(), 3), (Cubic(), 4)],
)
def test_periodic_axes_repeat_at_full_order(kind, method, order):
    def wave(x, y):
        return jnp.sin(2 * jnp.pi * x + 1) * jnp.cos(2 * jnp.pi * y)

    def error(cells):
        grid = grids(cells)[kind]
        points = 5 * points_inside(grid, 2000) - 2
        out = sample(fill(wave, grid, STAGGER), points, method, periodic=("x", "y"))
        return jnp.sqrt(jnp.mean((out - wave(*points.T)) ** 2))

    measured = np.log2(error(24) / error(48))
    np.testing.assert_allclose(measured, order, atol=0.2)


def test_only_named_axes_are_periodic():
    field = fill(lambda x, y: x * 0 + y, grids(8)["uniform"], (0.0, 0.0))
    points = jnp.asarray([[7.2, 0.5], [0.2, 3.0]])
    out = sample(field, points, periodic=("x",))
    np.testing.assert_allclose(out, [0.5, jnp.nan], rtol=1e-6)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("method", [Nearest(), Linear(), Cubic()])
@pytest.mark.parametrize("kind", KINDS)
def test_outside_is_filled_or_clamped(method, kind):
    grid = grids(6)[kind]
    field = Field(jax.random.normal(jax.random.key(0), grid.shape), STAGGER, grid)
    low = jnp.stack(grid.origin)
    high = low + 1
    faces = jnp.stack([low, high, jnp.stack([low[0], high[1]])])
    away = faces + jnp.asarray([[-0.1, 0], [1e30, 1e30], [-0.1, 0.1]])
    values = sample(field, faces, method, outside=Fill(3))
    assert jnp.all(jnp.isfinite(values) & (values != 3))
    filled = sample(field, away, method, outside=Fill(3))
    np.testing.assert_array_equal(filled, 3)
    assert filled.dtype == field.values.dtype
    # The nearest points of the surface are those that were moved away from it.
    clamped = sample(field, away, method, outside=Clamp())
    np.testing.assert_allclose(clamped, values, rtol=1e-5)


def test_outside_is_nan_unless_told_and_nan_is_outside():
    field = fill(lambda x, y: x + y, grids(4)["uniform"], STAGGER)
    points = jnp.asarray([[0.0, 0.5], [2.0, 0.5], [jnp.nan, 0.5]])
    np.testing.assert_array_equal(jnp.isnan(sample(field, points)), [0, 1, 1])
    filled = sample(field, points, outside=Fill(3))
    np.testing.assert_array_equal(filled == 3, [0, 1, 1])


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("method", [Nearest(), Linear(), Cubic()])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outside", [Fill(), Clamp()])
def test_points_outside_do_not_spoil_gradients(method, kind, outside):
    grid = grids(6)[kind]
    points = jnp.asarray([[0.2, 0.5], [1e30, 0.5], [jnp.inf, -jnp.inf], [0.2, -5.0]])

    def total(values, points):
        out = sample(Field(values, STAGGER, grid), points, method, outside=outside)
        return jnp.sum(jnp.where(jnp.isnan(out), 0, out))

    values = jax.random.normal(jax.random.key(0), grid.shape)
    by_values, by_points = jax.grad(total, (0, 1))(values, points)
    assert jnp.all(jnp.isfinite(by_values))
    assert jnp.all(jnp.isfinite(by_points))


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize(
    ("method", "ndim"), [(Linear(), 2), (CubicHermite(), 1), (Cubic(), 1)]
)
@pytest.mark.parametrize(
    ("kind", "periodic"), [("uniform", ()), ("graded", ()), ("graded", ("x",))]
)
def test_gradients_by_points_values_and_grid(method, ndim, kind, periodic):
    grid = grids(6, ndim)[kind]
    values = jax.random.normal(jax.random.key(0), grid.shape)
    points = points_inside(grid, 20)

    @jax.jit
    def total(grid, values, points):
        field = Field(values, (0.5, 0.0)[:ndim], grid)
        return jnp.sum(jnp.sin(sample(field, points, method, periodic=periodic)))

    arguments = (grid, values, points)
    keys = iter(jax.random.split(jax.random.key(1), 10))
    direction = jax.tree.map(
        lambda x: jax.random.normal(next(keys), x.shape) * 0.1, arguments
    )

    def along(step):
        return total(*jax.tree.map(lambda x, d: x + step * d, arguments, direction))

    gradient = jax.grad(total, (0, 1, 2))(*arguments)
    slope = sum(
        jnp.vdot(g, d)
        for g, d in zip(
            jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True
        )
    )
    step = 1e-6
    # Central differences: (1e-6)^2 times third derivatives of 1e3 to 1e5, and 1e-16 /
    # 1e-6 of a total of 10. No point crosses a sample within the step.
    numeric = (along(step) - along(-step)) / (2 * step)
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize("kind", KINDS)
def test_the_hermite_slope_has_no_jumps(kind):
    grid = grids(9, 1)[kind]
    field = Field(jax.random.normal(jax.random.key(0), grid.shape), (0.5,), grid)
    slope = jax.vmap(jax.grad(lambda x: sample(field, x[None], CubicHermite())))
    samples = field.coordinates()[0][1:-1]
    # Curvatures of random samples reach 1 / 0.05^2, so slopes differ by 4e-7 over this.
    below, above = slope(samples - 1e-9), slope(samples + 1e-9)
    np.testing.assert_allclose(below, above, rtol=0, atol=1e-5)


def test_nearest_has_no_gradient_with_respect_to_points():
    field = fill(lambda x, y: x + y, grids(6)["graded"], (0.0, 0.0))
    points = points_inside(field.grid, 5)
    slope = jax.grad(lambda p: jnp.sum(sample(field, p, Nearest())))(points)
    np.testing.assert_array_equal(slope, 0)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("method", [Nearest(), Linear(), Cubic()])
def test_axes_of_the_result(method):
    grid = grids(5)["uniform"]
    values = jax.random.normal(jax.random.key(0), (2, 3, *grid.shape), jnp.complex64)
    field = Field(values, STAGGER, grid)
    points = points_inside(grid, 12).astype(jnp.float32).reshape(4, 3, 2)
    out = sample(field, points, method)
    assert out.shape == (2, 3, 4, 3)
    one = sample(Field(values[1, 2], STAGGER, grid), points[3, 1], method)
    assert one.shape == ()
    np.testing.assert_allclose(out[1, 2, 3, 1], one, rtol=1e-5)
    assert jnp.iscomplexobj(out)
    mapped = jax.vmap(lambda p: sample(field, p, method), out_axes=2)(points)
    np.testing.assert_allclose(mapped, out, rtol=1e-5)


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.complex64])
@pytest.mark.parametrize("method", [Nearest(), Linear(), Cubic()])
def test_single_precision_stays_single(dtype, method):
    grid = Grid.uniform((4, 4), jnp.float32(0.25))
    field = Field(jnp.ones(grid.shape, dtype), STAGGER, grid)
    out = sample(field, jnp.full((3, 2), 0.3, jnp.float32), method)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, 1, rtol=1e-6)


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("periodic", [(), ("x",)])
def test_thin_grids_use_the_samples_they_have(cells, periodic):
    grid = Grid.graded([np.linspace(0, 1, cells + 1)])
    field = Field(jnp.full((cells,), 2.0), (0.5,), grid)
    points = jnp.linspace(0, 1, 7)[:, None]
    out = sample(field, points, Cubic(), periodic=periodic)
    np.testing.assert_allclose(out, 2, rtol=1e-5)


def test_far_from_the_origin_of_many_cells_weights_stay_exact():
    # 4000 cells in float32: positions round to 1e-3 of a cell, weights still add to 1.
    grid = Grid.graded([1 + stretched(4000)])
    field = Field(jnp.ones(4000), (0.5,), grid)
    out = sample(field, points_inside(grid), Cubic())
    np.testing.assert_allclose(out, 1, rtol=1e-5)


def test_compiled_once_for_new_points_and_values():
    traces = 0

    @jax.jit
    def run(field, points):
        nonlocal traces
        traces += 1
        return sample(field, points)

    for spacing, seed in itertools.product((0.1, 0.2), (0, 1)):
        grid = Grid.uniform((4, 4), spacing)
        run(fill(lambda x, y: x + y, grid, (0.0, 0.0)), points_inside(grid, 5, seed))
    assert traces == 1


def test_bad_arguments_are_refused():
    field = fill(lambda x, y: x + y, grids(4)["uniform"], (0.0, 0.0))
    with pytest.raises(PhysaxError, match=r"`points` must have 2 coord.* \(5, 3\)"):
        sample(field, jnp.zeros((5, 3)))
    with pytest.raises(PhysaxError, match=r"`periodic` must name axes .* has \['z'\]"):
        sample(field, jnp.zeros((5, 2)), periodic=("x", "z"))
