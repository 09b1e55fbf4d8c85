"""Files that are damaged, hostile or incomplete: one test per message."""

import inspect

import h5py
import numpy as np
import pytest

from physax import ArgumentError, PhysaxError
from physax.io import (
    DatasetLayout,
    NPZLayout,
    PhysaxFileError,
    read_two_time,
    scan_two_time,
    write_two_time,
)
from physax.runtime import MemoryLimitError

from .small_maps import C2, DATA, FRAMES, TIMES


MAP = "exchange/C2T_all/g2_00002"


@pytest.fixture
def path(tmp_path):
    """An APS file that is whole."""
    path = tmp_path / "a.hdf"
    with h5py.File(path, "w") as file:
        file["xpcs/dqlist"] = [[0.005, 0.01]]
        file["xpcs/dphilist"] = [[0.0, 45.0]]
        for k, one in enumerate(C2, 1):
            file[f"exchange/C2T_all/g2_{k:05d}"] = np.triu(one)
        file["measurement/instrument/detector/exposure_period"] = 0.1
    return path


def change(path, name, value):
    with h5py.File(path, "r+") as file:
        if name in file:
            del file[name]
        if value is not None:
            file[name] = value


def spoilt(value, at=(0, 1)):
    one = np.triu(C2[1])
    one[at] = value
    return one


HDF5_FAULTS = {
    "nan": (MAP, spoilt(np.nan, (2, 3)), rf"`{MAP}` must be finite, but is nan at "
            r"frames 3 and 4 \(1 such values\).*`frames`"),
    "halves": (MAP, spoilt(5.0, (3, 1)), f"`{MAP}` must be symmetric, or zero on one"),
    "q": ("xpcs/dqlist", [[0.005, -0.01]],
          "`xpcs/dqlist` must be positive, but is -0.01 for map 2"),
    "q nan": ("xpcs/dqlist", [[0.005, np.nan]],
              r"`xpcs/dqlist` must be finite, but holds nan at index \(0, 1\)"),
    "q count": ("xpcs/dqlist", [[0.005]],
                "as many entries in all lists, but `xpcs/dqlist` has 1, "
                "`xpcs/dphilist` has 2, `exchange/C2T_all` has 2"),
    "text": ("xpcs/dqlist", "0.005", "`xpcs/dqlist` must be an array of real numbers"),
    "phi": ("xpcs/dphilist", [[0.0, 4e3]], "`phi` must be in radians"),
    "shape": (MAP, np.ones((8, 7)), f"`{MAP}` must be a map of 8 x 8 frames"),
    "group": (MAP + "/x", None, None),
    "dt": ("measurement/instrument/detector/exposure_period", 0.0,
           "exposure_period` must be one positive number, but is 0"),
    "own times": ("physax/times", TIMES[::-1], "`physax/times` must increase, but goes "
                  "from 0.7 s to 0.6 s at frame 2"),
    "own times count": ("physax/times", TIMES[1:], "one time for each of 8 frames"),
    "own sigma": ("physax/sigma", [1.0] * 3, "`physax/sigma` must have the shape"),
    "own sigma value": ("physax/sigma", 0.0, "`sigma`, the standard deviation"),
    "own mask": ("physax/mask", np.full((8, 8), 2), "`physax/mask` must hold 0 and 1"),
    "own mask shape": ("physax/mask", np.ones((8, 7)), "`physax/mask` must have the"),
}  # fmt: skip


@pytest.mark.parametrize("name", [k for k in HDF5_FAULTS if k != "group"])
def test_a_wrong_value_is_named(path, name):
    place, value, message = HDF5_FAULTS[name]
    change(path, place, value)
    with pytest.raises(PhysaxFileError, match=message) as caught:
        read_two_time(path)
    assert caught.value.path == str(path)


def test_a_group_in_place_of_a_map_is_refused(path):
    change(path, MAP, None)
    change(path, MAP + "/x", 1.0)
    with pytest.raises(PhysaxFileError, match=f"`{MAP}` must be a dataset.*group"):
        read_two_time(path)


def test_a_missing_dataset_lists_what_was_looked_for_and_what_is_there(path):
    change(path, "xpcs/dphilist", None)
    message = (
        r"datasets of a known layout \(APS-U: xpcs/qmap/.*APS: xpcs/dqlist, "
        r"xpcs/dphilist, exchange/C2T_all; NXxpcs: .*but has exchange/C2T_all/g2_00001 "
        r"\(8, 8\), .*xpcs/dqlist \(1, 2\)\. Name them in Python: `layout="
    )
    with pytest.raises(PhysaxFileError, match=message):
        read_two_time(path)


