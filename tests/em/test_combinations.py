"""Unions, intersections, differences, and shapes moved, turned and repeated."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.em._overlap import Intervals
from physax.grid import Grid

from .shape_checks import SPACING, counted, covered


BOX = em.Box((0.1, 0.0, 0.05), (1.3, 1.1, 0.9))
BALL = em.Sphere((0.5, 0.3, 0.1), 0.55)
CORNERS = np.array([[-0.82, -0.71], [0.77, -0.73], [0.52, 0.83], [-0.63, 0.68]])


def in_box(x, y, z):
    return (abs(x - 0.1) < 0.65) & (abs(y) < 0.55) & (abs(z - 0.05) < 0.45)


def in_ball(x, y, z):
    return (x - 0.5) ** 2 + (y - 0.3) ** 2 + (z - 0.1) ** 2 < 0.55**2


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("shape", "inside"),
    [
        (BOX | BALL, lambda *p: in_box(*p) | in_ball(*p)),
        (BOX & BALL, lambda *p: in_box(*p) & in_ball(*p)),
        (BOX - BALL, lambda *p: in_box(*p) & ~in_ball(*p)),
    ],
    ids=["union", "intersection", "difference"],
)
def test_combinations_are_those_of_counted_points(shape, inside):
    error = np.abs(np.asarray(covered(shape)) - counted(inside))
    # Counting is good to half a layer of 16. Where both are cut, in the cells along a
    # curve, the parts that hold it count them as independent.
    assert np.max(error) < 0.08
    assert np.sqrt(np.mean(error**2)) < 0.008


def test_a_chain_of_one_kind_is_one_combination():
    # Each level would divide the cells again.
    assert len((BOX | BALL | BOX | BALL).shapes) == 4
    assert len((BOX & BALL & BOX).shapes) == 3
    assert len((em.Union([BOX, BALL], parts=3) | BOX).shapes) == 2
    assert len(((BOX & BALL) | BOX).shapes) == 2


@pytest.mark.slow
def test_a_cell_that_one_shape_cuts_is_exact():
    apart = em.Union((em.Circle((-0.8, 0.0), 0.5), em.Circle((0.7, 0.0), 0.4)))
    area = float(jnp.sum(covered(apart, ndim=2))) * SPACING**2
    assert area == pytest.approx(math.pi * (0.25 + 0.16), rel=1e-12)
    hole = em.Box(0.0, (1.9, 1.9)) - em.Circle((0.1, 0.0), 0.5)
    area = float(jnp.sum(covered(hole, ndim=2))) * SPACING**2
    assert area == pytest.approx(1.9**2 - math.pi * 0.25, rel=1e-12)


def test_boxes_that_touch_leave_no_seam():
    # In the middle of a cell, at any number of parts of it.
    grid = Grid.uniform((8,), 0.3, -1.2 + 0.113 - 0.05)
    high, low = em.Box.from_corners(0.113, 0.9), em.Box.from_corners(-0.9, 0.113)
    whole = em.Box.from_corners(-0.9, 0.9)
    shapes = [
        (em.Union((high, low), 1), whole),
        (em.Union((high, low), 2), whole),
        (em.Difference(whole, low, 1), high),
        (em.repeat(low, (2,), [1.013]), em.Box.from_corners(-0.9, 1.126)),
    ]
    for shape, same in shapes:
        found, exact = (em.fill_fraction(s, grid, (0.5,)) for s in (shape, same))
        assert jnp.allclose(found, exact, atol=1e-12)
    both = em.fill_fraction(high & low, grid, (0.5,))
    assert float(jnp.max(both)) < 1e-12
    assert jnp.allclose(
        em.fill_fraction(high & whole, grid, (0.5,)),
        em.fill_fraction(high, grid, (0.5,)),
        atol=1e-12,
    )


def rotation(angle, axis):
    j, k = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[[j, j, k, k], [j, k, j, k]] = [
        math.cos(angle),
        -math.sin(angle),
        math.sin(angle),
        math.cos(angle),
    ]
    return matrix


ABOUT = (0.1, -0.05, 0.2)
PRISM = em.Prism(CORNERS, -0.45, 0.55, sidewall=0.2)
EXACT = [
    (em.Box(0.0, (1.3, 1.1, 0.9)), "x"),
    (em.Box(0.0, (1.3, 1.1, 0.9)), "y"),
    (em.Polygon(CORNERS, "y", -0.4, 0.5), "y"),
    (em.Cone((0.1, 0.2, 0.0), (0.6, 0.2), 1.0, "z"), "z"),
    (PRISM, "z"),
]
NOT_EXACT = [
    (em.Cylinder(0.0, 0.5, "z", 1.1), "x"),
    (em.Polygon(CORNERS, "z", -0.4, 0.5), "y"),
    (em.Ellipsoid(0.0, (0.9, 0.6, 0.5)), "y"),
    (PRISM, "x"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "axis"), EXACT + NOT_EXACT)
def test_turning_a_shape_turns_what_it_covers(shape, axis):
    # The same shape in cells so small that a fraction is whether a point is inside.
    def inside(*points):
        around = np.stack(points, -1) - ABOUT
        back = around @ rotation(0.4, "xyz".index(axis)) + ABOUT
        place = [
            Intervals(jnp.asarray(p), *[jnp.full(p.shape, 5e-4)] * 2)
            for p in np.moveaxis(back, -1, 0)
        ]
        return np.asarray(jax.jit(lambda place: shape.covered(place))(place)) > 0.5

    turned = em.rotate(shape, 0.4, axis, about=ABOUT)
    error = np.abs(np.asarray(covered(turned)) - counted(inside, points=12))
    assert np.sqrt(np.mean(error**2)) < 0.012
    assert np.max(error) < 0.5 / 12 + 0.02
    volume = jnp.sum(covered(turned)) / jnp.sum(covered(shape))
    tolerance = 1e-6 if (shape, axis) in EXACT else 1e-3
    assert float(volume) == pytest.approx(1, abs=tolerance)


def test_turning_there_and_back_by_right_angles():
    polygon = em.Polygon(CORNERS)
    once = em.rotate(polygon, math.pi / 2)
    assert isinstance(once, em.Polygon)
    assert jnp.allclose(once.vertices, CORNERS @ np.array([[0, 1], [-1, 0]]))
    low, high = em.rotate(em.Box((1, 2, 3), (2, 4, 6)), math.pi / 2).bounds()
    assert jnp.allclose(low, jnp.array([-4.0, 0, 0]))
    assert jnp.allclose(high, jnp.array([0.0, 2, 6]))
    low, high = em.rotate(em.Cylinder(0.0, 1.0, "z", 4.0), math.pi / 2, "y").bounds()
    assert jnp.allclose(high, jnp.array([2.0, 1, 1]))


MOVED = {
    "box": BOX,
    "ball": BALL,
    "polygon": em.Polygon(CORNERS, "x", -0.5, 0.7),
    "prism": PRISM,
    "union": BOX | BALL,
    "difference": BOX - BALL,
    "image": em.mirror(em.Polygon(CORNERS), "x", 0.1),
    "mesh": em.TriangleMesh(
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]),
        [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
    ),
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", MOVED)
def test_moving_a_shape_is_moving_the_cells_back(name):
    offset = (0.13, -0.07, 0.21)
    moved = em.translate(MOVED[name], offset)
    wanted = covered(MOVED[name], tuple(-x for x in offset))
    assert jnp.allclose(covered(moved), wanted, atol=1e-12)
    for end, before in zip(moved.bounds(), MOVED[name].bounds(), strict=True):
        assert jnp.allclose(end, before + jnp.array(offset))


@pytest.mark.slow
def test_images_and_stretched_shapes_are_exact():
    for at in (0.0, 0.13):
        image = em.mirror(em.Polygon(CORNERS, "y", -0.3, 0.5), "x", at)
        corners = np.stack([2 * at - CORNERS[:, 0], CORNERS[:, 1]], 1)
        wanted = em.Polygon(corners, "y", -0.3, 0.5)
        assert jnp.allclose(covered(image), covered(wanted), atol=1e-12)
        for end, other in zip(image.bounds(), wanted.bounds(), strict=True):
            assert jnp.allclose(end, other)
    stretched = em.scale(em.Sphere((0.2, 0.1, 0.0), 0.5), (1.5, 1.2, 0.8), about=0.1)
    # 0.1 is the x of the point that stays.
    wanted = em.Ellipsoid((0.25, 0.12, 0.0), (0.75, 0.6, 0.4))
    assert jnp.allclose(covered(stretched), covered(wanted), atol=1e-12)
    for end, other in zip(stretched.bounds(), wanted.bounds(), strict=True):
        assert jnp.allclose(end, other)


@pytest.mark.slow
def test_cuts_of_moved_images():
    # On a plane grid the third coordinate, too, is that before the move.
    ball = em.Sphere((0.0, 0.0, 1.0), 0.7)
    for shape in (
        em.mirror(em.translate(em.mirror(ball, "z", 2.0), (0, 0, -3.3)), "z"),
        em.translate(em.scale(ball, 1.0), (0.0, 0.0, -1.3)),
        em.translate(ball, (0, 0, -0.7)),
    ):
        area = float(jnp.sum(covered(shape, ndim=2))) * SPACING**2
        assert area == pytest.approx(math.pi * (0.49 - 0.09), rel=1e-9)


def test_a_lattice_holds_every_copy():
    rods = em.repeat(em.Circle((-0.8, -0.7), 0.2), (2, 3), [(0.7, 0.1), (0.2, 0.6)])
    fraction = em.fill_fraction(rods, Grid.centred((24, 24), 0.1), (0.5, 0.0))
    assert float(jnp.sum(fraction)) == pytest.approx(6 * math.pi * 4, rel=1e-9)
    by_hand = em.Union(
        [
            em.Circle((-0.8 + 0.7 * i + 0.2 * j, -0.7 + 0.1 * i + 0.6 * j), 0.2)
            for i in range(2)
            for j in range(3)
        ],
        1,
    )
    assert jnp.allclose(covered(rods, ndim=2), covered(by_hand, ndim=2), atol=1e-12)
    for end, other in zip(rods.bounds(), by_hand.bounds(), strict=True):
        assert jnp.allclose(end, other)
    turned = em.rotate(rods, 0.3).bounds()
    assert jnp.all(jnp.isfinite(turned[0][:2]))


def test_shapes_are_placed_by_the_boxes_around_them():
    substrate = em.Box.from_corners(high=(math.inf, math.inf, 0.0), low=-math.inf)
    film = em.place(em.Box(0.0, (math.inf, math.inf, 0.3)), substrate)
    rod = em.place(em.Cylinder((3.0, 4.0, 7.0), 0.2, "z", 0.5), film, gap=0.1)
    assert jnp.allclose(rod.centre, jnp.array([3.0, 4.0, 0.65]))
    beside = em.place(em.Sphere(0.0, 0.5), rod, "xy", own=1.0, at=-1.0, gap=-0.25)
    assert jnp.allclose(beside.centre, jnp.array([2.05, 3.05, 0.0]))
    middle = em.place(BOX - BALL, rod, "xyz", own=0.0, at=0.0)
    assert jnp.allclose(middle.shape.low + middle.shape.high, 2 * rod.centre)
    under = em.place(em.Sphere(0.0, 0.5), film, own=1, at=-1)
    assert float(under.bounds()[1][2]) == pytest.approx(0.0)


def test_derivatives_flow_through_placement():
    def top(thickness):
        film = em.Box(0.0, jnp.stack([1.0, 1.0, thickness]))
        return em.place(em.Sphere(0.0, 0.5), film, gap=thickness).bounds()[1][2]

    assert jax.grad(top)(0.3) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: em.Union(()), "`shapes` must have at least one shape, but has none"),
        (lambda: em.Union((BALL,), 0), "`parts` must be an integer of at least 1"),
        (
            lambda: em.Difference(BALL, BOX, -1),
            "`parts` must be an integer of at least",
        ),
        (lambda: em.translate(BALL, math.inf), "`offset` must be finite, but is inf"),
        (lambda: em.translate(BALL, (1, 2, 3, 4)), "`offset` must have 1 to 3 entries"),
        (lambda: em.rotate(BALL, math.nan), "`angle` must be finite, but is nan"),
        (
            lambda: em.rotate(BALL, -90),
            "`angle` must be in radians .* is -90. Convert degrees with `np.deg2rad`",
        ),
        (lambda: em.rotate(BALL, 1.0, "r"), "`axis` must be one of"),
        (
            lambda: em.rotate(BOX, 1.0, parts=0),
            "`parts` must be an integer of at least",
        ),
        (
            lambda: em.rotate(em.Box(0.0, 1.0), 0.1),
            "corners of a box rotated about z",
        ),
        (lambda: em.mirror(BALL, "z", math.inf), "`at` must be finite, but is inf"),
        (lambda: em.mirror(BALL, "u"), "`axis` must be one of"),
        (
            lambda: em.scale(BALL, 0.0),
            "`factors` must be positive and finite, but is 0",
        ),
        (lambda: em.scale(BALL, (1.0, 2.0)), "`factors` must be one number or three"),
        (lambda: em.repeat(BALL, (), []), "`counts` must have one integer for each"),
        (
            lambda: em.repeat(BALL, (2, 0), [(1,), (2,)]),
            r"`counts\[1\]` must be an integer of at least 1, but is 0",
        ),
        (
            lambda: em.repeat(BALL, (2,), [(1,), (2,)]),
            r"one entry per entry of `counts` \(1\)",
        ),
        (lambda: em.place(BALL, BOX, "w"), "`axes` must be among"),
        (
            lambda: em.place(BALL, BOX, own=2.0),
            r"`own` must lie in \[-1, 1\], but is 2",
        ),
        (
            lambda: em.place(BALL, em.Circle((0, 0), 1.0)),
            "`other` must have an end there along z, but is inf",
        ),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_turned_shape_needs_the_axes_across():
    turned = em.rotate(em.Cylinder(0.0, 0.5, "z", 1.0), 0.3, "x")
    with pytest.raises(
        ArgumentError,
        match="turned about x needs a grid with the axes y and z, .* the axis that the",
    ):
        em.fill_fraction(turned, Grid.centred((8, 8), 0.2), (0.5, 0.5))


@pytest.mark.slow
def test_combinations_work_under_jit_and_vmap():
    def run(x):
        shape = em.Box((x, 0.0), (1.0, 1.0)) - em.Circle((x, 0.0), 0.3)
        return em.fill_fraction(shape, Grid.centred((8, 8), 0.2), (0.5, 0.0))

    batch = jax.jit(jax.vmap(run))(jnp.array([0.01, 0.07]))
    assert batch.dtype == jnp.zeros(()).dtype
    assert jnp.allclose(batch[1], run(jnp.array(0.07)), atol=1e-5)


def test_integers_of_numpy_and_whole_turns_are_taken():
    two = np.int64(2)
    assert em.repeat(BALL, (two,), [(1,)]).offsets.shape == (2, 3)
    assert em.Union((BALL,), two).parts == 2
    assert em.rotate(em.Cylinder(0.0, 1.0), 1.0, "x", parts=two).parts == 2
    em.rotate(BALL, np.float32(2 * np.pi))
    # What an optimiser has turned further is no mistake.
    assert jnp.isfinite(jax.jit(lambda a: em.rotate(BALL, a).centre)(90.0)).all()


@pytest.mark.slow
def test_the_precision_of_a_shape_is_kept_by_its_copies():
    ball = em.Circle(jnp.zeros(2, float), 0.4)
    ball = jax.tree.map(lambda x: x.astype("f8"), ball)
    grid = jax.tree.map(lambda x: x.astype("f4"), Grid.centred((6, 6), 0.2))
    alike = em.Union([ball, em.translate(ball, (0.1, 0.0))])
    for shape in (ball, alike, ball | BOX, em.repeat(ball, (2,), [(0.3, 0.0)])):
        assert em.fill_fraction(shape, grid, (0.5, 0.5)).dtype == "f8"
