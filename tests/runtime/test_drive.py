import inspect
import math
import os
import signal
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax._status import RunError, Status
from physax.runtime import (
    CheckpointError,
    Checkpointing,
    CheckpointLockError,
    CheckpointWarning,
    FingerprintError,
    all_finite,
    bounded,
    checkpoint_steps,
    compile_ahead,
    drive,
    fingerprint,
    no_recompile,
    pack_state,
    save_checkpoint,
    writer_lock,
)


class State(eqx.Module):
    """A map that is chaotic, so that a single wrong bit grows."""

    x: jax.Array
    key: jax.Array
    count: jax.Array


def initial():
    return State(jnp.linspace(0.1, 0.9, 16), jax.random.key(0), jnp.int32(0))


def one_step(i, state):
    noise = jax.random.uniform(jax.random.fold_in(state.key, i), (16,))
    x = 3.7 * state.x * (1 - state.x) + 1e-3 * noise
    return State(x, state.key, state.count + 1)


@partial(jax.jit, donate_argnums=0)
def advance(state, start, stop):
    return jax.lax.fori_loop(start, stop, one_step, state)


@partial(jax.jit, donate_argnums=0)
def grow(state, start, stop):
    return state * jnp.exp2(stop - start).astype(state.dtype)


def bits(state):
    return {name: array.tobytes() for name, array in pack_state(state).items()}


def kill_at(step, number=signal.SIGTERM):
    def hook(at, state, info):
        if at >= step and info.start < step:
            os.kill(os.getpid(), number)

    return hook


run = partial(drive, advance, progress=False)


@pytest.fixture(scope="module")
def whole():
    """The bits of the uninterrupted run of 500 steps."""
    return bits(advance(initial(), jnp.int32(0), jnp.int32(500)))


@pytest.mark.parametrize("chunk", [1, 7, 100, 10_000, None])
def test_chunks_do_not_matter(whole, chunk):
    result = run(initial(), stop=500, chunk=chunk)
    assert bits(result.state) == whole
    assert (result.step, result.first_step) == (500, 0)
    assert result.status == Status.SUCCESSFUL
    assert result.seconds > 0
    assert result.steps_per_second > 0


def test_another_length_compiles_nothing():
    run(initial(), stop=30)
    state = initial()
    with no_recompile():
        run(state, stop=77, chunk=10)


def test_what_was_compiled_ahead_compiles_nothing(whole):
    state = initial()
    step = jax.ShapeDtypeStruct((), jnp.int32)
    compiled = compile_ahead(advance, state, step, step)
    all_finite(state)
    with no_recompile():
        result = drive(compiled, state, stop=500, progress=False)
    assert bits(result.state) == whole


def test_no_steps_are_a_valid_run():
    result = run(initial(), start=3, stop=3)
    assert bits(result.state) == bits(initial())
    assert np.isnan(result.steps_per_second)


def test_a_run_may_start_anywhere(whole):
    half = run(initial(), stop=200)
    assert bits(run(half.state, start=200, stop=500).state) == whole


