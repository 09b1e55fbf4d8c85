import dataclasses
import itertools
import sys

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from physax import ArgumentError
from physax.em import (
    PEC,
    Box,
    Cylindrical,
    Dipole,
    Drude,
    GaussianPulse,
    Material,
    Medium,
    Simulation,
    SpectralFields,
    Structure,
    TimeSeries,
    rasterise,
)
from physax.grid import Field, Grid
from physax.plot import animate, field
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


GRID = Grid.uniform((40, 30), 20 * NANO)
X, Y = GRID.edges(0)[:-1], GRID.edges(1)[:-1]


def spectrum(values):
    frequencies = SPEED_OF_LIGHT / jnp.asarray([1.5e-6, 1.6e-6])
    return SpectralFields(frequencies, {"Ez": values}, {"Ez": (X, Y)})


def wave():
    phase = 2 * jnp.pi * X / (0.4 * MICRO)
    values = 3e-9 * jnp.exp(1j * phase)[:, None] * jnp.ones(len(Y))
    return spectrum(jnp.stack([values, 2 * values]))


def test_image_lies_around_the_samples_in_nanometres():
    axes = field(wave())
    (image,) = axes.images
    assert image.get_extent() == pytest.approx((-10, 790, -10, 590), rel=1e-4)
    assert image.get_array().shape == (30, 40)
    assert np.allclose(image.get_array(), 3e-9, rtol=1e-5, atol=0)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (nm)", "y (nm)")
    assert axes.child_axes[0].get_ylabel() == "|Ez| (V s/m)"
    assert axes.get_title() == "1500 nm, 199.86 THz"


def test_real_part_has_colours_symmetric_about_zero():
    axes = field(wave(), "Ez", 1, part="real")
    (image,) = axes.images
    assert np.allclose(image.get_array()[0, 0], 6e-9, rtol=1e-5, atol=0)
    low, high = image.get_clim()
    assert low == -high
    assert high == pytest.approx(6e-9, rel=1e-5)
    assert axes.child_axes[0].get_ylabel() == "Re Ez (V s/m)"
    assert axes.get_title().startswith("1600 nm")


def test_phase_runs_from_minus_pi_to_pi():
    axes = field(wave(), part="phase")
    assert axes.images[0].get_clim() == pytest.approx((-np.pi, np.pi))
    assert axes.child_axes[0].get_ylabel() == "arg Ez (rad)"


def test_colours_end_where_asked():
    assert field(wave(), largest=1e-9).images[0].get_clim() == (0, 1e-9)
    clim = field(wave(), part="imag", largest=1e-9).images[0].get_clim()
    assert clim == (-1e-9, 1e-9)


def test_samples_on_a_line_are_a_curve():
    line = SpectralFields(
        jnp.asarray([2e14]), {"Hx": jnp.ones((1, 1, 30)) * 1j}, {"Hx": (X[:1], Y)}
    )
    axes = field(line)
    x, y = axes.lines[0].get_data()
    assert np.allclose(x, np.asarray(Y) / NANO, rtol=1e-5)
    assert np.all(y == 1)
    assert axes.get_xlabel() == "y (nm)"
    assert axes.get_ylabel() == "|η₀Hx| (V s/m)"


def test_a_volume_is_cut():
    values = jnp.arange(4.0) * jnp.ones((1, 3, 5, 4)) + 0j
    points = tuple(jnp.arange(float(n)) * 1e-3 for n in (3, 5, 4))
    fields = SpectralFields(jnp.asarray([2e14]), {"Ex": values}, {"Ex": points})
    axes = field(fields, plane=("z", 3e-3))
    assert np.all(axes.images[0].get_array() == 3)
    assert axes.get_xlabel() == "x (mm)"
    axes = field(fields, plane=("x", 0))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("y (mm)", "z (mm)")


def test_a_field_on_its_grid_is_drawn():
    axes = field(Field(jnp.ones((40, 30)), (0.5, 0.5), GRID))
    assert axes.images[0].get_extent() == pytest.approx((0, 800, 0, 600), rel=1e-4)


