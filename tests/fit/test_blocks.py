"""Data block by block from disk, from HDF5 or a stream: the answer of memory."""

import dataclasses
import re
import signal

import h5py
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax._status import Status
from physax.fit import DataError, Skip, Stream, least_squares, plan
from physax.runtime import Checkpointing, FingerprintError
from tests.fit.decays import points, problem


COUNT = 4700  # Of 4 whole blocks and a part of one, each not of whole chunks.
X, Y = points(COUNT, seed=5)
MASK = np.arange(COUNT) % 7 > 0
BLOCKS = dataclasses.replace(plan(COUNT, 3, resident=False), block=1000, chunk=300)


def run(data=(X, Y), **options):
    return least_squares(problem(data=data), plan=BLOCKS, progress=False, **options)


@pytest.fixture(scope="module")
def standard():
    result = least_squares(problem(data=(X, Y)), throw=True)
    assert result.plan.strategy.value == "STANDARD"
    return result


def assert_same(result, standard):
    assert result.success, result.message
    np.testing.assert_allclose(result.values, standard.values, rtol=1e-9)
    np.testing.assert_allclose(result.covariance, standard.covariance, rtol=1e-7)
    np.testing.assert_allclose(result.chi2, standard.chi2, rtol=1e-10)
    assert int(result.count) == int(standard.count)


def memory_mapped(folder):
    for name, values in {"x": X, "y": Y}.items():
        np.save(folder / f"{name}.npy", values)
    return memory_mapped_again(folder)


def memory_mapped_again(folder):
    return tuple(np.load(folder / f"{name}.npy", mmap_mode="r") for name in "xy")


def in_pieces(lengths):
    """Opens iterators that give pieces of these lengths, again and again."""

    def pieces():
        begin, turn = 0, 0
        while begin < COUNT:
            end = min(begin + lengths[turn % len(lengths)], COUNT)
            yield X[begin:end], Y[begin:end]
            begin, turn = end, turn + 1

    return Stream(pieces, COUNT)


def test_arrays_in_memory(standard):
    assert_same(run(), standard)


def test_memory_mapped_files(standard, tmp_path):
    data = memory_mapped(tmp_path)
    assert_same(run(data), standard)
    # Also without a plan: what is on disk is not loaded whole.
    free = least_squares(problem(data=data), progress=False)
    assert free.plan.strategy.value == "STREAMING"
    assert_same(free, standard)


