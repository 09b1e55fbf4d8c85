"""Maps of two times that are read: files of others, and what is asked of them."""

import inspect

import h5py
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.io import (
    APSLayout,
    APSULayout,
    DatasetLayout,
    NPZLayout,
    PhysaxFileError,
    nxxpcs_layout,
    read_two_time,
    scan_two_time,
    write_two_time,
)
from physax.xpcs import TwoTime

from .two_time_maps import DEGREES, DT, FRAMES, Q, maps, measurement


def write_aps(path, c2, q=Q, degrees=DEGREES, names=None, dt=DT):
    """An old file by hand: half matrices, lists of shape (1, n), some extras."""
    with h5py.File(path, "w") as file:
        file["xpcs/dqlist"] = np.asarray(q)[None]
        file["xpcs/dphilist"] = np.asarray(degrees)[None]
        for k, one in enumerate(c2):
            name = f"g2_{k + 1:05d}" if names is None else names[k]
            file[f"exchange/C2T_all/{name}"] = np.tril(one)
        if dt is not None:
            place = "measurement/instrument/detector/exposure_period"
            file[place] = np.array([[dt / 2]])
            file["xpcs/stride_frames"] = np.array([[2]])
        file["exchange/unknown"] = "extra"


def write_apsu(path, c2, bins, *, mapping=None, full=False):
    with h5py.File(path, "w") as file:
        file["xpcs/qmap/dynamic_v_list_dim0"] = [0.005, 0.01, 0.02]
        file["xpcs/qmap/dynamic_v_list_dim1"] = [-170.0, 10.0]
        file["xpcs/qmap/map_names"] = [b"q", b"phi"]
        if mapping is not None:
            file["xpcs/qmap/dynamic_index_mapping"] = mapping
        file["xpcs/twotime/processed_bins"] = bins
        for k, one in enumerate(c2):
            half = one if full else np.triu(one)
            file[f"xpcs/twotime/correlation_map/c2_{k + 1:05d}"] = half
        file["entry/instrument/detector_1/frame_time"] = DT
        file["xpcs/twotime/config/avg_frame"] = 2


def test_an_aps_file_is_read(tmp_path):
    c2 = maps(4)
    write_aps(tmp_path / "a.hdf", c2)
    data = read_two_time(tmp_path / "a.hdf")
    assert np.array_equal(data.c2, c2)
    assert np.allclose(data.q, Q)
    assert np.allclose(data.phi, np.radians(DEGREES))
    # The exposure period times the frames that were strided over.
    assert np.allclose(data.times, DT * np.arange(FRAMES))


def test_numbers_in_names_are_sorted_as_numbers(tmp_path):
    c2 = maps(11)
    names = [f"g2_{k}" for k in range(1, 12)]
    write_aps(tmp_path / "a.hdf", c2, np.full(11, 0.01), np.arange(11.0), names)
    assert np.array_equal(read_two_time(tmp_path / "a.hdf").c2, c2)


def test_maps_of_an_aps_file_within_a_tenth_keep_their_own_wavevector(tmp_path):
    q = [0.0095, 0.0100, 0.0109, 0.0120]
    write_aps(tmp_path / "a.hdf", maps(4), q)
    data = read_two_time(tmp_path / "a.hdf", q=0.0101)
    assert np.allclose(data.q, q[:3])


def test_an_apsu_file_is_read(tmp_path):
    c2 = maps(3)
    # Bins run over angles first: 1 is (0.005, -170), 4 is (0.01, 10), 5 (0.02, -170).
    write_apsu(tmp_path / "a.hdf", c2, [1, 4, 5])
    data = read_two_time(tmp_path / "a.hdf")
    assert np.array_equal(data.c2, c2)
    assert np.allclose(data.q, [0.005, 0.01, 0.02])
    assert np.allclose(np.degrees(data.phi), [-170, 10, -170])
    assert np.allclose(data.times, 2 * DT * np.arange(FRAMES))


