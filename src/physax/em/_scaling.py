"""What a step costs on each device of a mesh, which need not be at hand."""

import math
from collections.abc import Sequence
from itertools import product

import jax.numpy as jnp

from .._checks import ArgumentError
from ..grid import AXES, Layout
from ..runtime import (
    Machine,
    Scaling,
    StepCost,
    predict_scaling as predict_any,
    step_seconds,
)
from ._boundaries import Bloch, Periodic, absorbing_axes, layer_cells
from ._components import Components
from ._cpml import CPML
from ._layers import stored_cells
from ._march import watch_every
from ._medium import REGIONAL
from ._medium_checks import beyond_scalars
from ._memory import row_shapes
from ._row import Row
from ._simulation import Simulation


def step_cost(
    sim: Simulation,
    blocks: Layout | tuple[int, ...],
    shape: tuple[int, ...] | None = None,
) -> StepCost:
    r"""Counts what one device does in a step of a simulation that is cut into blocks.

    A device with neighbours on all sides sends for each cut axis one plane of each
    component that a curl differences along it, $p$ of them: 4 in 3-D, else 2. With
    blocks of $n_a$ cells and $b$ bytes for each sample these are

    $$H = b\,p \sum_{a\ \mathrm{cut}} \prod_{c \ne a} n_c$$

    bytes in $p$ messages for each cut axis. Absorbing layers send nothing: their memory
    stays in the blocks that they may reach. But all blocks step layers of one thickness
    along an axis, those in the middle of the grid too.

    Flops and bytes count one pass over the arrays for each component (it, the two that
    drive it, its material arrays) and two for each memory of a layer. Monitors, sources
    and what happens once in a run are left out. A gradient by `LinearTape` sends twice
    as much as the run, by `Checkpointed` three times.

    Args:
        sim: The simulation. Of its medium only matters which properties vary from cell
            to cell.
        blocks: Number of blocks along each axis, or a layout.
        shape: Cells of another grid, with the same faces and kind of medium.

    Returns:
        The cost.

    Raises:
        ArgumentError: If `blocks` or `shape` do not fit to the grid, a periodic axis
            does not fall into equal blocks, or the medium has poles, nonlinear
            susceptibilities or off-diagonal entries.
    """
    if sim.cylindrical is not None:
        raise ArgumentError(
            "`sim` must not be in cylindrical coordinates, whose steps are not "
            f"counted, but has {sim.cylindrical}."
        )
    if found := beyond_scalars(sim.medium):
        raise ArgumentError(
            "`sim` must have a linear medium without poles whose principal axes run "
            f"along the grid, but its medium has {found}, whose steps are not counted. "
            "Leave them out to count the rest."
        )
    ndim = sim.grid.ndim
    shape = sim.grid.shape if shape is None else shape
    counts = (
        tuple(map(blocks.parts, range(ndim))) if isinstance(blocks, Layout) else blocks
    )
    _check_counts("shape", shape, ndim)
    _check_counts("blocks", counts, ndim)
    local = _block_shape(sim, counts, shape)
    parts = sim.components
    storage = jnp.dtype(sim.precision.storage)
    field = jnp.result_type(storage, jnp.complex64) if sim.complex_fields else storage
    item, sample = storage.itemsize, field.itemsize
    rows = row_shapes(sim)
    slabs = _slabs(sim, counts, shape, local)
    flops, moved = _of_cells(parts, rows, math.prod(local), sample, item)
    held = len(parts.names) * sample + _properties(sim, rows) * item
    held *= math.prod(local)
    for terms in (parts.magnetic_terms, parts.electric_terms):
        for term in terms:
            thick = sum(slabs[term.axis])
            cells = math.prod(local) // local[term.axis] * thick
            fused = ndim == 3 and term.axis == ndim - 1
            arrays = _arrays(rows[term.target])
            # Recursion 3, stretched 2, metric 1, drive 1 and sum 1; fused, the update
            # has metric and drive.
            flops += cells * (6 if fused else 8)
            passes = 4 if fused else 6
            moved += cells * (passes * sample + (0 if fused else arrays * item))
            held += cells * sample
    planes = {term[1:3] for term in (*parts.magnetic_terms, *parts.electric_terms)}
    cut = [axis for axis, _ in planes if counts[axis] > 1]
    halo = sum(math.prod(local) // local[axis] for axis in cut) * sample
    watch = watch_every(sim, None, steps=sim.steps)
    looks = 0.0 if watch is None or math.prod(counts) == 1 else 1 / watch
    return StepCost(
        blocks=counts,
        cells=math.prod(shape) / math.prod(counts),
        flops=flops * (1 + sim.complex_fields),
        memory_bytes=moved,
        held_bytes=held,
        messages=len(cut),
        halo_bytes=halo,
        reductions=looks,
        reduced_bytes=looks * jnp.dtype(sim.precision.accumulate).itemsize,
    )


def predict_scaling(
    sim: Simulation,
    machine: Machine,
    devices: Sequence[int] | None = None,
    *,
    weak: bool = False,
    shape: tuple[int, ...] | None = None,
) -> Scaling:
    """Predicts the time of a step of a simulation on up to thousands of devices.

    Needs none of them. For each number of devices it takes the fastest way to cut the
    grid; in weak scaling, the one that keeps the whole grid nearest to a cube.

    Args:
        sim: The simulation; in weak scaling the share of each device.
        machine: The devices and links.
        devices: The numbers of devices; powers of two up to 1,024 by default.
        weak: Whether the grid grows with the devices.
        shape: Cells of another grid, with the same faces and kind of medium: for what
            is too large to be built here.

    Returns:
        A table of meshes, cells and bytes of each device, times and efficiencies.

    Raises:
        ArgumentError: If a number of devices cuts the grid in no way, or no link of the
            machine reaches all devices.
    """
    shape = sim.grid.shape if shape is None else shape
    _check_counts("shape", shape, sim.grid.ndim)

    def grown(blocks: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n * b for n, b in zip(shape, blocks, strict=True))

    def cost(count: int) -> StepCost:
        ways = _ways(count, len(shape))
        if weak:
            near = min(ways, key=lambda blocks: sum(grown(blocks)))
            return step_cost(sim, near, grown(near))
        costs = [step_cost(sim, way, shape) for way in ways if _fits(sim, way, shape)]
        if not costs:
            raise ArgumentError(
                f"`devices` must cut the grid of shape {shape} into blocks of at least "
                f"one cell, equal along periodic axes, but has {count}."
            )
        return min(costs, key=lambda one: sum(step_seconds(one, machine)))

    return predict_any(cost, machine, devices)


def _of_cells(
    parts: Components, rows: dict[str, Row], cells: int, sample: int, item: int
) -> tuple[int, int]:
    """Counts flops, and bytes moved, for the plain update of a block."""
    flops, moved = 0, 0
    for terms, names in (
        (parts.magnetic_terms, parts.magnetic),
        (parts.electric_terms, parts.electric),
    ):
        for name in names:
            own = [term for term in terms if term.target == name]
            arrays = _arrays(rows[name])
            # A difference and its metric for each term, the sum of the terms, and the
            # row: field + curl / m, or ((m - s) field + curl) / (m + s).
            row = 2 if rows[name].loss is None else 3 if arrays == 0 else 5
            flops += cells * (3 * len(own) - 1 + row)
            moved += cells * ((2 + len(own)) * sample + arrays * item)
    return flops, moved


def _arrays(row: Row) -> int:
    """Counts the entries of a row that vary from cell to cell."""
    return sum(x is not None and x.ndim > 0 for x in (row.inertia, row.loss))


def _properties(sim: Simulation, rows: dict[str, Row]) -> int:
    """Counts the arrays of the medium, which isotropic components share."""
    found = 0
    for letter, inertia, loss in (
        ("E", "permittivity", "conductivity"),
        ("H", "permeability", "magnetic_conductivity"),
    ):
        own = [row for name, row in rows.items() if name[0] == letter]
        for prop, entries in (
            (inertia, [row.inertia for row in own]),
            (loss, [row.loss for row in own]),
        ):
            regions = sim.medium.regions if prop in REGIONAL else ()
            values = [getattr(part, prop) for part in (sim.medium, *regions)]
            arrays = sum(x is not None and x.ndim > 0 for x in entries)
            apart = any(isinstance(value, dict) for value in values)
            apart = apart or sim.medium.metal is not None
            # Losses of absorbers lie where each component is sampled.
            absorbs = bool(absorbing_axes(sim.boundaries, sim.grid.ndim))
            apart = apart or (absorbs and "conductivity" in prop)
            found += arrays if apart else min(arrays, 1)
    return found


def _slabs(
    sim: Simulation,
    counts: tuple[int, ...],
    shape: tuple[int, ...],
    local: tuple[int, ...],
) -> list[tuple[int, int]]:
    """Returns the thickness of the layers in each block, low and high, by axis."""
    found = []
    for axis, size in enumerate(local):
        low, high = layer_cells(sim.boundaries, axis, CPML)
        padding = size * counts[axis] - shape[axis]
        found.append((min(low, size), min(high + padding, size) if high else 0))
    return found


def _block_shape(
    sim: Simulation, counts: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Returns the cells of a block, padding included."""
    more = [
        stored - cells
        for stored, cells in zip(
            stored_cells(sim.grid, sim.boundaries), sim.grid.shape, strict=True
        )
    ]
    for axis, (cells, count) in enumerate(zip(shape, counts, strict=True)):
        if count > cells:
            raise ArgumentError(
                f"`blocks` along {AXES[axis]} must be at most {cells}, the number of "
                f"cells, but is {count}."
            )
        if cells % count and _wraps(sim, axis):
            raise ArgumentError(
                f"`shape` along the periodic axis {AXES[axis]} must be a multiple of "
                f"{count}, the number of blocks, but is {cells}."
            )
    return tuple(
        -(-(cells + extra) // count)
        for cells, extra, count in zip(shape, more, counts, strict=True)
    )


def _wraps(sim: Simulation, axis: int) -> bool:
    return isinstance(sim.boundaries.axis(axis)[0], Periodic | Bloch)


def _fits(sim: Simulation, blocks: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(
        count <= cells and not (cells % count and _wraps(sim, axis))
        for axis, (cells, count) in enumerate(zip(shape, blocks, strict=True))
    )


def _ways(count: int, ndim: int) -> list[tuple[int, ...]]:
    """Lists the ways to arrange devices along the axes."""
    # Most along the first axis first: its planes lie in one piece, where else equal.
    divisors = [d for d in range(count, 0, -1) if count % d == 0]
    heads = product(divisors, repeat=ndim - 1)
    return [
        (*head, count // math.prod(head))
        for head in heads
        if count % math.prod(head) == 0
    ]


def _check_counts(name: str, values: tuple[int, ...], ndim: int) -> None:
    if len(values) != ndim or any(value < 1 for value in values):
        raise ArgumentError(
            f"`{name}` must have {ndim} entries of at least 1, but is {values}."
        )
