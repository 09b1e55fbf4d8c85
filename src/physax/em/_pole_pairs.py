"""Poles whose states are read and written once in two steps of the fields."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from .._loop import Leap
from .._products import matmul
from ..runtime import default_platform
from ._dispersion import (
    Memory,
    Response,
    Responses,
    States,
    as_field,
    each_response,
    given_by,
    next_states,
    nothing_of,
    real_parts,
    with_field,
)
from ._poles import Recursion
from ._program import Program
from ._state import State, in_boxes, step


class _Late(eqx.Module):
    """What a response remembers while the states of its poles wait for a second step.

    Attributes:
        drives: For each part of the field a complex number a cell: what the poles add
            to the curl of the first step, and of the second but for what the field
            after the first does.
        held: The field after the first step, once it is made.
        states: The states before it.
    """

    drives: tuple[Array, ...]
    held: Array
    states: States


class _Output(eqx.Module):
    """What a pole gives for its states, the field, and the field a step before."""

    outflow: Float[Array, "*two states"]
    direct: Float[Array, "*two"]
    held: Float[Array, "*two"]

    def __call__(self, states: tuple[Array, ...], field: Array, held: Array) -> Array:
        return given_by(self.outflow, self.direct, states, field) + self.held * held


class _Lag(eqx.Module):
    """The recursion of a pole over the steps since its states were written.

    Attributes:
        amplitude: That of the recursion.
        matrix: What becomes of the states.
        inflow: What the field adds to them.
        held: What the field a step before adds.
        first: What the pole gives to the curl of the next step, over its amplitude.
        second: The same for the one after, but for the field of the next.
    """

    amplitude: Float[Array, "*two"]
    matrix: Float[Array, "*two states states"]
    inflow: Float[Array, "*two states"]
    held: Float[Array, "*two states"]
    first: _Output
    second: _Output


def pole_pairs(program: Program) -> Leap | None:
    """Returns what makes any number of steps, or `None` if that is no faster.

    States of poles are most of what a step in a dispersive medium reads and writes.
    Here they are read and written once in two steps: what a linear system gives in the
    second is known before the first but for the field in between. Known as block
    realisation: Burrus, *Block realization of digital filters*, IEEE Transactions on
    Audio and Electroacoustics 20, 230 (1972).

    Args:
        program: The program, ready to step, on the block of a device.
    """
    # On a GPU a loop of one turn or none costs more than is won.
    if not program.responses or default_platform() != "cpu":
        return None
    return partial(_leap, program)


def _leap(
    program: Program, state: State, n: Int[Array, ""], stop: Int[Array, ""]
) -> tuple[State, Int[Array, ""]]:
    """Makes all steps, and brings the states of the poles up to date."""
    responses = program.responses
    lags = each_response(lambda one: tuple(map(_lags, one.poles)), responses)
    poles = lambda s: s.poles  # noqa: E731

    def body(k: Int[Array, ""], carry: tuple[State, PyTree]) -> tuple[State, PyTree]:
        state, late = carry
        second = (k - n) % 2
        due = jnp.where(k == stop - 1, 1, second)
        now = each_response(partial(_driving, second=second), responses, late)
        state = eqx.tree_at(poles, state, now)
        state = step(program, state, k, swept=True, responds=False)
        read = partial(in_boxes, program, state.fields, k)
        late = _followed(responses, lags, late, read, second, due)
        return eqx.tree_at(poles, state, {}), late

    late = each_response(_ahead, responses, state.poles)
    carry = eqx.tree_at(poles, state, {}), late
    state, late = lax.fori_loop(n, stop, body, carry)
    now = each_response(partial(_driving, second=0), responses, late)
    return eqx.tree_at(poles, state, now), stop


def _lags(one: Recursion) -> _Lag:
    """Returns the recursion over one step and over two, stacked."""
    matrix, w, a = one.matrix, one.outflow, one.amplitude
    inflow, direct = with_field(one)
    none = jnp.zeros_like(inflow)
    found = []
    for own, held, outflow, delayed in (
        (matrix, none, w, jnp.zeros_like(direct)),
        (
            matmul(matrix, matrix),
            matmul(matrix, inflow),
            matmul(w, matrix),
            matmul(w, inflow),
        ),
    ):
        first = _Output(outflow, direct, delayed)
        second = _Output(*(matmul(w, x) for x in (own, inflow, held)))
        found.append(_Lag(a, own, inflow, held, first, second))
    return jax.tree.map(lambda *x: jnp.stack(x), *found)


def _ahead(response: Response, memory: Memory) -> _Late:
    """Returns what to remember before the first of two steps."""
    # Any field will do that is finite: nothing is held yet.
    held, total = memory.drive, jnp.zeros_like(memory.drive)
    for one, own in zip(response.poles, memory.states, strict=True):
        none = jnp.zeros_like(one.inertia)
        total = total - one.amplitude * given_by(one.outflow, none, own, held)
    parts = real_parts(memory.drive), real_parts(response.fraction * total)
    return _Late(tuple(map(lax.complex, *parts)), held, memory.states)


def _driving(response: Response, late: _Late, *, second: int | Array) -> Memory:
    """Returns what poles drive in the first or second step."""
    inertia = sum(one.amplitude * with_field(one)[1] for one in response.poles)
    # A number that changes from step to step: others XLA would keep for each cell.
    factor = second * inertia
    drives = (
        jnp.where(second == 1, both.imag, both.real)
        - factor * response.fraction * field
        for both, field in zip(late.drives, real_parts(late.held), strict=True)
    )
    return Memory(as_field(tuple(drives)), late.states)


def _followed(
    responses: Responses,
    lags: PyTree,
    late: PyTree,
    read: Callable[[], PyTree],
    second: Array,
    due: Array,
) -> PyTree:
    """Holds the fields after the first step, or makes two steps of the poles.

    Args:
        responses: All responses.
        lags: From `_lags`, for each.
        late: What is remembered, for each.
        read: Returns the fields.
        second: 1 after the second step, else 0.
        due: 1 if the states must be brought up to date, else 0.
    """

    # Loops of one turn or none: a condition of XLA would copy the states.
    def hold(_: Array, late: PyTree) -> PyTree:
        one = lambda _, late, field: _Late(late.drives, field, late.states)  # noqa: E731
        return each_response(one, responses, late, read())

    # Numbers that change from turn to turn: others XLA would keep for each cell.
    def advance(turn: Array, late: PyTree) -> PyTree:
        now = jax.tree.map(lambda x: x[turn], lags)
        return each_response(_advanced, responses, now, late, read())

    late = lax.fori_loop(0, 1 - due, hold, late)
    return lax.fori_loop(second, second + due, advance, late)


def _advanced(
    response: Response, lags: tuple[_Lag, ...], late: _Late, field: Array
) -> _Late:
    """Advances poles by all steps since their states were written."""
    first, second = jnp.zeros_like(field), jnp.zeros_like(field)
    for lag, own in zip(lags, late.states, strict=True):
        first = first - lag.amplitude * lag.first(own, field, late.held)
        second = second - lag.amplitude * lag.second(own, field, late.held)
    parts = (real_parts(response.fraction * x) for x in (first, second))
    # Else XLA computes one of them again in each user of `later`.
    drives = lax.optimization_barrier(tuple(map(lax.complex, *parts)))
    later = nothing_of(drives[0].real)
    states = []
    for lag, own in zip(lags, late.states, strict=True):
        inputs = (lag.inflow, field), (lag.held, late.held)
        states.append(next_states(lag.matrix, own, inputs, later))
    return _Late(drives, late.held, tuple(states))