def test_outline_follows_the_material():
    inside = (X > 0.2 * MICRO)[:, None] & jnp.ones(30, bool)
    sim = Simulation(
        GRID, Medium(jnp.where(inside, 9.0, 1.0)), polarisation="Ez", steps=1
    )
    axes = field(wave(), outline=sim)
    vertices = axes.collections[0].get_paths()[0].vertices
    # Half way between the middles of cells 10 and 11.
    assert np.allclose(vertices[:, 0], 220, atol=1)


@pytest.mark.parametrize(
    "inner", [Material(12.1), Material(1.0, poles=[Drude(2e15, 1e13)])]
)
def test_outline_shows_each_material_once(inner):
    slab = Box.from_corners((0.21 * MICRO,), (0.61 * MICRO,))
    bar = Box((0.41 * MICRO, 0.3 * MICRO), (0.2 * MICRO, 0.21 * MICRO))
    stub = Box((0.09 * MICRO, 0.3 * MICRO), (0.1 * MICRO, 0.21 * MICRO))
    glass = Structure(slab, Material(2.1))
    parts = [glass, Structure(bar, inner), Structure(stub, inner)]
    # Faces cut cells, which are averages.
    medium = rasterise(parts, GRID, components=("Ez", "Hx", "Hy"))
    source = {"dot": Dipole("Ez", (1e-7, 1e-7), GaussianPulse(2e14, 2e13))}
    sim = Simulation(GRID, medium, polarisation="Ez", steps=1, sources=source)
    (contours,) = field(wave(), outline=sim).collections
    lines = contours.get_paths()[0].to_polygons(closed_only=False)
    # A line where each face is, in nanometres: in air or glass, dense or metal.
    for at, faces in ((100, [210, 610]), (300, [40, 140, 210, 310, 510, 610])):
        met = [
            x0 + (at - y0) / (y1 - y0) * (x1 - x0)
            for line in lines
            for (x0, y0), (x1, y1) in itertools.pairwise(line)
            if min(y0, y1) <= at < max(y0, y1)
        ]
        assert sorted(met) == pytest.approx(faces, abs=10)


def test_outline_of_a_gradient_is_half_way():
    values = 1 + jnp.arange(40.0)[:, None] * jnp.ones(30)
    sim = Simulation(GRID, Medium(values), polarisation="Ez", steps=1)
    (contours,) = field(wave(), outline=sim).collections
    vertices = contours.get_paths()[0].vertices
    # The middle of 40 cells of 20 nm.
    assert np.allclose(vertices[:, 0], 400, atol=1)


def test_outline_follows_metal():
    plate = Structure(Box.from_corners((0.21 * MICRO,), (0.61 * MICRO,)), PEC())
    medium = rasterise([plate], GRID, components=("Ez", "Hx", "Hy"))
    sim = Simulation(GRID, medium, polarisation="Ez", steps=1)
    axes = field(wave(), outline=sim)
    vertices = axes.collections[0].get_paths()[0].vertices
    # Half way between nodes outside and inside.
    assert set(np.round(vertices[:, 0], 3)) == {210.0, 610.0}


