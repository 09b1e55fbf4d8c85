"""Nodes that miss some instants have gaps; those that miss all are land."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, PhysaxWarning
from physax.io import SnapshotSeries, read_scalar, read_velocity
from physax.io._gaps import bridged
from physax.particles import CGridField, ParticleStatus, SlipField, track

from .flows import flow, save


xarray = pytest.importorskip("xarray")

LON, LAT = np.arange(280.0, 301, 2), np.arange(-10.0, 11, 2)
HOURS = np.arange(12.0)
HOUR = 3600.0
GAPS = "'uo' has no data at some of the 12 instants at"


def radar(path, share=0.1):
    """A velocity of which a share of the samples is missing, and the first node."""
    data = flow(LON, LAT, times=HOURS, units="hours since 2001-03-01")
    data["uo"] = data.uo * 0 + data.time
    lost = np.random.default_rng(0).random(data.uo.shape) < share
    # Every node has a first and a last.
    lost[[0, -1]] = False
    lost[:, 0, 0] = True
    for name in ("uo", "vo"):
        data[name] = data[name].where(~lost)
        data[name].attrs["units"] = "m/s"
    return save(data, path), lost


def metres(field):
    return field.field.velocity


def test_land_is_what_has_no_data_at_all_times(tmp_path):
    path, lost = radar(tmp_path / "a.nc")
    nodes = (lost.any(0) & ~lost.all(0)).sum()
    with pytest.warns(PhysaxWarning, match=rf"{GAPS} {nodes} of 120 nodes, .* NOT_FIN"):
        field = read_velocity(path)
    assert np.argwhere(field.land.mask).tolist() == [[0, 0]]
    values = np.asarray(metres(field).values)
    assert np.array_equal(
        np.isnan(values[..., 0]), (lost & ~lost.all(0)).swapaxes(1, 2)
    )
    assert np.all(values[:, 0, 0] == 0)


@pytest.mark.parametrize("slip", [None, 1.0])
def test_particles_that_meet_a_gap_end(tmp_path, slip):
    path, _ = radar(tmp_path / "a.nc", share=0.0)
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as data:
        holed = data.load()
    # 292 degrees east, 4 degrees north, from 5 to 6 hours.
    holed["uo"][5:7, 7, 6] = np.nan
    save(holed, tmp_path / "b.nc")
    with pytest.warns(PhysaxWarning, match=f"{GAPS} 1 of 120 nodes"):
        field = read_velocity(tmp_path / "b.nc", slip=slip)
    assert isinstance(metres(field), SlipField) == (slip is not None)
    seeds = np.array([[291.0, 3.0], [291.0, -3.0]])
    tracks = track(field, seeds, HOUR * HOURS)
    assert tracks.status.tolist() == [ParticleStatus.NOT_FINITE, ParticleStatus.ALIVE]
    # The step from hour 3 ends at hour 4, where that of 5 counts with the weight 0.
    assert np.allclose(tracks.ended[0], 3 * HOUR)
    assert np.all(np.isfinite(tracks.positions[:4]))
    whole = read_velocity(tmp_path / "b.nc", slip=slip, gaps=3 * HOUR)
    tracks = track(whole, seeds, HOUR * HOURS)
    assert tracks.status.tolist() == [ParticleStatus.ALIVE] * 2
    expected = track(read_velocity(path, slip=slip), seeds, HOUR * HOURS)
    assert np.allclose(tracks.positions, expected.positions, atol=1e-4)


def test_gaps_are_bridged_as_far_as_asked(tmp_path):
    path, lost = radar(tmp_path / "a.nc")
    field = read_velocity(path, gaps=math.inf)
    assert np.argwhere(field.land.mask).tolist() == [[0, 0]]
    u = np.asarray(metres(field).values)[..., 0].swapaxes(1, 2)
    # The samples are linear in time, which interpolation gives back.
    time = np.broadcast_to(HOURS[:, None, None], u.shape)
    assert np.allclose(u, np.where(lost.all(0), 0, time), atol=1e-5)
    with pytest.warns(
        PhysaxWarning, match="Gaps of more than 7200 s stay; give `gaps`"
    ):
        some = read_velocity(path, gaps=2 * HOUR)
    left = np.isnan(np.asarray(metres(some).values)[..., 0].swapaxes(1, 2))
    pair = np.zeros_like(lost)
    pair[:-1] = lost[1:] & lost[:-1]
    pair[1:] |= pair[:-1].copy()
    assert np.array_equal(left, pair & ~lost.all(0))


def test_bridges_in_time():
    nan = np.nan
    times = np.array([0.0, 1, 3, 4, 8, 9])
    values = np.array([[nan, 1, nan, nan, 9, nan], [0, 1, 3, 4, 8, nan], [nan] * 6]).T
    filled = bridged(values, times, 7.0)
    assert np.allclose(filled[:, 0], [nan, 1, 1 + 16 / 7, 1 + 24 / 7, 9, nan],
                       equal_nan=True)  # fmt: skip
    assert np.array_equal(filled[:, 1:], values[:, 1:], equal_nan=True)
    assert np.array_equal(bridged(values, times, 6.9), values, equal_nan=True)
    filled = bridged(values.astype(np.float32), times, math.inf)
    assert filled.dtype == np.float32
    assert filled[[0, -1], 0].tolist() == [1, 9]
    assert filled[-1, 1] == 8
    assert np.all(np.isnan(filled[:, 2]))
    assert np.array_equal(bridged(values, None, 7.0), values, equal_nan=True)


@pytest.mark.parametrize("gaps", [0.0, -1.0, math.nan])
def test_lengths_of_gaps_are_positive(tmp_path, gaps):
    for read in (read_velocity, lambda p, **o: read_scalar(p, "uo", **o)):
        with pytest.raises(ArgumentError, match="`gaps` must be positive, but is"):
            read(tmp_path / "none.nc", gaps=gaps)


def test_a_component_that_is_never_there_is_told(tmp_path):
    path, _ = radar(tmp_path / "a.nc", share=0.0)
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as data:
        torn = data.load()
    torn["vo"][:, 3, 2] = np.nan
    save(torn, tmp_path / "b.nc")
    with pytest.warns(
        PhysaxWarning,
        match="1 nodes have data of some .* of 'uo' and not of 'vo'. They count as lan",
    ):
        field = read_velocity(tmp_path / "b.nc")
    assert np.argwhere(field.land.mask).tolist() == [[0, 0], [2, 3]]
    assert np.all(np.asarray(metres(field).values)[:, 2, 3] == 0)


def test_gaps_of_a_scalar_are_not_numbers(tmp_path):
    path, lost = radar(tmp_path / "a.nc")
    with pytest.warns(PhysaxWarning, match=GAPS):
        field = read_scalar(path, "uo")
    values = np.asarray(field.field.values).swapaxes(1, 2)
    gap = lost & ~lost.all(0)
    # Land has the value of a node beside it, and its gaps.
    assert np.array_equal(np.isnan(values)[:, 1:], gap[:, 1:])
    assert np.argwhere(field.land.mask).tolist() == [[0, 0]]
    whole = read_scalar(path, "uo", gaps=math.inf).field.values
    assert np.allclose(whole, HOURS[:, None, None], atol=1e-5)


def faces(path, lost):
    """Components on the faces of cells, of which one face lacks some instants."""
    x, t = np.arange(5.0), np.arange(4.0)
    u, v = np.full((4, 4, 5), 0.1), np.zeros((4, 5, 4))
    u[lost, 1, 2] = np.nan
    u[:, 2, 2] = np.nan
    places = {
        f"{axis}{at.size}": (f"{axis}{at.size}", at, {"axis": axis.upper()})
        for axis in "xy"
        for at in (x, x[1:] - 0.5)
    }
    data = xarray.Dataset(
        {"u": (("t", "y4", "x5"), u), "v": (("t", "y5", "x4"), v)},
        {"t": ("t", t, {"units": "seconds since 2001-01-01"}), **places},
    )
    return save(data, path)


def test_faces_that_miss_some_instants_have_gaps(tmp_path):
    path = faces(tmp_path / "a.nc", [1, 2])
    with pytest.warns(PhysaxWarning, match="'u' has no data at some of the 4 instants"):
        field = read_velocity(path)
    assert isinstance(field.field, CGridField)
    u = np.asarray(field.field.components[0])
    assert np.isnan(u[:, 2, 1]).tolist() == [False, True, True, False]
    assert np.all(u[:, 2, 2] == 0)
    seeds = np.array([[1.2, 1.5], [1.2, 0.5], [1.2, 2.5]])
    tracks = track(field, seeds, np.linspace(0, 3, 7), dt=0.25)
    assert tracks.status.tolist() == [
        ParticleStatus.NOT_FINITE, ParticleStatus.ALIVE, ParticleStatus.ALIVE
    ]  # fmt: skip
    whole = read_velocity(path, gaps=3.0)
    assert np.all(np.asarray(whole.field.components[0])[:, 2, 1] == np.float32(0.1))


def test_components_on_points_of_their_own_have_gaps(tmp_path):
    path = faces(tmp_path / "a.nc", [1, 2])
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as data:
        shifted = data.load().assign_coords(x4=("x4", np.arange(4.0), {"axis": "X"}))
    save(shifted, tmp_path / "b.nc")
    with pytest.warns(PhysaxWarning, match="'u' has no data at some of the 4 instants"):
        field = read_velocity(tmp_path / "b.nc")
    u = np.asarray(field.field.parts[0].values)
    assert np.isnan(u[:, 2, 1]).tolist() == [False, True, True, False]
    assert np.all(u[:, 2, 2] == 0)
    at = jnp.asarray([1.5, 1.5])
    assert np.isnan(field(jnp.asarray(0.5), at)[0])
    assert np.isfinite(field(jnp.asarray(2.9), jnp.asarray([0.5, 1.5])))[0]


def test_a_series_tells_of_gaps(tmp_path):
    path, lost = radar(tmp_path / "a.nc")
    lost = lost.swapaxes(1, 2)
    with SnapshotSeries(path) as series:
        assert np.argwhere(series.land().mask).tolist() == [[0, 0]]
        assert np.all(np.isfinite(series(0)))
        nodes = lost[1].sum() - 1
        with pytest.warns(
            PhysaxWarning, match=f"but {nodes} nodes have none at inst.* 1"
        ):
            second = series(1)
        # Once is enough.
        third = series(2)
    assert np.all(second[0, 0] == 0)
    assert np.isnan(second[..., 0]).sum() == nodes
    assert np.isnan(third[..., 0]).sum() == lost[2].sum() - 1


def test_a_series_tells_of_land_that_has_data_later(tmp_path):
    path, _ = radar(tmp_path / "a.nc", share=0.0)
    with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as data:
        late = data.load()
    late["uo"][0, 4, 4] = np.nan
    with SnapshotSeries(save(late, tmp_path / "b.nc")) as series:
        assert series.land().mask.sum() == 2
        assert np.all(series(0)[4, 4] == 0)
        with pytest.warns(
            PhysaxWarning, match="where 1 have none that do here.* latter"
        ):
            assert np.allclose(series(3)[4, 4, 0], 3)
