"""Runs a simulation: pure under `jit`, `vmap`, `grad`, or in chunks by the host."""

from typing import Any

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._checks import ArgumentError, instance, traced, warn
from .._status import Status
from ..grid import Layout
from ..runtime import check_memory
from ._adjoints import AbstractAdjoint, Checkpointed
from ._cut_off import check_ports
from ._linear_tape import LinearTape
from ._march import Decay, watch_every
from ._memory import state_bytes
from ._mode_monitor import ModeAmplitudes
from ._monitors import AbstractSpectralMonitor
from ._plane_wave_checks import slow_waves
from ._program import Program, outline, ready
from ._pulses import GaussianPulse, rechecked
from ._simulation import Simulation
from ._state import State, residual
from ._stepper import Arrays


class Result(eqx.Module):
    """Outcome of a run.

    Attributes:
        monitors: The result of each monitor, by name.
        fields: Fields after the last step: E in V/m, `eta0 H` half a step before. Under
            a layout they keep its padding and sharding.
        status: A `Status` code: `SUCCESSFUL`, or `DIVERGED` if a field is not finite.
        residual: Energy left over the largest seen, without derivatives; NaN without
            spectral monitors and a `Decay` rule.
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
        adjoint: How derivatives are taken; by default `LinearTape()`, in nonlinear
            media `Checkpointed()`.
        until: Stops early when the fields have decayed; the steps left are skipped.
        layout: How the grid is cut over devices; `None` for one device.

    Returns:
        Monitors, last fields and status.

    Raises:
        ArgumentError: If an argument is of the wrong type, the adjoint does not support
            it, a number of a pulse is out of range, or the mode of a source is cut off.
        MemoryLimitError: If the state does not fit into memory.
    """
    if adjoint is None:
        nonlinear = isinstance(sim, Simulation) and sim.medium.nonlinearities
        adjoint = Checkpointed() if nonlinear else LinearTape()
    check_types(sim, adjoint, until)
    check_layout(layout)
    sim = with_checked_pulses(sim)
    check_ports(sim)
    check_memory(
        state_bytes(sim),
        "the state of this simulation",
        count=1 if layout is None else layout.mesh.size,
    )
    result = _simulate(sim, adjoint.prepared(sim), until, layout)
    adjoint.review(result.residual)
    warn_of(sim, result)
    _warn_if_diverged(result)
    return result


def check_types(sim: Any, adjoint: Any, until: Any) -> None:
    """Checks the types of a simulation, an adjoint and a stop rule."""
    instance(sim, "sim", Simulation)
    for leaf in jax.tree.leaves(sim.medium):
        if isinstance(leaf, int | float | complex) and not isinstance(leaf, np.generic):
            raise ArgumentError(
                f"The leaves of `sim.medium` must be arrays, but one is {leaf!r}. "
                f"Replace it by `jnp.asarray({leaf!r})`."
            )
    instance(
        adjoint, "adjoint", AbstractAdjoint, "Write, for example, `em.LinearTape()`."
    )
    check_rule(until)


def with_checked_pulses(sim: Simulation) -> Simulation:
    """Returns a simulation whose pulses have been checked once more.

    Numbers that `eqx.tree_at` put into them are refused, or NaN where they are traced.
    """
    if not sim.sources:
        return sim
    # Many dipoles may share one.
    pulses = {id(one.pulse): one.pulse for one in sim.sources.values()}
    found = {key: rechecked(pulse) for key, pulse in pulses.items()}
    return eqx.tree_at(
        lambda s: [one.pulse for one in s.sources.values()],
        sim,
        [found[id(one.pulse)] for one in sim.sources.values()],
    )


def check_rule(until: Any) -> None:
    """Checks the type of a stop rule."""
    if until is not None:
        instance(until, "until", Decay, "Write `Decay(1e-6)`.")


def check_layout(layout: Any) -> None:
    """Checks the type of a layout."""
    if layout is not None:
        instance(
            layout, "layout", Layout, "Write `grid.Layout(runtime.mesh(2), x='x')`."
        )


