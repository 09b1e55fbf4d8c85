import errno
import signal
import time

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
    with whole_hdf5(path) as content, h5py.File(content, "w") as file:
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
        whole_hdf5(tmp_path / "a.h5") as content,
        h5py.File(content, "w"),
    ):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


class _Late(Exception):
    pass


def pack(path):
    values = np.random.default_rng(0).random((64, 64))
    with whole_hdf5(path) as content, h5py.File(content, "w") as file:
        for k in range(200):
            file.create_dataset(f"g{k % 7}/d{k}", data=values, compression="gzip")


# h5py drops what is raised while it forgets its objects.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_does_not_end_the_process(tmp_path):
    path = tmp_path / "a.h5"
    begin = time.perf_counter()
    pack(path)
    spent = time.perf_counter() - begin
    size = path.stat().st_size
    writing = False

    def too_late(*_):
        if writing:
            raise _Late

    before = signal.signal(signal.SIGALRM, too_late)
    try:
        for part in np.linspace(0.05, 0.95, 12):
            signal.setitimer(signal.ITIMER_REAL, part * spent)
            try:
                writing = True
                pack(path)
                writing = False
            except _Late:
                writing = False
            assert path.stat().st_size == size
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
