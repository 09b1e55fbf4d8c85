r"""Poles of dispersive media, advanced once in a block of steps of the fields.

The states of poles are most of what a step in a dispersive medium reads and writes.
Here the fields of a block of $K$ steps are kept, and the states are advanced by the
whole block at once. A pole is a linear system with states $z$ and output $d_n$, which
enters the curl of the step after $E_n$ times the fraction and minus the amplitude ($v'$
and $D$ are from `with_field`):

$$z_n = M z_{n-1} + v' E_n, \qquad d_n = w z_{n-1} + D E_n
  = w M^{k-1} z_{n-k} + \sum_{i=1}^{k-1} w M^{i-1} v' E_{n-i} + D E_n$$

The sum of the outputs over the poles is computed, minus the amplitude included. The end
of a block gives $z$, and the outputs in each step of the next block except for the
terms of its own fields, which are added in its steps. This is block realisation:
Burrus, *Block realization of digital filters*, IEEE Transactions on Audio and
Electroacoustics 20, 230 (1972). Blocks begin at multiples of $K$ steps, so that the
bits do not depend on where a run is interrupted.

Poles with the same number of states are stacked in one array, along an axis behind the
first of the grid (before it in 1-D): two loops over memory advance all, and use planes
of a stack while they are in the cache. Three steps are the fastest block on most grids:
the fields kept in longer ones cost as much as states.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod
from operator import add
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from .._products import einsum, matmul
from ._boxes import size_of
from ._dispersion import (
    Dispersion,
    Response,
    Responses,
    as_field,
    each_response,
    factors_of,
    nothing_of,
    real_parts,
    with_field,
)


STEPS = 3
"""Steps of a block."""

LEAST = 2**15
"""Number of poles times cells from which blocks are faster: fewer fit in a cache."""


class BlockMemory(eqx.Module):
    """What a response remembers within a block of steps, in place of a `Memory`.

    It holds the states before the block, the fields of the block so far, and the
    outputs that follow from the states alone.

    Attributes:
        outputs: For each part of the field a stack of what the poles add, over the
            fraction, to the curl of each step of the block, without the terms of the
            fields of the block.
        between: The fields after its steps, except the last, once they are made.
        states: For each part of the field the states before the block: a stack of
            complex numbers of the poles of two states, as for `States`, and of numbers
            of those of one.
    """

    outputs: tuple[Array, ...]
    between: tuple[Array, ...]
    states: tuple[tuple[Array, ...], ...]


class _Kind(eqx.Module):
    r"""Coefficients of poles with the same number of states, for a whole block.

    Attributes:
        matrix: $M^K$, which advances the states.
        inflows: What each field of the block adds to them: $M^{K-1} v'$ to $v'$.
        outflows: From the states before a block to the output in each step of the next:
            $w M^{K-1}$ to $w M^{2K-2}$.
    """

    matrix: Float[Array, "states states poles"]
    inflows: Float[Array, "fields states poles"]
    outflows: Float[Array, "steps states poles"]


class _Block(eqx.Module):
    r"""Coefficients of all poles of a response, for a whole block.

    Attributes:
        kinds: Those of poles with two states, and with one.
        impulse_response: From a field to the output of the next step and of those
            after, summed over all poles: $D$, $w v'$, $w M v'$ and so on.
    """

    kinds: tuple[_Kind, ...]
    impulse_response: Float[Array, " steps"]


def blocks_are_faster(dispersions: Sequence[Dispersion]) -> bool:
    """Returns whether blocks are faster on a CPU than advancing poles in each step."""
    return sum(prod(size_of(one.box)) * len(one.poles) for one in dispersions) >= LEAST


def stacked(axes: tuple, ndim: int, stack: Any) -> tuple:
    """Inserts an entry for the axis of a stack into those of the axes of the grid.

    Args:
        axes: One entry for each axis of the grid.
        ndim: Axes of an array that poles remember; without a stack nothing is inserted.
        stack: The entry to insert.
    """
    if ndim == len(axes):
        return axes
    place = _place(len(axes))
    return (*axes[:place], stack, *axes[place:])


def _place(ndim: int) -> int:
    """Returns the axis of a stack on a grid: behind the first, in 1-D before it."""
    return min(1, ndim - 1)


def block_memory_at_rest(response: Response, dtype) -> BlockMemory:
    """Returns the memory of poles before the first step, of the whole grid."""
    size = size_of(response.box)
    blank = jnp.zeros(size, dtype)

    def stack(count: int, part: Array) -> Array:
        return jnp.zeros(stacked(size, len(size) + 1, count), part.dtype)

    outputs, states = [], []
    for part in real_parts(blank):
        own = []
        for alike in _by_states(response):
            values = stack(len(alike), part)
            pair = response.poles[alike[0]].inflow.shape[0] == 2
            own.append(lax.complex(values, values) if pair else values)
        outputs.append(stack(STEPS, part))
        states.append(tuple(own))
    return BlockMemory(tuple(outputs), (blank,) * (STEPS - 1), tuple(states))


def block_drive(
    response: Response, memory: BlockMemory, *, turn: Int[Array, ""]
) -> Array:
    """Returns what poles add to the curl of a step, over the fraction.

    Args:
        response: The poles.
        memory: What they remember.
        turn: The number of the step in its block.
    """
    impulse_response, parts = _block(response).impulse_response, []
    # Numbers that change from step to step: XLA would store constants for each cell.
    factors = [impulse_response[jnp.maximum(turn - 1 - i, 0)] for i in range(STEPS - 1)]
    fields = zip(*map(real_parts, memory.between), strict=True)
    for output, own in zip(memory.outputs, fields, strict=True):
        axis = _place(output.ndim - 1)
        part = lax.dynamic_index_in_dim(output, turn, axis, keepdims=False)
        for i, (factor, field) in enumerate(zip(factors, own, strict=True)):
            # Compilers lift this out of the loop over cells: what is 0 is not read.
            part = part + jnp.where(i < turn, factor * field, 0)
        parts.append(part)
    return as_field(tuple(parts))


def advance_blocks(
    responses: Responses,
    memory: PyTree,
    read: Callable[[], PyTree],
    turn: Int[Array, ""],
) -> PyTree:
    """Keeps the fields after a step; after the last of a block, advances the poles.

    Args:
        responses: All responses.
        memory: What each remembers.
        read: Returns the fields in the box of each after the step.
        turn: The number of the step in its block.

    Returns:
        What they remember for the next step.
    """
    blocks = each_response(_block, responses)

    # Loops of one turn or none: a conditional in XLA would copy the states.
    def keep(_: Array, memory: PyTree, *, at: int) -> PyTree:
        return each_response(partial(_with_field, at), responses, memory, read())

    def advance(one: Array, memory: PyTree) -> PyTree:
        # Times a 1 unknown to XLA, which would store constants for each cell.
        now = jax.tree.map(lambda x: one * x, blocks)
        return each_response(_advanced, responses, now, memory, read())

    for at in range(STEPS - 1):
        here = (turn == at).astype(turn.dtype)
        memory = lax.fori_loop(0, here, partial(keep, at=at), memory)
    ends = (turn == STEPS - 1).astype(turn.dtype)
    return lax.fori_loop(1, 1 + ends, advance, memory)


def _by_states(response: Response) -> list[list[int]]:
    """Returns the numbers of the poles with two states and with one, if any."""
    sizes = [one.inflow.shape[0] for one in response.poles]
    return [[i for i, n in enumerate(sizes) if n == k] for k in (2, 1) if k in sizes]


def _block(response: Response) -> _Block:
    outflows, direct = factors_of(response)
    kinds, impulse_response = [], jnp.zeros(2 * STEPS - 2, direct.dtype)
    for alike in _by_states(response):
        own = [response.poles[i] for i in alike]
        w = jnp.stack([outflows[i] for i in alike])
        v = jnp.stack([with_field(one)[0] for one in own])
        m = jnp.stack([one.matrix for one in own])
        powers = [jnp.broadcast_to(jnp.eye(m.shape[-1], dtype=m.dtype), m.shape)]
        for _ in range(2 * STEPS - 2):
            powers.append(matmul(powers[-1], m))
        stack = jnp.stack(powers)
        impulse_response = impulse_response + einsum("pi,npij,pj->n", w, stack[:-1], v)
        kinds.append(
            _Kind(
                jnp.moveaxis(powers[STEPS], 0, -1),
                einsum("npij,pj->nip", stack[:STEPS][::-1], v),
                einsum("pj,npji->nip", w, stack[STEPS - 1 :]),
            )
        )
    return _Block(tuple(kinds), jnp.concatenate([direct[None], impulse_response]))


def _with_field(
    at: int, response: Response, memory: BlockMemory, field: Array
) -> BlockMemory:
    del response
    between = (*memory.between[:at], field, *memory.between[at + 1 :])
    return BlockMemory(memory.outputs, between, memory.states)


def _advanced(
    response: Response, block: _Block, memory: BlockMemory, field: Array
) -> BlockMemory:
    del response
    axis = _place(field.ndim)
    fields = zip(*map(real_parts, (*memory.between, field)), strict=True)
    outputs, states = [], []
    for stacks, own in zip(memory.states, fields, strict=True):
        inputs = [jnp.expand_dims(one, axis) for one in own]
        # Otherwise XLA computes it again for each use of `later`.
        output = lax.optimization_barrier(_outputs(block, stacks, inputs))
        later = nothing_of(output)
        both = zip(block.kinds, stacks, strict=True)
        outputs.append(output)
        states.append(tuple(_states_after(*one, inputs, later) for one in both))
    return BlockMemory(tuple(outputs), memory.between, tuple(states))


def _outputs(
    block: _Block, stacks: tuple[Array, ...], inputs: list[Float[Array, "..."]]
) -> Array:
    """Returns the outputs of the poles in each step of the next block, as a stack."""
    ndim = inputs[0].ndim
    terms = [
        _along(block.impulse_response[STEPS - 1 - i : 2 * STEPS - 1 - i], ndim) * field
        for i, field in enumerate(inputs)
    ]
    for kind, stack in zip(block.kinds, stacks, strict=True):
        for p in range(kind.outflows.shape[-1]):
            one = lax.slice_in_dim(stack, p, p + 1, axis=_place(ndim - 1))
            for i, state in enumerate(real_parts(one)):
                terms.append(_along(kind.outflows[:, i, p], ndim) * state)
    return reduce(add, terms)


def _states_after(
    kind: _Kind, stack: Array, inputs: list[Float[Array, "..."]], zero: Array
) -> Array:
    """Returns the states after a block, plus a zero."""
    rows = []
    for matrix, flows in zip(kind.matrix, kind.inflows.swapaxes(0, 1), strict=True):
        factors, values = [*matrix, *flows], [*real_parts(stack), *inputs]
        both = zip(factors, values, strict=True)
        rows.append(reduce(add, (_along(x, stack.ndim) * value for x, value in both)))
    return as_field((rows[0] + zero, *rows[1:]))


def _along(values: Float[Array, " _"], ndim: int) -> Array:
    """Reshapes numbers to lie along the axis of a stack."""
    return values.reshape(stacked((1,) * (ndim - 1), ndim, -1))
