"""Velocities whose components were stored on points of their own."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..particles import AbstractField, CGridField, Components, GriddedField
from ._netcdf_axes import PlannedAxis
from ._netcdf_variable import StoredVariable


class _Match(NamedTuple):
    """How faces and centres along one axis become cells between faces.

    Attributes:
        faces: Which faces, one more than cells or, around the globe, as many.
        centres: Which centres.
        places: Positions of those faces.
    """

    faces: np.ndarray
    centres: np.ndarray
    places: np.ndarray


def staggered_field(
    variables: Sequence[StoredVariable],
    samples: Sequence[np.ndarray],
    times: np.ndarray | None,
    options: Mapping[str, Any],
) -> tuple[AbstractField, tuple[np.ndarray, ...]]:
    """Makes a field of components that do not share their points.

    If each lies on the faces of cells around the points of the others, that is a
    `CGridField`, and samples that are missing at all times are closed faces. Otherwise
    each is interpolated on its own, and samples that are missing at all times are 0.
    Those that are missing at some times stay NaN.

    Args:
        variables: The components.
        samples: Their samples, `[*nodes]` or `[times, *nodes]`.
        times: The instants, or `None`.
        options: What both kinds of fields understand.

    Returns:
        The field, and for each axis the positions between which it has data.
    """
    lead = 0 if times is None else 1
    axes = [variable.axes for variable in variables]
    periods = tuple(axis.period for axis in axes[0])
    matches = _matches(axes)
    if matches is not None:
        components = []
        for number, values in enumerate(samples):
            for axis, match in enumerate(matches):
                picks = match.faces if axis == number else match.centres
                values = np.take(values, picks, lead + axis)
            components.append(values)
        edges = tuple(match.places for match in matches)
        return CGridField(components, edges, times, periods=periods, **options), edges
    parts = tuple(
        GriddedField(
            np.where(_ever(values, lead), values, 0).astype(values.dtype),
            [axis.positions for axis in own],
            times,
            periods=tuple(axis.period for axis in own),
            **options,
        )
        for values, own in zip(samples, axes, strict=True)
    )
    shared = []
    for places in zip(*axes, strict=True):
        low = max(axis.positions[0] for axis in places)
        high = min(axis.positions[-1] for axis in places)
        shared.append(np.array([low, high]))
    return Components(parts), tuple(shared)


def _ever(values: np.ndarray, lead: int) -> np.ndarray:
    """Whether there are data at any time, of the rank of the values."""
    return np.any(np.isfinite(values), tuple(range(lead)), keepdims=True)


def _matches(axes: Sequence[Sequence[PlannedAxis]]) -> list[_Match] | None:
    if any(len(own) != len(axes) for own in axes):
        return None
    found = []
    for number in range(len(axes)):
        faces = axes[number][number]
        others = [own[number] for k, own in enumerate(axes) if k != number]
        first = others[0].positions
        if any(not np.array_equal(first, o.positions) for o in others[1:]):
            return None
        match = _match(faces.positions, first, faces.period)
        if match is None:
            return None
        found.append(match)
    return found


def _match(
    faces: np.ndarray, centres: np.ndarray, period: float | None
) -> _Match | None:
    """Finds the centre between each pair of faces."""
    if period is not None:
        if faces.size != centres.size:
            return None
        order = np.argsort((centres - faces[0]) % period)
        places = faces[0] + (centres[order] - faces[0]) % period
        ends = np.append(faces, faces[0] + period)
        if not np.all((ends[:-1] < places) & (places < ends[1:])):
            return None
        return _Match(np.arange(faces.size), order, faces)
    order = np.flatnonzero((centres > faces[0]) & (centres < faces[-1]))
    cells = np.searchsorted(faces, centres[order]) - 1
    if not order.size or not np.all(np.diff(cells) == 1):
        return None
    if np.any(np.isin(centres[order], faces)):
        return None
    kept = np.arange(cells[0], cells[-1] + 2)
    return _Match(kept, order, faces[kept])
