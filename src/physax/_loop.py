"""The only traced time loop of the library."""

from collections.abc import Callable
from math import isqrt
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from ._checks import ArgumentError


State = TypeVar("State", bound=PyTree)


def divisor_near_root(steps: int) -> int:
    """Returns the largest divisor of `steps` that is at most its square root."""
    root = isqrt(max(steps, 1))
    return next(d for d in range(root, 0, -1) if steps % d == 0) if steps else 1


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
) -> tuple[State, PyTree]:
    """Applies `step` for n = start, ..., stop - 1.

    With traced bounds this is a loop of unknown length: one program serves every
    length, but it has no reverse mode and takes neither `done` nor `save`. With integer
    bounds it is a scan, differentiable both ways.

    What is dear stands in `between`, not behind a condition in `step`: a condition that
    reads large arrays makes XLA copy them in every step.

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
        save: What to record, as a function of the state and the number of steps done.

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
        return _unknown_length(step, state, start, stop, every, between), None
    if every is None:
        return _steps(step, state, start, max(stop - start, 0), checkpoint), None
    return _chunks(step, state, start, stop, checkpoint, every, between, done, save)


def _unknown_length(step, state, start, stop, every, between):
    """Loops between traced bounds, in pieces that end at multiples of `every`."""
    body = lambda n, s: step(s, n)  # noqa: E731
    if between is None:
        return lax.fori_loop(start, stop, body, state)

    def piece(carry):
        n, state = carry
        end = jnp.minimum((n // every + 1) * every, stop)
        state = lax.fori_loop(n, end, body, state)
        fresh = between(state)
        whole = end % every == 0
        # Leaves that `between` passes on are the same tracers: nothing to select.
        pick = lambda new, old: new if new is old else jnp.where(whole, new, old)  # noqa: E731
        return end, jax.tree.map(pick, fresh, state)

    start, stop = jnp.asarray(start, jnp.int32), jnp.asarray(stop, jnp.int32)
    return lax.while_loop(lambda c: c[0] < stop, piece, (start, state))[1]


def _steps(step, state, first, count: int, checkpoint: int | None):
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


def _chunks(step, state, start, stop, checkpoint, every, between, done, save):
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
        state = _steps(step, state, first, count, checkpoint)
        return state if between is None else between(state)

    def chunk(carry, k):
        state, finished = carry
        first = start + head + k * every
        if done is None:
            state = advance(state, first, every)
        else:
            go = lambda s: advance(s, first, every)  # noqa: E731
            state = lax.cond(finished, keep, go, state)
            finished = finished | done(state)
        record = None if save is None else save(state, first + every)
        return (state, finished), record

    finished = jnp.zeros((), bool)
    if head:
        whole_head = (start + head) % every == 0
        state = (
            advance(state, start, head)
            if whole_head
            else _steps(step, state, start, head, checkpoint)
        )
        if whole_head and done is not None:
            finished = done(state)
    if checkpoint is not None:
        chunk = jax.checkpoint(chunk)  # pyright: ignore[reportPrivateImportUsage]
    numbers = jnp.arange(whole, dtype=jnp.int32)
    (state, finished), records = lax.scan(chunk, (state, finished), numbers)
    if rest:
        go = lambda s: _steps(step, s, stop - rest, rest, checkpoint)  # noqa: E731
        state = go(state) if done is None else lax.cond(finished, keep, go, state)
    return state, records
