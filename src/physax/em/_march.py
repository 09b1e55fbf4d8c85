"""Marches a program: one traced loop, on one device or on every one of a layout."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from .._checks import ArgumentError, real, refuse_traced, single, whole
from .._loop import divisor_near, iterate
from ..grid import Layout
from ._monitors import AbstractSpectralMonitor
from ._program import Program
from ._simulation import Simulation
from ._state import State, look, required_layout, specs, step, total_energy
from ._wavefront import leaps


def _threshold(x: Any) -> float:
    refuse_traced(x, "threshold", "Make the `Decay` outside.")
    single(real(x, "threshold"), "threshold")
    value = float(x)
    if not 0 < value < 1:
        raise ArgumentError(f"`threshold` must lie in (0, 1), but is {value:g}.")
    return value


class Decay(eqx.Module):
    """Stops a run when the energy in the grid has fallen far below its peak.

    It waits until all pulses are over, by the `duration` of each.

    Attributes:
        threshold: Fraction of the largest energy seen. Runs with this rule or with
            spectral monitors look; what others had is not known when they go on.
        check_every: Steps between looks; a pulse that passes between two is not seen.

    Raises:
        ArgumentError: If `threshold` does not lie in (0, 1), or `check_every` is not a
            positive integer.
    """

    threshold: float = eqx.field(static=True, converter=_threshold, default=1e-8)
    check_every: int = eqx.field(
        static=True, converter=lambda n: whole(n, "check_every"), default=200
    )


_LOOK = 100


def watch_every(
    sim: Simulation, until: Decay | None, *, steps: int | None = None
) -> int | None:
    """Returns the steps between looks at the energy, `None` where nobody asks.

    Args:
        sim: The simulation.
        until: The stop rule.
        steps: Number of steps, where the compiled program may depend on it.
    """
    if until is not None:
        return until.check_every
    spectral = (isinstance(m, AbstractSpectralMonitor) for m in sim.monitors.values())
    if not any(spectral):
        return None
    if steps is None:
        return _LOOK
    # A short run has some looks, too; steps after the last one would be compiled apart.
    return divisor_near(steps, min(_LOOK, max(1, -(-steps // 4))))


def march(
    steps: int,
    until: Decay | None,
    program: Program,
    state: State,
    *,
    checkpoint: int | None = None,
    taped: bool = False,
) -> State:
    """Makes all steps on the block of one device.

    Args:
        steps: How many.
        until: Stops early.
        program: The program.
        state: The state before step 0.
        checkpoint: Steps between stored states in reverse mode.
        taped: Whether the steps will be differentiated in reverse mode.

    Returns:
        The last state.
    """
    options = {"checkpoint": checkpoint, **watching(program)}
    if until is not None:
        options["done"] = lambda s: decayed(program, s, until.threshold)
    body = partial(step, program, taped=taped, swept=not taped)
    if not taped:
        options["leap"] = leaps(program)
    return iterate(body, state, 0, steps, **options)[0]


def watching(program: Program) -> dict:
    """Returns the options of a loop that looks at the energy, if anyone asks for it."""
    if program.watch is None:
        return {}
    return {"every": program.watch, "between": partial(look, program)}


def decayed(program: Program, state: State, threshold: float) -> Array:
    """Whether the energy has fallen below a fraction of its peak."""
    return fallen(program, state, total_energy(program, state.fields), threshold)


def fallen(program: Program, state: State, now: Array, threshold: float) -> Array:
    """Whether an energy is below a fraction of its peak, and no source is at work."""
    silent = state.done >= program.silent
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


def _across(layout: Layout) -> tuple[str, ...]:
    return tuple(name for name in layout.names if name is not None)


def _only_first(tree, names: tuple[str, ...]):
    """Zeroes a tree on all devices but the first, so that a sum counts it once."""
    first = jnp.asarray(True)
    for name in names:
        first = first & (lax.axis_index(name) == 0)
    return jax.tree.map(lambda x: jnp.where(first, x, 0), tree)


def on_devices(run, program: Program, state: State, tape_cuts=None):
    """Calls `run(program, state)`, on every device of the layout if there is one.

    Args:
        run: Returns the last state, and a tape with it if `tape_cuts` is given.
        program: The program.
        state: The first state.
        tape_cuts: How the layout cuts a tape: a function of the layout.

    Returns:
        What `run` returns, whole.
    """
    layout = program.layout
    if layout is None:
        return run(program, state)
    state_cuts, names = specs(program)[1], _across(layout)

    def local(program, state):
        # Each device adds its part to the accumulators, the first to what there was.
        start = (
            _only_first(state.monitors, names),
            _own_copy(state.lines, state_cuts.lines, names),
        )
        out = run(program, eqx.tree_at(_shared, state, start))
        state = out if tape_cuts is None else out[0]
        total = summed((state.monitors, _only_first(state.lines, names)), layout)
        state = eqx.tree_at(_shared, state, total)
        return state if tape_cuts is None else (state, out[1])

    cuts = state_cuts if tape_cuts is None else (state_cuts, tape_cuts(layout))
    return _mapped(local, program, (state,), (state_cuts,), cuts)


def each_device(run, program: Program, operands: tuple, cuts: tuple, out_cuts):
    """Calls `run(program, *operands)` on every device of the layout if there is one.

    Args:
        run: What to call.
        program: The program.
        operands: Its other arguments.
        cuts: How the layout cuts each: functions of the layout.
        out_cuts: How it cuts what `run` returns.

    Returns:
        What `run` returns, whole.
    """
    layout = program.layout
    if layout is None:
        return run(program, *operands)

    def local(program, *operands):
        return run(program, *own_all(operands, layout))

    in_cuts = tuple(cut(layout) for cut in cuts)
    return _mapped(local, program, operands, in_cuts, out_cuts(layout))


def _mapped(local, program: Program, operands: tuple, cuts: tuple, out_cuts):
    layout = required_layout(program)
    arrays, static = eqx.partition(program, eqx.is_array)
    arrays_cuts = eqx.filter(specs(program)[0], jax.tree.map(eqx.is_array, program))
    names = _across(layout)

    def call(arrays, *operands):
        arrays = _own_copy(arrays, arrays_cuts, names)
        return local(eqx.combine(arrays, static), *operands)

    return jax.shard_map(
        call,
        mesh=layout.mesh,
        in_specs=(arrays_cuts, *cuts),
        out_specs=out_cuts,
    )(arrays, *operands)


def summed(tree, layout: Layout | None):
    """Sums over the devices of a layout what each has added."""
    if layout is None:
        return tree
    return jax.tree.map(lambda x: lax.psum(x, _across(layout)), tree)


def first_device(tree, layout: Layout | None):
    """Returns what is equal on all devices as one value, inside `on_devices`."""
    return (
        tree if layout is None else summed(_only_first(tree, _across(layout)), layout)
    )


def own_all(tree, layout: Layout | None):
    """Lets numbers count as different on each device, whatever they were."""
    if layout is None:
        return tree
    nothing = jnp.zeros((), jnp.int32)
    for name in _across(layout):
        nothing = nothing + 0 * lax.axis_index(name)
    return jax.tree.map(
        lambda x: x + nothing.astype(x.dtype) if eqx.is_inexact_array(x) else x, tree
    )
