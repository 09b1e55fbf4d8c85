"""Runs a simulation: pure under `jit`, `vmap`, `grad`, or in chunks by the host."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from .._checks import ArgumentError
from .._loop import iterate
from .._status import Status
from ..grid import Layout
from ._adjoints import AbstractAdjoint, Checkpointed
from ._components import components
from ._simulation import Simulation
from ._state import Program, State, build_program, rest, specs, step, total_energy
from ._step import Arrays


class Decay(eqx.Module):
    """Stops a run when the energy in the grid has fallen far below its peak.

    Attributes:
        threshold: Fraction of the largest energy seen.
        check_every: Steps between looks.
    """

    threshold: float = eqx.field(static=True, default=1e-8)
    check_every: int = eqx.field(static=True, default=500)

    def __check_init__(self):
        if not 0 < self.threshold < 1:
            raise ArgumentError(
                f"`threshold` must lie in (0, 1), but is {self.threshold:g}."
            )
        if self.check_every < 1:
            raise ArgumentError(
                f"`check_every` must be at least 1, but is {self.check_every}."
            )


class Result(eqx.Module):
    """What a run leaves.

    Attributes:
        monitors: The result of each monitor, by name.
        fields: Fields after the last step: E in V/m, `eta0 H` half a step before. Under
            a layout they keep its padding and sharding.
        status: A `Status` code: `SUCCESSFUL`, or `DIVERGED` if a field is not finite.
        residual: Energy left over the largest seen; NaN unless a `Decay` rule watched.
    """

    monitors: dict[str, Any]
    fields: Arrays
    status: Int[Array, ""]
    residual: Float[Array, ""]


def simulate(
    sim: Simulation,
    *,
    adjoint: AbstractAdjoint | None = None,
    until: Decay | None = None,
    layout: Layout | None = None,
) -> Result:
    """Runs a simulation as one pure, differentiable function.

    Works under `jit`, `vmap` and `grad`; it compiles itself, so that calling it again
    with other numbers compiles nothing.

    Args:
        sim: The simulation.
        adjoint: How reverse mode is done; `Checkpointed()` by default.
        until: Stops early when the fields have decayed; the steps left are skipped.
        layout: How the grid is cut over devices; `None` for one device.

    Returns:
        Monitors, last fields and status.
    """
    adjoint = Checkpointed() if adjoint is None else adjoint
    return _simulate(sim, adjoint, until, layout)


@eqx.filter_jit
def _simulate(sim, adjoint, until, layout) -> Result:
    program = build_program(sim, layout, None if until is None else until.check_every)
    checkpoint = adjoint.checkpoint(sim.steps)
    run = partial(_run, 0, sim.steps, until, checkpoint)
    state = _on_devices(run, program, rest(program))
    return finish(program, state, until)


def _run(start, stop, until, checkpoint, program: Program, state: State) -> State:
    """Steps the block of one device."""
    options = {}
    if until is not None:
        options = {
            "check_every": until.check_every,
            "done": lambda s: _decayed(program, s, until.threshold),
        }
    body = partial(step, program)
    return iterate(body, state, start, stop, checkpoint=checkpoint, **options)[0]


def _decayed(program: Program, state: State, threshold: float) -> Array:
    return total_energy(program, state.fields) <= threshold * state.peak


def _on_devices(run, program: Program, state: State) -> State:
    """Calls `run(program, state)`, on every device of the layout if there is one."""
    layout = program.layout
    if layout is None:
        return run(program, state)
    arrays, static = eqx.partition(program, eqx.is_array)
    program_specs, state_specs = specs(program)
    names = tuple(name for name in layout.names if name is not None)

    def local(arrays, state):
        # Each device adds its part to the accumulators, the first to what there was.
        first = jnp.asarray(True)
        for name in names:
            first = first & (lax.axis_index(name) == 0)
        start = jax.tree.map(lambda x: jnp.where(first, x, 0), state.monitors)
        state = eqx.tree_at(lambda s: s.monitors, state, start)
        state = run(eqx.combine(arrays, static), state)
        total = jax.tree.map(lambda x: lax.psum(x, names), state.monitors)
        return eqx.tree_at(lambda s: s.monitors, state, total)

    specs_of_arrays = eqx.filter(program_specs, jax.tree.map(eqx.is_array, program))
    return jax.shard_map(
        local,
        mesh=layout.mesh,
        in_specs=(specs_of_arrays, state_specs),
        out_specs=state_specs,
    )(arrays, state)


def finish(program: Program, state: State, until: Decay | None = None) -> Result:
    """Turns the last state of a run into its result."""
    monitors = {
        name: monitor.finish(
            state.monitors[name], program.reads[name], program.setup
        )
        for name, monitor in program.monitors.items()
    }
    sound = jnp.asarray(True)
    for field in state.fields.values():
        sound = sound & jnp.all(jnp.isfinite(field))
    status = jnp.where(sound, int(Status.SUCCESSFUL), int(Status.DIVERGED))
    residual = jnp.asarray(jnp.nan, state.peak.dtype)
    if until is not None:
        left = _energy_of_whole(program, state)
        residual = left / jnp.where(state.peak > 0, state.peak, 1)
    return Result(monitors, state.fields, status, residual)


def _energy_of_whole(program: Program, state: State) -> Array:
    if program.layout is None:
        return total_energy(program, state.fields)
    total = jnp.zeros((), state.peak.dtype)
    for field in state.fields.values():
        total = total + jnp.sum(jnp.abs(field) ** 2, dtype=total.dtype)
    return total


def component_names(sim: Simulation) -> tuple[str, ...]:
    """Returns the components that a simulation steps."""
    return components(sim.grid.ndim, sim.polarisation).names
