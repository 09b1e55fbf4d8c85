"""The linear tape: what a run keeps of each step for the backward pass."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec
from jaxtyping import Array

from .._checks import ArgumentError, whole
from .._recorded import Tape, parts_of, record
from ..grid import Layout
from ._boxes import cells_of
from ._march import Decay, decayed, first_device
from ._program import Program
from ._state import State, advance, look
from ._stepper import Arrays
from ._tape_plan import Plan


TILTS = "tilts"
"""The name of the changes that tilts read, in the records of a step."""

TYPES = ("float64", "float32", "bfloat16")


def check_type(dtype: str | None, name: str) -> None:
    """Refuses a type that a tape cannot have."""
    if not (dtype is None or dtype in TYPES):
        raise ArgumentError(
            f"`{name}` of a tape must be one of {TYPES}, but is {dtype!r}."
        )
    if dtype == "float64" and jnp.result_type(float) != jnp.float64:
        raise ArgumentError(
            f"`{name}` of a tape must not be float64 while JAX is in 32 bits. Switch "
            "on `jax_enable_x64`."
        )


def check_every(every: int | None) -> None:
    """Raises if a number of steps is not a positive integer."""
    if every is not None:
        whole(every, "every")


def chunk_of(
    program: Program, steps: int, until: Decay | None, every: int | None
) -> int:
    """Returns the steps between looks at the energy, or at most those kept at once."""
    if until is not None:
        return until.check_every
    return every or program.watch or steps


def parts_of_run(
    program: Program, steps: int, until: Decay | None, chunk: int
) -> tuple[int, int]:
    """Returns the number of whole chunks and of steps after them."""
    looks = until is not None or program.watch is not None
    return parts_of(steps, chunk, plain=not looks)


def packed(values: Array, dtype) -> Array:
    """Narrows a record; bfloat16 as bits, because XLA's CPU backend widens it."""
    if dtype is None or dtype == values.dtype:
        return values
    if jnp.iscomplexobj(values):
        values = jnp.stack([values.real, values.imag])
    values = values.astype(dtype)
    return (
        lax.bitcast_convert_type(values, jnp.uint16) if dtype.itemsize == 2 else values
    )


def unpacked(values: Array, dtype, wide) -> Array:
    """Widens a record again."""
    if dtype is None or dtype == wide:
        return values
    if dtype.itemsize == 2:
        values = lax.bitcast_convert_type(values, dtype)
    if jnp.issubdtype(wide, jnp.complexfloating):
        return lax.complex(*values.astype(jnp.finfo(wide).dtype))
    return values.astype(wide)


def kept_cells(plan: Plan, fields: Arrays) -> dict[str, tuple[Array, ...]]:
    """Returns the kept cells of some fields."""
    return {
        name: tuple(fields[name][cells_of(one.box)] for one in kept)
        for name, kept in plan.rows.items()
        if name in fields
    }


def changes(plan: Plan, before: dict, after: dict) -> dict:
    """Returns what the sums for the rows need of the kept cells of one step."""
    return {
        name: tuple(
            tuple(
                value
                for value, asked in ((new - old, one.change), (new + old, one.sum))
                if asked
            )
            for one, old, new in zip(kept, before[name], after[name], strict=True)
        )
        for name, kept in plan.rows.items()
    }


def recorded_step(program: Program, plan: Plan, dtype, carry, n):
    """Makes a step and returns with the state what the transpose needs of it.

    The carry holds beside the state the kept cells of it: were they read from the
    fields before the step, XLA would copy these whole to overwrite them.
    """
    state, before = carry
    lines = {name: state.lines[name] for name in plan.lines}
    state, diagonal_changes = advance(program, state, n, keep_changes=bool(plan.tilts))
    after = kept_cells(plan, state.fields)
    made = {**changes(plan, before, after), TILTS: diagonal_changes}
    rows = jax.tree.map(partial(packed, dtype=dtype), made)
    # The kept cells are read again: those that the record was made of would be copied.
    fields, rows = lax.optimization_barrier((state.fields, rows))
    state = eqx.tree_at(lambda s: s.fields, state, fields)
    return (state, kept_cells(plan, fields)), (rows, lines)


def taped_march(
    steps: int,
    until: Decay | None,
    every: int,
    program: Program,
    one: Callable,
    start: tuple,
    *,
    keep: Callable | None = None,
) -> tuple[State, Tape]:
    """Makes all steps on the block of one device and keeps a tape.

    Args:
        steps: How many.
        until: Stops early.
        every: Steps in a chunk.
        program: The program.
        one: Makes a step and its record, which ends with the incident waves.
        start: The carry before step 0; the state is its first part.
        keep: As for `record`.

    Returns:
        The last state and the tape.
    """
    options: dict[str, Any] = {"keep": keep}
    if program.watch is not None:
        options["between"] = lambda c: (look(program, c[0]), *c[1:])
    if until is not None:
        options["done"] = lambda c: decayed(program, c[0], until.threshold)
    (state, *_), tape = record(one, start, steps, every, **options)

    # The incident waves are the same on every device; the flags are so anyway.
    def shared(part):
        if part is None:
            return None
        return (*part[:-1], first_device(part[-1], program.layout))

    return state, tape._replace(
        records=shared(tape.records),
        chunks=shared(tape.chunks),
        rest=shared(tape.rest),
    )


def restart(carry):
    """Returns what is kept of a state to make steps again."""
    state, _ = carry
    return state.fields, state.psi, state.poles, state.lines


def again(program: Program, plan: Plan, dtype, kept, n):
    """Makes a recorded step again; no record depends on a monitor."""
    blind = eqx.tree_at(lambda p: p.monitors, program, {})
    fields, psi, poles, lines = kept
    zero = jnp.zeros(())
    state = State(fields, psi, poles, lines, {}, zero, jnp.zeros((), jnp.int32))
    before = kept_cells(plan, state.fields)
    (state, _), made = recorded_step(blind, plan, dtype, (state, before), n)
    return restart((state, None)), made


def tape_cuts(
    layout: Layout,
    program: Program,
    dtype,
    *,
    replay: bool,
    parts: tuple[int, int],
    rule: bool,
) -> Tape:
    """Returns how a layout cuts a tape.

    Args:
        layout: The layout.
        program: The program; only what is static of it is used.
        dtype: Type of the tape, `None` for that of the fields.
        replay: Whether the tape holds states.
        parts: Number of whole chunks and of steps after them.
        rule: Whether a stop rule may skip chunks.

    Returns:
        The cuts, as a prefix of the tape.
    """
    everywhere = PartitionSpec()
    ndim, kind = program.stepper.components.ndim, jnp.dtype(program.dtype)
    narrow = dtype is not None and dtype != kind
    # Real and imaginary parts of narrow records stand along an axis of their own.
    extra = int(narrow and jnp.issubdtype(kind, jnp.complexfloating))

    def cut(steps_axes: int, extra: int = 0):
        return layout.spec(ndim, steps_axes + extra)

    whole, rest = parts
    return Tape(
        None if replay else (cut(1, extra), everywhere),
        (cut(1), cut(1), cut(1), everywhere) if replay and whole else None,
        (cut(0), cut(0), cut(0), everywhere) if replay and rest else None,
        everywhere if rule else None,
    )
