"""Areas, volumes, moments and gradients against closed forms."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.em import (
    Box,
    Circle,
    Cylinder,
    Ellipsoid,
    Polygon,
    Prism,
    Ring,
    Sphere,
    fill_fraction,
)
from physax.grid import Grid
from physax.units import MICRO


SPACING = 0.1 * MICRO
STAGGERS = [(0.5, 0.5), (0.0, 0.5), (0.0, 0.0)]
PLANE = Grid.centred((56, 50), SPACING)
ARROW = np.array([[-1.2, -1.0], [1.1, -0.7], [0.3, 1.4], [-0.2, 0.0]]) * MICRO


def rounding(cells=60):
    """Error of a position in cells, and so of a fraction, at a grid's far end."""
    return 8 * cells * float(jnp.finfo(jnp.zeros(()).dtype).eps)


def area(shape, grid=PLANE, stagger=(0.5, 0.5)):
    return jnp.sum(fill_fraction(shape, grid, stagger)) * SPACING**grid.ndim


def polygon_area(vertices):
    x, y = vertices.T
    return jnp.sum(x * jnp.roll(y, -1) - y * jnp.roll(x, -1)) / 2


@pytest.mark.parametrize("stagger", STAGGERS)
@pytest.mark.parametrize("radius", [0.04, 0.13, 1.0, 2.0, 2.137])
def test_area_of_a_circle_is_exact(stagger, radius):
    circle = Circle((0.012 * MICRO, -0.03 * MICRO), radius * MICRO)
    wanted = math.pi * (radius * MICRO) ** 2
    # In units of a cell, fractions are rounded; there are 2 pi r / h cut ones.
    assert area(circle, stagger=stagger) == pytest.approx(wanted, rel=rounding())


@pytest.mark.parametrize("stagger", STAGGERS)
@pytest.mark.parametrize("radius", [1.0, 2.0, 2.137])
def test_derivative_of_a_circle_is_its_circumference(stagger, radius):
    # Radii of 10 and 20 cells touch borders of cells, where the arc is flat.
    def run(r):
        return area(Circle((0.0, 0.0), r), stagger=stagger)

    slope = jax.grad(run)(radius * MICRO)
    # Rounding of the position where the disc touches a cell costs its square root.
    tolerance = 0.1 * math.sqrt(rounding())
    assert slope == pytest.approx(2 * math.pi * radius * MICRO, rel=tolerance)


@pytest.mark.slow
def test_circle_agrees_with_a_polygon_of_many_corners():
    angle = np.linspace(0, 2 * math.pi, 2000, endpoint=False)
    corners = 1.53 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + [0.1, 0.023]
    circle = fill_fraction(
        Circle((0.1 * MICRO, 0.023 * MICRO), 1.53 * MICRO), PLANE, (0.5, 0.0)
    )
    polygon = fill_fraction(Polygon(corners * MICRO), PLANE, (0.5, 0.0))
    # The sagitta of an edge is r (pi / n)^2 / 2 = 2e-5 of a cell of 0.1.
    assert jnp.max(jnp.abs(circle - polygon)) < 4e-5


@pytest.mark.parametrize("stagger", STAGGERS)
def test_inside_is_exactly_one_and_outside_exactly_zero(stagger):
    # On a grid of 1,000 cells, where float32 positions are good to 1e-4 of a cell.
    grid = Grid.centred((1000, 12), SPACING)
    for shape in [
        Circle((49 * MICRO, 0.0), 0.47 * MICRO),
        Box((47.3e-6, 0), (1e-6,) * 2),
    ]:
        fraction = np.asarray(fill_fraction(shape, grid, stagger))
        assert np.sum((fraction > 0) & (fraction < 1)) < 60
        assert np.sum(fraction == 1) > 40
        assert np.all((fraction >= 0) & (fraction <= 1))


@pytest.mark.parametrize("stagger", STAGGERS)
def test_box_fraction_is_the_product_of_overlaps(stagger):
    box = Box((0.02 * MICRO, 0.0), (1.0 * MICRO, 0.5 * MICRO))
    fraction = np.asarray(fill_fraction(box, PLANE, stagger))

    def overlap(axis, low, high):
        centre = np.asarray(PLANE.coordinates(axis, stagger[axis]), float)
        start = np.maximum(centre - SPACING / 2, low)
        stop = np.minimum(centre + SPACING / 2, high)
        return np.maximum(stop - start, 0) / SPACING

    wanted = np.outer(
        overlap(0, -0.48 * MICRO, 0.52 * MICRO), overlap(1, -0.25e-6, 0.25e-6)
    )
    assert np.max(np.abs(fraction - wanted)) < rounding()