def test_checkpoints_are_at_multiples_and_at_the_end(tmp_path, whole):
    seen = []

    def hook(step, state, info):
        # The hook sees a checkpoint that is on the disk.
        seen.append((step, checkpoint_steps(tmp_path)))

    result = run(
        initial(),
        stop=500,
        chunk=70,
        checkpoint=Checkpointing(tmp_path, 150, keep=3),
        on_chunk=hook,
    )
    steps = [step for step, _ in seen]
    assert steps == [70, 140, 150, 220, 290, 300, 370, 440, 450, 500]
    assert dict(seen)[300] == (150, 300)
    assert checkpoint_steps(tmp_path) == (300, 450, 500)
    assert bits(result.state) == whole
    assert all(entry.suffix == ".checkpoint" for entry in tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_interrupted_run_resumes_to_the_same_bits(tmp_path, whole, number):
    checkpoint = Checkpointing(tmp_path, 100, fingerprint=fingerprint(initial()))
    handler = signal.getsignal(number)
    first = run(
        initial(), stop=500, chunk=30, checkpoint=checkpoint, on_chunk=kill_at(170)
    )
    assert first.status == Status.INTERRUPTED
    assert first.step == checkpoint_steps(tmp_path)[-1] == 190
    assert signal.getsignal(number) == handler
    second = run(initial(), stop=500, chunk=77, checkpoint=checkpoint)
    assert second.first_step == first.step
    assert second.status == Status.SUCCESSFUL
    assert bits(second.state) == whole


def test_resuming_compiles_nothing(tmp_path):
    checkpoint = Checkpointing(tmp_path, 100)
    run(initial(), stop=200, checkpoint=checkpoint)
    state = initial()
    with no_recompile():
        run(state, stop=300, checkpoint=checkpoint)


def test_finished_run_resumes_to_its_end(tmp_path, whole):
    checkpoint = Checkpointing(tmp_path, 200)
    run(initial(), stop=500, checkpoint=checkpoint)
    again = run(initial(), stop=500, checkpoint=checkpoint)
    assert again.first_step == 500
    assert bits(again.state) == whole


def test_shorter_run_resumes_from_an_earlier_checkpoint(tmp_path):
    checkpoint = Checkpointing(tmp_path, 100, keep=9)
    run(initial(), stop=500, checkpoint=checkpoint)
    again = run(initial(), stop=250, checkpoint=checkpoint)
    assert again.first_step == 200
    assert bits(again.state) == bits(run(initial(), stop=250).state)


def test_own_layout_is_used(tmp_path, whole):
    def pack(state):
        count, key = np.asarray(state.count), jax.random.key_data(state.key)
        return {"x": np.asarray(state.x)[::-1], "n": count, "key": np.asarray(key)}

    def unpack(arrays):
        key = jax.random.wrap_key_data(jnp.asarray(arrays["key"]))
        return State(jnp.asarray(arrays["x"][::-1]), key, jnp.asarray(arrays["n"]))

    checkpoint = Checkpointing(tmp_path, 100, pack=pack, unpack=unpack)
    run(initial(), stop=200, checkpoint=checkpoint)
    assert bits(run(initial(), stop=500, checkpoint=checkpoint).state) == whole


def test_divergence_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path):
    checkpoint = Checkpointing(tmp_path, 50)
    result = drive(
        grow, jnp.ones(3, jnp.float32), stop=1000, chunk=20, checkpoint=checkpoint
    )
    # 2^127 is the largest power of two in float32.
    assert result.status == Status.DIVERGED
    assert 127 < result.step <= 140
    assert checkpoint_steps(tmp_path) == (50, 100)
    assert result.detail.endswith("`state[0]` is inf.")
    with pytest.raises(RunError, match=r"no longer finite. This was at step 1.*inf\."):
        drive(
            grow,
            jnp.ones(3, jnp.float32),
            stop=1000,
            chunk=20,
            checkpoint=checkpoint,
            throw=True,
        )


def test_growth_is_refused_before_it_is_infinite():
    watch = bounded(lambda state: jnp.sum(state**2), 1e6)
    result = drive(grow, jnp.ones(1), stop=1000, chunk=1, watch=watch, progress=False)
    # 4^9 < 1e6 < 4^10.
    assert (result.status, result.step) == (Status.DIVERGED, 10)


def test_checkpoint_between_checks_is_watched_too(tmp_path):
    drive(
        grow,
        jnp.ones(1, jnp.float32),
        stop=1000,
        chunk=1000,
        check_every=1000,
        checkpoint=Checkpointing(tmp_path, 100),
    )
    assert checkpoint_steps(tmp_path) == (100,)


def test_watch_may_answer_with_a_status(tmp_path):
    result = run(
        initial(),
        stop=50,
        chunk=10,
        watch=lambda state: Status.INVALID,
        checkpoint=Checkpointing(tmp_path, 30),
    )
    assert (result.status, result.step) == (Status.INVALID, 10)
    assert list(tmp_path.iterdir()) == []
    result = run(initial(), stop=50, chunk=10, watch=lambda state: Status.SUCCESSFUL)
    assert result.status == Status.SUCCESSFUL


def enough(state):
    return state.count >= 123


@pytest.mark.parametrize("chunk", [1, 13, None])
def test_convergence_is_seen_at_multiples_only(chunk):
    result = run(initial(), stop=500, chunk=chunk, converged=enough, check_every=20)
    assert (result.status, result.step) == (Status.CONVERGED, 140)
    assert result.status.ok


