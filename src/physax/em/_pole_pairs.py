r"""Poles whose states are read and written once in two steps of the fields.

The states of poles are most of what a step in a dispersive medium reads and writes.
With $v'$ and $D$ of `with_field`, a pole gives over minus amplitude and fraction $d_n$
to the curl of the step after $E_n$:

$$d_2 = w M z_0 + w v' E_1 + D E_2, \qquad z_2 = M^2 z_0 + M v' E_1 + v' E_2, \qquad
  d_3 = w z_2 + D E_3$$

What is computed is the sum over poles, minus amplitude included. After $E_1$ it is
kept, and $z_1$ is never written. After $E_2$ follow $z_2$, $d_2$, and $d_3$ but for
$D E_3$. Known as block realisation: Burrus, *Block realization of digital filters*,
IEEE Transactions on Audio and Electroacoustics 20, 230 (1972). Steps are paired by
their numbers, from 0: the bits do not depend on where a run is interrupted.
"""

from collections.abc import Callable
from functools import reduce
from operator import add

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from .._products import matmul
from ._boxes import size_of
from ._dispersion import (
    Response,
    Responses,
    States,
    as_field,
    each_response,
    factors_of,
    given_by,
    next_states,
    nothing_of,
    real_parts,
    still,
    with_field,
)


class Late(eqx.Module):
    """What a response remembers in place of a `Memory`.

    Attributes:
        outputs: For each part of the field a complex number a cell: what the poles add,
            over the fraction, to the curl of the first step of two, and of the second
            but for what the field between does. One number, as for `States`.
        between: The field after the first step, once it is made.
        states: The states before it.
    """

    outputs: tuple[Array, ...]
    between: Array
    states: States


class _Output(eqx.Module):
    """What the poles of a response add to the curl of a step, over the fraction.

    Attributes:
        outflows: For each pole factors of its states.
        last: The factor of the last field.
        before: That of the field before.
    """

    outflows: tuple[Float[Array, "_"], ...]
    last: Float[Array, ""]
    before: Float[Array, ""]


class _Two(eqx.Module):
    """The poles of a response over two steps.

    Attributes:
        matrices: For each pole what becomes of its states.
        inflows: What the last field and the one before add to them.
        first: What follows for the next step.
        second: And for the one after, but for what the field between does.
    """

    matrices: tuple[Float[Array, "_ _"], ...]
    inflows: tuple[tuple[Float[Array, "_"], Float[Array, "_"]], ...]
    first: _Output
    second: _Output


def late_at_rest(response: Response, dtype) -> Late:
    """Returns the memory of poles before the first step, of the whole grid."""
    blank = jnp.zeros(size_of(response.box), dtype)
    outputs = tuple(lax.complex(part, part) for part in real_parts(blank))
    return Late(outputs, blank, still(response, blank))


def late_drive(response: Response, late: Late, *, second: Int[Array, ""]) -> Array:
    """Returns what poles add to the curl of the first of two steps or the second.

    Over the fraction, as in `Memory`.
    """
    # A number that changes from step to step: others XLA would keep for each cell.
    factor = second * factors_of(response)[1]
    parts = (
        jnp.where(second == 1, both.imag, both.real) + factor * field
        for both, field in zip(late.outputs, real_parts(late.between), strict=True)
    )
    return as_field(tuple(parts))


def respond_late(
    responses: Responses,
    memory: PyTree,
    read: Callable[[], PyTree],
    second: Int[Array, ""],
) -> PyTree:
    """Keeps the fields after a first step, or advances the poles by both.

    Args:
        responses: All responses.
        memory: What each remembers.
        read: Returns the fields in the box of each after the step.
        second: 1 after the second step, else 0.

    Returns:
        What they remember for the next step.
    """
    two = each_response(_two, responses)

    # Loops of one turn or none: a condition of XLA would copy the states.
    def keep(_: Array, memory: PyTree) -> PyTree:
        return each_response(_kept, responses, memory, read())

    def advance(turn: Array, memory: PyTree) -> PyTree:
        # Times 1, which XLA does not know: others it would keep for each cell.
        now = jax.tree.map(lambda x: turn * x, two)
        return each_response(_advanced, responses, now, memory, read())

    memory = lax.fori_loop(second, 1, keep, memory)
    return lax.fori_loop(1, 1 + second, advance, memory)


def _two(response: Response) -> _Two:
    outflows, direct = factors_of(response)
    matrices, inflows, rows = [], [], []
    for one, w in zip(response.poles, outflows, strict=True):
        inflow, _ = with_field(one)
        own, between = matmul(one.matrix, one.matrix), matmul(one.matrix, inflow)
        matrices.append(own)
        inflows.append((inflow, between))
        rows.append(tuple(matmul(w, x) for x in (one.matrix, own, inflow, between)))
    soon, late, *sums = zip(*rows, strict=True)
    once, twice = (reduce(add, column) for column in sums)
    both = _Output(soon, direct, once), _Output(late, once, twice)
    return _Two(tuple(matrices), tuple(inflows), *both)


def _kept(response: Response, late: Late, field: Array) -> Late:
    del response
    return Late(late.outputs, field, late.states)


def _advanced(response: Response, two: _Two, late: Late, field: Array) -> Late:
    del response
    before, states = late.between, late.states
    parts = (
        real_parts(given_by(x.outflows, states, [(x.last, field), (x.before, before)]))
        for x in (two.first, two.second)
    )
    # Else XLA computes one of them again in each user of `later`.
    outputs = lax.optimization_barrier(tuple(map(lax.complex, *parts)))
    later = nothing_of(outputs[0].real)
    new = []
    for matrix, own, (a, b) in zip(two.matrices, states, two.inflows, strict=True):
        new.append(next_states(matrix, own, [(a, field), (b, before)], later))
    return Late(outputs, before, tuple(new))
