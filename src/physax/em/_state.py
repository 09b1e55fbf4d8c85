"""The state of a run, and the step that advances it."""

from functools import partial
from operator import mul

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int

from .._checks import ArgumentError
from ..grid import Layout
from ..runtime import default_platform
from ..units import EPSILON_0, SPEED_OF_LIGHT
from ._boxes import cells_of
from ._clock import Clock
from ._cylindrical import ring_widths
from ._dispersion import Memory, Response, at_rest, each_response, respond
from ._incident_line import LineState
from ._injection import inject
from ._monitors import AbstractSpectralMonitor
from ._pole_blocks import (
    STEPS,
    BlockMemory,
    advance_blocks,
    block_drive,
    block_memory_at_rest,
    stacked,
)
from ._powers import fields_before, solve_nonlinear
from ._program import Program
from ._step import Drives, add_polarisation, half_step
from ._stepper import Arrays, zero_psi
from ._sweep import suits_sweep, sweep
from ._tilt import coupled_half_step, curl_only, zero_changes


Poles = dict[str, tuple[Memory | BlockMemory, ...]]
"""What each response remembers."""


class State(eqx.Module):
    """All that changes from step to step.

    Attributes:
        fields: E in V/m and `eta0 H`, by component.
        psi: Memory of the absorbing layers.
        poles: That of dispersive media, by component.
        lines: Incident waves, by name of their source.
        monitors: Accumulators, by name; each device's part under `shard_map`.
        peak: Largest energy seen at a check, in J (per length or area below 3-D).
        done: Number of steps done.
    """

    fields: Arrays
    psi: Arrays
    poles: Poles
    lines: dict[str, LineState]
    monitors: dict[str, Arrays]
    peak: Float[Array, ""]
    done: Int[Array, ""]


def rest(program: Program) -> State:
    """Returns the state of the whole grid before the first step."""
    stepper, dtype = program.stepper, jnp.dtype(program.dtype)
    shape = tuple(map(mul, stepper.block.shape, stepper.block.parts))
    fields = {name: jnp.zeros(shape, dtype) for name in stepper.components.names}
    lines = {name: line.rest(dtype) for name, line in program.lines.items()}
    wide = jnp.dtype(program.accumulate)
    monitors = {}
    for name, monitor in program.monitors.items():
        spectral = isinstance(monitor, AbstractSpectralMonitor)
        kind = jnp.result_type(wide, jnp.complex64) if spectral else dtype
        monitors[name] = monitor.start(program.reads[name], program.setup, kind)
    peak = jnp.zeros((), wide)
    none = jnp.zeros((), jnp.int32)
    start = block_memory_at_rest if program.blocks else at_rest
    poles = each_response(partial(start, dtype=dtype), program.responses)
    psi = zero_psi(stepper, dtype)
    return State(fields, psi, poles, lines, monitors, peak, none)


def without_poles(state: State) -> State:
    """Returns a state that no step follows, alike for steps in blocks and singly."""
    return eqx.tree_at(lambda s: s.poles, state, {})


def step(
    program: Program,
    state: State,
    n: Int[Array, ""],
    *,
    taped: bool = False,
    swept: bool = False,
) -> State:
    """Advances a block by one step; see `advance`."""
    return advance(program, state, n, taped=taped, swept=swept)[0]


def advance(
    program: Program,
    state: State,
    n: Int[Array, ""],
    *,
    taped: bool = False,
    keep_changes: bool = False,
    swept: bool = False,
) -> tuple[State, list[Arrays]]:
    """Advances a block by one step: H, then E, then the monitors.

    Args:
        program: The program.
        state: The state before the step.
        n: Number of the step.
        taped: Whether the step will be differentiated in reverse mode.
        keep_changes: Whether to return the changes that tilts read.
        swept: Whether both halves may go through `sweep` where that is faster; not in
            the forward run of a reverse mode.

    Returns:
        The state after it, and for each tilt these changes or nothing.
    """
    swept = swept and may_sweep(program)
    drives = _drives(program, state.poles, n)

    def move(k, carry):
        fields, psi, lines, _ = carry
        now = fields, psi, lines, drives
        moved, changes = _move(program, k, *now, swept=swept)
        return *moved, changes if keep_changes else []

    blank = []
    if keep_changes:
        blank = zero_changes(program.tilts, program.stepper.block, state.fields)
    carry = state.fields, state.psi, state.lines, blank
    if taped or not program.monitors or default_platform() != "cpu":
        carry = move(n, carry)
    else:
        # A loop of one turn. Without it XLA fuses the slices that monitors read with
        # the last update of a field on a CPU, which then is no longer done in place:
        # two copies of a field in every step, five times the price of the monitors.
        carry = lax.fori_loop(n, n + 1, move, carry)
    fields, psi, lines, changes = carry
    poles = _responded(program, state.poles, fields, n)
    monitors = {}
    for name, monitor in program.monitors.items():
        read = partial(_read, program, name, fields)
        sampling = program.sampling[name]
        monitors[name] = monitor.update(state.monitors[name], read, n, sampling)
    done = jnp.asarray(n + 1, jnp.int32)
    return State(fields, psi, poles, lines, monitors, state.peak, done), changes