def test_a_missing_dataset_of_own_paths_is_named(path):
    layout = DatasetLayout("exchange/C2T_all", "xpcs/q", "xpcs/dphilist")
    with pytest.raises(PhysaxFileError, match=r"own paths: exchange/C2T_all, xpcs/q"):
        scan_two_time(path, layout)
    layout = DatasetLayout("exchange/C2T_all", "xpcs/dqlist", "xpcs/dphilist", dt="t")
    with pytest.raises(PhysaxFileError, match="give `dt` in seconds"):
        read_two_time(path, layout=layout)


@pytest.mark.parametrize("reads", [read_two_time, scan_two_time])
def test_a_layout_by_its_name_is_refused(path, reads):
    # Users run it without the type checks of the tests, which come first.
    with pytest.raises(ArgumentError, match="`layout` must be .* a str. Write one as"):
        inspect.unwrap(reads)(path, layout="APS")


def test_an_axis_of_maps_is_required(path):
    layout = DatasetLayout(MAP, "xpcs/dqlist", "xpcs/dphilist")
    message = r"must have axes for maps, frames and frames, but has shape \(8, 8\)"
    with pytest.raises(PhysaxFileError, match=message):
        read_two_time(path, layout=layout)


def test_another_unit_of_time_is_refused(path):
    with h5py.File(path, "r+") as file:
        period = file["measurement/instrument/detector/exposure_period"]
        period.attrs["units"] = "ms"
    with pytest.raises(PhysaxFileError, match="must be in seconds, but is in 'ms'"):
        read_two_time(path)


APSU_FAULTS = {
    "bin": ("xpcs/twotime/processed_bins", [1, 9], "bins from 1 to 4, but holds 9"),
    "count": ("xpcs/twotime/processed_bins", [1], "processed_bins` has 1, .* has 2"),
    "axes": ("xpcs/qmap/map_names", [b"x", b"y"], r"must be 'q' and 'phi', but is"),
    "mapping": ("xpcs/qmap/dynamic_index_mapping", [0, 7],
                "must number the 2 x 2 bins from 0, but ranges from 0 to 7"),
    "group": ("xpcs/twotime/correlation_map", [1.0], "must hold the group"),
    "lost": ("xpcs/twotime/processed_bins", None,
             "must hold the dataset `xpcs/twotime/processed_bins`, but has entry/"),
}  # fmt: skip


@pytest.mark.parametrize("name", APSU_FAULTS)
def test_a_wrong_value_of_the_newer_layout_is_named(path, name):
    write_two_time(path, DATA)
    place, value, message = APSU_FAULTS[name]
    change(path, place, value)
    with pytest.raises(PhysaxFileError, match=message):
        read_two_time(path)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"q": 0.02}, r"within 10 % of `q` = 0.02 1/angstrom, but has 0.005, 0.01"),
        ({"phi_ranges": [(1.0, 2.0)]},
         r"\(57.2958 to 114.592 degrees\), but has 0, 45 degrees"),
        ({"q": 0.01, "phi_ranges": [(-0.1, 0.1)]}, "but has 45 degrees"),
        ({"frames": (0, 5)}, r"from 1 to 8, the second larger, but is \(0, 5\)"),
        ({"frames": (3, 9)}, r"from 1 to 8, the second larger, but is \(3, 9\)"),
        ({"frames": (3, 3)}, r"from 1 to 8, the second larger, but is \(3, 3\)"),
        ({"layout": NPZLayout()}, "It is not an npz file|It is an npz file"),
    ],
)  # fmt: skip
def test_nothing_is_read_that_was_not_asked_for(path, asked, message):
    with pytest.raises(PhysaxFileError, match=message):
        read_two_time(path, **asked)


@pytest.mark.parametrize("name", ["q", "dt", "q_tolerance"])
def test_numbers_must_be_positive(path, name):
    with pytest.raises(ArgumentError, match=f"`{name}` must be positive, but is -1"):
        read_two_time(path, **{name: -1.0})


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_two_time(tmp_path / "nowhere.hdf")


def outside(path):
    """A whole file beside the given one, to be linked to."""
    other = path.with_name("secret.hdf")
    other.write_bytes(path.read_bytes())
    return other


def test_external_links_are_refused(path):
    other = outside(path)
    change(path, "exchange/C2T_all", h5py.ExternalLink(other.name, "exchange/C2T_all"))
    message = "must lie in this file, but is a link to the file 'secret.hdf'"
    with pytest.raises(PhysaxFileError, match=message):
        read_two_time(path)