def test_hdf5_datasets(standard, tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        data = file.create_dataset("x", data=X), file.create_dataset("y", data=Y)
        assert_same(run(data), standard)


@pytest.mark.parametrize("lengths", [(137, 901, 1), (1000,), (COUNT,), (2503,)])
def test_streams_of_odd_pieces(standard, lengths):
    assert_same(run(in_pieces(lengths)), standard)


def test_several_chunks_in_one_compiled_loop(standard):
    large = dataclasses.replace(plan(COUNT, 3), chunk=300)
    assert_same(least_squares(problem(data=(X, Y)), plan=large), standard)


@pytest.mark.slow
def test_masked_points_and_weights(standard):
    weights = np.linspace(0.5, 2, COUNT)
    made = problem(data=(X, np.where(MASK, Y, np.nan)), mask=MASK, weights=weights)
    whole = least_squares(made, throw=True)
    assert int(whole.count) == MASK.sum()
    assert_same(least_squares(made, plan=BLOCKS, progress=False), whole)


def test_a_short_stream_is_an_error():
    short = Stream(lambda: iter([(X[:2000], Y[:2000])]), COUNT)
    with pytest.raises(DataError, match="must give `points`, 4700, .* but gave 2000"):
        run(short)


@pytest.mark.parametrize("length", [1000, COUNT])
@pytest.mark.parametrize("skip", [None, Skip(0.9)])
def test_a_stream_that_hands_out_one_iterator_is_told_the_remedy(length, skip):
    pieces = in_pieces((length,)).open()
    message = (
        "^The stream must give `points`, 4700, points in each pass, but gave [0-9]+. "
        "`open` must return a new iterator at each call, not one that was read before; "
        "if it does, correct `points`.$"
    )
    with pytest.raises(DataError, match=message):
        run(Stream(lambda: pieces, COUNT), on_bad_chunk=skip)


@pytest.mark.parametrize("lengths", [(100,), (COUNT,), (1000,)])
@pytest.mark.parametrize("points", [4000, 4600])
def test_a_long_stream_is_an_error(points, lengths):
    # Also where the last block is whole: nobody would ask for what follows it.
    long = Stream(in_pieces(lengths).open, points)
    blocks = dataclasses.replace(BLOCKS, n_points=points)
    with pytest.raises(DataError, match=f"`points`, {points}, .* gave at least"):
        least_squares(problem(data=long), plan=blocks, progress=False)


@pytest.mark.parametrize("skip", [None, Skip(0.9)])
def test_arrays_in_place_of_blocks_are_told_the_remedy(skip):
    for arrays in ((X, Y), [X, jnp.asarray(Y)]):
        with pytest.raises(
            ArgumentError,
            match=r"`open` must return a list .* returns 2 arrays of all 4700 points, "
            r".* is `\[\(x, y\)\]`",
        ):
            run(Stream(lambda arrays=arrays: arrays, COUNT), on_bad_chunk=skip)


def test_lists_of_blocks_are_blocks(standard):
    assert_same(run(Stream(lambda: [(X, Y)], COUNT)), standard)
    halves = [(X[:2350], Y[:2350]), (X[2350:], Y[2350:])]
    assert_same(run(Stream(lambda: halves, COUNT)), standard)


@pytest.mark.parametrize("skip", [None, Skip(0.9)])
@pytest.mark.parametrize("length", [100, 1000])
def test_blocks_of_unequal_points_are_refused(length, skip):
    def blocks(other):
        yield X[:length], Y[:length]
        yield other

    column, alone = (X[length:, None], Y[length:]), (X[length:],)
    for other, shown in ((column, "('(1)', '()')"), (alone, "('()',)")):
        with pytest.raises(
            ArgumentError,
            match="`open` must give blocks that differ in nothing but .* the shape "
            + re.escape(f"('()', '()') it gives one of {shown}"),
        ):
            run(Stream(lambda other=other: blocks(other), COUNT), on_bad_chunk=skip)


def test_a_stream_that_fails_is_named_with_its_chunk():
    def failing():
        yield X[:1500], Y[:1500]
        raise OSError("disk gone")

    with pytest.raises(DataError, match=r"Chunk 1 of the data .* disk gone"):
        run(Stream(failing, COUNT))


class Interrupting:
    """An array on disk, reading which ends the run as Ctrl-C would, once."""

    def __init__(self, values, after):
        self.values, self.after = values, after
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __getitem__(self, part):
        # Samples for the fingerprint are shorter than blocks.
        whole = part.stop - part.start == BLOCKS.block
        self.after -= whole
        if whole and self.after == 0:
            signal.raise_signal(signal.SIGINT)
        return self.values[part]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("after", [5, 14, 23])
def test_an_interrupted_pass_goes_on_to_the_same_bits(tmp_path, after):
    whole = run(checkpoint=Checkpointing(tmp_path / "whole", 1))
    kept = Checkpointing(tmp_path / "parts", 1)
    data = Interrupting(X, after), Y
    first = run(data, checkpoint=kept)
    assert first.status == Status.INTERRUPTED
    assert "Run it again with the same checkpoint folder" in first.message
    second = run(data, checkpoint=kept)
    assert second.success
    for name in ("values", "factor", "chi2", "evaluations"):
        assert np.array_equal(getattr(second, name), getattr(whole, name))


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    kept = Checkpointing(tmp_path, 1)
    run(checkpoint=kept)
    with pytest.raises(FingerprintError, match="data"):
        run((X, Y + 1e-9), checkpoint=kept)


@pytest.mark.slow
def test_a_checkpoint_of_another_mask_or_of_other_data_on_disk_is_refused(tmp_path):
    kept = Checkpointing(tmp_path / "kept", 1)
    data = memory_mapped(tmp_path)
    made = problem(data=data, mask=MASK)
    least_squares(made, plan=BLOCKS, progress=False, checkpoint=kept)
    other = problem(data=data, mask=MASK & (np.arange(COUNT) != 2222))
    with pytest.raises(FingerprintError, match="data"):
        least_squares(other, plan=BLOCKS, progress=False, checkpoint=kept)
    np.save(tmp_path / "y.npy", np.where(np.arange(COUNT) // 1000 == 2, 2 * Y, Y))
    changed = problem(data=memory_mapped_again(tmp_path), mask=MASK)
    with pytest.raises(FingerprintError, match="data"):
        least_squares(changed, plan=BLOCKS, progress=False, checkpoint=kept)


def broken():
    y = Y.copy()
    y[2345] = np.nan
    return X, y


def test_a_chunk_that_is_not_finite_is_named():
    with pytest.raises(DataError, match=r"Chunk 2 of the data \(points 2000 to 3000\)"):
        run(broken())


@pytest.mark.slow
def test_chunks_may_be_left_out_and_the_result_says_so():
    result = run(broken(), on_bad_chunk=Skip(0.2))
    assert result.success
    assert "1 of 5 chunks were left out (2)." in result.detail
    assert int(result.count) == COUNT - 1000
    mask = (np.arange(COUNT) < 2000) | (np.arange(COUNT) >= 3000)
    rest = least_squares(problem(data=(X, Y), mask=mask), throw=True)
    np.testing.assert_allclose(result.values, rest.values, rtol=1e-9)


def test_not_more_chunks_than_allowed_are_left_out():
    with pytest.raises(
        DataError, match="`max_fraction` must be at least .* 0.1, and 1"
    ):
        run(broken(), on_bad_chunk=Skip(0.1))
    with pytest.raises(ArgumentError, match=r"`max_fraction` must lie in \[0, 1\)"):
        Skip(1.0)


class Unreadable(Interrupting):
    """An array on disk with a damaged place."""

    def __getitem__(self, part):
        if isinstance(part, slice) and part.start == 3000:
            raise OSError("bad sector")
        return self.values[part]


@pytest.mark.slow
def test_a_chunk_that_cannot_be_read_is_named_and_may_be_left_out():
    damaged = Unreadable(X, 0), Y
    with pytest.raises(DataError, match=r"Chunk 3 .*3 attempts: bad sector"):
        run(damaged)
    assert "left out (3)" in run(damaged, on_bad_chunk=Skip(0.5)).detail


def test_options_of_blocks_need_blocks(tmp_path):
    with pytest.raises(
        ArgumentError, match="`checkpoint` must be used with a plan that"
    ):
        least_squares(problem(), checkpoint=Checkpointing(tmp_path, 1))
    with pytest.raises(
        ArgumentError, match="`on_bad_chunk` must be used with a plan that"
    ):
        least_squares(problem(), on_bad_chunk=Skip(0.5))
    with pytest.raises(ArgumentError, match="`plan` must read block by block where"):
        least_squares(problem(data=in_pieces((9,))), plan=plan(COUNT, 3))


@pytest.mark.parametrize("points", [COUNT - 1000, COUNT + 1])
def test_a_plan_for_other_data_is_refused(points):
    other = dataclasses.replace(BLOCKS, n_points=points)
    for data in ((X, Y), in_pieces([700])):
        with pytest.raises(ArgumentError, match="for the 4,700 points of the data, th"):
            least_squares(problem(data=data), plan=other, progress=False)
    message = r"Pass `plan\(4700, 3, resident=False\)`"
    with pytest.raises(ArgumentError, match=message):
        least_squares(problem(data=(X, Y)), on_bad_chunk=Skip(0.1))
