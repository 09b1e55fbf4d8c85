"""How soon a particle of `physax track` may cross a cell of the data."""

from typing import NamedTuple

import numpy as np

from ..io import StoredField
from ..particles import CGridField, Components, OnSphere, SlipField


# Closer to a pole, cells count with their width at this latitude: the true one tends
# to 0.
_LAST_LATITUDE = 85.0


class Crossing(NamedTuple):
    """How a cell is crossed.

    Attributes:
        width: Of the cell along the axis, in metres or pascals.
        speed: The highest one there, in the same per second.
        unit: `"m"` or `"Pa"`.
        place: Where, in words that follow "at the highest speed".
    """

    width: float
    speed: float
    unit: str
    place: str


class _Samples(NamedTuple):
    """A component of a velocity.

    Attributes:
        values: Its samples, `[times, *places]` or `[*places]`; along its own axis they
            lie at the nodes, along another there or between them.
        nodes: For each axis the nodes, those of a period and its end, too.
        closed: For each axis whether the last node is the first one again.
    """

    values: np.ndarray
    nodes: list[np.ndarray]
    closed: list[bool]


def soonest_crossed(flow: StoredField) -> Crossing | None:
    """Finds the cell that is crossed soonest, along any axis.

    Each cell counts with its own width, and with the highest speed along this axis at
    its nodes at any time; on a sphere with the width at the latitude next to a pole.

    Args:
        flow: The velocity.

    Returns:
        The crossing, `None` where nothing moves from cell to cell.
    """
    found = [_along(flow, number) for number in range(flow.largest.size)]
    moving = [crossing for crossing in found if crossing is not None]
    return max(moving, key=lambda one: one.speed / one.width, default=None)


def _along(flow: StoredField, number: int) -> Crossing | None:
    """Finds the cell that is crossed soonest along one axis."""
    values, nodes, closed = _samples(flow, number)
    round_the_pole = flow.spherical and number == 0
    lead = values.ndim - len(nodes)
    kept = (lead, lead + 1) if round_the_pole else (lead + number,)
    speeds = _highest(values, kept, float(flow.largest[number]))
    if closed[number]:
        speeds = np.concatenate([speeds, speeds[:1]])
    # Between nodes the velocity is between those at both.
    speeds, widths = np.maximum(speeds[:-1], speeds[1:]), np.diff(nodes[number])
    unit = "m" if flow.spherical and number < 2 else flow.units[number]
    if flow.spherical and number < 2:
        widths = np.radians(widths) * float(flow.field.radius)  # pyright: ignore
    latitudes = np.zeros(1)
    if round_the_pole:
        latitudes, speeds = nodes[1], _at_nodes(speeds, nodes[1].size)
        capped = np.minimum(np.abs(latitudes), _LAST_LATITUDE)
        # Closer to a pole, where steps do not follow, the width is the last one.
        latitudes = np.copysign(capped, latitudes)
        widths = widths[:, None] * np.cos(np.radians(capped))
    if not speeds.any():
        return None
    soonest = np.unravel_index(np.argmax(speeds / widths), speeds.shape)
    place = ""
    if round_the_pole:
        place = f" at latitude {latitudes[soonest[1]]:.3g}"
    elif number == 2:
        middle = nodes[2][soonest[0] :][:2].mean()
        place = f" along {flow.names[2]} at {middle:.3g} {unit}"
    return Crossing(float(widths[soonest]), float(speeds[soonest]), unit, place)


def _samples(flow: StoredField, number: int) -> _Samples:
    field = flow.field.velocity if isinstance(flow.field, OnSphere) else flow.field
    if isinstance(field, SlipField):
        field = field.field
    if isinstance(field, CGridField):
        values, axes = field.components[number], field.edges
    elif isinstance(field, Components):
        part = field.parts[number]
        values, axes = part.values, part.axes  # pyright: ignore
    else:
        # Of NumPy's array it is a view, of JAX's it would be a copy.
        values = np.asarray(field.values)[..., number]  # pyright: ignore
        axes = field.axes  # pyright: ignore
    nodes = []
    for axis in axes:
        places = np.asarray(axis.positions(), float)
        if axis.period is not None:
            places = np.append(places, places[0] + float(axis.period))
        nodes.append(places)
    closed = [axis.period is not None for axis in axes]
    return _Samples(np.asarray(values), nodes, closed)


def _highest(values: np.ndarray, kept: tuple[int, ...], most: float) -> np.ndarray:
    """Returns the highest speed over all axes but some, 0 where there are no data."""
    others = tuple(axis for axis in range(values.ndim) if axis not in kept)
    # These pass over NaN, and need no copy of the samples.
    high, low = np.fmax.reduce(values, others), np.fmin.reduce(values, others)
    return np.minimum(np.nan_to_num(np.maximum(high, -low), posinf=np.inf), most)


def _at_nodes(speeds: np.ndarray, count: int) -> np.ndarray:
    """Returns the highest speed in the cells around each node, along the last axis.

    Args:
        speeds: At the nodes, or in the cells between them.
        count: The number of nodes.
    """
    padded = np.pad(speeds, ((0, 0), (1, 1)))
    beside = np.maximum(padded[:, :-1], padded[:, 1:])
    if speeds.shape[1] < count:
        return beside
    return np.maximum(beside[:, :-1], beside[:, 1:])