def test_soft_links_that_leave_the_file_are_refused(path):
    other = outside(path)
    change(path, "door", h5py.ExternalLink(other.name, "/"))
    change(path, MAP, h5py.SoftLink(f"/door/{MAP}"))
    with pytest.raises(PhysaxFileError, match="is a link to the file 'secret.hdf'"):
        read_two_time(path)


def test_circles_of_links_are_refused(path):
    change(path, "xpcs/dqlist", h5py.SoftLink("/xpcs/b"))
    change(path, "xpcs/b", h5py.SoftLink("/xpcs/dqlist"))
    with pytest.raises(PhysaxFileError, match="must not be a circular link"):
        read_two_time(path)


def test_groups_that_hold_themselves_are_listed_once(path):
    with h5py.File(path, "r+") as file:
        del file["xpcs"]
        for k in range(20):
            file[f"exchange/again{k}"] = file["exchange"]
            file[f"loop{k}"] = file["/"]
    with pytest.raises(PhysaxFileError, match=r"C2T_all/g2_00001 \(8, 8\)"):
        read_two_time(path)


def test_a_link_to_nothing_is_nothing(path):
    change(path, MAP, h5py.SoftLink("/lost"))
    with pytest.raises(PhysaxFileError, match=f"must hold the dataset `{MAP}`"):
        read_two_time(path)


def test_virtual_datasets_are_refused(path):
    other = outside(path)
    layout = h5py.VirtualLayout((FRAMES, FRAMES), "f4")
    layout[:] = h5py.VirtualSource(str(other), MAP, (FRAMES, FRAMES))
    with h5py.File(path, "r+") as file:
        del file[MAP]
        file.create_virtual_dataset(MAP, layout)
    with pytest.raises(PhysaxFileError, match=f"`{MAP}` must be stored in this file"):
        read_two_time(path)


def test_external_storage_is_refused(path):
    secret = path.with_name("secret.bin")
    secret.write_bytes(np.triu(C2[1]).tobytes())
    with h5py.File(path, "r+") as file:
        del file[MAP]
        file.create_dataset(
            MAP,
            (FRAMES, FRAMES),
            "f4",
            external=[(str(secret), 0, secret.stat().st_size)],
        )
    with pytest.raises(PhysaxFileError, match=f"`{MAP}` must be stored in this file"):
        read_two_time(path)


def test_shapes_beyond_memory_are_refused_before_reading(path):
    with h5py.File(path, "r+") as file:
        for name in list(file["exchange/C2T_all"]):
            del file[f"exchange/C2T_all/{name}"]
            huge = file.create_dataset(
                f"exchange/C2T_all/{name}", (10**7, 10**7), "f4", chunks=(4, 4)
            )
            huge[0, 1] = 1.0
    message = "reading 2 maps of 10000000 x 10000000 frames"
    with pytest.raises(MemoryLimitError, match=message):
        read_two_time(path, dt=0.1, frames=(1, 10**7))
    # A few frames of it can be read.
    assert read_two_time(path, dt=0.1, frames=(1, 3)).frames == 3


def test_shapes_without_values_are_refused(path):
    with h5py.File(path, "r+") as file:
        del file[MAP]
        file.create_dataset(MAP, (FRAMES, FRAMES), "f4", chunks=(4, 4))
    with pytest.raises(PhysaxFileError, match="only its shape .* was written"):
        read_two_time(path)


def test_lists_beyond_reason_are_refused(path):
    with h5py.File(path, "r+") as file:
        del file["xpcs/dqlist"]
        long = file.create_dataset("xpcs/dqlist", (1, 10**9), "f4", chunks=(1, 64))
        long[0, 0] = 0.01
    with pytest.raises(PhysaxFileError, match="must have at most 10000000 numbers"):
        read_two_time(path)


@pytest.mark.parametrize("cut", [0, 5, 100, 700, -1])
def test_a_truncated_file_is_refused(path, cut):
    write_two_time(path, DATA)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(PhysaxFileError, match="not a valid HDF5 file, or is truncated"):
        read_two_time(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.hdf", "a.npz"])
def test_flipped_bytes_never_give_other_data(tmp_path, name):
    path = tmp_path / name
    write_two_time(path, DATA)
    whole = path.read_bytes()
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(200):
        bad = bytearray(whole)
        bad[int(random.integers(len(bad)))] ^= int(random.integers(1, 256))
        path.write_bytes(bad)
        try:
            data = read_two_time(path)
        except PhysaxError:
            refused += 1
        else:
            # Every byte that matters has a checksum; some matter to nothing.
            for field in ("c2", "q", "phi", "times", "sigma"):
                assert np.array_equal(getattr(data, field), getattr(DATA, field))
    assert refused > 100
