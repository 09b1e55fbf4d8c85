"""Maps of two times that are written: what is read back, and by whom."""

import inspect
import zipfile

import h5py
import numpy as np
import pytest

from physax import ArgumentError
from physax.io import (
    APSLayout,
    APSULayout,
    NPZLayout,
    nxxpcs_layout,
    read_two_time,
    scan_two_time,
    write_two_time,
)

from .two_time_maps import DEGREES, DT, FRAMES, Q, maps, measurement, rng


def same(a, b):
    mask = (a.mask is None) == (b.mask is None)
    mask = mask and (a.mask is None or np.array_equal(a.mask, b.mask))
    mask = mask and a.sigma_is_known == b.sigma_is_known
    fields = ("c2", "q", "phi", "times", "sigma")
    return mask and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in fields
    )


LAYOUTS = [APSLayout(), APSULayout(), NPZLayout()]


def suffix(layout):
    return "a.npz" if isinstance(layout, NPZLayout) else "a.hdf"


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.name)
@pytest.mark.parametrize("sigma", ["number", "map", "value"])
def test_what_is_written_is_read_back(tmp_path, layout, sigma):
    errors = {
        "number": 0.02,
        "map": [0.01, 0.02, 0.03, 0.04],
        "value": 0.01 + 0.01 * np.abs(maps(4)),
    }[sigma]
    mask = rng.random((FRAMES, FRAMES)) > 0.2
    data = measurement(sigma=np.asarray(errors, np.float32), mask=mask)
    path = tmp_path / suffix(layout)
    write_two_time(path, data, layout=layout)
    again = read_two_time(path)
    assert same(again, data)
    assert again.c2.dtype == np.float32
    # Part of it is the same part.
    part = read_two_time(path, q=0.01, frames=(3, 8))
    assert np.array_equal(part.c2, data.c2[2:, 2:8, 2:8])
    assert np.array_equal(part.mask, mask[2:8, 2:8])
    wanted = data.sigma[2:] if data.sigma.ndim else data.sigma
    wanted = wanted[:, 2:8, 2:8] if data.sigma.ndim == 3 else wanted
    assert np.array_equal(part.sigma, wanted)
    assert np.allclose(part.times, DT * np.arange(6), atol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.name)
def test_an_unknown_sigma_stays_unknown(tmp_path, layout):
    data = measurement(sigma=None)
    path = tmp_path / suffix(layout)
    write_two_time(path, data, layout=layout)
    assert same(read_two_time(path), data)
    assert not read_two_time(path, q=0.01, frames=(3, 8)).sigma_is_known
    assert read_two_time(path, sigma=0.02).sigma_is_known


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.name)
@pytest.mark.parametrize("sigma", [0.02, [1.0, 2.0, 3.0, 4.0], np.abs(maps(4))])
def test_a_relative_sigma_stays_relative(tmp_path, layout, sigma):
    data = measurement(sigma=np.asarray(sigma, np.float32), sigma_is_known=False)
    path = tmp_path / suffix(layout)
    write_two_time(path, data, layout=layout)
    assert same(read_two_time(path), data)
    part = read_two_time(path, q=0.01, frames=(3, 8))
    assert not part.sigma_is_known
    wanted = data.sigma[2:] if data.sigma.ndim else data.sigma
    wanted = wanted[:, 2:8, 2:8] if data.sigma.ndim == 3 else wanted
    assert np.array_equal(part.sigma, wanted)
    with pytest.raises(ArgumentError, match="`sigma`.* must be .*positive.*-1"):
        read_two_time(path, sigma=-1.0)


def test_an_old_file_without_that_mark_has_a_known_sigma(tmp_path):
    data = measurement(sigma=0.02)
    write_two_time(tmp_path / "a.hdf", data)
    with h5py.File(tmp_path / "a.hdf", "a") as file:
        del file["physax/sigma_is_known"]
    assert same(read_two_time(tmp_path / "a.hdf"), data)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.name)
def test_the_layout_is_found_out(tmp_path, layout):
    path = tmp_path / suffix(layout)
    write_two_time(path, measurement(), layout=layout)
    found = scan_two_time(path)
    assert found.layout == layout
    assert (found.maps, found.frames, found.dtype) == (4, FRAMES, "float32")
    assert found.dt == pytest.approx(DT)
    assert np.allclose(found.q, Q)
    assert np.allclose(np.degrees(found.phi), DEGREES)
    text = str(found)
    assert "4 maps of 12 x 12 frames (float32), time per frame 0.1 s" in text
    assert "q = 0.01 1/angstrom, angles -170, 10 degrees" in text


def test_others_open_what_is_written(tmp_path):
    data = measurement()
    write_two_time(tmp_path / "a.hdf", data, layout=APSLayout())
    with h5py.File(tmp_path / "a.hdf") as file:
        half = file["exchange/C2T_all/g2_00002"]
        assert half.fletcher32
        assert np.array_equal(half, np.triu(data.c2[1]))
        assert file["xpcs/dphilist"].shape == (1, 4)
        assert np.allclose(file["xpcs/dphilist"], DEGREES[None])
    write_two_time(tmp_path / "b.npz", data)
    with np.load(tmp_path / "b.npz", allow_pickle=False) as file:
        assert np.array_equal(file["c2_exp"], data.c2)
        assert file["t1"].ndim == 1


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.hdf"
    path.write_bytes(b"old")
    twice = measurement(q=0.01, phi=0.0)
    with pytest.raises(ArgumentError, match="each pair of wavevector and angle once"):
        write_two_time(path, twice)
    uneven = measurement(times=DT * np.arange(FRAMES) ** 2)
    with pytest.raises(ArgumentError, match="evenly spaced for this layout"):
        write_two_time(path, uneven)
    with pytest.raises(ArgumentError, match="an APSULayout.* but is 'own paths'"):
        write_two_time(path, measurement(), layout=nxxpcs_layout())
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]
    # An npz file holds both.
    write_two_time(tmp_path / "b.npz", uneven)
    assert same(read_two_time(tmp_path / "b.npz"), uneven)


def test_the_same_maps_give_the_same_archive(tmp_path):
    data = measurement()
    write_two_time(tmp_path / "a.npz", data)
    first = (tmp_path / "a.npz").read_bytes()
    write_two_time(tmp_path / "a.npz", data)
    assert (tmp_path / "a.npz").read_bytes() == first
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.name)
def test_a_layout_goes_with_its_suffix(tmp_path, layout):
    path = tmp_path / ("a.hdf" if isinstance(layout, NPZLayout) else "a.npz")
    with pytest.raises(ArgumentError, match=r"`path` must (not )?end in \.npz"):
        write_two_time(path, measurement(), layout=layout)
    assert not path.exists()


@pytest.mark.parametrize("layout", ["npz", NPZLayout, nxxpcs_layout()])
@pytest.mark.parametrize("name", ["a.hdf", "a.npz"])
def test_what_is_no_layout_to_write_is_refused(tmp_path, layout, name):
    with pytest.raises(ArgumentError, match=r"`layout` must be an APSULayout\(\)"):
        inspect.unwrap(write_two_time)(tmp_path / name, measurement(), layout=layout)


def test_a_suffix_in_capitals_is_one(tmp_path):
    data = measurement()
    write_two_time(tmp_path / "a.NPZ", data)
    assert same(read_two_time(tmp_path / "a.NPZ"), data)