@eqx.filter_jit
def _simulate(sim, adjoint, until, layout) -> Result:
    program = outline(sim, layout, watch_every(sim, until, steps=sim.steps))
    return finish(ready(program), adjoint.march(program, sim.steps, until))


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
    left = jnp.asarray(jnp.nan, state.peak.dtype)
    if program.watch is not None:
        # A gauge of the run, not a figure of the device: not to be differentiated.
        left = lax.stop_gradient(residual(program, state))
    return Result(monitors, state.fields, status, left)


def _warn_if_diverged(result: Result) -> None:
    """Warns of fields that are not finite, of a result that is not traced."""
    if isinstance(result.status, jax.core.Tracer):
        return
    if np.any(np.asarray(result.status) == int(Status.DIVERGED)):
        warn(
            "The fields are not finite at the end of the run, and its results are "
            "meaningless: `status` is `DIVERGED`. Is the time step stable in this "
            "medium, does it amplify, and are all numbers finite? `run` stops when "
            "this happens.",
        )


# Energy left, over its peak, from which a spectrum is visibly cut off: 1e-3 in
# amplitude.
_ALIVE = 1e-6


def warn_of(sim: Simulation, result: Result) -> None:
    """Warns of spectra that are 0 or truncated, and of modes that are not guided.

    Args:
        sim: The simulation.
        result: Its result; a traced one is not looked at.
    """
    spectral = _spectral(sim)
    if not spectral or isinstance(result.residual, jax.core.Tracer):
        return
    # On the host: an operation on a JAX array would be one more program to compile.
    for name, found in result.monitors.items():
        if isinstance(found, ModeAmplitudes) and not np.all(np.asarray(found.guided)):
            warn(
                f"The mode of monitor {name!r} is not guided at some frequency: its "
                "index is below that at the ends of the port's line. Move or widen the "
                "port, or ask for a lower mode.",
            )
    residual = np.asarray(result.residual)
    alive = bool(np.any(residual > _ALIVE))
    told = []
    if not sim.sources and np.all(residual == 0):
        told.append(f"Without `sources` the spectra of {spectral} are 0. Pass some.")
    if alive:
        told.append(
            "The fields had not decayed when the run ended: "
            f"{np.nanmax(residual):.1e} of the largest energy was left, so the "
            f"spectra of {spectral} are truncated. Let it run longer: take more "
            "`steps`."
        )
        told += slow_waves(sim.sources, sim.boundaries, sim.grid.ndim)
    if alive or np.all(residual <= _ALIVE):
        told += late_pulse(sim)
    if told:
        warn(" ".join(told))


def _spectral(sim: Simulation) -> list[str]:
    monitors = sim.monitors.items()
    return [name for name, one in monitors if isinstance(one, AbstractSpectralMonitor)]


def late_pulse(sim: Simulation) -> list[str]:
    """Tells, once, of a pulse that is not half over when the run of spectra ends.

    What its first feet send may be rounded to no energy at all. The length of other
    pulses than Gaussian ones does not tell where their middle lies.

    Args:
        sim: The simulation; traced pulses and time steps are not looked at.
    """
    spectral = _spectral(sim)
    # A gradient leaves the residual concrete, but not what it is taken by.
    if traced(sim.dt) or not spectral:
        return []
    end = float(sim.steps * np.min(np.asarray(sim.dt)))
    for name, source in sim.sources.items():
        if not isinstance(source.pulse, GaussianPulse) or traced(source.pulse):
            continue
        # On the host, as above.
        pulse = jax.tree.map(np.asarray, source.pulse)
        if np.max(pulse.duration()) > 2 * end:
            return [
                f"The run ends after {end:.3g} s, before the middle of the pulse of "
                f"source {name!r} with a bandwidth of {np.min(pulse.bandwidth):.3g} "
                f"Hz, so the spectra of {spectral} lack the rest. Let it run longer: "
                "take more `steps`, or a larger `bandwidth`."
            ]
    return []
