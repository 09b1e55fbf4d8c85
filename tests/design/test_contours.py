import numpy as np
import pytest
import scipy.ndimage

from physax._checks import ArgumentError
from physax.design import Contours, SolidPart, contours
from physax.units import NANO


# What runs on NumPy alone has one precision.
pytestmark = pytest.mark.f32

H = 10 * NANO
SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
BOW_TIE = np.array([[0.0, 0.0], [2.0, 2.0], [2.0, 0.0], [0.0, 1.0]])


def middles(cells, spacing=H):
    return (np.arange(cells) + 0.5) * spacing


def distance_to(cells, spacing, centre):
    """Distances of the middles of cells from a point."""
    return np.hypot(
        middles(cells, spacing)[:, None] - centre[0],
        middles(cells, spacing) - centre[1],
    )


def noise(seed, size, smoothing):
    values = np.random.default_rng(seed).standard_normal((size, size))
    values = scipy.ndimage.gaussian_filter(values, smoothing)
    return 0.5 + values / values.std()


def furthest(points, loop):
    """The largest distance of points from a closed polyline."""
    start, along = loop, np.roll(loop, -1, axis=0) - loop
    offset = points[:, None] - start
    part = np.sum(offset * along, axis=2) / np.sum(along**2, axis=1)
    gap = offset - np.clip(part, 0, 1)[:, :, None] * along
    return np.hypot(gap[..., 0], gap[..., 1]).min(axis=1).max()


def filled(loop, count=5):
    """Points of a closed polyline with more in between."""
    parts = np.linspace(0, 1, count, endpoint=False)[:, None, None]
    return (loop + parts * (np.roll(loop, -1, axis=0) - loop)).reshape(-1, 2)


def test_contours_of_a_disc_converge_at_second_order():
    radius, centre = 300 * NANO, (503 * NANO, 498 * NANO)
    errors = []
    for cells in (50, 100, 200):
        spacing = 1000 * NANO / cells
        # Curved along the way out, so that linear interpolation is not exact.
        density = 0.5 + (radius**2 - distance_to(cells, spacing, centre) ** 2) * 1e12
        (part,) = contours(density, spacing, tolerance=0).parts
        errors.append(np.abs(np.hypot(*(part.outline - centre).T) - radius).max())
        assert part.holes == ()
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 1.8)
    # A parabola between samples at distance h: at most h^2 f'' / (8 f') = h^2 / (8 R).
    assert errors[-1] < 1.1 * (5 * NANO) ** 2 / (8 * radius)


@pytest.mark.parametrize("tolerance", [0.02 * H, 0.3 * H, 2 * H])
def test_simplified_polygons_stay_within_the_tolerance(tolerance):
    density = noise(3, 60, 3)
    exact = contours(density, H, tolerance=0)
    simple = contours(density, H, tolerance=tolerance)
    assert len(exact.parts) == len(simple.parts) == 3
    for before, after in zip(exact.parts, simple.parts, strict=True):
        for loop, reduced in zip(before.loops, after.loops, strict=True):
            assert len(reduced) < len(loop)
            # Both ways: the distance of Hausdorff.
            worst = max(
                furthest(filled(loop), reduced), furthest(filled(reduced), loop)
            )
            assert worst <= tolerance * (1 + 1e-9)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("smoothing", [0.5, 1.5])
@pytest.mark.parametrize("tolerance", [0.5 * H, 5 * H, 100 * H])
def test_no_tolerance_makes_polygons_meet_or_vanish(smoothing, tolerance):
    # The result itself refuses polygons that meet or do not lie in one another.
    density = noise(4, 40, smoothing)
    exact, simple = (contours(density, H, tolerance=t) for t in (0, tolerance))
    assert [len(p.holes) for p in exact.parts] == [len(p.holes) for p in simple.parts]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("smoothing", [0, 1])
def test_solid_and_void_share_their_interface(seed, smoothing):
    # Were a saddle decided one way for the solid and another for the void, areas would
    # overlap or be missing.
    density = noise(seed, 30, smoothing)
    solid, void = (contours(rho, H, tolerance=0) for rho in (density, 1 - density))
    assert solid.area + void.area == pytest.approx((30 * H) ** 2, rel=1e-9)
    assert min(solid.area, void.area) > 0.3 * (30 * H) ** 2


@pytest.mark.parametrize(("high", "count"), [(0.9, 1), (0.7, 2)])
def test_saddle_decides_what_is_connected(high, count):
    # (ac - bd) / (a + c - b - d) with a = 0.95, b = 0.05, d = 0.15: 0.514 and 0.454.
    density = np.array([[0.95, 0.05], [0.15, high]])
    assert len(contours(density, H).parts) == count


def test_solid_cells_that_touch_at_a_corner_stay_apart():
    checkers = np.indices((6, 6)).sum(0) % 2 == 0
    assert len(contours(checkers, H).parts) == 18


def test_parts_are_closed_along_the_edge_of_the_box():
    low, widths = (-40 * NANO, 7 * NANO), (H, 2 * H)
    (whole,) = contours(np.ones((3, 4)), widths, origin=low).parts
    corners = np.array([[0, 0], [3 * H, 0], [3 * H, 8 * H], [0, 8 * H]]) + low
    assert np.allclose(whole.outline, corners, rtol=0, atol=1e-9 * H)
    guide = np.zeros((5, 8))
    guide[:, 3:5] = 1
    (part,) = contours(guide, H).parts
    corners = np.array([[0, 3], [5, 3], [5, 5], [0, 5]]) * H
    assert np.allclose(part.outline, corners, rtol=0, atol=1e-9 * H)
    assert contours(np.zeros((3, 4)), H).parts == ()


