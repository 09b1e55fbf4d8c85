r"""Poles whose states are read and written once in two steps of the fields.

The states of poles are most of what a step in a dispersive medium reads and writes.
With $v'$ and $D$ of `with_field`, a pole gives over minus amplitude and fraction $d_n$
to the curl of the step after $E_n$:

$$d_2 = w M z_0 + w v' E_1 + D E_2, \qquad z_2 = M^2 z_0 + M v' E_1 + v' E_2, \qquad
  d_3 = w z_2 + D E_3$$

After $E_1$ it is kept, and $z_1$ is never written. After $E_2$ follow $z_2$, $d_2$, and
$d_3$ but for $D E_3$. Known as block realisation: Burrus,
*Block realization of digital filters*, IEEE Transactions on Audio and Electroacoustics
20, 230 (1972). Steps are paired by their numbers, from 0: the bits do not depend on
where a run is interrupted.
"""

from collections.abc import Callable

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
    given_by,
    next_states,
    nothing_of,
    real_parts,
    still,
    with_field,
)
from ._poles import Recursion


class Late(eqx.Module):
    """What a response remembers in place of a `Memory`.

    Attributes:
        drives: For each part of the field a complex number a cell: what the poles add
            to the curl of the first step of two, and of the second but for what the
            field between does. One number, as for `States`.
        between: The field after the first step, once it is made.
        states: The states before it.
    """

    drives: tuple[Array, ...]
    between: Array
    states: States


class _Output(eqx.Module):
    """What a pole gives: factors of its states, the last field, and the one before."""

    outflow: Float[Array, " states"]
    direct: Float[Array, ""]
    between: Float[Array, ""]

    def __call__(self, states: tuple[Array, ...], field: Array, before: Array) -> Array:
        given = given_by(self.outflow, self.direct, states, field)
        return given + self.between * before


class _Two(eqx.Module):
    """The recursion of a pole over two steps.

    Attributes:
        amplitude: Its amplitude.
        matrix: What becomes of the states.
        inflow: What the last field adds to them.
        between: What the one before adds.
        first: What the pole gives to the next step, over its amplitude.
        second: The same for the one after, but for the field between.
    """

    amplitude: Float[Array, ""]
    matrix: Float[Array, "states states"]
    inflow: Float[Array, " states"]
    between: Float[Array, " states"]
    first: _Output
    second: _Output


def late_at_rest(response: Response, dtype) -> Late:
    """Returns the memory of poles before the first step, of the whole grid."""
    blank = jnp.zeros(size_of(response.box), dtype)
    drives = tuple(lax.complex(part, part) for part in real_parts(blank))
    return Late(drives, blank, still(response, blank))


def late_drive(response: Response, late: Late, *, second: Int[Array, ""]) -> Array:
    """Returns what poles add to the curl of a step, the first of two or the second."""
    direct = sum(one.amplitude * with_field(one)[1] for one in response.poles)
    # A number that changes from step to step: others XLA would keep for each cell.
    factor = second * direct
    drives = (
        jnp.where(second == 1, both.imag, both.real)
        - factor * response.fraction * field
        for both, field in zip(late.drives, real_parts(late.between), strict=True)
    )
    return as_field(tuple(drives))


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
    two = each_response(lambda one: tuple(map(_two, one.poles)), responses)

    # Loops of one turn or none: a condition of XLA would copy the states.
    def keep(_: Array, memory: PyTree) -> PyTree:
        return each_response(_kept, responses, memory, read())

    def advance(turn: Array, memory: PyTree) -> PyTree:
        # Times 1, which XLA does not know: others it would keep for each cell.
        now = jax.tree.map(lambda x: turn * x, two)
        return each_response(_advanced, responses, now, memory, read())

    memory = lax.fori_loop(second, 1, keep, memory)
    return lax.fori_loop(1, 1 + second, advance, memory)


def _two(one: Recursion) -> _Two:
    matrix, w = one.matrix, one.outflow
    inflow, direct = with_field(one)
    own, between = matmul(matrix, matrix), matmul(matrix, inflow)
    first = _Output(matmul(w, matrix), direct, matmul(w, inflow))
    second = _Output(*(matmul(w, x) for x in (own, inflow, between)))
    return _Two(one.amplitude, own, inflow, between, first, second)


def _kept(response: Response, late: Late, field: Array) -> Late:
    del response
    return Late(late.drives, field, late.states)


def _advanced(
    response: Response, two: tuple[_Two, ...], late: Late, field: Array
) -> Late:
    first, second = jnp.zeros_like(field), jnp.zeros_like(field)
    for one, own in zip(two, late.states, strict=True):
        first = first - one.amplitude * one.first(own, field, late.between)
        second = second - one.amplitude * one.second(own, field, late.between)
    parts = (real_parts(response.fraction * x) for x in (first, second))
    # Else XLA computes one of them again in each user of `later`.
    drives = lax.optimization_barrier(tuple(map(lax.complex, *parts)))
    later = nothing_of(drives[0].real)
    states = []
    for one, own in zip(two, late.states, strict=True):
        inputs = (one.inflow, field), (one.between, late.between)
        states.append(next_states(one.matrix, own, inputs, later))
    return Late(drives, late.between, tuple(states))