def _move(
    program: Program,
    n,
    fields: Arrays,
    psi: Arrays,
    lines: dict,
    drives: Drives,
    *,
    swept: bool,
):
    """Advances fields, layers and incident lines by one step."""
    stepper, dt = program.stepper, program.setup.dt
    stepper = eqx.tree_at(lambda s: s.block, stepper, stepper.block.within(n))
    block, axes = stepper.block, program.setup.axes
    now, between = Clock(2 * n, dt), Clock(2 * n + 1, dt)
    lines, changes = dict(lines), []
    for electric, clock, currents in (
        (False, now, program.magnetic),
        (True, between, program.electric),
    ):
        before = []
        if electric and program.powers:
            fields, before = fields_before(program.powers, block, fields)
        own, old = stepper, fields
        coupled = electric and bool(program.tilts)
        if coupled:
            own, fields = curl_only(stepper, fields)
        if not swept:
            fields, psi = half_step(own, fields, psi, electric=electric)
        elif electric:
            # Both halves: what sources do to H, which only adds, has come before.
            fields, psi = sweep(own, fields, psi)
        if electric:
            fields = add_polarisation(own, program.responses, fields, drives)
        fields = inject(currents, fields, own.rows, block, clock)
        for name, line in program.lines.items():
            fields = line.correct(
                lines[name], fields, axes, own.rows, block, electric=electric
            )
            lines[name] = line.advance(lines[name], clock, electric=electric)
        if coupled:
            names = stepper.components.electric
            curls = {name: fields[name] for name in names}
            fields = fields | {name: old[name] for name in names}
            fields, changes = coupled_half_step(program.tilts, stepper, fields, curls)
        if electric and program.powers:
            fields = solve_nonlinear(program.powers, stepper, fields, before)
        fields, psi = lax.optimization_barrier((fields, psi))
    return (fields, psi, lines), changes


def _drives(program: Program, poles: Poles, n: Int[Array, ""]) -> Drives:
    """Returns what poles add to the curls of step `n`."""
    drive = partial(block_drive, turn=n % STEPS) if program.blocks else _drive
    return each_response(drive, program.responses, poles)


def _drive(response: Response, memory: Memory) -> Array:
    del response
    return memory.output


def _responded(
    program: Program, poles: Poles, fields: Arrays, n: Int[Array, ""]
) -> Poles:
    """Returns what poles remember after step `n`."""
    block, responses = program.stepper.block, program.responses

    def read() -> dict[str, tuple[Array, ...]]:
        return {
            name: tuple(fields[name][cells_of(one.here(block))] for one in many)
            for name, many in responses.items()
        }

    if program.blocks:
        return advance_blocks(responses, poles, read, n % STEPS)
    return each_response(respond, responses, poles, read())


def may_sweep(program: Program) -> bool:
    """Tells whether both halves of a step may go through `sweep`."""
    if program.tilts or program.powers:
        return False
    stepper = program.stepper
    lossy = any(stepper.rows[k].loss is not None for k in stepper.components.magnetic)
    if lossy and (program.magnetic or program.lines):
        return False
    return suits_sweep(stepper, program.layout, jnp.dtype(program.dtype).itemsize)


def look(program: Program, state: State) -> State:
    """Brings the largest energy seen up to date."""
    now = total_energy(program, state.fields)
    return eqx.tree_at(lambda s: s.peak, state, jnp.maximum(state.peak, now))


