"""A simulation made ready to step: coefficients, currents, and what monitors read."""

import dataclasses
from functools import partial
from itertools import product
from operator import mul

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from .._checks import ArgumentError
from .._loop import least
from ..grid import Block, Box, Layout
from ..runtime import default_platform
from ..units import SPEED_OF_LIGHT
from ._absorber import Absorber
from ._boundaries import Bloch, Periodic, reaches_layer
from ._boxes import cells_of, to_wall
from ._dispersion import Response, Responses, build_response
from ._fading import build_fade
from ._incident_line import IncidentLine
from ._injection import Injection
from ._layers import build_axis, stored_cells
from ._medium import PROPERTIES, REGIONAL, DesignRegion, Medium
from ._metal import Metal
from ._monitors import AbstractMonitor, AbstractSpectralMonitor, Read, Sampling
from ._plane_wave import PlaneWave
from ._pole_blocks import blocks_are_faster
from ._powers import Powers, build_powers
from ._row import Row, build_row, entries_in, faded
from ._setup import Setup
from ._simulation import Simulation
from ._stepper import Stepper
from ._tilt import Tilt, build_tilt, with_weights
from ._tilt_losses import corrected_for_losses


class Patch(eqx.Module):
    """Entries of a row in a design region; `None` where the region has none."""

    box: Box = eqx.field(static=True)
    inertia: Array | None
    loss: Array | None


class Program(eqx.Module):
    """A simulation made ready to step.

    Attributes:
        stepper: Coefficients of the whole grid, or of one block inside `shard_map`.
        patches: What the design regions put into the rows, by component; none in a
            program that is `ready`.
        responses: The poles of dispersive media, by component.
        tilts: The off-diagonal entries of tensors.
        powers: The nonlinear cells.
        electric: Currents of the electric half steps.
        magnetic: Currents of the magnetic half steps.
        lines: Incident waves.
        monitors: By name.
        reads: What each monitor reads.
        setup: The simulation as sources and monitors see it.
        sampling: How often each monitor is updated.
        silent: Number of steps after which no source is at work any more.
        watch: Steps between looks at the energy for `State.peak`; `None` for never.
        layout: The devices, or `None`.
        dtype: Type of the fields.
        accumulate: Real type of what the monitors add up.
        blocks: Whether poles are brought up to date once in a block of steps.
    """

    stepper: Stepper
    patches: dict[str, tuple[Patch, ...]]
    responses: dict[str, tuple[Response, ...]]
    tilts: tuple[Tilt, ...]
    powers: tuple[Powers, ...]
    electric: list[Injection]
    magnetic: list[Injection]
    lines: dict[str, IncidentLine]
    monitors: dict[str, AbstractMonitor]
    reads: dict[str, tuple[Read, ...]] = eqx.field(static=True)
    setup: Setup
    sampling: dict[str, Sampling]
    silent: Int[Array, ""]
    watch: int | None = eqx.field(static=True)
    layout: Layout | None = eqx.field(static=True)
    dtype: str = eqx.field(static=True)
    accumulate: str = eqx.field(static=True)
    blocks: bool = eqx.field(static=True)


def one_by_one(program: Program) -> Program:
    """Returns the program with poles brought up to date in each step.

    Blocks are made by loops of a traced number of turns, which have no reverse mode.
    """
    return dataclasses.replace(program, blocks=False)


def ready(program: Program) -> Program:
    """Returns the program with design regions and poles in its rows."""
    rows, bare = {}, {}
    for name, row in program.stepper.rows.items():
        whole = row.inertia, row.loss
        for patch in program.patches.get(name, ()):
            new = patch.inertia, patch.loss
            whole = tuple(map(partial(_patched, program, patch.box), whole, new))
        bare[name] = whole[0]
        for one in program.responses.get(name, ()):
            inertia = jnp.broadcast_to(whole[0], _whole_shape(program))
            whole = inertia.at[cells_of(one.box)].add(one.inertia()), whole[1]
        rows[name] = Row(*whole).quotients()  # pyright: ignore[reportArgumentType]
    names = program.stepper.components.electric
    plain = not program.responses and all(rows[name].loss is None for name in names)
    tilts = tuple(with_weights(one, bare, plain=plain) for one in program.tilts)
    return eqx.tree_at(
        lambda p: (p.stepper.rows, p.patches, p.tilts), program, (rows, {}, tilts)
    )


