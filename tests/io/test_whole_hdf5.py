import errno

import h5py
import jax.numpy as jnp
import numpy as np
import pytest

from physax.cli._em_run import write_hdf5
from physax.io import write_tracks, write_two_time
from physax.io._whole_hdf5 import whole_hdf5
from physax.particles import Tracks
from physax.xpcs import TwoTime


def fill(path):
    random = np.random.default_rng(0)
    with whole_hdf5(path) as draft, h5py.File(draft, "w") as file:
        for name in "abc":
            file[f"{name}/long"] = random.random(20_000)
            for k in range(40):
                file[f"{name}/{k}"] = random.random(20)
        file.create_dataset("packed", data=random.random((99, 99)), compression=1)


def write_maps(path):
    times = np.arange(60.0)
    c2 = np.random.default_rng(0).random((3, 60, 60))
    write_two_time(path, TwoTime(c2, np.array([0.1, 0.2, 0.3]), 0.0, times))


def write_monitors(path):
    write_hdf5(path, {f"m{k}": {"values": np.arange(500.0)} for k in range(9)})


def write_paths(path):
    pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    values = jnp.zeros((50, 90, 2))
    none = jnp.full(90, jnp.nan)
    write_tracks(
        path,
        Tracks(
            times=jnp.arange(50.0),
            positions=values,
            velocities=values,
            variables={},
            status=jnp.zeros(90, jnp.int32),
            ended=none,
            face=jnp.full(90, -1),
            since=none,
            entries=jnp.full(90, 3),
        ),
    )


@pytest.mark.parametrize("write", [fill, write_maps, write_monitors, write_paths])
def test_a_full_disk_raises_and_leaves_the_old_file(tmp_path, write, largest_file):
    path = tmp_path / "a.nc"
    write(path)
    size = path.stat().st_size
    path.write_bytes(b"old")
    random = np.random.default_rng(1)
    for limit in [0, 1, 100, size - 1, *map(int, random.integers(0, size, 8))]:
        with largest_file(limit), pytest.raises(OSError, match="too large") as caught:
            write(path)
        assert caught.value.errno == errno.EFBIG
        assert caught.value.filename == str(path)
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_is_what_the_library_writes_itself(tmp_path):
    fill(tmp_path / "a.h5")
    random = np.random.default_rng(0)
    with h5py.File(tmp_path / "a.h5") as file:
        for name in "abc":
            assert np.array_equal(file[f"{name}/long"], random.random(20_000))
            for k in range(40):
                assert np.array_equal(file[f"{name}/{k}"], random.random(20))
        assert np.array_equal(file["packed"], random.random((99, 99)))


def test_other_errors_stay(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        whole_hdf5(tmp_path / "a.h5") as draft,
        h5py.File(draft, "w"),
    ):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []
