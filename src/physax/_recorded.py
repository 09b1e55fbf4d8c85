"""A run that records its steps in the time loop, and the backward pass over them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PyTree

from ._loop import State, blank_records, one_record, put_records, shared


class Tape(NamedTuple):
    """What `record` kept of a run, for `rewind`.

    Attributes:
        records: The record of each step, stacked; `None` where states are kept.
        chunks: The state kept before each whole chunk, stacked, or `None`.
        rest: The one before the steps after the last whole chunk, or `None`.
        ran: Which chunks were not skipped, `None` without a stop rule.
    """

    records: PyTree
    chunks: PyTree
    rest: PyTree
    ran: PyTree


def parts_of(stop: int, every: int, *, plain: bool) -> tuple[int, int]:
    """Returns the number of whole chunks and of steps after them."""
    # Where nothing happens after a chunk, one for all needs no second copy of it.
    return (0, stop) if plain and every >= stop else divmod(stop, every)


def record(
    step: Callable[[State, Int[Array, ""]], tuple[State, PyTree]],
    state: State,
    stop: int,
    every: int,
    *,
    between: Callable[[State], State] | None = None,
    done: Callable[[State], Bool[Array, ""]] | None = None,
    keep: Callable[[State], PyTree] | None = None,
) -> tuple[State, Tape]:
    """Applies `step` for n = 0, ..., stop - 1 and keeps what `rewind` needs.

    Args:
        step: Maps a state and the step number to the next state and a record.
        state: The state before step 0.
        stop: Number of steps.
        every: Steps in a chunk.
        between: As for `iterate`, after each chunk.
        done: As for `iterate`: skips the chunks after its first yes.
        keep: What to keep of the state before each chunk instead of the records, which
            `rewind` then makes again.

    Returns:
        The last state and the tape.
    """
    whole, rest = parts_of(stop, every, plain=between is None and done is None)
    one = step if keep is None else lambda s, n: (step(s, n)[0], None)
    shapes = jax.eval_shape(one, state, jnp.zeros((), jnp.int32))[1]
    records = blank_records(shapes, stop, state)

    # In place: stacked by the inner loop, records would be copied by the outer one.
    def in_place(carry, n):
        state, records = carry
        state, made = one(state, n)
        return (state, put_records(records, one_record(made), n)), None

    def attempt(carry, first, count, finished):
        numbers = first + jnp.arange(count, dtype=jnp.int32)
        state, records = carry
        kept = None if keep is None else keep(state)
        if done is None:
            return lax.scan(in_place, carry, numbers)[0], kept
        # A condition on them would copy them whole.
        go = lambda s: lax.scan(one, s, shared(numbers))  # noqa: E731
        skip = lambda s: (s, blank_records(shapes, count, s))  # noqa: E731
        state, made = lax.cond(finished, skip, go, state)
        return (state, put_records(records, made, first)), kept

    def chunk(carry, k):
        before, finished = carry
        ran = ~finished
        after, kept = attempt(before, k * every, every, finished)
        state: Any = after[0]
        state = state if between is None else between(state)
        if done is not None:
            finished = finished | done(state)
        return ((state, after[1]), finished), (kept, ran)

    end: PyTree = (state, records)
    finished = jnp.zeros((), bool)
    chunks, ran, last = None, jnp.zeros(0, bool), None
    if whole:
        numbers = jnp.arange(whole, dtype=jnp.int32)
        (end, finished), (chunks, ran) = lax.scan(chunk, (end, finished), numbers)
    if rest:
        # The steps left are not a whole chunk: the stop rule is last asked before them.
        end, last = attempt(end, whole * every, rest, finished)
        ran = jnp.append(ran, ~finished)
    state, records = end
    return state, Tape(records, chunks, last, None if done is None else ran)  # pyright: ignore[reportReturnType]


def rewind(
    back: Callable[[State, PyTree, Int[Array, ""]], State],
    carry: State,
    tape: Tape,
    stop: int,
    every: int,
    *,
    parts: tuple[int, int],
    enter: Callable[[State, Int[Array, ""]], State],
    step: Callable[[PyTree, Int[Array, ""]], tuple[PyTree, PyTree]] | None = None,
) -> State:
    """Applies `back` for n = stop - 1, ..., 0 with the record of each step.

    Args:
        back: Maps a carry, the record of a step and its number to the next carry.
        carry: The carry after the last step.
        tape: From `record`.
        stop: Number of steps.
        every: Steps in a chunk, as for `record`.
        parts: Whole chunks and steps after them, from `parts_of`: a tape may be empty.
        enter: Called once before, with the carry and the number of the last step made.
        step: The step that was recorded, for a tape that keeps states.

    Returns:
        The carry before step 0.
    """
    whole, rest = parts

    def retreat(carry, kept, first, count, ran):
        def go(carry):
            carry, entered = carry
            numbers = shared(first + jnp.arange(count, dtype=jnp.int32))
            if ran is not None:
                first_time = lambda c: enter(c, numbers[-1])  # noqa: E731
                carry = lax.cond(entered, lambda c: c, first_time, carry)
            again = None if step is None else lax.scan(step, kept, numbers)[1]

            def one(carry, x):
                made, n = x
                if step is None:
                    read = lambda all_: lax.dynamic_index_in_dim(all_, n, 0, False)  # noqa: E731
                    made = jax.tree.map(read, tape.records)
                return back(carry, made, n), None

            carry = lax.scan(one, carry, (again, numbers), reverse=True)[0]
            return carry, jnp.ones((), bool)

        return go(carry) if ran is None else lax.cond(ran, go, lambda c: c, carry)

    ran = tape.ran
    if ran is None:
        carry = enter(carry, jnp.asarray(stop - 1, jnp.int32))
    begin: PyTree = carry, jnp.zeros((), bool)
    if rest:
        flag = None if ran is None else ran[-1]
        begin = retreat(begin, tape.rest, whole * every, rest, flag)

    def chunk(carry, x):
        kept, k, flag = x
        return retreat(carry, kept, k * every, every, flag), None

    if whole:
        numbers = jnp.arange(whole, dtype=jnp.int32)
        flags = None if ran is None else ran[:whole]
        begin = lax.scan(chunk, begin, (tape.chunks, numbers, flags), reverse=True)[0]
    return begin[0]