def _patched(program: Program, box: Box, base, value):
    if value is None:
        return base
    base = jnp.zeros((), value.dtype) if base is None else base
    return jnp.broadcast_to(base, _whole_shape(program)).at[cells_of(box)].set(value)


def _whole_shape(program: Program) -> tuple[int, ...]:
    block = program.stepper.block
    return tuple(map(mul, block.shape, block.parts))


def build_program(
    sim: Simulation, layout: Layout | None = None, watch: int | None = None
) -> Program:
    """Builds a program that is ready to step; see `outline`."""
    return ready(outline(sim, layout, watch))


def outline(
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
    grid, parts = sim.grid, sim.components
    stored = stored_cells(grid, sim.boundaries)
    storage = jnp.dtype(sim.precision.storage)
    dtype = jnp.result_type(storage, jnp.complex64) if sim.complex_fields else storage
    block = _build_block(sim, layout, stored, dtype)
    size = tuple(map(mul, block.shape, block.parts))
    cast = partial(_cast, dtype=storage)
    axes = tuple(
        cast(build_axis(grid, sim.boundaries, axis, sim.dt, cells, count, parts.m))
        for axis, (cells, count) in enumerate(zip(size, block.parts, strict=True))
    )
    medium = cast(_padded(sim.medium, grid.shape, size))
    rows, patches = cast(_rows(sim, medium, stored, size))
    setup = Setup(
        grid,
        parts,
        sim.medium,
        axes,
        sim.dt,
        block.phase,
        sim.steps,
        sim.boundaries,
    )
    responses, tilts, powers = cast(_extras(sim, stored, block))
    both = cast(corrected_for_losses(tilts, rows, responses, size))
    tilts = tuple(one for one, _ in both)
    for one, inertias in both:
        for name, value in inertias.items():
            patches[name] = (*patches[name], Patch(one.cells, value, None))
    lines, currents = {}, []
    for name, source in sim.sources.items():
        if isinstance(source, PlaneWave):
            lines[name] = source.companion(sim.place(name), setup)
        else:
            currents += source.injections(sim.place(name), setup)
    return Program(
        Stepper(parts, block, axes, rows),
        patches,
        responses,
        tilts,
        powers,
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
        # On a GPU a loop of one turn or none costs more than is won.
        default_platform() == "cpu" and blocks_are_faster(sim.medium.dispersions),
    )


def _rows(
    sim: Simulation, medium: Medium, stored: tuple[int, ...], size: tuple[int, ...]
) -> tuple[dict[str, Row], dict[str, tuple[Patch, ...]]]:
    """Returns the rows of the medium, absorbers included, and those of its regions.

    Args:
        sim: The simulation.
        medium: Its medium, padded.
        stored: Cells of the grid with the nodes on magnetic walls.
        size: The same, padded.
    """
    length, shape = SPEED_OF_LIGHT * sim.dt, sim.grid.shape
    regions = [_to_wall(one, shape, stored) for one in sim.medium.regions]
    rows, patches = {}, {}
    for name in sim.components.names:
        row, fade = build_row(medium, name, length), build_fade(sim, name, size)
        rows[name] = faded(row, fade)
        if name[0] == "E":
            own = []
            for region in regions:
                meets = reaches_layer(sim.boundaries, region.box, stored, Absorber)
                absorber = None if fade is None or not meets else (row, fade)
                own.append(_patch(region, name, length, medium, absorber))
            patches[name] = tuple(own)
    return rows, patches


def _build_block(
    sim: Simulation, layout: Layout | None, stored: tuple[int, ...], dtype
) -> Block:
    """Cuts the grid over the devices of a layout, and tells how its ends meet."""
    axes = range(sim.grid.ndim)
    size = stored if layout is None else layout.padded_shape(stored)
    counts = tuple(1 if layout is None else layout.parts(axis) for axis in axes)
    names = tuple(None if layout is None else layout.names[axis] for axis in axes)
    faces = [sim.boundaries.axis(axis)[0] for axis in axes]
    wraps = tuple(isinstance(face, Periodic | Bloch) for face in faces)
    for axis in axes:
        if wraps[axis] and size[axis] != stored[axis]:
            raise ArgumentError(
                f"`grid` along the periodic axis {sim.components.axes[axis]} must be a "
                f"multiple of {counts[axis]}, the number of devices, but has "
                f"{stored[axis]} cells."
            )
    phases = tuple(
        jnp.exp(1j * face.wavevector * sim.grid.size(axis)).astype(dtype)
        if isinstance(face, Bloch)
        else None
        for axis, face in enumerate(faces)
    )
    local = tuple(cells // count for cells, count in zip(size, counts, strict=True))
    return Block(local, names, counts, wraps, phases)


def _extras(sim: Simulation, stored: tuple[int, ...], block: Block) -> tuple:
    """Returns poles, tilts and nonlinear cells: what media have in boxes of cells."""
    medium, shape, names = sim.medium, sim.grid.shape, sim.components.electric
    poles, metal = medium.dispersions, medium.metal
    poles = poles if metal is None else tuple(map(metal.poles, poles))
    # A component without poles has no entry.
    responses: Responses = {}
    for one, name in product(poles, names):
        if one.covers(name):
            made = build_response(one, name, sim.dt, shape, stored, block)
            responses[name] = (*responses.get(name, ()), made)
    tilts = tuple(
        build_tilt(one, shape, stored, sim.boundaries, block)
        for one in medium.off_diagonals
    )
    powers = [build_powers(one, sim, stored, block) for one in medium.nonlinearities]
    return responses, tilts, tuple(powers)


def _to_wall(
    region: DesignRegion, shape: tuple[int, ...], stored: tuple[int, ...]
) -> DesignRegion:
    """Extends a region that ends at a magnetic wall over the node on the wall."""
    box, more = to_wall(region.box, shape, stored)
    if box == region.box:
        return region

    def one(value):
        return jnp.pad(value, more, mode="edge")

    values = (jax.tree.map(one, getattr(region, prop)) for prop in REGIONAL)
    return DesignRegion(box, *values)


def _patch(
    region: DesignRegion,
    name: str,
    step_length: Array,
    medium: Medium,
    absorber: tuple[Row, Array] | None,
) -> Patch:
    """Returns the entries of a row that a design region gives.

    Args:
        region: The region.
        name: The component.
        step_length: `c dt` in metres.
        medium: The medium.
        absorber: If the region reaches one, the row of the medium, and `build_fade`.
    """
    metal = medium.metal
    row = build_row(
        Medium(
            1.0 if region.permittivity is None else region.permittivity,
            conductivity=region.conductivity,
            metal=None if metal is None else metal.cut(region.box),
        ),
        name,
        step_length,
    )
    inertia = None if region.permittivity is None else row.inertia
    if absorber is None:
        return Patch(region.box, inertia, row.loss)
    # An absorber keeps the impedance of what it meets: the medium and the region.
    base, fade = absorber
    m = entries_in(base.inertia, region.box) if inertia is None else inertia
    s = row.loss
    if s is None and base.loss is not None:
        s = entries_in(base.loss, region.box)
    own = faded(Row(m, s), fade[cells_of(region.box)])
    return Patch(region.box, inertia, own.loss)


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

    names = (*PROPERTIES, "metal")
    return eqx.tree_at(
        lambda m: [getattr(m, p) for p in names],
        medium,
        [jax.tree.map(one, getattr(medium, p)) for p in names],
        is_leaf=lambda x: x is None or isinstance(x, dict | Metal),
    )


def _silence(sim: Simulation) -> Array:
    """Returns the number of steps after which no source is at work any more."""
    ends = [jnp.zeros((), sim.dt.dtype)]
    for source in sim.sources.values():
        end = source.pulse.duration()
        if isinstance(source, PlaneWave):
            end = end + source.lead_time(sim.grid)
        ends.append(jnp.max(end).astype(sim.dt.dtype))
    steps = jnp.ceil(lax.stop_gradient(jnp.max(jnp.stack(ends)) / sim.dt))
    # The largest number of float32 below 2^31.
    return jnp.minimum(steps, 2.0**31 - 128).astype(jnp.int32)


def _sampling(sim: Simulation, monitor: AbstractMonitor) -> Sampling:
    """Decimates spectral monitors as far as no source can alias into their band."""
    every = jnp.ones((), jnp.int32)
    # The band of the sources says nothing of the harmonics of a nonlinear medium.
    linear = not sim.medium.nonlinearities
    if isinstance(monitor, AbstractSpectralMonitor) and sim.sources and linear:
        highest = [source.pulse.highest_frequency() for source in sim.sources.values()]
        band = jnp.max(jnp.stack(highest)) + jnp.max(monitor.frequencies)
        every = jnp.maximum(jnp.floor(1 / (band * sim.dt)), 1).astype(jnp.int32)
        # A condition that differs within a batch has no reverse mode.
        every = least(lax.stop_gradient(every))
    return Sampling(every, sim.dt)
