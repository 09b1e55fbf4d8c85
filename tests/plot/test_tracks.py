import inspect
from dataclasses import replace
from types import SimpleNamespace

import jax.numpy as jnp
import matplotlib.animation
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from PIL import Image

from physax import ArgumentError
from physax.particles import Land, ParticleStatus, Tracks
from physax.plot import animate_tracks, density, ftle_map, tracks


DAY = 86_400.0


def some(positions, times=None, status=None, **variables):
    positions = jnp.asarray(positions, float)
    rows, count, _ = positions.shape
    nothing = jnp.zeros(count, jnp.int32)
    return Tracks(
        times=jnp.arange(rows) * DAY if times is None else jnp.asarray(times, float),
        positions=positions,
        velocities=None,
        variables={name: jnp.asarray(v, float) for name, v in variables.items()},
        status=nothing if status is None else jnp.asarray(status, jnp.int32),
        ended=jnp.full(count, jnp.nan),
        face=nothing - 1,
        since=jnp.zeros(count),
        entries=nothing,
    )


def eastward():
    """Two particles that go east by 10 degrees a day, one over the edge of the map."""
    lon = np.array([[0.0, 165.0]]) + 10 * np.arange(4.0)[:, None]
    return some(np.stack([lon, np.full((4, 2), 40.0)], -1))


@pytest.mark.slow
def test_tracks_on_the_globe_are_cut_at_the_edge():
    axes = tracks(eastward(), spherical=True)
    assert axes.get_xlabel() == "longitude (degrees)"
    assert axes.get_ylabel() == "latitude (degrees)"
    assert axes.get_xlim() == (-180, 180)
    assert axes.get_ylim() == (-90, 90)
    lines = axes.collections[0]
    segments = np.array(lines.get_segments())
    # Three segments each, and one more for that over the edge.
    assert segments.shape == (7, 2, 2)
    assert np.allclose(np.abs(np.diff(segments[..., 0], axis=1)), 10)
    assert np.allclose(segments[:, :, 0].min(), -185)
    assert axes.child_axes[0].get_ylabel() == "time (days)"
    assert lines.get_array().tolist() == [0, 0, 1, 1, 2, 2, 1]
    texts = [axes.xaxis.get_major_formatter()(x, 0) for x in (-120, 0, 60, 180)]
    assert texts == ["120°W", "0°", "60°E", "180°"]


def test_a_map_may_begin_at_greenwich():
    axes = tracks(eastward(), spherical=True, west=0)
    segments = np.array(axes.collections[0].get_segments())
    assert segments.shape == (6, 2, 2)
    assert segments[..., 0].max() == pytest.approx(195)


def periodic(positions, low, high):
    return replace(some(positions), wraps=jnp.asarray([low, high], float))


def test_tracks_in_a_periodic_box_are_cut_at_its_ends():
    # From 8 by (3, 3): over the end of x, of y, of both, and of neither.
    start = np.array([[8.0, 1], [1, 8], [8, 9], [1, 1]])
    box = [0.0, 0.0], [10.0, 10.0]
    axes = tracks(periodic(np.stack([start, (start + 3) % 10]), *box))
    segments = np.array(axes.collections[0].get_segments())
    assert segments.shape == (8, 2, 2)
    assert segments.min() >= 0
    assert segments.max() <= 10
    # All pieces lead the same way, and are as long as the four legs.
    assert np.allclose(np.diff(segments[..., 0]), np.diff(segments[..., 1]))
    assert np.isclose(np.diff(segments[..., 0], axis=1).sum(), 4 * 3)
    # Back in time they lead the other way.
    back = tracks(periodic(np.stack([(start + 3) % 10, start]), *box))
    lengths = np.diff(np.array(back.collections[0].get_segments())[..., 0], axis=1)
    assert np.isclose(lengths.sum(), -4 * 3)
    assert np.abs(lengths).max() < 3.1


def test_axes_that_are_not_periodic_are_not_cut():
    end = float("inf")
    given = periodic([[[9.0, 1.0]], [[1.0, 9.0]]], [0.0, -end], [10.0, end])
    segments = np.array(tracks(given).collections[0].get_segments())
    # From y 1 to 9, while x goes from 9 to 11.
    assert np.allclose(segments, [[[9, 1], [10, 5]], [[0, 5], [1, 9]]])


@pytest.mark.parametrize("west", [-180, 0])
def test_a_periodic_strip_of_the_globe_has_no_lines_across(west):
    # East by 10 degrees twice, then west by 7: over the end of the strip and back.
    lon, end = np.array([[175.0], [185], [165], [188]]), float("inf")
    positions = np.stack([lon, np.zeros((4, 1))], -1)
    given = periodic(positions, [160.0, -end], [190.0, end])
    axes = tracks(given, spherical=True, west=west)
    segments = np.array(axes.collections[0].get_segments())
    assert np.abs(np.diff(segments[..., 0], axis=1)).max() <= 10 + 1e-4


