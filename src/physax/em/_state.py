"""The state of a run, and the program that advances it."""

from functools import partial
from operator import mul

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int

from .._checks import ArgumentError
from ..grid import AXES, Block, Layout
from ..units import EPSILON_0, SPEED_OF_LIGHT
from ._boundaries import Bloch, Periodic
from ._clock import Clock
from ._components import components, stagger
from ._injection import Injection, inject
from ._layers import build_axis, stored_cells
from ._medium import PROPERTIES, Medium
from ._monitors import AbstractMonitor, AbstractSpectralMonitor, Read, Sampling
from ._plane_wave import IncidentLine, LineState, PlaneWave
from ._setup import Setup
from ._simulation import Simulation
from ._step import Arrays, Stepper, build_row, half_step, zero_psi


class State(eqx.Module):
    """All that changes from step to step.

    Attributes:
        fields: E in V/m and `eta0 H`, by component.
        psi: Memory of the absorbing layers.
        lines: Incident waves, by name of their source.
        monitors: Accumulators, by name; each device's part under `shard_map`.
        peak: Largest energy seen at a check, in J (per length or area below 3-D).
        done: Number of steps done.
    """

    fields: Arrays
    psi: Arrays
    lines: dict[str, LineState]
    monitors: dict[str, Arrays]
    peak: Float[Array, ""]
    done: Int[Array, ""]


class Program(eqx.Module):
    """A simulation made ready to step.

    Attributes:
        stepper: Coefficients of the whole grid, or of one block inside `shard_map`.
        electric: Currents of the electric half steps.
        magnetic: Currents of the magnetic half steps.
        lines: Incident waves.
        monitors: By name.
        reads: What each monitor reads.
        setup: The simulation as sources and monitors see it.
        sampling: How often each monitor is updated.
        silent: Time in seconds after which no source is at work any more.
        watch: Steps between looks at the energy for `State.peak`; `None` for never.
        layout: The devices, or `None`.
    """

    stepper: Stepper
    electric: list[Injection]
    magnetic: list[Injection]
    lines: dict[str, IncidentLine]
    monitors: dict[str, AbstractMonitor]
    reads: dict[str, tuple[Read, ...]] = eqx.field(static=True)
    setup: Setup
    sampling: dict[str, Sampling]
    silent: Float[Array, ""]
    watch: int | None = eqx.field(static=True)
    layout: Layout | None = eqx.field(static=True)
    dtype: str = eqx.field(static=True)
    accumulate: str = eqx.field(static=True)


