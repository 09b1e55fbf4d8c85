"""Where sources and monitors lie in a simulation, in metres."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from ..em import (
    AbstractMonitor,
    AbstractSource,
    Apodised,
    Dipole,
    FluxMonitor,
    ForceMonitor,
    GaussianBeam,
    HuygensSource,
    ModeMonitor,
    ModeSource,
    PlaneWave,
    Port,
    Simulation,
)
from ..em._frame import check_point
from ..em._monitors import Read
from ..grid import Grid


class Mark(NamedTuple):
    """A box in a picture.

    Attributes:
        name: Of the source or monitor.
        low: Low corner in metres; equal to the high one along an axis without extent.
        high: High corner.
        direction: Number of an axis, and 1 up it or -1 down it; `None` for none.
    """

    name: str
    low: np.ndarray
    high: np.ndarray
    direction: tuple[int, int] | None = None


def source_marks(sim: Simulation) -> list[Mark]:
    """Lists where the sources lie."""
    found = (_of_source(s, name, sim) for name, s in sim.sources.items())
    return [mark for mark in found if mark is not None]


def port_marks(ports: Mapping[str, Port], sim: Simulation) -> list[Mark]:
    """Lists where ports lie, with the way into the device."""
    for name, port in ports.items():
        check_point(port.centre, sim.grid.ndim, "centre", f"port {name!r}")
    return [_of_port(port, name, sim) for name, port in ports.items()]


def monitor_marks(sim: Simulation) -> list[Mark]:
    """Lists where the monitors lie; those of the whole grid are left out."""
    marks = []
    for name, monitor in sim.monitors.items():
        reads = sim.place(name)
        if isinstance(reads, tuple) and all(isinstance(r, Read) for r in reads):
            boxes = [_extent(r, sim) for r in reads if len(r.box)]
            if boxes:
                low = np.min([box[0] for box in boxes], axis=0)
                high = np.max([box[1] for box in boxes], axis=0)
                # Components of one cell lie half a cell apart: still a single place,
                # while two faces of a box are not.
                thin = np.all([box[0] == box[1] for box in boxes], axis=0)
                thin &= high - low <= _widest(sim.grid)
                low, high = (np.where(thin, (low + high) / 2, v) for v in (low, high))
                marks.append(
                    _of_monitor(monitor, Mark(name, low, high), sim.components.axes)
                )
    return marks


def grid_bounds(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Returns the corners of the grid in metres."""
    edges = [np.asarray(grid.edges(axis)) for axis in range(grid.ndim)]
    return np.array([e[0] for e in edges]), np.array([e[-1] for e in edges])


def _widest(grid: Grid) -> np.ndarray:
    return np.array([np.max(grid.cell_widths(axis)) for axis in range(grid.ndim)])


def _extent(read: Read, sim: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Returns the corners of the samples of a read."""
    grid = sim.grid
    low, high = grid_bounds(grid)
    halves = sim.components.stagger(read.component)
    for axis, (start, stop) in enumerate(read.box):
        points = np.asarray(grid.centres(axis) if halves[axis] else grid.edges(axis))
        around = points[start:stop]
        if stop - start > 1:
            # Samples stand for the cells around them.
            widths = np.asarray(grid.cell_widths(axis))
            half = widths[min(start, len(widths) - 1)] / 2
            low[axis] = max(low[axis], around[0] - half)
            half = widths[min(stop - 1, len(widths) - 1)] / 2
            high[axis] = min(high[axis], around[-1] + half)
        else:
            low[axis] = high[axis] = around[0]
    return low, high


def _clipped(grid: Grid, name: str, centre, size, direction) -> Mark:
    bounds = grid_bounds(grid)
    # An infinite size leaves only the bounds.
    half = np.asarray(size) / 2
    low = np.clip(np.asarray(centre) - half, *bounds)
    high = np.clip(np.asarray(centre) + half, *bounds)
    return Mark(name, low, high, direction)


def _of_port(port: Port, name: str, sim: Simulation) -> Mark:
    axis = sim.components.axes.index(port.direction[1])
    size = np.insert(port.widths(sim.grid.ndim - 1), axis, 0.0)
    return _clipped(sim.grid, name, port.centre, size, (axis, port.sign))


@singledispatch
def _of_source(source: AbstractSource, name: str, sim: Simulation) -> Mark | None:
    # A kind of source that this file does not know is left out of the picture.
    del source, name, sim
    return None


@_of_source.register
def _(source: Dipole, name: str, sim: Simulation) -> Mark:
    position = np.ravel(np.asarray(source.position, float))
    axes, own = sim.components.axes, source.component[1]
    # The moment points out of the grid where that lacks the axis.
    direction = (axes.index(own), 1) if own in axes else None
    return Mark(name, position, position, direction)


@_of_source.register(ModeSource)
@_of_source.register(GaussianBeam)
def _(source: ModeSource | GaussianBeam, name: str, sim: Simulation) -> Mark:
    return _of_port(source.port, name, sim)


@_of_source.register
def _(source: PlaneWave, name: str, sim: Simulation) -> Mark:
    sign = 1 if source.direction[0] == "+" else -1
    centre, size = (np.ravel(np.asarray(v)) for v in (source.centre, source.size))
    return _clipped(sim.grid, name, centre, size, (source.axis, sign))


@_of_source.register
def _(source: HuygensSource, name: str, sim: Simulation) -> Mark:
    axes = sim.components.axes
    faces, near = source.near.faces, source.near.coordinates
    # E lies on the faces, H half a cell outside of them.
    ends = [
        [(x[0], x[-1]) for x in map(np.asarray, points)]
        for key, points in near.items()
        if key[0] == "E"
    ]
    low, high = np.min(ends, axis=(0, 2)), np.max(ends, axis=(0, 2))
    (sign, axis), *others = faces
    direction = None if others else (axes.index(axis), 1 if sign == "+" else -1)
    return Mark(name, low, high, direction)


@singledispatch
def _of_monitor(monitor: AbstractMonitor, mark: Mark, axes: tuple[str, ...]) -> Mark:
    del monitor, axes
    return mark


def _flat(mark: Mark, axis: int, direction: Any = None) -> Mark:
    """Puts a mark on the plane in the middle of its samples."""
    low, high = mark.low.copy(), mark.high.copy()
    low[axis] = high[axis] = (low[axis] + high[axis]) / 2
    return Mark(mark.name, low, high, direction)


@_of_monitor.register
def _(monitor: FluxMonitor, mark: Mark, axes: tuple[str, ...]) -> Mark:
    axis = axes.index(monitor.axis)
    return _flat(mark, axis, (axis, 1))


@_of_monitor.register
def _(monitor: Apodised, mark: Mark, axes: tuple[str, ...]) -> Mark:
    return _of_monitor(monitor.monitor, mark, axes)


@_of_monitor.register
def _(monitor: ForceMonitor, mark: Mark, axes: tuple[str, ...]) -> Mark:
    del axes
    # The samples beside its faces are read, too.
    centre, half = np.asarray(monitor.centre), np.asarray(monitor.size) / 2
    low, high = (
        np.maximum(mark.low, centre - half),
        np.minimum(mark.high, centre + half),
    )
    return mark._replace(low=low, high=high)


@_of_monitor.register
def _(monitor: ModeMonitor, mark: Mark, axes: tuple[str, ...]) -> Mark:
    return _flat(mark, axes.index(monitor.port.direction[1]))
