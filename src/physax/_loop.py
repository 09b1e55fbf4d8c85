"""The time loop of all solvers; `_recorded` has one that is recorded."""

from collections.abc import Callable
from functools import partial
from math import isqrt
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, PyTree

from ._checks import ArgumentError


State = TypeVar("State", bound=PyTree)

Leap = Callable[[State, Int[Array, ""], Int[Array, ""]], tuple[State, Int[Array, ""]]]
"""See `iterate`."""


def divisor_near_root(steps: int) -> int:
    """Returns the largest divisor of `steps` that is at most its square root."""
    root = isqrt(max(steps, 1))
    return next(d for d in range(root, 0, -1) if steps % d == 0) if steps else 1


def divisor_near(steps: int, about: int) -> int:
    """Returns the divisor of `steps` next to `about`, from half to twice of it.

    Without one, `about` itself.
    """
    near = [d for d in range(-(-about // 2), 2 * about + 1) if steps % d == 0]
    return min(near, key=lambda d: abs(d - about), default=about)


@custom_vmap
def shared(n: Int[Array, "*numbers"]) -> Int[Array, "*numbers"]:
    """Returns the number of a step, from 0, as one for all of a batch.

    Only for numbers that are equal in all of it: where a condition differs within a
    batch, JAX takes all that its branches read to differ. Writing to a place that
    differs is a scatter, and a condition on it a choice between two copies of what is
    written.
    """
    return n


@shared.def_vmap
def _(size: int, batched: list[bool], n: Int[Array, "batch *numbers"]):
    # Not the first: a batch may be empty.
    return shared(jnp.max(n, axis=0, initial=0)), False


# Larger than any number of a step.
NEVER = np.iinfo(np.int32).max


def least(n: Int[Array, ""]) -> Int[Array, ""]:
    """Returns the least of a batch of numbers, from 0, as one for all of it."""
    return NEVER - shared(NEVER - n)


def iterate(
    step: Callable[[State, Int[Array, ""]], State],
    state: State,
    start: int | Int[Array, ""],
    stop: int | Int[Array, ""],
    *,
    checkpoint: int | None = None,
    every: int | None = None,
    between: Callable[[State], State] | None = None,
    done: Callable[[State], Bool[Array, ""]] | None = None,
    save: Callable[[State, Int[Array, ""]], PyTree] | None = None,
    leap: Leap | None = None,
) -> tuple[State, PyTree]:
    """Applies `step` for n = start, ..., stop - 1.

    With traced bounds this is a loop of unknown length: one program serves every
    length, but it has no reverse mode and takes neither `done` nor `save`. With integer
    bounds it is a scan, differentiable both ways.

    Expensive work belongs in `between`, not behind a condition in `step`: a condition
    that reads large arrays makes XLA copy them in every step.

    Args:
        step: Maps a state and the integer step number to the next state.
        state: The state before step `start`.
        start: Number of the first step.
        stop: One past the number of the last step.
        checkpoint: Steps between stored states in reverse mode, which replays the
            steps in between. The memory is that of `steps / checkpoint + checkpoint`
            states; the square root of the number of steps makes it least. `None`
            stores every step.
        every: Cadence of the three functions below: they are called wherever the number
            of steps done is a multiple of it, whatever `start` is.
        between: Maps the state to itself with something brought up to date.
        done: Stop rule, asked after `between`; the steps after its first yes are
            skipped.
        save: What to record, as a function of the state and the number of steps done;
            asked at `start`, too.
        leap: Makes several steps at once, as `step` would one by one; without reverse
            mode. Maps a state, the number of its next step, and one past the last step
            to be made, to a state and the number of its next step.

    Returns:
        The last state and the stacked records (`None` without `save`).

    Raises:
        ArgumentError: If an option does not go with traced bounds, if `every` is
            missing or not positive, or `start` is not a multiple of it with `save`.
    """
    needed = between is not None or done is not None or save is not None
    if (every is None and needed) or (every is not None and every < 1):
        raise ArgumentError(
            "`every` must be at least 1 with `between`, `done` or `save`, but is "
            f"{every}."
        )
    if not (isinstance(start, int) and isinstance(stop, int)):
        if done is not None or save is not None or checkpoint is not None:
            raise ArgumentError(
                "`start` and `stop` must be integers with `done`, `save` or "
                f"`checkpoint`, but are {start} and {stop}."
            )
        many = _many(step, leap)
        return _unknown_length(many, state, start, stop, every, between), None
    many = partial(_steps, step, checkpoint=checkpoint)
    if leap is not None:
        leaps = _many(step, leap)
        many = lambda s, first, count: leaps(s, first, first + count)  # noqa: E731
    if every is None:
        return many(state, start, max(stop - start, 0)), None
    return _chunks(many, state, start, stop, checkpoint, every, between, done, save)


def _many(step, leap: Leap | None):
    """Returns a function that makes all steps between traced bounds."""
    if leap is None:
        body = lambda n, s: step(s, n)  # noqa: E731
        return lambda state, start, stop: lax.fori_loop(start, stop, body, state)

    def leaps(state, start, stop):
        start, stop = jnp.asarray(start, jnp.int32), jnp.asarray(stop, jnp.int32)
        turn = lambda c: leap(c[0], c[1], stop)  # noqa: E731
        return lax.while_loop(lambda c: c[1] < stop, turn, (state, start))[0]

    return leaps


def _unknown_length(many, state, start, stop, every, between):
    """Loops between traced bounds, in pieces that end at multiples of `every`."""
    if between is None:
        return many(state, start, stop)

    def piece(carry):
        n, state = carry
        end = jnp.minimum((n // every + 1) * every, stop)
        state = many(state, n, end)
        fresh = between(state)
        whole = end % every == 0
        # Leaves that `between` passes on are the same tracers: nothing to select.
        pick = lambda new, old: new if new is old else jnp.where(whole, new, old)  # noqa: E731
        return end, jax.tree.map(pick, fresh, state)

    start, stop = jnp.asarray(start, jnp.int32), jnp.asarray(stop, jnp.int32)
    return lax.while_loop(lambda c: c[0] < stop, piece, (start, state))[1]


def _steps(step, state, first, count: int, *, checkpoint: int | None):
    """Makes `count` steps from step `first`, in blocks that are replayed if asked."""

    def body(carry, k):
        return step(carry, first + k), None

    size = count if checkpoint is None else min(max(checkpoint, 1), max(count, 1))
    if size >= count or size == 1:
        return lax.scan(body, state, jnp.arange(count, dtype=jnp.int32))[0]

    @jax.checkpoint  # pyright: ignore[reportPrivateImportUsage]
    def block(carry, k):
        inner = k * size + jnp.arange(size, dtype=jnp.int32)
        return lax.scan(body, carry, inner)[0], None

    whole, rest = divmod(count, size)
    state = lax.scan(block, state, jnp.arange(whole, dtype=jnp.int32))[0]
    if not rest:
        return state
    return lax.scan(body, state, whole * size + jnp.arange(rest, dtype=jnp.int32))[0]


def _chunks(many, state, start, stop, checkpoint, every, between, done, save):
    """Makes the steps in chunks that end at multiples of `every`."""
    head = min(-start % every, max(stop - start, 0))
    if head and save is not None:
        raise ArgumentError(
            f"`start` must be a multiple of `every`, {every}, with `save`, but is "
            f"{start}."
        )
    whole, rest = divmod(max(stop - start - head, 0), every)
    keep = lambda s: s  # noqa: E731

    def advance(state, first, count):
        state = many(state, first, count)
        return state if between is None else between(state)

    def chunk(carry, k):
        state, finished = carry
        first = start + head + k * every
        if done is None:
            state = advance(state, first, every)
        else:
            go = lambda s: advance(s, shared(first), every)  # noqa: E731
            state = lax.cond(finished, keep, go, state)
            finished = finished | done(state)
        return state, finished

    finished = jnp.zeros((), bool)
    if head:
        whole_head = (start + head) % every == 0
        state = advance(state, start, head) if whole_head else many(state, start, head)
        if whole_head and done is not None:
            finished = done(state)
    plain = between is None and done is None
    # Chunks of replayed blocks alone would only be replayed once more.
    if checkpoint is not None and not (plain and checkpoint < every):
        chunk = jax.checkpoint(chunk)  # pyright: ignore[reportPrivateImportUsage]
    records = None
    if save is not None:
        first = save(state, jnp.asarray(start, jnp.int32))
        records = put_records(
            blank_records(first, whole + 1, state), one_record(first), 0
        )

    # In place: stacked by the scan, records would be copied to go behind the first one.
    def turn(carry, k):
        *carry, records = carry
        state, finished = chunk(carry, k)
        if save is not None:
            made = save(state, start + head + (k + 1) * every)
            records = put_records(records, one_record(made), k + 1)
        return (state, finished, records), None

    # A scan of no turns would be traced and compiled all the same.
    if whole:
        numbers = jnp.arange(whole, dtype=jnp.int32)
        carry = (state, finished, records)
        state, finished, records = lax.scan(turn, carry, numbers)[0]
    if rest:
        go = lambda s: many(s, stop - rest, rest)  # noqa: E731
        state = go(state) if done is None else lax.cond(finished, keep, go, state)
    return state, records


def blank_records(shapes: PyTree, count: int, state: PyTree) -> PyTree:
    """Returns room for `count` records of some shapes."""
    # Inside `shard_map` it must differ from device to device, as records do. The
    # condition does; the compiler sees that it decides nothing.
    any_zero = jnp.zeros((), bool)
    for leaf in jax.tree.leaves(state):
        if leaf.size:
            any_zero = any_zero | (jnp.ravel(leaf)[0] == 0)

    def blank(x):
        zeros = jnp.zeros((count, *x.shape), x.dtype)
        return jnp.where(any_zero, zeros, zeros)

    return jax.tree.map(blank, shapes)


def put_records(records: PyTree, made: PyTree, at: int | Int[Array, ""]) -> PyTree:
    """Writes records that were just made, from place `at` on."""
    write = partial(lax.dynamic_update_slice_in_dim, start_index=at, axis=0)
    return jax.tree.map(write, records, made)


def one_record(record: PyTree) -> PyTree:
    """Returns one record as a stack of one."""
    return jax.tree.map(lambda x: jnp.asarray(x)[None], record)