def test_outline_is_drawn_over_r_and_z():
    rod = Box.from_corners((-1.0,), (0.21 * MICRO,))
    rods = [Structure(rod, Material(9.0))]
    medium = rasterise(rods, GRID, components=Cylindrical.components)
    sim = Simulation(GRID, medium, cylindrical=Cylindrical(1), steps=1)
    one = wave()
    fields = SpectralFields(one.frequencies, one.values, one.coordinates, ("r", "z"))
    axes = field(fields, outline=sim)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("r (nm)", "z (nm)")
    vertices = axes.collections[0].get_paths()[0].vertices
    # Between the middles 200 and 220, of which cells the rod fills all and nothing.
    assert np.allclose(vertices[:, 0], 210, atol=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"component": "Hz"}, r"`component` must be one of \('Ez',\), but is 'Hz'"),
        ({"index": 2}, "`index` must be one of 2 frequencies, but is 2"),
        ({"part": "log"}, "`part` must be one of"),
        ({"plane": ("z", 0.0)}, "`plane` must name one of the axes"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        field(wave(), **options)


def test_a_point_is_refused():
    point = SpectralFields(
        jnp.asarray([2e14]), {"Ez": jnp.ones((1, 1, 1)) + 0j}, {"Ez": (X[:1], Y[:1])}
    )
    with pytest.raises(ArgumentError, match="must have more than one sample"):
        field(point)


def snapshots(times=4):
    values = jnp.arange(1.0, times + 1)[:, None, None] * jnp.ones((40, 30))
    return TimeSeries({"Ez": values}, {"Ez": jnp.arange(times) * 1e-15}, {"Ez": (X, Y)})


def test_a_snapshot_names_its_time():
    axes = field(snapshots(), index=-1, part="real")
    assert axes.get_title() == "3.0 fs"
    assert axes.child_axes[0].get_ylabel() == "Re Ez (V/m)"


def test_the_titles_of_snapshots_tell_them_apart():
    # Of a picosecond in steps of 23 fs: one decimal does not.
    series = snapshots(45)
    series = dataclasses.replace(series, times={"Ez": jnp.arange(45) * 23e-15})
    titles = [field(series, index=k).get_title() for k in range(4)]
    assert titles == ["0.00 ps", "0.02 ps", "0.05 ps", "0.07 ps"]


def test_animation_has_a_frame_for_each_snapshot(tmp_path):
    path = animate(snapshots(), "Ez", tmp_path / "wave.gif", every=2, dpi=50)
    assert path == tmp_path / "wave.gif"
    with Image.open(path) as film:
        assert film.format == "GIF"
        assert film.n_frames == 2
        assert film.size[0] == 320
        frames = []
        for number in range(2):
            film.seek(number)
            frames.append(np.asarray(film.convert("RGB"), float))
    # The field grows, so the middle of the picture gets darker red; the colour bar,
    # at the right, stays.
    middle = (slice(80, 120), slice(100, 160))
    assert frames[1][middle].mean() < frames[0][middle].mean() - 20


@pytest.mark.slow
def test_ffmpeg_gets_a_frame_for_each_snapshot(tmp_path, monkeypatch):
    # In its place stands a program that writes how many bytes came.
    program = tmp_path / "ffmpeg"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nraw = sys.stdin.buffer.read()\n"
        "open(sys.argv[-1], 'w').write(' '.join(sys.argv) + ' ' + str(len(raw)))\n"
    )
    program.chmod(0o755)
    monkeypatch.setitem(mpl.rcParams, "animation.ffmpeg_path", str(program))
    path = animate(snapshots(), "Ez", tmp_path / "wave.mp4", dpi=50)
    words = path.read_text().split()
    width, height = map(int, words[words.index("-s") + 1].split("x"))
    assert width == 320
    assert int(words[-1]) == 4 * (4 * width * height)
    monkeypatch.setitem(mpl.rcParams, "animation.ffmpeg_path", "no-such-program")
    with pytest.raises(ArgumentError, match=r"must end in '.gif', .* MP4 needs"):
        animate(snapshots(), "Ez", tmp_path / "other.mp4")


def test_bad_animations_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"`path` must end in '.gif' or '.mp4'"):
        animate(snapshots(), "Ez", tmp_path / "a.avi")
    with pytest.raises(ArgumentError, match="`every` must be an integer of .* is 0"):
        animate(snapshots(), "Ez", tmp_path / "a.gif", every=0)
    line = TimeSeries({"Ez": jnp.ones((2, 40, 1))}, {"Ez": X[:2]}, {"Ez": (X, Y[:1])})
    with pytest.raises(ArgumentError, match="must lie on an area"):
        animate(line, "Ez", tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())