def test_bins_without_pixels_are_not_counted(tmp_path):
    # The grid has six bins; those with pixels are 0, 2, 3 and 5.
    write_apsu(tmp_path / "a.hdf", maps(2), [2, 4], mapping=[0, 2, 3, 5])
    data = read_two_time(tmp_path / "a.hdf")
    assert np.allclose(data.q, [0.01, 0.02])
    assert np.allclose(np.degrees(data.phi), [-170, 10])


@pytest.mark.parametrize("full", [False, True])
def test_a_full_matrix_is_not_doubled(tmp_path, full):
    c2 = maps(2)
    write_apsu(tmp_path / "a.hdf", c2, [1, 2], full=full)
    assert np.array_equal(read_two_time(tmp_path / "a.hdf").c2, c2)


def test_angles_wrap_around(tmp_path):
    degrees = [-175.0, -90.0, 90.0, 175.0]
    write_aps(tmp_path / "a.hdf", maps(4), [0.01] * 4, degrees)
    across = [(np.radians(170), np.radians(-170))]
    data = read_two_time(tmp_path / "a.hdf", phi_ranges=across)
    assert np.allclose(np.degrees(data.phi), [-175, 175])
    two = [(np.radians(-91), np.radians(-89)), (np.radians(80), np.radians(95))]
    data = read_two_time(tmp_path / "a.hdf", phi_ranges=two)
    assert np.allclose(np.degrees(data.phi), [-90, 90])


def test_only_selected_maps_are_read(tmp_path):
    path = tmp_path / "a.hdf"
    write_aps(path, maps(4))
    with h5py.File(path, "r+") as file:
        file["exchange/C2T_all/g2_00004"][5, 2] = np.nan
    assert read_two_time(path, q=0.005).maps == 2
    with pytest.raises(PhysaxFileError):
        read_two_time(path)


def test_own_paths_are_read(tmp_path):
    path, c2 = tmp_path / "a.h5", maps(3, dtype=np.float64)
    with h5py.File(path, "w") as file:
        file["data/maps"] = np.moveaxis(c2, 0, -1)
        file["data/q"] = 0.01
        file["data/angles"] = [0.1, 0.2, 0.3]
        file["data/t"] = 1 + DT * np.arange(FRAMES)
    layout = DatasetLayout(
        "data/maps",
        "data/q",
        "data/angles",
        times="data/t",
        degrees=False,
        maps_last=True,
    )
    data = read_two_time(path, layout=layout)
    assert np.allclose(data.c2, c2)
    assert np.allclose(data.q, 0.01)
    assert np.allclose(data.phi, [0.1, 0.2, 0.3])
    assert np.allclose(data.times, 1 + DT * np.arange(FRAMES))


@pytest.mark.parametrize("last", [False, True])
def test_a_nexus_file_is_read(tmp_path, last):
    path, c2 = tmp_path / "a.nxs", maps(3)
    with h5py.File(path, "w") as file:
        stored = np.triu(c2 - 1) if not last else np.moveaxis(np.triu(c2 - 1), 0, -1)
        file["entry/twotime/two_time_corr_func"] = stored
        about = file["entry/twotime/two_time_corr_func"].attrs
        about["storage_mode"] = "one_array_q_last" if last else "one_array_q_first"
        about["baseline_reference"] = 0
        file["entry/instrument/masks/dynamic_q_list"] = [0.01, 0.02, 0.03]
        file["entry/instrument/masks/dynamic_phi_list"] = [0.0, 1.0, 2.0]
        file["entry/instrument/detector/frame_time"] = DT
        file["entry/instrument/detector/frame_time"].attrs["units"] = "s"
    for layout in (None, nxxpcs_layout()):
        data = read_two_time(path, layout=layout)
        assert np.allclose(data.c2, c2, atol=1e-6)
        assert np.allclose(data.times, DT * np.arange(FRAMES))


def test_a_file_without_time_needs_one(tmp_path):
    path = tmp_path / "a.hdf"
    write_aps(path, maps(4), dt=None)
    assert scan_two_time(path).dt is None
    assert "time per frame not given" in str(scan_two_time(path))
    with pytest.raises(PhysaxFileError, match="give `dt` in seconds"):
        read_two_time(path)
    assert np.allclose(read_two_time(path, dt=0.5).times, 0.5 * np.arange(FRAMES))


