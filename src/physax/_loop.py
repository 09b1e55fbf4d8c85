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
    """Returns the divisor of `steps` closest to its square root, in ratio."""
    root = isqrt(max(steps, 1))
    return next(d for d in range(root, 0, -1) if steps % d == 0) if steps else 1


def iterate(
    step: Callable[[State, Int[Array, ""]], State],
    state: State,
    start: int | Int[Array, ""],
    stop: int | Int[Array, ""],
    *,
    checkpoint: int | None = None,
    done: Callable[[State], Bool[Array, ""]] | None = None,
    check_every: int = 100,
    save: Callable[[State, Int[Array, ""]], PyTree] | None = None,
    save_every: int = 1,
) -> tuple[State, PyTree]:
    """Applies `step` for n = start, ..., stop - 1.

    With traced bounds this is a loop of unknown length: one program serves every
    length, but it has no reverse mode, no stop rule and saves nothing. With integer
    bounds it is a scan, differentiable both ways.

    Args:
        step: Maps a state and the integer step number to the next state.
        state: The state before step `start`.
        start: Number of the first step.
        stop: One past the number of the last step.
        checkpoint: Steps between stored states in reverse mode, which replays the
            steps in between. The memory is that of `steps / checkpoint + checkpoint`
            states; the square root of the number of steps makes it least. `None`
            stores every step.
        done: Stop rule, asked every `check_every` steps from `start`; the steps after
            its first yes are skipped.
        check_every: See `done`.
        save: What to record, as a function of the state and the number of steps done.
        save_every: Steps between records; the first is taken after `save_every` steps.

    Returns:
        The last state and the stacked records (`None` without `save`).

    Raises:
        ArgumentError: If an option does not go with traced bounds, or is not positive.
    """
    for name, value in (("check_every", check_every), ("save_every", save_every)):
        if value < 1:
            raise ArgumentError(f"`{name}` must be at least 1, but is {value}.")
    if not (isinstance(start, int) and isinstance(stop, int)):
        if done is not None or save is not None or checkpoint is not None:
            raise ArgumentError(
                "`start` and `stop` must be integers with `done`, `save` or "
                f"`checkpoint`, but are {start} and {stop}."
            )
        return lax.fori_loop(start, stop, lambda n, s: step(s, n), state), None
    steps = max(stop - start, 0)
    if save is not None:
        chunk = save_every
    elif done is not None:
        chunk = check_every
    else:
        chunk = steps if checkpoint is None else max(1, min(checkpoint, steps))
    whole, rest = divmod(steps, max(chunk, 1))

    def run(state, first, count):
        def body(carry, k):
            return step(carry, first + k), None

        inner = count if checkpoint is None else divisor_near_root(count)
        if checkpoint is None or count <= checkpoint or inner == 1:
            return lax.scan(body, state, jnp.arange(count, dtype=jnp.int32))[0]

        @jax.checkpoint  # pyright: ignore[reportPrivateImportUsage]
        def block(carry, k):
            body_k = lambda c, j: body(c, k * inner + j)  # noqa: E731
            return lax.scan(body_k, carry, jnp.arange(inner, dtype=jnp.int32))[0], None

        blocks = jnp.arange(count // inner, dtype=jnp.int32)
        return lax.scan(block, state, blocks)[0]

    if done is None and save is None and checkpoint is None:
        return run(state, start, steps), None

    def outer(carry, k):
        state, finished = carry
        first = start + k * chunk
        advance = lambda s: run(s, first, chunk)  # noqa: E731
        if done is None:
            state = advance(state)
        else:
            state = lax.cond(finished, lambda s: s, advance, state)
            finished = finished | done(state)
        record = None if save is None else save(state, first + chunk)
        return (state, finished), record

    if checkpoint is not None:
        outer = jax.checkpoint(outer)  # pyright: ignore[reportPrivateImportUsage]
    carry = (state, jnp.zeros((), bool))
    (state, finished), records = lax.scan(
        outer, carry, jnp.arange(whole, dtype=jnp.int32)
    )
    if rest:
        tail = lambda s: run(s, stop - rest, rest)  # noqa: E731
        state = (
            tail(state)
            if done is None
            else lax.cond(finished, lambda s: s, tail, state)
        )
    return state, records