def total_energy(program: Program, fields: Arrays) -> Array:
    """Returns the energy in the whole grid, the same on every device."""
    here = energy(program, fields)
    names = tuple(name for name in program.stepper.block.names if name is not None)
    return lax.psum(here, names) if names else here


def _read(program: Program, name: str, fields: Arrays) -> Arrays:
    """Returns the samples of a monitor that this block holds, zero elsewhere."""
    block = program.stepper.block
    return {
        key: energy(program, fields)
        if component == "energy"
        else block.read(fields[component], box)
        for key, component, box, *_ in program.reads[name]
    }


def volumes(program: Program, component: str) -> Array:
    """Returns the volume around each sample of a component on this block."""
    parts = program.stepper.components
    ndim, length = parts.ndim, SPEED_OF_LIGHT * program.setup.dt
    volume = jnp.ones((1,) * ndim, length.dtype)
    for axis, half in enumerate(parts.stagger(component)):
        rows = program.stepper.axes[axis]
        if rows.radial is not None and parts.m is not None:
            width = ring_widths(rows, component, half, length, parts.m)
        else:
            metric = rows.magnetic if half else rows.electric
            # Samples outside the walls have no metric, and no field.
            safe = jnp.where(metric > 0, metric, 1)
            width = jnp.where(metric > 0, length / safe, 0)
        if width.ndim:
            width = width.reshape([-1 if a == axis else 1 for a in range(ndim)])
        volume = volume * width
    return volume


def energy(program: Program, fields: Arrays, later: Arrays | None = None) -> Array:
    """Returns the energy of the fields on this block, in J (per length below 3-D).

    With `later` each square is replaced by the product with the later value.
    """
    total = jnp.zeros((), jnp.dtype(program.accumulate))
    for name, field in fields.items():
        other = field if later is None else later[name]
        square = jnp.real(field * jnp.conj(other))
        weight = program.stepper.rows[name].inertia * volumes(program, name)
        total = total + jnp.sum(square * weight, dtype=total.dtype)
    return EPSILON_0 / 2 * total


def residual(program: Program, state: State) -> Array:
    """Returns the energy left over the largest seen."""
    left = energy(program, state.fields)
    # The energy may be larger now than at the last look.
    peak = jnp.maximum(state.peak, left)
    return left / jnp.where(peak > 0, peak, 1)


def required_layout(program: Program) -> Layout:
    """Returns the layout of a program that is known to have one."""
    if program.layout is None:
        raise ArgumentError("`layout` must be given to cut a program, but is None.")
    return program.layout


def specs(program: Program) -> tuple[Program, State]:
    """Returns how each leaf of the program and its state is cut by the layout."""
    layout = required_layout(program)
    ndim = program.stepper.components.ndim
    whole, everywhere = layout.spec(ndim), PartitionSpec()
    block = program.stepper.block
    shape = tuple(map(mul, block.shape, block.parts))

    def row(axis):
        def one(x):
            return PartitionSpec(layout.names[axis]) if x.ndim else everywhere

        return one

    def cell(x):
        return whole if x.shape == shape and x.ndim == ndim else everywhere

    copy = jax.tree.map(lambda _: everywhere, program)
    axes = tuple(jax.tree.map(row(a), x) for a, x in enumerate(program.stepper.axes))
    rows = jax.tree.map(cell, program.stepper.rows)
    responses = {
        name: tuple(eqx.tree_at(lambda r: r.fraction, one, whole) for one in many)
        for name, many in copy.responses.items()
    }
    tilts = jax.tree.map(lambda x: whole if x.ndim else everywhere, program.tilts)
    powers = jax.tree.map(lambda _: whole, program.powers)
    copy = eqx.tree_at(
        lambda p: (p.stepper.axes, p.stepper.rows, p.responses, p.tilts, p.powers),
        copy,
        (axes, rows, responses, tilts, powers),
    )
    state = jax.eval_shape(lambda p: rest(p), program)
    blank = jax.tree.map(lambda _: everywhere, state)
    fields = {name: whole for name in state.fields}
    psi = {name: whole for name in state.psi}
    poles = jax.tree.map(
        lambda x: PartitionSpec(*stacked(tuple(whole), x.ndim, None)), state.poles
    )
    return copy, eqx.tree_at(
        lambda s: (s.fields, s.psi, s.poles), blank, (fields, psi, poles)
    )