def test_what_is_given_overrules_the_file(tmp_path):
    path = tmp_path / "a.hdf"
    mask = np.ones((FRAMES, FRAMES), bool)
    write_two_time(path, measurement(sigma=0.5))
    data = read_two_time(path, dt=2.0, sigma=0.3, mask=mask)
    assert data.times[1] == 2
    assert data.sigma == np.float32(0.3)
    assert data.mask.all()


def test_links_inside_the_file_are_followed(tmp_path):
    path, c2 = tmp_path / "a.hdf", maps(4)
    write_aps(path, c2)
    with h5py.File(path, "r+") as file:
        file.move("exchange", "elsewhere")
        file["exchange"] = h5py.SoftLink("/elsewhere")
    assert np.array_equal(read_two_time(path).c2, c2)


def test_values_that_are_masked_may_be_missing(tmp_path):
    path, c2 = tmp_path / "a.npz", maps(1)
    c2[0, 3] = c2[0, :, 3] = np.nan
    mask = np.ones((FRAMES, FRAMES), bool)
    mask[3] = mask[:, 3] = False
    data = TwoTime(c2, 0.01, 0.0, DT * np.arange(FRAMES), mask=mask)
    write_two_time(path, data)
    assert np.isnan(read_two_time(path).c2[0, 3, 4])


def test_the_cache_of_others_is_read_in_either_order_of_memory(tmp_path):
    path, c2 = tmp_path / "a.npz", maps(4)
    times = DT * np.arange(FRAMES)
    for save in (np.savez, np.savez_compressed):
        for order in ("C", "F"):
            save(
                path,
                wavevector_q_list=Q,
                phi_angles_list=DEGREES,
                t1=times,
                t2=times,
                c2_exp=np.asarray(c2, order=order),
                cache_metadata_json=np.array("{}"),
            )
            data = read_two_time(path, q=0.01, frames=(2, 5))
            assert np.array_equal(data.c2, c2[2:, 1:5, 1:5])


@pytest.mark.parametrize("name", ["a.hdf", "a.npz"])
def test_frames_may_keep_their_times(tmp_path, name):
    # HDF5 layouts have even times only.
    steps = np.arange(FRAMES) if name == "a.hdf" else np.arange(FRAMES) ** 2
    times = 5 + 0.1 * steps
    c2 = np.ones((1, FRAMES, FRAMES))
    write_two_time(tmp_path / name, TwoTime(c2, 0.01, 0.0, times))
    part = {"frames": (3, 7)}
    again = read_two_time(tmp_path / name, **part)
    assert np.allclose(again.times, times[2:7] - times[2], atol=1e-6)
    kept = read_two_time(tmp_path / name, **part, keep_times=True)
    assert np.allclose(kept.times, times[2:7], atol=1e-6)
    spaced = read_two_time(tmp_path / name, **part, keep_times=True, dt=0.5)
    assert np.allclose(spaced.times, [1, 1.5, 2, 2.5, 3])
    whole = read_two_time(tmp_path / name, keep_times=True)
    assert np.allclose(whole.times, times)


