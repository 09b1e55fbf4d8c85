"""Runs a simulation: pure under `jit`, `vmap`, `grad`, or in chunks by the host."""

import warnings
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._checks import ArgumentError, PhysaxWarning
from .._loop import iterate
from .._status import Status
from ..grid import Layout
from ..runtime import check_memory
from ._adjoints import AbstractAdjoint, Checkpointed
from ._memory import state_bytes
from ._mode_monitor import ModeAmplitudes
from ._monitors import AbstractSpectralMonitor
from ._simulation import Simulation
from ._state import (
    Program,
    State,
    build_program,
    energy,
    look,
    rest,
    specs,
    step,
    total_energy,
)
from ._step import Arrays


class Decay(eqx.Module):
    """Stops a run when the energy in the grid has fallen far below its peak.

    It waits until all pulses are over, by the `duration` of each.

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

    Raises:
        MemoryLimitError: If the state does not fit into memory.
    """
    adjoint = Checkpointed() if adjoint is None else adjoint
    check_memory(
        state_bytes(sim),
        "the state of this simulation",
        count=1 if layout is None else layout.mesh.size,
    )
    result = _simulate(sim, adjoint, until, layout)
    warn_of(sim, result)
    return result


@eqx.filter_jit
def _simulate(sim, adjoint, until, layout) -> Result:
    program = build_program(sim, layout, watch_every(sim, until))
    run = partial(_run, 0, sim.steps, until)
    state = _differentiable(
        partial(run, None, False),
        partial(run, adjoint.checkpoint(sim.steps), True),
        program,
        rest(program),
    )
    return finish(program, state)


def _differentiable(plain, taped, program: Program, state: State) -> State:
    """Calls `plain`, or `taped` where the run is differentiated.

    The blocks that reverse mode replays cost a forward run a quarter of its state in
    copies, and a fifth of its speed.
    """
    arrays, static = eqx.partition((program, state), eqx.is_array)

    def call(run, arrays):
        return on_devices(run, *eqx.combine(arrays, static))

    march = jax.custom_jvp(partial(call, plain))

    @march.defjvp
    def _(primals, tangents):
        return jax.jvp(partial(call, taped), primals, tangents)

    return march(arrays)


# Not a fraction of the number of steps, on which the compiled program must not depend.
_LOOK = 100


def watch_every(sim: Simulation, until: Decay | None) -> int | None:
    """Returns the steps between looks at the energy, `None` where nobody asks."""
    if until is not None:
        return until.check_every
    spectral = (isinstance(m, AbstractSpectralMonitor) for m in sim.monitors.values())
    return _LOOK if any(spectral) else None


def _run(
    start, stop, until, checkpoint, taped, program: Program, state: State
) -> State:
    """Steps the block of one device."""
    options = {"checkpoint": checkpoint}
    if program.watch is not None:
        options |= {"every": program.watch, "between": partial(look, program)}
    if until is not None:
        options["done"] = lambda s: decayed(program, s, until.threshold)
    body = partial(step, program, taped=taped)
    return iterate(body, state, start, stop, **options)[0]


def decayed(program: Program, state: State, threshold: float) -> Array:
    """Whether the energy has fallen below a fraction of its peak."""
    return fallen(program, state, total_energy(program, state.fields), threshold)


def fallen(program: Program, state: State, now: Array, threshold: float) -> Array:
    """Whether an energy is below a fraction of its peak, and no source is at work."""
    silent = state.done * program.setup.dt >= program.silent
    return silent & (state.peak > 0) & (now <= threshold * state.peak)


def _shared(state: State):
    return state.monitors, state.lines


def _own_copy(tree, cuts, names: tuple[str, ...]):
    """Lets numbers that are equal on all devices count as different on each.

    Where a shared number meets a field, the transpose is a sum over the devices: in
    every step of the reverse mode, unless the copy is made before the loop. Integers
    stay shared; what they decide must be the same everywhere.
    """

    def one(x, spec):
        missing = tuple(name for name in names if name not in spec)
        if not (eqx.is_inexact_array(x) and missing):
            return x
        return lax.pcast(x, missing, to="varying")

    return jax.tree.map(one, tree, cuts)