def test_binary_contours_run_along_cells_with_corners_cut_by_half():
    binary = np.zeros((12, 12), bool)
    binary[2:8, 3:10] = True
    binary[5:8, 6:10] = False  # An L: five corners stick out, one goes in.
    (part,) = contours(binary, H).parts
    assert len(part.outline) == 12
    # Each corner cuts or fills half of a quarter of a cell.
    assert part.area == pytest.approx((6 * 7 - 3 * 4 - 4 / 8) * H**2, rel=1e-9)
    assert np.allclose(part.outline / H * 2, np.rint(part.outline / H * 2), atol=1e-9)


def test_holes_and_islands_find_their_outlines():
    r = distance_to(100, H, (500 * NANO, 500 * NANO))
    ring = (30 * H - r) / H
    island = (8 * H - r) / H
    hole = (r - 15 * H) / H
    density = 0.5 + np.clip(np.maximum(np.minimum(ring, hole), island), -1, 1)
    outer, inner = sorted(contours(density, H).parts, key=lambda part: -part.area)
    assert [len(outer.holes), len(inner.holes)] == [1, 0]
    # Polygons in a circle miss 1e-3 of the smallest one's area.
    assert outer.area == pytest.approx(np.pi * (30**2 - 15**2) * H**2, rel=1e-3)
    assert inner.area == pytest.approx(np.pi * 8**2 * H**2, rel=5e-3)


def test_solid_is_on_the_left_of_every_edge():
    density = noise(7, 40, 2)

    def sampled(points):
        return scipy.ndimage.map_coordinates(density, points.T / H - 0.5, order=1)

    for part in contours(density, H, tolerance=0).parts:
        for loop in part.loops:
            along = np.roll(loop, -1, axis=0) - loop
            left = np.stack([-along[:, 1], along[:, 0]], axis=1)
            left *= 0.2 * H / np.hypot(*along.T)[:, None]
            middle = loop + along / 2
            # Within half a cell of the edge of the box there are no samples.
            inner = np.all(np.abs(middle - 20 * H) < 19 * H, axis=1)
            slope = sampled(middle + left) - sampled(middle - left)
            assert np.all(slope[inner] > 0)


def test_small_parts_and_holes_can_be_left_out():
    binary = np.zeros((20, 20), bool)
    binary[2:15, 2:15] = True
    binary[5, 5] = False
    binary[18, 18] = True
    assert len(contours(binary, H).parts) == 2
    (part,) = contours(binary, H, least_area=H**2).parts
    assert part.holes == ()


def test_loops_are_turned_the_right_way():
    hole = SQUARE / 4 + 0.5
    for outline in (SQUARE, SQUARE[::-1]):
        for inner in (hole, hole[::-1]):
            part = SolidPart(outline, (inner,))
            assert part.area == pytest.approx(4 - 0.25)
            assert Contours((part,)).area == pytest.approx(3.75)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0, 0], [1, 1]], r"`outline` must have shape \(n, 2\) with n at least 3"),
        ([[0, 0], [1, 1], [np.inf, 0]], "`outline` must be finite, but has inf"),
        ([[0, 0], [1, 1], [3, 3]], "must have an area, but its 3 points have none"),
        ([[0, 0], [1, 1], [1, 0], [0, 1]], "have none, and cross themselves"),
    ],
)
def test_outlines_without_an_area_are_refused(points, message):
    with pytest.raises(ArgumentError, match=message):
        SolidPart(points)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([SolidPart(BOW_TIE)], "must not cross or touch, but part 0 meets itself"),
        (
            [SolidPart([[0, 0], [4, 0], [4, 2], [2, 0], [0, 2]])],
            "but part 0 meets itself",
        ),
        ([SolidPart(SQUARE), SolidPart(SQUARE + 1)], "part 0 meets part 1"),
        (
            [SolidPart(SQUARE), SolidPart(SQUARE + np.array([2, 0]))],
            "part 0 meets part 1",
        ),
        (
            [SolidPart(SQUARE), SolidPart(SQUARE / 4 + 1)],
            "but part 1 is in the solid of part 0",
        ),
        ([SolidPart(SQUARE, (SQUARE + 5,))], "`holes` must lie in their outline"),
    ],
)
def test_polygons_that_are_not_sound_together_are_refused(parts, message):
    with pytest.raises(ArgumentError, match=message):
        Contours(parts)


@pytest.mark.parametrize(
    ("density", "options", "message"),
    [
        (np.ones((2, 2, 2)), {}, "`density` must be a two-dimensional array of real"),
        (np.ones((2, 2)) * 1j, {}, "but is complex128"),
        (np.full((2, 2), np.nan), {}, "`density` must be finite, but has nan"),
        (np.eye(2), {"spacing": 0}, "`spacing` must be positive"),
        (np.eye(2), {"tolerance": -1e-9}, "`tolerance` must be at least 0"),
        (np.eye(2), {"level": np.nan}, "`level` must be finite"),
        (np.eye(2), {"least_area": np.inf}, "`least_area` must be at least 0"),
    ],
)
def test_bad_input_is_refused(density, options, message):
    with pytest.raises(ArgumentError, match=message):
        contours(density, **{"spacing": H, **options})
