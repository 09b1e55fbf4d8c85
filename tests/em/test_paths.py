"""Strips along curves, and outlines that are refused."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.em._outlines import polygon_fraction_at
from physax.em._overlap import Intervals

from .shape_checks import cells, covered


def area(polygon):
    x, y = np.asarray(polygon.vertices).T
    return abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2


def test_a_path_has_its_width_and_mitred_corners():
    path = em.Path([(0, 0), (2, 0), (2, 1)], 0.4, low=0.0, high=0.2)
    wanted = [(0, -0.2), (2.2, -0.2), (2.2, 1), (1.8, 1), (1.8, 0.2), (0, 0.2)]
    assert np.allclose(path.vertices, wanted)
    assert float(path.high) == pytest.approx(0.2)
    # Both borders of an inclined strip are half a width from its middle.
    slope = em.Path([(0, 0), (3, 4)], 1.0)
    assert area(slope) == pytest.approx(5.0)


def test_a_taper_is_linear_between_its_widths():
    taper = em.Taper((0, 0), (2, 0), [0.5, 0.3, 0.2])
    assert area(taper) == pytest.approx(0.4 + 0.25)
    assert np.allclose(np.asarray(taper.vertices)[1], (1, -0.15))


def test_a_bend_is_a_part_of_a_ring():
    quarter = em.Bend((0.1, -0.1), 0.7, 0.3, 0, math.pi / 2, segments=200)
    away = np.asarray(quarter.vertices) - (0.1, -0.1)
    assert np.allclose(np.hypot(*away.T), np.repeat([0.55, 0.85], 201))
    assert np.allclose(away[[0, 200, 201]], [(0.55, 0), (0, 0.55), (0, 0.85)])
    assert area(quarter) == pytest.approx(math.pi / 2 * 0.7 * 0.3, rel=2e-5)
    errors = [
        1 - area(em.Bend((0, 0), 0.7, 0.3, 0, -1.0, segments=n)) / (0.7 * 0.3)
        for n in (16, 32)
    ]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)


@pytest.mark.slow
def test_curves_keep_their_width_and_go_through_their_points():
    straight = em.Bezier([(0, 0), (1, 1), (2, 2)], 0.5, segments=3)
    assert area(straight) == pytest.approx(math.sqrt(8) * 0.5)
    bend = em.Bezier([(0, 0), (1, 0), (1, 1), (2, 1)], 0.3, segments=50)
    vertices = np.asarray(bend.vertices)
    width = np.hypot(*(vertices - vertices[::-1]).T)
    assert np.allclose(width, 0.3)
    # The middle of a cubic curve is (a + 3 b + 3 c + d) / 8.
    assert np.allclose((vertices[25] + vertices[-26]) / 2, (1, 0.5))
    points = np.array([(0, 0), (1, 0.5), (2, 0), (3, -1)])
    spline = em.Spline(points, (0.2, 0.4), segments=8)
    vertices = np.asarray(spline.vertices)
    middle = (vertices + vertices[::-1])[:25] / 2
    assert np.allclose(middle[::8], points)
    assert np.hypot(*(vertices[24] - vertices[25])) == pytest.approx(0.4)
    # Of points on a parabola the spline is the parabola.
    x = np.linspace(-1, 1, 5)
    arc = np.asarray(em.Spline(np.stack([x, x**2], 1), 0.01).vertices)
    middle = (arc + arc[::-1])[:65] / 2
    assert np.allclose(middle[:, 1], middle[:, 0] ** 2, atol=1e-12)


@pytest.mark.slow
def test_fractions_of_a_polygon_in_scattered_cells_are_those_in_rows():
    corners = np.array(
        [[-0.8, -0.7], [0.77, -0.73], [0.1, 0.0], [0.52, 0.83], [-0.8, 0.1]]
    )
    edges = jnp.asarray(np.concatenate([corners, np.roll(corners, -1, 0)], 1))
    x, y, _ = cells(2)
    wanted = covered(em.Polygon(corners), ndim=2)
    shape = wanted.shape
    full = [
        Intervals(*(jnp.broadcast_to(a, shape) for a in (c.position, c.below, c.above)))
        for c in (x, y)
    ]
    for way in (1, -1):
        turned = edges if way == 1 else edges[:, [2, 3, 0, 1]]
        assert jnp.allclose(polygon_fraction_at(*full, turned), wanted, atol=1e-12)


CURVES = {
    "path": (lambda p: em.Path(p[:6].reshape(3, 2), p[6]), [0, 0, 1, 0.1, 1.2, 1, 0.3]),
    "taper": (lambda p: em.Taper(p[:2], p[2:4], p[4:]), [0, 0, 1, 0.4, 0.3, 0.5]),
    "bend": (
        lambda p: em.Bend(p[:2], p[2], p[3], p[4], p[5], segments=5),
        [-0.5, -0.5, 0.8, 0.3, 0.1, 1.4],
    ),
    "bezier": (
        lambda p: em.Bezier(p[:8].reshape(4, 2), p[8], segments=5),
        [-1.0, -0.5, 0.1, -0.53, -0.1, 0.52, 1.0, 0.51, 0.3],
    ),
    "spline": (
        lambda p: em.Spline(p[:8].reshape(4, 2), p[8:], segments=3),
        [-1.0, -0.5, -0.3, -0.13, 0.4, 0.02, 1.0, 0.51, 0.3, 0.4],
    ),
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", CURVES)
def test_corners_have_the_right_derivatives(name):
    make, point = CURVES[name]
    point = jnp.asarray(point, float)
    run = jax.jit(lambda p: make(p).vertices)
    slopes = jax.jit(jax.jacrev(run))(point)
    for k, e in enumerate(1e-6 * jnp.eye(point.size)):
        found = (run(point + e) - run(point - e)) / 2e-6
        assert jnp.allclose(slopes[..., k], found, atol=1e-8)


LONG = np.stack([np.arange(3000.0), np.sin(np.arange(3000.0))], 1)


def test_outlines_that_touch_themselves_pass():
    # A frame whose hole is joined to the border by a cut, as layouts have them.
    frame = [
        (0, 0),
        (4, 0),
        (4, 4),
        (0, 4),
        (0, 0),
        (1, 1),
        (1, 3),
        (3, 3),
        (3, 1),
        (1, 1),
    ]
    assert float(jnp.sum(covered(em.Polygon(np.array(frame) / 4.0 - 0.5), ndim=2))) > 0
    zigzag = np.concatenate([LONG, np.add(LONG[::-1], (0, 3))])
    assert em.Polygon(zigzag).vertices.shape == (6000, 2)


def test_a_small_outline_far_away_has_an_area():
    ring = np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * 1e-7
    corners = np.concatenate([np.add(ring, (k * 1e-6, 1e-3)) for k in range(1000)])
    assert em.Polygon(corners, outlines=(4,) * 1000).vertices.shape == (4000, 2)


@pytest.mark.parametrize(
    ("vertices", "message"),
    [
        ([(0, 0), (1, 1), (1, 0), (0, 1)], "its edges from numbers 0 and 2 cross"),
        ([(0, 0), (1, 0), (1, 0), (0, 1)], r"numbers 1 and 2 are both \(1, 0\) m"),
        ([(0, 0), (1, 0), (0, 1), (0, 0)], r"numbers 3 and 0 are both \(0, 0\) m"),
        ([(0, 0), (1, 1), (3, 3), (2, 2)], "numbers 0 to 3 lie on one line"),
        (
            np.concatenate(
                [LONG, np.add(LONG[::-1], (0, 3)), [(5.5, 9.0), (5.6, -9.0)]]
            ),
            r"cross itself, but its edges from numbers \d+ and 6000 cross",
        ),
    ],
)
def test_unsound_outlines_are_refused(vertices, message):
    with pytest.raises(ArgumentError, match=message):
        em.Polygon(vertices)


def test_outlines_that_cross_each_other_are_refused():
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], float)
    with pytest.raises(ArgumentError, match=r"edges from numbers \d and \d cross"):
        em.Polygon(np.concatenate([square, square[::-1] + 0.5]), outlines=(4, 4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: em.Path([(0, 0)], 1.0), "`points` must be at least 2 points"),
        (lambda: em.Path([(0, 0), (0, 0)], 1.0), r"one at \(0, 0\) m does not"),
        (lambda: em.Path([(0, 0), (1, 0), (0, 0)], 1.0), "must not turn back"),
        (lambda: em.Path([(0, 0), (1, 0)], -1.0), "`width` must be positive"),
        (lambda: em.Path([(0, 0), (1, 0)], [1.0] * 3), r"one per point \(2\), but has"),
        (
            lambda: em.Path([(0, 0), (1, 0), (0.5, 0.1)], 0.4),
            "`points` and `width` must not cross itself, .* a smaller `width`",
        ),
        (lambda: em.Path([(0, math.nan), (1, 0)], 1.0), "`points` must be finite"),
        (lambda: em.Taper((0, 0), (1, 0), [1.0]), "`widths` must have at least 2"),
        (lambda: em.Taper((0, 0), (0, 0), [1.0, 2.0]), "must differ from the next"),
        (lambda: em.Bend((0, 0), 1.0, 2.0, 0, 1), "less than twice `radius`"),
        (lambda: em.Bend((0, 0), 1.0, 0.5, 1, 1), "`stop` must differ from `start`"),
        (lambda: em.Bend((0, 0), 1.0, 0.5, 0, 7), "by less than a full turn"),
        (lambda: em.Bend((0, 0), 1.0, 0.5, 0, 1, segments=0), "`segments` must be an"),
        (lambda: em.Bend((0, 0), 1.0, 0.5, 0, 1, segments=True), "but is True"),
        (
            lambda: em.Bend((0, 0, 0), 1.0, 0.5, 0, 1),
            "`centre` must be at least 1 points",
        ),
        (lambda: em.Bezier([(0, 0), (1, 0)], np.ones(3)), "must be one number or two"),
        (
            lambda: em.Bezier([(0, 0), (0, 0), (1, 0)], 0.1),
            r"one at \(0, 0\) m does not",
        ),
        (
            lambda: em.Bezier([(0, 0), (1, 0), (0, 0.01)], 0.4),
            "`points` and `width` must not cross itself, .* a smaller `width`",
        ),
        (
            lambda: em.Bezier([(0, 0), (1, 1), (0, 1), (1, 0)], 0.1),
            r"has a cusp at \(0\.5, 0\.75\) m",
        ),
        (
            lambda: em.Spline([(0, 0), (1, 0)], 0.1),
            "`points` must be at least 3 points",
        ),
    ],
)
def test_bad_paths_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