@pytest.mark.slow
@pytest.mark.parametrize("stagger", STAGGERS[::2])
@pytest.mark.parametrize("order", [1, -1])
def test_area_of_a_polygon_and_its_gradient_are_exact(stagger, order):
    def run(vertices):
        return area(Polygon(vertices[::order]), stagger=stagger) / MICRO**2

    wanted = polygon_area(ARROW) / MICRO**2
    value, gradient = jax.value_and_grad(run)(jnp.asarray(ARROW))
    slopes = jax.grad(polygon_area)(jnp.asarray(ARROW)) / MICRO**2
    assert value == pytest.approx(float(wanted), rel=rounding())
    assert jnp.allclose(gradient, slopes, rtol=4 * rounding())


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.0, 1.0), (0.6, -0.8)])
def test_derivative_of_each_cell_is_right_where_corners_lie_on_cell_borders(
    order, direction
):
    # All corners but one lie on borders along x, and one on a border along y, too; the
    # outline bends there a little, so that no cell has a kink.
    corners = [(-1.2, 0.33), (-0.4, 0.33), (0.3, 0.3), (0.9, 0.23), (0.9, -0.57)]
    corners += [(0.2, -0.55), (-1.23, -0.51)]
    vertices = jnp.asarray(corners[::order]) * MICRO
    moved = np.zeros((len(corners), 2))
    moved[[1, 2, 5]] = direction
    moved = jnp.asarray(moved[::order])

    def run(t):
        shape = Polygon(vertices + t * SPACING * moved)
        return fill_fraction(shape, PLANE, (0.5, 0.5))

    found, h = jax.jacfwd(run)(0.0), 1e-6
    slope = (run(h) - run(-h)) / (2 * h)
    assert jnp.max(jnp.abs(found)) > 0.1
    # Edges that fall by a tenth cross a border of cells within 10 h.
    assert jnp.allclose(found, slope, atol=20 * h)


def test_rectangle_polygon_is_the_box_also_along_cell_borders():
    corners = np.array([[-1.0, -0.5], [1.0, -0.5], [1.0, 0.73], [-1.0, 0.73]]) * MICRO
    polygon = fill_fraction(Polygon(corners), PLANE, (0.5, 0.5))
    box = fill_fraction(Box.from_corners(corners[0], corners[2]), PLANE, (0.5, 0.5))
    assert jnp.max(jnp.abs(polygon - box)) < rounding()