def build_program(
    sim: Simulation, layout: Layout | None = None, watch: int | None = None
) -> Program:
    """Builds the coefficients, currents and accumulators of a simulation.

    Args:
        sim: The simulation.
        layout: How the grid is cut over devices; `None` for one device.
        watch: Steps between looks at the energy, for a stop rule.

    Returns:
        The program; arrays are whole, padded to the layout.

    Raises:
        ArgumentError: If the layout cannot cut a periodic axis into equal blocks.
    """
    grid, parts = sim.grid, components(sim.grid.ndim, sim.polarisation)
    ndim = grid.ndim
    stored = stored_cells(grid, sim.boundaries)
    size = stored if layout is None else layout.padded_shape(stored)
    counts = (1,) * ndim if layout is None else tuple(map(layout.parts, range(ndim)))
    faces = [sim.boundaries.axis(axis)[0] for axis in range(ndim)]
    wraps = tuple(isinstance(face, Periodic | Bloch) for face in faces)
    for axis in range(ndim):
        if wraps[axis] and size[axis] != stored[axis]:
            raise ArgumentError(
                f"`grid` along the periodic axis {AXES[axis]} must be a multiple of "
                f"{counts[axis]}, the number of devices, but has {stored[axis]} cells."
            )
    storage = jnp.dtype(sim.precision.storage)
    dtype = jnp.result_type(storage, jnp.complex64) if sim.complex_fields else storage
    phases = tuple(
        jnp.exp(1j * face.wavevector * grid.size(axis)).astype(dtype)
        if isinstance(face, Bloch)
        else None
        for axis, face in enumerate(faces)
    )
    cast = partial(_cast, dtype=storage)
    axes = tuple(
        cast(build_axis(grid, sim.boundaries, a, sim.dt, size[a], counts[a]))
        for a in range(ndim)
    )
    medium = cast(_padded(sim.medium, grid.shape, size))
    step_length = SPEED_OF_LIGHT * sim.dt
    rows = {n: cast(build_row(medium, n, step_length)) for n in parts.names}
    names = (None,) * ndim if layout is None else layout.names[:ndim]
    local = tuple(cells // count for cells, count in zip(size, counts, strict=True))
    block = Block(local, names, counts, wraps, phases)
    setup = Setup(
        grid, parts, sim.medium, axes, sim.dt, phases, sim.steps, sim.boundaries
    )
    lines, currents = {}, []
    for name, source in sim.sources.items():
        if isinstance(source, PlaneWave):
            lines[name] = source.companion(sim.place(name), setup)
        else:
            currents += source.injections(sim.place(name), setup)
    return Program(
        Stepper(parts, block, axes, rows),
        [one for one in currents if one.component[0] == "E"],
        [one for one in currents if one.component[0] == "H"],
        lines,
        sim.monitors,
        {name: sim.place(name) for name in sim.monitors},
        setup,
        {name: _sampling(sim, one) for name, one in sim.monitors.items()},
        _silence(sim),
        watch,
        layout,
        str(dtype),
        str(sim.precision.accumulate),
    )


def _cast(tree, dtype):
    """Gives all real arrays of a tree the type of the fields."""

    def one(x):
        real = eqx.is_inexact_array(x) and not jnp.iscomplexobj(x)
        return x.astype(dtype) if real else x

    return jax.tree.map(one, tree)


def _padded(medium: Medium, shape: tuple[int, ...], size: tuple[int, ...]) -> Medium:
    """Extends the arrays of a medium over the cells that only pad the arrays."""
    if size == shape:
        return medium

    def one(value):
        if value.ndim == 0:
            return value
        # The first extra sample may be the node of a magnetic wall: like its neighbour.
        more = [(0, new - old) for old, new in zip(shape, size, strict=True)]
        return jnp.pad(value, more, mode="edge")

    return eqx.tree_at(
        lambda m: [getattr(m, p) for p in PROPERTIES],
        medium,
        [jax.tree.map(one, getattr(medium, p)) for p in PROPERTIES],
        is_leaf=lambda x: x is None or isinstance(x, dict),
    )


def _silence(sim: Simulation) -> Array:
    """Returns the time after which no source is at work any more, in seconds."""
    ends = [jnp.zeros((), sim.dt.dtype)]
    for source in sim.sources.values():
        end = source.pulse.duration()
        if isinstance(source, PlaneWave):
            end = end + source.lead_time(sim.grid)
        ends.append(jnp.max(end).astype(sim.dt.dtype))
    return lax.stop_gradient(jnp.max(jnp.stack(ends)))


def _sampling(sim: Simulation, monitor: AbstractMonitor) -> Sampling:
    """Decimates spectral monitors as far as no source can alias into their band."""
    every = jnp.ones((), jnp.int32)
    if isinstance(monitor, AbstractSpectralMonitor) and sim.sources:
        highest = [source.pulse.highest_frequency() for source in sim.sources.values()]
        band = jnp.max(jnp.stack(highest)) + jnp.max(monitor.frequencies)
        every = jnp.maximum(jnp.floor(1 / (band * sim.dt)), 1).astype(jnp.int32)
        every = lax.stop_gradient(every)
    return Sampling(every, sim.dt)


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
    return State(fields, zero_psi(stepper, dtype), lines, monitors, peak, none)


def step(
    program: Program, state: State, n: Int[Array, ""], *, taped: bool = False
) -> State:
    """Advances a block by one step: H, then E, then the monitors.

    Args:
        program: The program.
        state: The state before the step.
        n: Number of the step.
        taped: Whether the step will be differentiated in reverse mode.

    Returns:
        The state after it.
    """

    def move(k, carry):
        return _move(program, k, *carry)

    carry = state.fields, state.psi, state.lines
    if taped or not program.monitors:
        carry = move(n, carry)
    else:
        # A loop of one turn. Without it XLA fuses the slices that monitors read with
        # the last update of a field, which then is no longer done in place: two copies
        # of a field in every step, five times the price of the monitors.
        carry = lax.fori_loop(n, n + 1, move, carry)
    fields, psi, lines = carry
    monitors = {}
    for name, monitor in program.monitors.items():
        read = partial(_read, program, name, fields)
        sampling = program.sampling[name]
        monitors[name] = monitor.update(state.monitors[name], read, n, sampling)
    done = jnp.asarray(n + 1, jnp.int32)
    return State(fields, psi, lines, monitors, state.peak, done)


def _move(program: Program, n, fields: Arrays, psi: Arrays, lines: dict):
    """Advances fields, layers and incident lines by one step."""
    stepper, dt = program.stepper, program.setup.dt
    stepper = eqx.tree_at(lambda s: s.block, stepper, stepper.block.within(n))
    rows, block, axes = stepper.rows, stepper.block, program.setup.axes
    now, between = Clock(2 * n, dt), Clock(2 * n + 1, dt)
    lines = dict(lines)
    for electric, clock, currents in (
        (False, now, program.magnetic),
        (True, between, program.electric),
    ):
        fields, psi = half_step(stepper, fields, psi, electric=electric)
        fields = inject(currents, fields, rows, block, clock)
        for name, line in program.lines.items():
            fields = line.correct(
                lines[name], fields, axes, rows, block, electric=electric
            )
            lines[name] = line.advance(lines[name], clock, electric=electric)
        fields, psi = lax.optimization_barrier((fields, psi))
    return fields, psi, lines


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
        for key, component, box in program.reads[name]
    }


def volumes(program: Program, component: str) -> Array:
    """Returns the volume around each sample of a component on this block."""
    ndim = program.stepper.components.ndim
    length = SPEED_OF_LIGHT * program.setup.dt
    volume = jnp.ones((1,) * ndim, length.dtype)
    for axis, half in enumerate(stagger(component, ndim)):
        rows = program.stepper.axes[axis]
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
    copy = eqx.tree_at(lambda p: (p.stepper.axes, p.stepper.rows), copy, (axes, rows))
    state = jax.eval_shape(lambda p: rest(p), program)
    blank = jax.tree.map(lambda _: everywhere, state)
    fields = {name: whole for name in state.fields}
    psi = {name: whole for name in state.psi}
    return copy, eqx.tree_at(lambda s: (s.fields, s.psi), blank, (fields, psi))