@pytest.mark.parametrize("kill", [30, 119, 120, 130, 140])
def test_resumed_run_stops_where_the_uninterrupted_one_does(tmp_path, kill):
    ask = partial(
        run,
        stop=500,
        chunk=17,
        checkpoint=Checkpointing(tmp_path, 50),
        converged=enough,
        check_every=20,
    )
    ask(initial(), on_chunk=kill_at(kill))
    result = ask(initial())
    assert (result.status, result.step) == (Status.CONVERGED, 140)
    assert bits(result.state) == bits(run(initial(), stop=140).state)


def test_limit_of_steps_without_convergence_is_told():
    result = run(initial(), stop=100, converged=enough, check_every=20)
    assert result.status == Status.MAX_STEPS
    with pytest.raises(RunError, match="limit on the number of steps"):
        run(initial(), stop=100, converged=enough, check_every=20, throw=True)


def test_rule_may_name_its_status():
    result = run(
        initial(),
        stop=100,
        check_every=10,
        converged=lambda state: jnp.where(state.count >= 30, Status.DECAYED, 0),
    )
    assert (result.status, result.step) == (Status.DECAYED, 30)


def test_hook_learns_rate_and_status():
    infos = []
    run(
        initial(),
        stop=40,
        chunk=10,
        converged=lambda state: state.count >= 30,
        check_every=10,
        on_chunk=lambda step, state, info: infos.append(info),
    )
    assert [(info.start, info.stop) for info in infos] == [(0, 10), (10, 20), (20, 30)]
    assert [info.status for info in infos] == [None, None, Status.CONVERGED]
    assert infos[-1].steps_per_second > 0


def test_error_in_the_hook_releases_everything(tmp_path):
    handler = signal.getsignal(signal.SIGTERM)

    def hook(step, state, info):
        raise KeyError

    with pytest.raises(KeyError):
        run(initial(), stop=9, checkpoint=Checkpointing(tmp_path, 5), on_chunk=hook)
    assert signal.getsignal(signal.SIGTERM) == handler
    assert list(tmp_path.iterdir()) == []


def test_full_disk_does_not_end_the_run(tmp_path, whole, monkeypatch):
    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.warns(CheckpointWarning, match="without a checkpoint of step .*space"):
        result = run(initial(), stop=500, checkpoint=Checkpointing(tmp_path, 200))
    assert bits(result.state) == whole
    assert list(tmp_path.iterdir()) == []


def test_two_runs_do_not_share_a_folder(tmp_path):
    with writer_lock(tmp_path), pytest.raises(CheckpointLockError):
        run(initial(), stop=9, checkpoint=Checkpointing(tmp_path, 5))


def test_checkpoint_of_another_problem_is_refused(tmp_path):
    run(initial(), stop=9, checkpoint=Checkpointing(tmp_path, 5, fingerprint="a"))
    with pytest.raises(FingerprintError):
        run(initial(), stop=9, checkpoint=Checkpointing(tmp_path, 5, fingerprint="b"))


def test_checkpoints_are_not_overwritten_by_a_fresh_run(tmp_path):
    checkpoint = Checkpointing(tmp_path, 5, resume=False)
    run(initial(), stop=9, checkpoint=checkpoint)
    with pytest.raises(CheckpointError, match="no checkpoints when `resume` is False"):
        run(initial(), stop=9, checkpoint=checkpoint)


