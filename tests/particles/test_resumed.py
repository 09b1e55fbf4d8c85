"""What a run goes on from must be there, and be of the same run."""

import os

import jax
import numpy as np
import pytest

from physax import ArgumentError
from physax.io import TrackFile
from physax.particles import GriddedField, Windows, _run as engine, run
from physax.runtime import CheckpointError, Checkpointing


pytestmark = pytest.mark.f32

TIMES = np.linspace(0.0, 2.0, 41)
SEEDS = np.array([[0.1], [0.2]], "float32")
NODES = np.array([0.0, 1.0])


def follow(folder, stop=None, velocity=None, **shape):
    """Follows two particles, 3 rows of which wait in memory; maybe not to the end."""
    shape = {"times": TIMES.size, "particles": 2, "width": 1, **shape}

    def interrupt(step, *_):
        if step == stop:
            raise KeyboardInterrupt

    return run(
        (lambda t, x: 0.1 + 0 * x) if velocity is None else velocity,
        SEEDS,
        TIMES,
        sink=TrackFile(folder / "rows.npy", **shape),
        checkpoint=Checkpointing(folder / "checkpoints", 10),
        progress=False,
        chunk=2,
        on_chunk=interrupt,
    )


@pytest.fixture
def short_buffer(monkeypatch):
    monkeypatch.setattr(engine, "_BUFFER", 24)


@pytest.mark.parametrize("fate", ["removed", "emptied", "of another"])
def test_a_run_whose_rows_are_gone_does_not_go_on(tmp_path, short_buffer, fate):
    with pytest.raises(KeyboardInterrupt):
        follow(tmp_path, stop=32)
    path = tmp_path / "rows.npy"
    rows = np.load(path)
    if fate == "removed":
        path.unlink()
    elif fate == "emptied":
        rows[5:] = 0
        np.save(path, rows)
    else:
        np.save(path, rows + 1)
    row = 27 if fate == "emptied" else 0
    with pytest.raises(
        ArgumentError,
        match=rf"`sink` must hold the rows up to 27, written before the checkpoint of "
        rf"step 30 in `.*checkpoints`, but row {row} is missing: .* Restore it, or rem",
    ):
        follow(tmp_path)


def test_a_run_whose_rows_are_there_goes_on(tmp_path, short_buffer):
    with pytest.raises(KeyboardInterrupt):
        follow(tmp_path, stop=32)
    assert follow(tmp_path).drive.first_step == 30
    rows = np.load(tmp_path / "rows.npy")[..., 0]
    assert np.allclose(rows, SEEDS[:, 0] + 0.1 * TIMES[:, None], atol=1e-6)


def test_rows_that_wait_in_the_checkpoint_need_no_file(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        follow(tmp_path, stop=32)
    (tmp_path / "rows.npy").unlink()
    follow(tmp_path)
    rows = np.load(tmp_path / "rows.npy")[..., 0]
    assert np.allclose(rows, SEEDS[:, 0] + 0.1 * TIMES[:, None], atol=1e-6)


@pytest.mark.parametrize("more", [{"times": 42}, {"particles": 3}, {"width": 2}])
def test_a_file_with_room_for_more_is_refused(tmp_path, more):
    with pytest.raises(
        ArgumentError, match=r"`sink` must have room for 41 times, 2 particles and 1 n"
    ):
        follow(tmp_path, **more)


class Snapshots:
    """A series of which each instant is one file."""

    times = np.linspace(0.0, 2.0, 9)

    def __init__(self, folder):
        self.paths = [str(folder / f"{n}.npy") for n in range(9)]
        for path in self.paths:
            np.save(path, np.full((2, 1), 0.1, "float32"))

    def __call__(self, number):
        return np.load(self.paths[number])


def windows(series, size=4):
    return Windows(series, lambda v, t: GriddedField(v, (NODES,), t), size=size)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("change", ["size", "times", "a late file", "nothing"])
def test_a_checkpoint_knows_the_whole_series(tmp_path, change):
    series = Snapshots(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        follow(tmp_path, stop=32, velocity=windows(series))
    size = 4
    if change == "size":
        size = 5
    elif change == "times":
        series.times = series.times * np.where(np.arange(9) > 4, 1.01, 1)
    elif change == "a late file":
        np.save(series.paths[7], np.full((2, 1), 0.3, "float32"))
        late = os.stat(series.paths[7]).st_mtime_ns + 10**9
        os.utime(series.paths[7], ns=(late, late))
    velocity = windows(series, size)
    if change == "nothing":
        assert follow(tmp_path, velocity=velocity).drive.first_step == 30
        return
    with pytest.raises(CheckpointError, match="series"):
        follow(tmp_path, velocity=velocity)


def test_the_identity_of_a_series_without_files_is_its_times():
    class Callable:
        times = np.arange(5.0)

        def __call__(self, number):
            return np.ones((2, 1))

    found = windows(Callable()).identity()
    assert jax.tree.leaves(found["files"]) == []
    assert found["times"].tolist() == [0, 1, 2, 3, 4]
