"""Runs from the host: written while they go on, streamed, resumed."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.grid import CubicHermite, Linear
from physax.io import PhysaxFileError, TrackFile
from physax.particles import Diffrax, GriddedField, Milstein, Windows, run, track
from physax.runtime import Checkpointing, RunError, Status, latest_step
from tests.particles import particle_run
from tests.particles.flows import gridded_gyre, seeds


pytestmark = pytest.mark.f32

COMMAND = [sys.executable, "-m", "tests.particles.particle_run"]
AT = seeds(20).astype("float32")


@pytest.mark.parametrize("backward", [False, True])
def test_a_run_is_the_track(backward):
    times = np.linspace(0, 4, 13)[:: -1 if backward else 1]
    field, options = gridded_gyre(), {"steps": 36}
    expected = track(field, AT, times, **options)
    found = run(field, AT, times, progress=False, **options).tracks
    np.testing.assert_array_equal(found.positions, expected.positions)
    np.testing.assert_array_equal(found.status, expected.status)


@pytest.mark.parametrize("progress", [None, False])
def test_a_run_may_show_no_progress(progress, capfd):
    found = run(gridded_gyre(), AT, [0.0, 1.0], steps=4, progress=progress)
    assert found.tracks.positions.shape == (2, 20, 2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad])
def test_what_is_traced_is_refused_and_the_seeds_stay(transform):
    def total(seeds, rate):
        found = run(lambda t, x: rate * x, seeds, [0.0, 1.0], steps=2, progress=False)
        return jnp.sum(found.tracks.positions)

    at = jnp.ones((3, 2))
    several = at[None] if transform is jax.vmap else at
    with pytest.raises(ArgumentError, match="`seeds` must be known .* `track`"):
        transform(lambda seeds: total(seeds, 1.0))(several)
    with pytest.raises(ArgumentError, match="`tracks` must be known .* `track`"):
        transform(lambda x: total(at, jnp.sum(x)))(several)
    assert not at.is_deleted()


def test_random_steps_do_not_depend_on_the_chunks():
    times, key = np.linspace(0, 4, 13), jax.random.key(2)
    options = {"solver": Milstein(), "diffusivity": 1e-3, "key": key, "steps": 36}
    expected = track(gridded_gyre(), AT, times, **options)
    for chunk in (5, None):
        found = run(gridded_gyre(), AT, times, progress=False, chunk=chunk, **options)
        np.testing.assert_array_equal(found.tracks.positions, expected.positions)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("backward", [False, True])
def test_windows_give_the_tracks_of_the_whole_series(backward):
    times = np.linspace(0, 4, 41)[:: -1 if backward else 1]
    whole = gridded_gyre(instants=14)
    windows = particle_run.windows()
    found = run(windows, AT, times, progress=False, chunk=7).tracks
    expected = track(whole, AT, times).positions
    # The times of a window are rounded where the series has equal steps.
    np.testing.assert_allclose(found.positions, expected, rtol=0, atol=2e-6)
    # Windows of 4 that share one or, where a step lies across their edge, two; and the
    # first one, which shows the shape.
    assert windows.reads <= (6 + 1) * 4


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()
    whole.mkdir()
    process = subprocess.Popen([*COMMAND, str(killed)])
    limit = time.monotonic() + 120
    while (latest_step(killed / "checkpoints") or 0) < 60:
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.005)
    process.kill()
    process.wait(timeout=10)
    resumed, expected = particle_run.follow(killed), particle_run.follow(whole)
    assert 60 <= resumed.drive.first_step < particle_run.STEPS
    rows = np.load(killed / "tracks.npy")
    np.testing.assert_array_equal(rows, np.load(whole / "tracks.npy"))
    np.testing.assert_array_equal(rows[-1], expected.tracks.positions[-1])
    np.testing.assert_array_equal(rows[0], seeds(particle_run.COUNT).astype("f4"))
    # Another problem must not go on from there.
    again = particle_run.follow(killed)
    assert again.drive.first_step == particle_run.STEPS


def interrupt_at(step):
    def hook(now, *_):
        if now == step:
            os.kill(os.getpid(), signal.SIGINT)

    return hook


@pytest.mark.parametrize("with_sink", [False, True])
def test_an_interrupted_run_keeps_what_it_has_reached(with_sink):
    times, sent = np.linspace(0, 4, 13), {}

    def sink(row, particle, values):
        sent[row] = values[0]

    with pytest.raises(RunError, match="This was at step 16 of 36") as caught:
        run(
            gridded_gyre(),
            AT,
            times,
            steps=36,
            chunk=4,
            progress=False,
            sink=sink if with_sink else None,
            on_chunk=interrupt_at(16),
        )
    result, expected = caught.value.result, track(gridded_gyre(), AT, times, steps=36)
    assert caught.value.status == result.drive.status == Status.INTERRUPTED
    # Steps are of a third of an interval, so 16 of them lead past row 5.
    if with_sink:
        assert sorted(sent) == list(range(6))
        np.testing.assert_array_equal(sent[5], expected.positions[5])
        np.testing.assert_allclose(result.tracks.times, [0, 16 / 9], rtol=1e-6)
        part = track(gridded_gyre(), AT, [0, 16 / 9], steps=16).positions[-1]
        np.testing.assert_allclose(result.tracks.positions[-1], part, atol=1e-5)
    else:
        np.testing.assert_array_equal(
            result.tracks.positions[:6], expected.positions[:6]
        )
        assert np.all(np.isnan(result.tracks.positions[6:]))


def test_what_a_run_cannot_do_is_refused(tmp_path):
    field, times = gridded_gyre(), np.linspace(0, 4, 5)
    with pytest.raises(
        ArgumentError, match="`solver` must be of a fixed step in `run`"
    ):
        run(field, AT, times, solver=Diffrax(diffrax.Tsit5()))
    with pytest.raises(ArgumentError, match="`times` must be evenly spaced"):
        run(field, AT, [0, 1, 3], dt=0.5)
    with pytest.raises(ArgumentError, match="`sink` must be given with `checkpoint`"):
        run(field, AT, times, checkpoint=Checkpointing(tmp_path, 10))
    with pytest.raises(
        ArgumentError, match=r"`run` takes .*, but was given \['batch'\]"
    ):
        run(field, AT, times, batch=3)

    def windows(times=particle_run.Snapshots.times, **options):
        series = particle_run.Snapshots()
        series.times = times
        axes = [np.asarray(axis.positions()) for axis in field.axes]
        return Windows(series, lambda v, t: GriddedField(v, axes, t), **options)

    with pytest.raises(
        ArgumentError, match="`size` must be at least 4 with `margin=1`"
    ):
        windows(size=3, margin=1)
    with pytest.raises(ArgumentError, match="at most the number of snapshots, 14, but"):
        windows(size=15)
    with pytest.raises(ArgumentError, match="`series.times` must increase"):
        windows(np.zeros(14))
    with pytest.raises(ArgumentError, match="`series.times` must be finite, .* 3 is n"):
        windows(np.where(np.arange(14) == 3, np.nan, np.arange(14.0)))
    with pytest.raises(ArgumentError, match="`size` must be larger, or `dt` shorter"):
        run(windows(size=2), AT, times, progress=False)
    with pytest.raises(
        ArgumentError, match="`times` must lie within those of the data"
    ):
        run(windows(), AT, [0, 5.0], progress=False)


def test_snapshots_that_do_not_fit_together_are_named():
    class Listed:
        def __init__(self, snapshots):
            self.snapshots, self.times = snapshots, np.arange(6.0)

        def __call__(self, number):
            return self.snapshots[number]

    def follow(snapshots):
        make = lambda v, t: GriddedField(v, (np.linspace(0, 9, 4),), t)  # noqa: E731
        windows = Windows(Listed(snapshots), make, size=2)
        run(windows, [[0.5]], np.arange(6.0), progress=False)

    same = [np.ones((4, 1))] * 6
    follow(same)
    for at, wrong in ((1, (1, 1)), (3, (5, 1)), (3, ())):
        with pytest.raises(
            ArgumentError,
            match=re.escape(f"but number {at} has the shape {wrong}, and those before")
            + r" it \(4, 1\)",
        ):
            follow([*same[:at], np.ones(wrong), *same[at + 1 :]])
    with pytest.raises(
        ArgumentError, match="each of its `times`, 6, but number 4 raises: list index"
    ):
        follow(same[:4])
    whole = [x.astype("i4") for x in same[:2]]
    with pytest.raises(
        ArgumentError,
        match="but number 2 has float64, and number 1 int32. Return floats",
    ):
        follow([*whole, *same[2:]])


class Squares:
    """The speed t^2 at eight instants."""

    times = np.arange(8.0)

    def __call__(self, number):
        return np.full((5, 1), float(number) ** 2)


@pytest.mark.parametrize(("method", "margin"), [(CubicHermite(), 1), (Linear(), 0)])
def test_windows_need_the_margin_of_their_interpolation(method, margin):
    # CubicHermite has the speed exactly between the second and the last but one
    # instant; Linear makes trapezoids of the steps from one to the next.
    nodes, t = np.linspace(0.0, 400, 5), np.arange(1.0, 7)

    def make(values, times):
        return GriddedField(values, (nodes,), times, time_method=method)

    def follow(**options):
        result = run(Windows(Squares(), make, **options), [[0.0]], t, progress=False)
        return np.asarray(result.tracks.positions)[:, 0, 0]

    exact = (t**3 - 1) / 3 + (0 if margin else (t - 1) / 6)
    np.testing.assert_allclose(follow(margin=margin), exact, rtol=1e-5)
    np.testing.assert_allclose(follow(size=8), exact, rtol=1e-5)
    if margin:
        with pytest.raises(ArgumentError, match=r"`margin` must be 1 .*, but is 0.* 4"):
            follow()


def test_a_track_file_is_only_gone_on_with_if_it_fits(tmp_path):
    path = tmp_path / "rows.npy"
    TrackFile(path, 3, 4, 2)(1, 2, np.ones((1, 2, 2)))
    assert TrackFile(path, 3, 4, 2).values.sum() == 4
    with pytest.raises(PhysaxFileError, match="must hold float32"):
        TrackFile(path, 3, 5, 2)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(PhysaxFileError, match=r"must be a whole .npy file"):
        TrackFile(path, 3, 4, 2)


def test_an_empty_file_of_tracks_is_refused(tmp_path):
    (tmp_path / "rows.npy").touch()
    with pytest.raises(PhysaxFileError, match="must be a whole .npy file"):
        TrackFile(tmp_path / "rows.npy", 3, 4, 2)


def test_many_may_make_one_file_of_tracks(tmp_path):
    together = Barrier(8)

    def write(number):
        together.wait()
        rows = TrackFile(tmp_path / "rows.npy", 300, 40, 2)
        rows(0, 5 * number, np.full((300, 5, 2), float(number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert [file.name for file in tmp_path.iterdir()] == ["rows.npy"]
    rows = np.load(tmp_path / "rows.npy")
    np.testing.assert_array_equal(rows[:, :, 0], [np.repeat(np.arange(8), 5)] * 300)