@pytest.mark.parametrize("west", [-180, 0, 175])
@pytest.mark.parametrize("middle", [-180.0, 0.0, 172.0, 540.0])
def test_tracks_across_the_edge_of_the_map_are_seen_whole(west, middle):
    # 40 degrees eastward in two tracks, of which neither jumps.
    lon = middle + np.array([[-20.0, 0], [-10, 10], [0, 20]])
    given = some(np.stack([lon, np.broadcast_to([0.0, 10], (3, 2))], -1))
    axes = tracks(given, spherical=True, west=west)
    segments = np.array(axes.collections[0].get_segments())
    assert segments.shape == (4, 2, 2)
    assert np.isclose(np.ptp(segments[..., 0]), 40)
    # 5 % of margin at both ends.
    assert np.isclose(np.ptp(axes.get_xlim()), 44)
    turns = (segments[..., 0].mean() - middle) / 360
    assert np.isclose(turns, np.round(turns))


def test_lengths_have_a_readable_unit_and_variables_a_label():
    rng = np.random.default_rng(0)
    given = some(
        1e-3 * rng.random((4, 30, 2)), np.arange(4.0), heat=rng.random((4, 30))
    )
    axes = tracks(given, "heat", label="temperature (K)", most=10)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (µm)", "y (µm)")
    assert axes.child_axes[0].get_ylabel() == "temperature (K)"
    assert axes.get_title() == "10 of 30 tracks"
    assert len(axes.collections[0].get_segments()) == 30


@pytest.mark.parametrize("more", [-0.01, -0.004, 0.0])
def test_labels_lie_in_the_picture_where_ticks_depend_on_the_room_for_them(more):
    # One more tick has wider labels, for which the axes get smaller, with fewer ticks.
    low, high = np.array([2, -more]), np.array([5.777, 1.3108 + more])
    axes = tracks(some([[low], [high]]), spherical=True)
    figure = axes.get_figure(root=True)
    FigureCanvasAgg(figure).draw()
    for label in (axes.xaxis.label, axes.yaxis.label):
        box = label.get_window_extent()
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= figure.bbox.width
        assert box.y1 <= figure.bbox.height


def test_colours_of_status_are_explained():
    given = eastward()
    object.__setattr__(given, "status", jnp.asarray([0, int(ParticleStatus.STUCK)]))
    axes = tracks(given, "status", spherical=True)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["alive (1)", "stuck (1)"]


def test_land_is_drawn_as_cells_around_its_nodes():
    lon, lat = np.arange(0.0, 360, 30), np.arange(-90.0, 91, 30)
    mask = np.zeros((12, 7), bool)
    mask[1, 4] = True
    land = Land(mask, (lon, lat), periods=(360.0, None))
    axes = tracks(eastward(), spherical=True, land=land)
    cells = axes.collections[0]
    shown = cells.get_array()
    assert (~np.ma.getmaskarray(shown)).sum() == 1
    row, column = np.argwhere(~np.ma.getmaskarray(shown))[0]
    corner = cells.get_coordinates()[row, column]
    assert np.allclose(corner, [15, 15])


def test_a_density_is_drawn_cell_by_cell():
    edges = (np.linspace(0, 360, 13), np.linspace(-90, 90, 7))
    values = np.zeros((12, 6))
    values[0, 2], values[7, 3] = 1e-3, 1e-5
    axes = density(values, edges, spherical=True, logarithmic=True)
    (image,) = axes.collections
    assert image.get_array().shape == (6, 12)
    assert axes.child_axes[0].get_ylabel() == "density (per square degree)"
    # The cell from 0 to 30 degrees begins in the middle of the map.
    assert np.ma.getdata(image.get_array())[2, 6] == 1e-3
    assert image.get_coordinates()[2, 6].tolist() == [0, -30]
    with pytest.raises(ArgumentError, match="must be above 0 somewhere"):
        density(0 * values, edges, logarithmic=True)
    with pytest.raises(ArgumentError, match=r"match `edges`, \(12, 6\), but have"):
        density(values[1:], edges)