@pytest.mark.slow
def test_polygon_far_beyond_the_grid_covers_what_it_does_on_a_larger_one():
    # Slanted edges come in from below the first cell of either axis.
    rng = np.random.default_rng(0)
    small, large = Grid.centred((6, 6), 1.0), Grid.centred((60, 60), 1.0)
    for _ in range(12):
        angle, half = rng.uniform(0, 2 * np.pi), rng.uniform(3, 14, 2)
        turn = np.array(
            [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        )
        signs = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
        shape = Polygon((signs * half) @ turn + rng.uniform(-8, 8, 2))
        found, whole = (fill_fraction(shape, g, (0.5, 0.5)) for g in (small, large))
        inside = slice(27, 33)
        assert jnp.allclose(found, whole[inside, inside], atol=1e-5)


def test_polygon_beyond_the_grid_is_clipped():
    corners = np.array([[-9.0, -7.0], [9.0, -7.0], [9.0, 0.03], [-9.0, 0.03]]) * MICRO
    polygon = fill_fraction(Polygon(corners), PLANE, (0.5, 0.5))
    box = fill_fraction(Box.from_corners(corners[0], corners[2]), PLANE, (0.5, 0.5))
    assert jnp.max(jnp.abs(polygon - box)) < rounding(180)


def test_outline_the_other_way_around_is_a_hole():
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * MICRO
    frame = Polygon(np.concatenate([square, square[::-1] / 2]), outlines=(4, 4))
    assert area(frame) == pytest.approx(3 * MICRO**2, rel=rounding())
    assert fill_fraction(frame, PLANE, (0.0, 0.0))[28, 25] == pytest.approx(
        0, abs=rounding()
    )


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("stagger", [(0.5, 0.5, 0.5), (0.0, 0.5, 0.0)])
def test_volume_of_a_sphere_and_its_derivative(stagger):
    grid = Grid.centred((24, 22, 26), SPACING)

    def run(r):
        return area(Sphere((0.01 * MICRO, 0.0, -0.02 * MICRO), r), grid, stagger)

    value, slope = jax.jit(jax.value_and_grad(run))(0.93 * MICRO)
    assert value == pytest.approx(4 / 3 * math.pi * (0.93e-6) ** 3, rel=rounding())
    tolerance = 0.1 * math.sqrt(rounding())
    assert slope == pytest.approx(4 * math.pi * (0.93e-6) ** 2, rel=tolerance)


def test_second_moment_of_a_sphere():
    # I = 4 pi r^5 / 15 along every axis, plus h^2 / 12 for the width of a cell.
    grid = Grid.centred((24, 24, 24), SPACING)
    radius = 1.0 * MICRO
    fraction = fill_fraction(Sphere(0.0, radius), grid, (0.5, 0.5, 0.5))
    volume = 4 / 3 * math.pi * radius**3
    wanted = 4 * math.pi * radius**5 / 15 + volume * SPACING**2 / 12
    for axis in range(3):
        position = grid.coordinates(axis, 0.5) / MICRO
        other = tuple(k for k in range(3) if k != axis)
        profile = jnp.sum(fraction, axis=other)
        moment = jnp.sum(profile * position**2) * MICRO**2 * SPACING**3
        # What is not at the centre of a cut cell: (h / r)^2 / 12 of the surface part.
        assert moment == pytest.approx(wanted, rel=2e-3)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_volume_of_a_cylinder_along_each_axis(axis):
    grid = Grid.centred((20, 22, 24), SPACING)
    cylinder = Cylinder(0.0, 0.7 * MICRO, axis, 1.1 * MICRO)
    wanted = math.pi * 0.49 * 1.1 * MICRO**3
    volume = area(cylinder, grid, (0.0, 0.5, 0.5))
    assert volume == pytest.approx(wanted, rel=rounding())


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_prism_along_each_axis(axis):
    grid = Grid.centred((30, 32, 34), SPACING)
    triangle = np.array([[-1.0, -1.1], [1.2, -0.8], [0.1, 1.3]]) * MICRO
    prism = Polygon(triangle, axis, -0.55 * MICRO, 0.6 * MICRO)
    fraction = fill_fraction(prism, grid, (0.5, 0.5, 0.5))
    wanted = float(polygon_area(triangle)) * 1.15 * MICRO
    assert jnp.sum(fraction) * SPACING**3 == pytest.approx(wanted, rel=rounding())
    # It must extend along its axis: the profile there is flat.
    along = "xyz".index(axis)
    profile = jnp.sum(fraction, axis=tuple(k for k in range(3) if k != along))
    middle = profile.shape[0] // 2
    assert profile[middle + 3] == pytest.approx(float(profile[middle]), rel=rounding())


def test_a_grid_of_fewer_axes_cuts_at_zero():
    line = Grid.centred((40,), SPACING)
    chord = 2 * math.sqrt(1.0**2 - 0.6**2) * MICRO
    sphere = Sphere((0.1 * MICRO, 0.0, 0.6 * MICRO), 1.0 * MICRO)
    assert area(sphere, line, (0.0,)) == pytest.approx(chord, rel=rounding())
    disc = math.pi * (1.0**2 - 0.6**2) * MICRO**2
    assert area(sphere) == pytest.approx(disc, rel=rounding())
    away = Sphere((0.0, 0.0, 2 * MICRO), 1 * MICRO)
    assert area(away) == 0
    assert area(Box((0, 0, 2 * MICRO), 1 * MICRO)) > 0
    assert area(Box((0, 0, 2 * MICRO), (1e-6, 1e-6, 1e-6))) == 0
    assert area(Cylinder(0.0, 0.5 * MICRO, "x"), line, (0.0,)) == pytest.approx(
        40 * SPACING, rel=rounding()
    )


def test_numbers_of_numpy_have_the_precision_of_jax():
    for dtype in (np.float16, np.float32):
        disc = Circle((dtype(0), dtype(0)), dtype(0.5))
        assert disc.radius.dtype == disc.centre.dtype == jnp.result_type(float)
    corners = [[jnp.float32(0), 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert Polygon(corners).vertices.dtype == jnp.result_type(float)
    assert Circle((0, 0), jnp.float32(0.5)).radius.dtype == jnp.float32


def test_half_space():
    fraction = fill_fraction(Box.from_corners(-math.inf, 0.0), PLANE, (0.5, 0.5))
    assert jnp.all(fraction[:27] == 1)
    assert jnp.all(fraction[29:] == 0)
    assert jnp.allclose(fraction[27:29, 0], jnp.array([1.0, 0.0]), atol=rounding())
    nodes = fill_fraction(Box.from_corners(-math.inf, 0.0), PLANE, (0.0, 0.5))
    assert jnp.allclose(nodes[28], 0.5, atol=rounding())


@pytest.mark.x64
@pytest.mark.slow
@pytest.mark.parametrize("stagger", STAGGERS[::2])
def test_weighted_area_follows_a_taylor_expansion(stagger):
    # A weight makes every fraction count, and differently.
    weight = jax.random.normal(jax.random.key(0), PLANE.shape)

    def circle(p):
        return Circle(p[:2], p[2])

    def box(p):
        return Box(p[:2], p[1:] * 20)

    def polygon(p):
        return Polygon(ARROW + p[:2])

    point = jnp.array([0.021, 0.043, 1.234]) * MICRO
    direction = jnp.array([0.3, -1.0, 0.7]) * MICRO
    for make in (circle, box, polygon):

        def run(p, make=make):
            return jnp.sum(weight * fill_fraction(make(p), PLANE, stagger))

        slope = jnp.vdot(jax.grad(run)(point), direction)
        forward = jax.jvp(run, (point,), (direction,))[1]
        assert slope == pytest.approx(float(forward), rel=1e-10)
        # The second derivative jumps where the outline crosses a corner of a cell,
        # which steps of a ten-thousandth of a cell hardly meet.
        steps = [1e-5, 5e-6]
        errors = [
            abs(run(point + e * direction) - run(point) - e * slope) for e in steps
        ]
        if max(errors) > 1e-12:
            assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)


@pytest.mark.slow
def test_jit_vmap_and_dtype():
    def run(r):
        return fill_fraction(Circle((0.0, 0.0), r), PLANE, (0.5, 0.5))

    # Both touch borders of cells, where a compiled program may round to the other side.
    radii = jnp.array([0.5, 1.0]) * MICRO
    batch = jax.jit(jax.vmap(run))(radii)
    assert batch.shape == (2, *PLANE.shape)
    assert batch.dtype == jnp.zeros(()).dtype
    assert jnp.allclose(batch[1], run(radii[1]), atol=rounding())
    gradient = jax.vmap(jax.grad(lambda r: jnp.sum(run(r))))(radii)
    assert jnp.all(jnp.isfinite(gradient))


def test_gradient_of_an_infinite_box_is_finite():
    def run(x):
        return area(Box((x, 0.0), (1 * MICRO, math.inf)))

    assert jnp.isfinite(jax.grad(run)(0.012 * MICRO))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box((0, 0, 0, 0), 1.0), "`centre` must have 1 to 3 entries"),
        (lambda: Box(0.0, (1.0, -2.0)), "`size` must be positive, but is -2"),
        (lambda: Box(math.nan, 1.0), "`centre` must be finite, but is nan"),
        (lambda: Box.from_corners(1.0, 0.5), "`high` must be above `low`, but is 0.5"),
        (lambda: Circle((0, 0), 0.0), "`radius` must be positive and finite, but is 0"),
        (lambda: Sphere(0.0, math.inf), "`radius` must be positive and finite"),
        (lambda: Sphere(0.0, (1.0, 2.0)), "`radius` must be one number"),
        (lambda: Cylinder(0.0, 1.0, "w"), "`axis` must be one of"),
        (lambda: Cylinder(0.0, 1.0, "z", -1.0), "`length` must be positive, but is -1"),
        (lambda: Polygon([[0, 0], [1, 1], [1]]), "`vertices` must be .* inhomogeneous"),
        (lambda: Polygon([[0, 0], [1, 1]]), r"`vertices` must have shape \(n, 2\)"),
        (
            lambda: Polygon([[0, 0], [1, 1], [math.inf, 0]]),
            "must be finite, but is inf",
        ),
        (lambda: Polygon(ARROW, "z", 1.0, 0.0), r"`high` must be above `low` \(1\)"),
        (lambda: Polygon(ARROW, outlines=(3, 3)), "must add up to the 4 vertices"),
    ],
)
def test_bad_shapes_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_polygon_needs_the_axes_of_its_plane():
    with pytest.raises(ArgumentError, match="needs a grid with the axes x and y"):
        fill_fraction(Polygon(ARROW), Grid.uniform((8,), SPACING), (0.0,))


@pytest.mark.parametrize(
    "shape",
    [
        lambda x: Circle((0, 0), x),
        lambda x: Sphere((0, 0), x),
        lambda x: Ring((0, 0), x, 3e-7),
        lambda x: Box((0, 0), (x, 3e-7)),
        lambda x: Ellipsoid((0, 0), (x, 3e-7, 3e-7)),
        # The upper end below the lower one, a hole of no radius, sides that meet.
        lambda x: Polygon(ARROW, low=-1e-7, high=x),
        lambda x: Prism(ARROW, -1e-7, x),
        lambda x: Ring((0, 0), 3e-7 + x, 4e-7),
        lambda x: Prism(ARROW, -1e-6, 1e-6, sidewall=0.6 - 3e6 * x),
    ],
)
def test_a_size_that_is_refused_under_jit_is_nan(shape):
    grid = Grid.centred((8, 8), 1e-7)

    @jax.jit
    def covered(sizes):
        shapes = [shape(x) for x in sizes]
        return [jnp.sum(fill_fraction(one, grid, (0.0, 0.0))) for one in shapes]

    good, bad = covered(jnp.asarray([2e-7, -2e-7]))
    assert good > 0
    assert np.isnan(bad)