def test_checkpoints_beyond_the_end_are_not_taken_for_a_start(tmp_path):
    save_checkpoint(tmp_path, 50, pack_state(initial()))
    with pytest.raises(
        CheckpointError, match=r"steps 0 and 9, .* \[50\], of .* length"
    ):
        run(initial(), stop=9, checkpoint=Checkpointing(tmp_path, 5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stop": -1}, "`stop` must be an integer of at least 0, but is -1"),
        ({"stop": True}, "`stop` must be an integer of at least 0, but is True"),
        ({"stop": 5, "start": 9}, "`stop` must lie between `start`, 9, and .* is 5"),
        ({"stop": 5, "start": True}, "`start` must be an integer .* but is True"),
        ({"stop": 5, "chunk": True}, "`chunk` must be an integer .* but is True"),
        ({"stop": 5, "check_every": True}, "`check_every` must be an integer .* True"),
        ({"stop": 2**31}, "`stop` must lie between"),
        (
            {"stop": 5, "start": -1},
            "`start` must be an integer of at least 0, but is -1",
        ),
        ({"stop": 5, "chunk": 0}, "`chunk` must be an integer of at least 1, but is 0"),
        (
            {"stop": 5, "check_every": 0},
            "`check_every` must be an integer of at least 1, but is 0",
        ),
        ({"stop": 5, "converged": enough}, "`check_every` must be given"),
        (
            {"stop": 5, "watch": lambda s: s.x < 1},
            r"`watch` must return one truth value .* returned bool\[16\]",
        ),
        (
            {"stop": 5, "check_every": 5, "converged": lambda s: None},
            r"`converged` must return one truth value .* returned object\[\]",
        ),
        (
            {"stop": 5, "check_every": 5, "converged": lambda s: 99},
            r"`converged` must return .* a `Status`, but returned 99",
        ),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        run(initial(), **arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"advance": 3}, "`advance` must be a function, but is an int"),
        (
            {"advance": lambda *_: None},
            r"the shape \(8,\) before and missing after",
        ),
        (
            {"advance": lambda x, *_: x[:5]},
            r"the shape \(8,\) before and \(5,\) af",
        ),
        (
            {"advance": lambda x, *_: x.astype(jnp.bfloat16)},
            "`state` has the dtype float32 before and bfloat16 after",
        ),
        ({"checkpoint": "x"}, "`checkpoint` must be a `Checkpointing`, but is a str"),
        ({"watch": 3}, "`watch` must be a function or None, but is an int"),
        ({"on_chunk": 3}, "`on_chunk` must be a function or None, but is an int"),
        ({"progress": "x"}, "`progress` must be True, False, None or a `Progress`"),
        (
            {"advance": lambda x: x},
            r"`advance` must be a function `advance\(state, start, stop\)`.* \(x\)",
        ),
        (
            {"watch": lambda x, step: True},
            r"`watch` must be a function `watch\(state\)`, .* takes \(x, step\)",
        ),
        (
            {"converged": lambda: True, "check_every": 1},
            r"`converged` must be a function `converged\(state\)`, .* takes \(\)",
        ),
        (
            {"on_chunk": jax.jit(lambda step: None)},
            r"`on_chunk` must be a function `on_chunk\(step, state, info\)`, .* \(step",
        ),
    ],
)
def test_arguments_of_another_kind_are_refused(changed, message):
    given = {"advance": grow, "state": jnp.ones(8), "progress": False, **changed}
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(drive)(**given, stop=2)


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad])
def test_what_is_traced_is_refused(transform):
    def total(x, factor=None):
        scale = lambda x, *_: x if factor is None else factor * x  # noqa: E731
        return jnp.sum(drive(scale, x, stop=2, progress=False).state)

    at = jnp.ones(8) if transform is jax.vmap else jnp.ones(())
    for call in (total, lambda factor: total(jnp.ones(8), factor)):
        with pytest.raises(ArgumentError, match="`state` must be known .* on the host"):
            transform(call)(at)


@pytest.mark.x64
@pytest.mark.parametrize(("before", "after"), [("f8", "f4"), ("f4", "f8")])
def test_a_state_of_other_precision_is_refused(before, after):
    change = lambda x, *_: x.astype(after)  # noqa: E731
    with pytest.raises(ArgumentError, match="`state` has the dtype float"):
        drive(change, jnp.ones(8, before), stop=2, progress=False)