def test_cells_of_a_density_lie_between_the_given_edges():
    edges = (np.array([0, 0.1, 1, 5.0]), np.array([0, 1.0, 2, 3]))
    axes = density(np.arange(1.0, 10).reshape(3, 3), edges)
    (image,) = axes.collections
    assert image.get_coordinates()[0, :, 0].tolist() == edges[0].tolist()
    assert image.get_coordinates()[:, 0, 1].tolist() == edges[1].tolist()
    assert axes.get_xlim() == (0, 5)
    # A single bin has edges, too.
    axes = density(np.ones((1, 3)), (edges[0][:2], edges[1]))
    assert axes.collections[0].get_coordinates()[0, :, 0].tolist() == [0, 0.1]


def shown_longitudes(axes):
    """Returns the value drawn at each longitude, from west to east."""
    low, high = axes.get_xlim()
    found = {}
    for image in axes.collections:
        x = image.get_coordinates()[0, :, 0]
        for at, value in zip((x[1:] + x[:-1]) / 2, image.get_array()[0], strict=True):
            if low < at < high:
                found[float(at)] = float(value)
    return dict(sorted(found.items()))


@pytest.mark.parametrize("west", [-180, 0, 175])
def test_a_region_across_the_edge_of_the_map_is_seen_whole(west):
    lon, lat = np.arange(170.0, 191), np.arange(-5.0, 6)
    axes = ftle_map(np.add.outer(lon, 0 * lat), (lon, lat), spherical=True, west=west)
    seen = shown_longitudes(axes)
    # The longitudes are those of the values, but for whole turns.
    assert np.allclose(np.sort(list(seen.values())), lon)
    assert np.allclose((np.array([*seen]) - [*seen.values()] + 1) % 360, 1)
    assert np.allclose(np.ptp(axes.get_xlim()), 21)
    label = axes.xaxis.get_major_formatter()
    assert {label(x, 0) for x, value in seen.items() if value == 185} == {"175°W"}
    edges = (np.append(lon - 0.5, 190.5), np.append(lat - 0.5, 5.5))
    again = density(np.add.outer(lon, 0 * lat), edges, spherical=True, west=west)
    assert again.get_xlim() == axes.get_xlim()
    assert shown_longitudes(again) == seen


def test_more_than_half_of_the_globe_goes_on_at_the_other_edge():
    lon, lat = np.arange(5.0, 240, 10), np.arange(-5.0, 6)
    axes = ftle_map(np.add.outer(lon, 0 * lat), (lon, lat), spherical=True)
    assert axes.get_xlim() == (-180, 180)
    seen = shown_longitudes(axes)
    assert len(seen) == lon.size
    assert np.allclose([x % 360 for x in seen], [*seen.values()])


def test_cells_on_the_seam_of_the_globe_are_drawn_at_both_edges():
    lon, lat = np.arange(0.0, 360, 10), np.arange(-5.0, 6)
    axes = ftle_map(np.add.outer(lon, 0 * lat), (lon, lat), spherical=True)
    borders = np.concatenate([c.get_coordinates()[0, :, 0] for c in axes.collections])
    assert {-185, -175, 175, 185} <= set(borders.tolist())


def test_the_land_of_a_region_across_the_edge_is_drawn():
    lon, lat = np.arange(-175.0, 180, 10), np.arange(-85.0, 90, 10)
    land = Land(np.broadcast_to(lon[:, None] == -175, (36, 18)), (lon, lat))
    region = np.arange(170.0, 191), np.arange(-5.0, 6)
    axes = ftle_map(np.ones((21, 11)), region, spherical=True, land=land)
    drawn = [
        cells.get_coordinates()[0, 1:, 0][~np.ma.getmaskarray(cells.get_array())[0]]
        for cells in axes.collections[:-1]
    ]
    assert 190 in np.concatenate(drawn)


def test_exponents_have_a_readable_unit():
    nodes = (np.linspace(0, 2, 5), np.linspace(0, 1, 3))
    values = np.full((5, 3), 0.3)
    axes = ftle_map(values, nodes)
    assert axes.child_axes[0].get_ylabel() == "FTLE (1/s)"
    assert axes.get_xlabel() == "x (m)"
    assert np.allclose(axes.get_xlim(), (-0.25, 2.25))
    axes = ftle_map(values / DAY, nodes, spherical=True)
    assert axes.child_axes[0].get_ylabel() == "FTLE (1/day)"
    assert np.allclose(axes.collections[0].get_array(), 0.3)
    with pytest.raises(ArgumentError, match="match `nodes`"):
        ftle_map(values.T, nodes)
    with pytest.raises(ArgumentError, match=r"`nodes` must .* two .* shape \(1, 3\)"):
        ftle_map(values[:1], (nodes[0][:1], nodes[1]))


