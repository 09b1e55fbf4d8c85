"""The permittivity of a simulation, as a picture shows it."""

from typing import NamedTuple

import numpy as np

from .._checks import ArgumentError
from ..em import Simulation
from ..em._components import components, stagger
from ._samples import edges_around


class Picture(NamedTuple):
    """Values and the borders of the cells that they stand for.

    Attributes:
        values: The axes are those of the grid.
        borders: For each axis the borders in metres.
        label: What the values are.
    """

    values: np.ndarray
    borders: list[np.ndarray]
    label: str


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
    electric = components(sim.grid.ndim, sim.polarisation).electric
    if component is not None and component not in electric:
        raise ArgumentError(
            f"`component` must be one of {electric}, but is {component!r}."
        )
    grid, given = sim.grid, sim.medium.merged(sim.grid.shape).permittivity
    edges = [np.asarray(grid.edges(axis)) for axis in range(grid.ndim)]
    label = "relative permittivity"
    if not isinstance(given, dict):
        return Picture(_filled(given, grid.shape), edges, label)
    component = electric[-1] if component is None else component
    values = _filled(given[component], grid.shape)
    borders = []
    for axis, half in enumerate(stagger(component, grid.ndim)):
        if half:
            borders.append(edges[axis])
            continue
        # The node behind the last cell is not stored: it repeats the one before.
        last = np.take(values, [-1], axis=axis)
        values = np.concatenate([values, last], axis=axis)
        borders.append(edges_around(edges[axis]))
    return Picture(values, borders, f"{label} at {component}")


def _filled(value, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.asarray(value), shape)