def test_numbers_of_the_host_become_those_of_jax():
    state = {"n": 0, "x": 1.5, "old": np.ones(3)}
    more = lambda state, *_: jax.tree.map(lambda x: jnp.asarray(x) + 1, state)  # noqa: E731
    found = drive(more, state, stop=1, progress=False).state
    assert (int(found["n"]), float(found["x"])) == (1, 2.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"every": 0}, "`every` must be an integer of at least 1, but is 0"),
        ({"every": 1.5}, "`every` must be an integer of at least 1, but is 1.5"),
        ({"every": math.nan}, "`every` must be an integer .* but is nan"),
        ({"every": "a"}, "`every` must be an integer .* but is 'a'"),
        ({"every": 1, "keep": 0}, "`keep` must be an integer of at least 1, but is 0"),
        (
            {"every": 1, "pack": pack_state},
            "`pack` and `unpack` must be given together",
        ),
        ({"every": 1, "fingerprint": None}, "`fingerprint` must be .* but is None"),
        ({"every": 1, "fingerprint": 3}, "`fingerprint` must be .* but is an int"),
        ({"every": 1, "resume": "no"}, "`resume` must be True or False, but is 'no'"),
        ({"every": 1, "folder": ""}, "`folder` must be the path of a folder"),
        (
            {"every": 1, "folder": "a\0b"},
            r"`folder` must be .* a character that no path has: 'a\\x00b'",
        ),
    ],
)
def test_checkpointing_is_checked(tmp_path, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Checkpointing(**{"folder": tmp_path, **arguments})


def host_states():
    """States that hold no arrays of JAX, or some with a weak type."""
    return {
        "numpy": np.linspace(0, 1, 3, dtype=np.float32),
        "number of numpy": np.float32(2),
        "wider than jax": np.arange(3),
        "other byte order": np.ones(2, ">f4"),
        "numbers": {"n": 0, "on": 1.5, "z": 2j, "u": jnp.zeros(2)},
        "weak": jnp.asarray(1.5),
    }


@pytest.mark.parametrize("name", host_states())
def test_a_state_of_the_host_resumes_and_compiles_nothing(tmp_path, name):
    state = host_states()[name]
    expected = jax.tree.map(lambda x: np.asarray(x) + 8, state)
    one = jnp.ones((), jnp.bfloat16)

    def add(x, steps):
        # With a number of no definite dtype, bfloat16 would win.
        real = jnp.issubdtype(x.dtype, jnp.floating)
        return x + (one * steps if real else steps)

    add_all = jax.jit(lambda s, a, b: jax.tree.map(lambda x: add(x, b - a), s))
    go = partial(drive, add_all, checkpoint=Checkpointing(tmp_path, 2), progress=False)
    go(state, stop=4)
    with no_recompile():
        result = go(state, stop=8)
    assert result.first_step == 4
    for found, wanted in zip(
        *map(jax.tree.leaves, (result.state, expected)), strict=True
    ):
        assert isinstance(found, jax.Array)
        assert not found.weak_type
        np.testing.assert_array_equal(found, wanted)
    # The memory of the caller is untouched.
    np.testing.assert_array_equal(
        jax.tree.leaves(state)[0], jax.tree.leaves(host_states()[name])[0]
    )


@pytest.mark.parametrize("leaf", ["x", jnp.tanh, np.array([None])])
def test_what_no_checkpoint_can_hold_is_refused_before_the_first_step(tmp_path, leaf):
    def never(state, start, stop):
        raise AssertionError

    with pytest.raises(ArgumentError, match=r"`state\['a'\]` must be a JAX array"):
        drive(never, {"a": leaf}, stop=4, checkpoint=Checkpointing(tmp_path, 2))


@pytest.mark.parametrize("leaf", [2**40, np.array([2**40, 5])])
def test_integers_that_do_not_fit_are_refused_before_the_first_step(tmp_path, leaf):
    keep = Checkpointing(tmp_path, 2)
    with pytest.raises(ArgumentError, match=r"`state\['a'\]` must fit into int32"):
        drive(lambda *given: given[0], {"a": leaf}, stop=4, checkpoint=keep)


def test_a_state_that_changes_in_a_later_chunk_is_refused():
    def widen(state, start, stop):
        return state if start < 3 else jnp.ones(5)

    with pytest.raises(
        ArgumentError, match=r"the shape \(4,\) before and \(5,\) after"
    ):
        drive(widen, jnp.ones(4), stop=6, chunk=1, progress=False)


def test_a_state_whose_memory_was_reused_is_refused():
    """One that was only passed to a function that keeps it is not."""
    state = jnp.ones(4)
    kept = jax.jit(lambda state, start, stop: state + (stop - start))
    for _ in range(2):
        assert drive(kept, state, stop=3, progress=False).state[0] == 4
    drive(grow, state, stop=3, progress=False)
    with pytest.raises(ArgumentError, match=r"`state` must not be used twice.*copy"):
        drive(grow, state, stop=3, progress=False)