def test_a_gif_has_a_frame_for_each_time(tmp_path):
    given = eastward()
    path = animate_tracks(given, tmp_path / "a.gif", spherical=True, dpi=30)
    with Image.open(path) as image:
        assert image.n_frames == 4
    path = animate_tracks(given, tmp_path / "b.gif", every=2, tail=0, dpi=30)
    with Image.open(path) as image:
        assert image.n_frames == 2


def test_tails_in_a_periodic_box_are_cut_at_its_ends(tmp_path, monkeypatch):
    drawn, draw = [], LineCollection.set_segments

    def watched(lines, segments):
        drawn.extend(segments)
        draw(lines, segments)

    monkeypatch.setattr(LineCollection, "set_segments", watched)
    given = periodic([[[8.0, 1.0]], [[1.0, 1.0]]], [0.0, 0.0], [10.0, 10.0])
    animate_tracks(given, tmp_path / "a.gif", dpi=30)
    assert np.allclose(drawn, [[[8, 1], [10, 1]], [[0, 1], [1, 1]]])


def test_a_film_without_ffmpeg_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(
        matplotlib.animation.FFMpegWriter, "isAvailable", classmethod(lambda cls: False)
    )
    with pytest.raises(ArgumentError, match="MP4 needs the program ffmpeg"):
        animate_tracks(eastward(), tmp_path / "a.mp4")
    assert not list(tmp_path.iterdir())


def test_faulty_requests_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="`colour` must be one of 'time', 'status'"):
        tracks(eastward(), "salt")
    with pytest.raises(ArgumentError, match="at least two coordinates"):
        tracks(some(np.zeros((2, 1, 1))))
    for places in (np.full((2, 3, 2), np.nan), np.zeros((2, 0, 2))):
        with pytest.raises(ArgumentError, match="`tracks` must have a finite position"):
            tracks(some(places))
    with pytest.raises(ArgumentError, match=r"`values` must have a cell .* \(2, 0\)"):
        density(np.zeros((2, 0)), (np.arange(3), np.arange(1)))
    with pytest.raises(ArgumentError, match="`most` must be at least 1"):
        tracks(eastward(), most=0)
    for west in (500, np.nan):
        with pytest.raises(ArgumentError, match="`west` must be a longitude from -360"):
            tracks(eastward(), spherical=True, west=west)
    edges = (np.arange(3.0), np.arange(4.0))
    for west, kind in (("0", "a number, but is '0'"), ([0, 9], "one number, but")):
        match = f"`west` must be {kind}"
        with pytest.raises(ArgumentError, match=match):
            inspect.unwrap(tracks)(eastward(), spherical=True, west=west)
        with pytest.raises(ArgumentError, match=match):
            inspect.unwrap(density)(np.ones((2, 3)), edges, spherical=True, west=west)
    with pytest.raises(ArgumentError, match=r"must end in '.gif' or '.mp4'"):
        animate_tracks(eastward(), tmp_path / "a.png")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tail": -1}, "`tail` must be an integer of at least 0, but is -1"),
        ({"tail": 1.5}, "`tail` must be an integer of at least 0, but is 1.5"),
        ({"every": 0}, "`every` must be an integer of at least 1, but is 0"),
        ({"every": 2.5}, "`every` must be an integer of at least 1, but is 2.5"),
        ({"frames_per_second": 0.5}, "`frames_per_second` must be an integer of"),
        ({"dpi": 0}, "`dpi` must be positive, but is 0"),
        ({"dpi": "high"}, "`dpi` must be a number, but is 'high'"),
        ({"land": np.ones((3, 3), bool)}, "`land` must be a `Land`, but is a ndarra"),
        ({"tracks": SimpleNamespace()}, "`tracks` must be a `Tracks`, .* pass `res"),
    ],
)
def test_faulty_films_are_refused_before_the_old_one_is_touched(
    changed, message, tmp_path
):
    (tmp_path / "a.gif").write_bytes(b"old")
    given = {"tracks": eastward(), "path": tmp_path / "a.gif"} | changed
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(animate_tracks)(**given)
    assert (tmp_path / "a.gif").read_bytes() == b"old"


def test_a_film_takes_the_place_of_another_when_it_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.gif"
    path.write_bytes(b"old")
    draw = LineCollection.set_segments

    def failing(lines, segments):
        # The first frame has no tails.
        if len(segments):
            raise RuntimeError("in the second frame")
        draw(lines, segments)

    with monkeypatch.context() as patch:
        patch.setattr(LineCollection, "set_segments", failing)
        with pytest.raises(RuntimeError, match="in the second frame"):
            animate_tracks(eastward(), path, dpi=30)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="there is no folder .* Make it first"):
        animate_tracks(eastward(), tmp_path / "none" / "a.gif")
