"""Caches of npz that are damaged, hostile or incomplete: one test per message."""

import io
import zipfile

import numpy as np
import pytest

from physax.io import (
    APSLayout,
    PhysaxFileError,
    read_two_time,
    scan_two_time,
    write_two_time,
)
from physax.runtime import MemoryLimitError

from .small_maps import C2, DATA, TIMES


def arrays(**changes):
    whole = {
        "wavevector_q_list": np.array([0.005, 0.01]),
        "phi_angles_list": np.array([0.0, 45.0]),
        "t1": TIMES,
        "t2": TIMES,
        "c2_exp": C2,
    }
    return {k: v for k, v in (whole | changes).items() if v is not None}


NAN = C2.copy()
NAN[1, 2, 3] = NAN[1, 3, 2] = np.nan

NPZ_FAULTS = {
    "missing": ({"t2": None}, r"must hold the array `t2`, but has wavevector_q_list, "),
    "nan": ({"c2_exp": NAN}, r"`c2_exp\[1\]` must be finite, but is nan at frames 3"),
    "old": ({"t1": np.meshgrid(TIMES, TIMES)[0]},
            r"`t1` must be an array of numbers with 1 axes.* An old cache"),
    "uneven": ({"t2": TIMES + 1}, "`t1` and `t2` must be equal"),
    "falling": ({"t1": TIMES[::-1]}, "`t1` must increase, but goes from 0.7 s to 0.6"),
    "q": ({"wavevector_q_list": np.array([0.005, 0.0])},
          "`wavevector_q_list` must be positive, but is 0 for map 2"),
    "phi": ({"phi_angles_list": np.array([0.0, np.inf])},
            "`phi_angles_list` must be finite"),
    "count": ({"phi_angles_list": np.zeros(3)}, "`phi_angles_list` has 3 and `c2_exp`"),
    "shape": ({"c2_exp": C2[0]}, r"shape \(maps, frames, frames\), but is of shape"),
    "text": ({"wavevector_q_list": np.array(["a", "b"])},
             "must be an array of numbers"),
    "mask": ({"mask": np.ones((3, 3))}, "`mask` must have the shape"),
    "sigma": ({"sigma": np.ones(3)}, "`sigma` must have the shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", NPZ_FAULTS)
def test_a_wrong_value_of_a_cache_is_named(tmp_path, name):
    changes, message = NPZ_FAULTS[name]
    np.savez(tmp_path / "a.npz", **arrays(**changes))
    with pytest.raises(PhysaxFileError, match=message):
        read_two_time(tmp_path / "a.npz")


def test_another_layout_than_npz_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", **arrays())
    with pytest.raises(PhysaxFileError, match="`layout` is 'APS'"):
        scan_two_time(tmp_path / "a.npz", APSLayout())


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (self.marker, "w")


@pytest.mark.parametrize("name", ["c2_exp", "cache_metadata", "t1"])
def test_pickles_are_never_loaded(tmp_path, name):
    marker = tmp_path / "marker"
    bomb = np.array([Bomb(str(marker))], object)
    np.savez(tmp_path / "a.npz", **arrays(**{name: bomb}))
    with pytest.raises(PhysaxFileError, match=f"`{name}` is pickled, and pickles"):
        read_two_time(tmp_path / "a.npz")
    assert not marker.exists()


@pytest.mark.parametrize("cut", [3, 30, 800, -1])
def test_a_truncated_cache_is_refused(tmp_path, cut):
    path = tmp_path / "a.npz"
    write_two_time(path, DATA)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(PhysaxFileError, match="not a valid npz file, or is truncated"):
        read_two_time(path)


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_an_array_that_vanished_from_the_directory_is_missed(tmp_path):
    path = tmp_path / "a.npz"
    write_two_time(path, DATA)
    members = members_of(path)
    del members["sigma.npy"]
    rewrite(path, members)
    with pytest.raises(PhysaxFileError, match="the array `sigma` is missing"):
        read_two_time(path)


def test_a_header_that_lies_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays())
    members = members_of(path)
    short, lie = b"(2, 8, 8), }      ", b"(2, 8888, 8888), }"
    assert members["c2_exp.npy"].count(short) == 1
    members["c2_exp.npy"] = members["c2_exp.npy"].replace(short, lie)
    rewrite(path, members)
    with pytest.raises(PhysaxFileError, match="it is damaged"):
        read_two_time(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path, frames = tmp_path / "a.npz", 300_000
    np.savez(path, **arrays(c2_exp=None))
    header = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (20, frames, frames)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("c2_exp.npy", header.getvalue())
        size = len(header.getvalue()) + 4 * 20 * frames**2
        archive.getinfo("c2_exp.npy").file_size = size
    with pytest.raises(MemoryLimitError, match=r"`c2_exp` of shape \(20, 300000"):
        read_two_time(path)


def test_a_name_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays())
    with (
        pytest.warns(UserWarning, match="Duplicate"),
        zipfile.ZipFile(path, "a") as archive,
    ):
        archive.writestr("t1.npy", b"")
    with pytest.raises(PhysaxFileError, match="a name occurs twice"):
        read_two_time(path)
