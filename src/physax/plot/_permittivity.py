"""The permittivity of a simulation, as a picture shows it."""

from typing import NamedTuple

import numpy as np

from .._checks import ArgumentError
from ..em import Material, Simulation, complex_permittivity
from ._samples import edges_around


class Picture(NamedTuple):
    """Values and the borders of the cells that they stand for.

    Attributes:
        values: The axes are those of the grid.
        borders: For each axis the borders in metres.
        label: What the values are.
        metal: The part of each cell that is perfect metal; `None` where there is none.
    """

    values: np.ndarray
    borders: list[np.ndarray]
    label: str
    metal: np.ndarray | None = None


def permittivity_picture(sim: Simulation, component: str | None) -> Picture:
    """Returns the permittivity that one electric component sees.

    Args:
        sim: The simulation.
        component: Which, where each has its own; the last of them if `None`.

    Returns:
        The picture. A permittivity given as one array fills the cells of the grid; one
        given by component is around the points of the component.

    Raises:
        ArgumentError: If the component does not exist.
    """
    electric = sim.components.electric
    if component is not None and component not in electric:
        raise ArgumentError(
            f"`component` must be one of {electric}, but is {component!r}."
        )
    grid, given = sim.grid, sim.medium.merged(sim.grid.shape).permittivity
    metal = sim.medium.metal
    edges = [np.asarray(grid.edges(axis)) for axis in range(grid.ndim)]
    given, at = _with_poles(sim, given)
    # A longer one does not fit beside a low picture.
    label = f"permittivity, {at}" if at else "relative permittivity"
    if metal is not None and not isinstance(given, dict):
        given = dict.fromkeys(electric, given)
    if not isinstance(given, dict):
        return Picture(_filled(given, grid.shape), edges, label)
    component = electric[-1] if component is None else component
    values = _filled(given[component], grid.shape)[None]
    if metal is not None:
        covered = 1 - np.asarray(metal.open[component])
        values = np.concatenate([values, covered[None]])
    borders = []
    for axis, half in enumerate(sim.components.stagger(component)):
        if half:
            borders.append(edges[axis])
            continue
        # The node behind the last cell is not stored: it repeats the one before.
        last = np.take(values, [-1], axis=axis + 1)
        values = np.concatenate([values, last], axis=axis + 1)
        borders.append(edges_around(edges[axis]))
    covered = None if metal is None else values[1]
    label += f", {component}" if at else f" at {component}"
    return Picture(values[0], borders, label, covered)


def _with_poles(sim: Simulation, given):
    """Returns the permittivity with what poles add to its real part, and where."""
    dispersions = sim.medium.dispersions
    if not dispersions:
        return given, ""
    if not sim.sources:
        return given, "high frequencies"
    frequency = next(iter(sim.sources.values())).pulse.frequency
    added = {}
    for name in sim.components.electric:
        base = given[name] if isinstance(given, dict) else given
        whole = np.array(_filled(base, sim.grid.shape), float)
        for one in dispersions:
            if not one.covers(name):
                continue
            alone = complex_permittivity(Material(poles=one.poles), frequency)
            chi = np.real(np.asarray(alone)) - 1
            cells = tuple(slice(low, high) for low, high in one.box)
            whole[cells] += np.asarray(one.at(name)) * chi
        added[name] = whole
    return added, f"{float(frequency) / 1e12:.4g} THz"


def _filled(value, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.asarray(value), shape)