@pytest.mark.parametrize("name", ["a.hdf", "a.npz"])
@pytest.mark.parametrize("layout", [APSULayout(), APSLayout()], ids=lambda x: x.name)
def test_frames_that_are_dark_are_left_out(tmp_path, name, layout):
    """A frame without light is NaN against all others."""
    layout = NPZLayout() if name == "a.npz" else layout
    c2 = maps(4)
    mask = np.ones((FRAMES, FRAMES), bool)
    mask[4] = mask[:, 4] = False
    c2[:, ~mask] = np.nan
    times, phi = DT * np.arange(FRAMES), np.radians(DEGREES)
    path = tmp_path / name
    write_two_time(path, TwoTime(c2, Q, phi, times, mask=mask), layout=layout)
    if name == "a.hdf":
        with h5py.File(path, "a") as file:
            del file["physax/mask"]
        with pytest.raises(PhysaxFileError, match="finite, but is nan .* `without` or"):
            read_two_time(path)
    for asked in ({"mask": mask}, {"without": [5]}, {"mask": mask, "without": (5,)}):
        data = read_two_time(path, **asked)
        assert np.array_equal(data.mask, mask)
        assert np.array_equal(data.c2, c2, equal_nan=True)
    data = read_two_time(path, without=[5, 7], frames=(4, 8))
    kept = np.array([True, False, True, False, True])
    assert np.array_equal(data.mask, np.outer(kept, kept))
    some = mask[3:8, 3:8] & ~np.eye(5, dtype=bool)
    data = read_two_time(path, without=[7], mask=some, frames=(4, 8))
    kept[1] = True
    assert np.array_equal(data.mask, some & np.outer(kept, kept))
    for given in (np.array([5]), {5}, iter((5,)), jnp.array([5, 5]), range(5, 6)):
        assert np.array_equal(read_two_time(path, without=given).mask, mask)
    for given, message in {
        5: r"numbers of frames, as `\[17\]`, but is 5",
        "5": "numbers of frames, as",
        (5.5,): "integer of at least 1, but is 5.5",
        (True,): "integer of at least 1, but is True",
        (0,): "integer of at least 1, but is 0",
        ("5",): "integer of at least 1, but is '5'",
        b"5": "numbers of frames, as",
    }.items():
        with pytest.raises(ArgumentError, match=f"`without` must be .*{message}"):
            inspect.unwrap(read_two_time)(path, without=given)
    for given, message in (
        (np.array(5), "numbers of frames, as"),
        (jnp.array(5), "numbers of frames, as"),
        (np.array([5.0]), r"array of float64. Take `astype\(int\)`"),
        (np.zeros(12, bool), r"array of bool. Take `np.flatnonzero\(without\) \+ 1`"),
    ):
        with pytest.raises(ArgumentError, match=f"`without` must be .*{message}"):
            inspect.unwrap(read_two_time)(path, without=given)
    with pytest.raises(ArgumentError, match="`mask` must be known .* Fill it: `mask."):
        read_two_time(path, mask=np.ma.array(mask, mask=~mask))
    with pytest.raises(ArgumentError, match="`without` must be .* from 1 to 12, but"):
        read_two_time(path, without=[13])
    with pytest.raises(ArgumentError, match=r"`mask` .* shape \(5, 5\), but has shape"):
        read_two_time(path, mask=mask, frames=(4, 8))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"frames": 20}, "`frames` must be the numbers of the first and the last"),
        ({"frames": (True, 5)}, r"`frames` must be the numbers of .* is \(True, 5\)"),
        ({"frames": slice(5, 20)}, "`frames` must be the numbers of the first and the"),
        (
            {"frames": (1.0, 8.0)},
            "`frames` must be the numbers of .* is \\(1.0, 8.0\\)",
        ),
        (
            {"phi_ranges": (-0.1, 0.1)},
            r"`phi_ranges` must be pairs .* is \(-0.1, 0.1\)",
        ),
        ({"phi_ranges": [(1, 2), (3,)]}, "`phi_ranges` must be pairs of angles"),
        ({"phi_ranges": "all"}, "`phi_ranges` must be pairs of angles .* is 'all'"),
        ({"q": "0.0054"}, "`q` must be a number"),
        ({"q": np.array([0.0054, 0.006])}, r"`q` must be one number, .* once for each"),
        ({"q": np.inf}, "`q` must be positive and finite, but is inf"),
        ({"dt": 0.0}, "`dt` must be positive"),
        ({"keep_times": 5.0}, "`keep_times` must be `True` or `False`, but is 5.0"),
        ({"mask": np.full((12, 12), np.nan)}, "`mask` must hold booleans"),
        ({"mask": [[True], [True, False]]}, "`mask` must hold booleans"),
        ({"mask": 2 * np.ones((12, 12))}, "`mask` must hold .* `mask == 1`"),
    ],
)
def test_what_is_asked_for_is_checked_before_the_file_is_opened(
    tmp_path, given, message
):
    """A file that is fine is not called damaged for what is asked of it."""
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(read_two_time)(tmp_path / "none.hdf", **given)