def on_devices(run, program: Program, state: State) -> State:
    """Calls `run(program, state)`, on every device of the layout if there is one."""
    layout = program.layout
    if layout is None:
        return run(program, state)
    arrays, static = eqx.partition(program, eqx.is_array)
    program_specs, state_specs = specs(program)
    specs_of_arrays = eqx.filter(program_specs, jax.tree.map(eqx.is_array, program))
    names = tuple(name for name in layout.names if name is not None)

    def local(arrays, state):
        # Each device adds its part to the accumulators, the first to what there was.
        first = jnp.asarray(True)
        for name in names:
            first = first & (lax.axis_index(name) == 0)
        only_first = partial(jax.tree.map, lambda x: jnp.where(first, x, 0))
        start = (
            only_first(state.monitors),
            _own_copy(state.lines, state_specs.lines, names),
        )
        state = eqx.tree_at(_shared, state, start)
        arrays = _own_copy(arrays, specs_of_arrays, names)
        state = run(eqx.combine(arrays, static), state)
        parts = (state.monitors, only_first(state.lines))
        total = jax.tree.map(lambda x: lax.psum(x, names), parts)
        return eqx.tree_at(_shared, state, total)

    return jax.shard_map(
        local,
        mesh=layout.mesh,
        in_specs=(specs_of_arrays, state_specs),
        out_specs=state_specs,
    )(arrays, state)


def finish(program: Program, state: State) -> Result:
    """Turns the last state of a run into its result."""
    monitors = {
        name: monitor.finish(state.monitors[name], program.reads[name], program.setup)
        for name, monitor in program.monitors.items()
    }
    sound = jnp.asarray(True)
    for field in state.fields.values():
        # Not all(isfinite): that would store its flags before it reduces them.
        sound = sound & jnp.isfinite(jnp.sum(field))
    codes = jnp.asarray([Status.DIVERGED, Status.SUCCESSFUL], jnp.int32)
    status = codes[sound.astype(jnp.int32)]
    residual = jnp.asarray(jnp.nan, state.peak.dtype)
    if program.watch is not None:
        left = energy(program, state.fields)
        # The energy may be larger now than at the last look.
        peak = jnp.maximum(state.peak, left)
        residual = left / jnp.where(peak > 0, peak, 1)
    return Result(monitors, state.fields, status, residual)


# Energy left, over its peak, from which a spectrum is visibly cut off: 1e-3 in
# amplitude.
_ALIVE = 1e-6


def warn_of(sim: Simulation, result: Result) -> None:
    """Warns of fields that had not decayed, and of modes that are none.

    Args:
        sim: The simulation.
        result: Its result; a traced one is not looked at.
    """
    spectral = [
        name
        for name, monitor in sim.monitors.items()
        if isinstance(monitor, AbstractSpectralMonitor)
    ]
    if not spectral or isinstance(result.residual, jax.core.Tracer):
        return
    # On the host: an operation on a JAX array would be one more program to compile.
    for name, found in result.monitors.items():
        if isinstance(found, ModeAmplitudes) and not np.all(np.asarray(found.guided)):
            warnings.warn(
                f"The mode of monitor {name!r} is not guided at some frequency: its "
                "index is below that at the ends of the port's line. Move or widen the "
                "port, or ask for a lower mode.",
                PhysaxWarning,
                stacklevel=3,
            )
    residual = np.asarray(result.residual)
    if np.any(residual > _ALIVE):
        warnings.warn(
            "The fields had not decayed when the run ended: "
            f"{np.nanmax(residual):.1e} of the largest energy was left, so the spectra "
            f"of {spectral} are cut off. Take more `steps`.",
            PhysaxWarning,
            stacklevel=3,
        )
