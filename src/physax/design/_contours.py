"""The contours of a design: closed polygons for fabricators and solvers."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import ArrayLike, Float

from .._checks import ArgumentError, instance, kind_of, refuse_traced
from .._known_number import known_number
from ._argument_checks import as_sequence
from ._filters import each_axis, known_spacing
from ._loops import Loop, meetings, parents, signed_area
from ._marching_squares import level_loops
from ._simplified_loops import simplified_loops


_NO_AREA = 1e-14
"""An area that is rounding, in parts of the square around a loop."""


def _checked(points: ArrayLike | Sequence, name: str, sign: int) -> Loop:
    """Returns a loop that runs the right way around, and has an area."""
    try:
        loop = np.asarray(points, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"`{name}` must be points (x, y), but is not: {error}."
        ) from error
    if loop.ndim != 2 or loop.shape[1] != 2 or len(loop) < 3:
        raise ArgumentError(
            f"`{name}` must have shape (n, 2) with n at least 3, but has shape "
            f"{loop.shape}."
        )
    if not np.all(np.isfinite(loop)):
        raise ArgumentError(
            f"`{name}` must be finite, but has {loop[~np.isfinite(loop)][0]:g}."
        )
    area = signed_area(loop)
    if abs(area) <= _NO_AREA * float(np.ptp(loop, axis=0).max()) ** 2:
        # A loop that crosses itself in its middle has none either.
        crossing = ", and cross themselves" if len(meetings([loop])) else ""
        raise ArgumentError(
            f"`{name}` must have an area, but its {len(loop)} points have none"
            f"{crossing}. Leave this polygon out, or repair it."
        )
    return loop if area * sign > 0 else loop[::-1]


def _checked_holes(holes: Any) -> tuple[Loop, ...]:
    if not np.iterable(holes) or isinstance(holes, str):
        raise ArgumentError(
            f"`holes` must be a sequence of loops, but is {kind_of(holes)}"
        )
    return tuple(_checked(hole, "holes", -1) for hole in holes)


def _checked_parts(parts: Any) -> tuple["SolidPart", ...]:
    if not np.iterable(parts):
        raise ArgumentError(
            f"`parts` must be a sequence of `SolidPart`, but is {kind_of(parts)}"
        )
    return tuple(instance(part, "parts", SolidPart) for part in parts)


class SolidPart(eqx.Module):
    """A solid part of a flat design: an outline, and the holes in it.

    Either orientation is accepted; the outline is stored counterclockwise and holes
    clockwise, so that the solid is on the left of every edge.

    Attributes:
        outline: Corners (x, y) in metres, in order, the first not repeated.
        holes: The same for each hole.

    Raises:
        ArgumentError: If a loop has fewer than 3 points, one that is not finite, or no
            area.
    """

    outline: Float[np.ndarray, "_ 2"] = eqx.field(
        converter=lambda points: _checked(points, "outline", 1)
    )
    holes: tuple[Float[np.ndarray, "_ 2"], ...] = eqx.field(
        converter=_checked_holes, default=()
    )

    @property
    def loops(self) -> tuple[Float[np.ndarray, "_ 2"], ...]:
        """The outline, then the holes."""
        return (self.outline, *self.holes)

    @property
    def area(self) -> float:
        """The area of the solid, in square metres."""
        return sum(map(signed_area, self.loops))


class Contours(eqx.Module):
    """The polygons of a flat design.

    Attributes:
        parts: The solid parts; a part may lie in a hole of another.

    Raises:
        ArgumentError: If polygons cross or touch themselves or each other, a hole is
            not in its outline, or a part is in the solid of another.
    """

    parts: tuple[SolidPart, ...] = eqx.field(converter=_checked_parts)

    def __check_init__(self):
        loops = [loop for part in self.parts for loop in part.loops]
        counts = [len(part.loops) for part in self.parts]
        owner = np.repeat(np.arange(len(counts)), counts)
        outline = np.cumsum(counts, dtype=int) - counts
        _check_apart(loops, owner)
        for k, around in enumerate(parents(loops)):
            own = outline[owner[k]]
            if k != own and around != own:
                raise ArgumentError(
                    f"`holes` must lie in their outline, but one of part {owner[k]} "
                    "does not."
                )
            if k == own and around in outline:
                raise ArgumentError(
                    f"`parts` must lie apart or in each other's holes, but part "
                    f"{owner[k]} is in the solid of part {owner[around]}."
                )

    @property
    def area(self) -> float:
        """The area of all solid parts, in square metres."""
        return sum(part.area for part in self.parts)


def _check_apart(loops: Sequence[Loop], owner: np.ndarray):
    meeting = meetings(loops)
    if not len(meeting):
        return
    edge, other = meeting[0]
    x, y = np.concatenate(loops)[edge]
    first, second = np.repeat(owner, [len(loop) for loop in loops])[[edge, other]]
    whom = "itself" if first == second else f"part {second}"
    raise ArgumentError(
        f"The polygons of `parts` must not cross or touch, but part {first} meets "
        f"{whom} at its edge from ({x:g}, {y:g}) m. Unite polygons that overlap, and "
        "split those that cross themselves."
    )


def contours(
    density: ArrayLike,
    spacing: float | int | Sequence[float | int],
    *,
    level: float | int = 0.5,
    tolerance: float | int | None = None,
    origin: tuple[float | int, float | int] = (0.0, 0.0),
    least_area: float | int = 0.0,
) -> Contours:
    """Traces where a density crosses a level, as polygons, on the host.

    Marching squares with linear interpolation between the middles of cells, then
    simplified. For a smooth density, as a filter leaves it, the polygons are right to
    second order in the spacing; with `level` as the threshold of the projection they
    are the outlines of the projected device. For a binary one they run along the
    borders of cells, with corners cut by half a cell; solid cells that touch at a
    corner only stay apart. Beyond the edge of the design is void: parts that reach the
    edge are closed along it.

    Args:
        density: One value per cell, booleans too.
        spacing: Width of a cell in metres, one for both axes or one for each.
        level: What is above it is solid.
        tolerance: How far, in metres, simplified polygons may be from the contour: a
            hundredth of a cell if left out. Where they would meet they stay nearer.
        origin: Low corner (x, y) of the first cell in metres. Where values lie on
            nodes, as `Ez` of a `DesignRegion` does, half a cell below the first node.
        least_area: Parts and holes with less area, in square metres, are left out.

    Returns:
        The polygons.

    Raises:
        ArgumentError: If `density` is not flat or not finite, or a number is out of
            its range.
    """
    refuse_traced(density, "density", "Call it outside: it traces on the host.")
    values = np.asarray(density)
    if values.ndim != 2 or values.dtype.kind not in "biuf" or values.size == 0:
        raise ArgumentError(
            "`density` must be a two-dimensional array of real numbers, but is "
            f"{values.dtype}{list(values.shape)}. Cut a 3-D design into its layers."
        )
    values = values.astype(float)
    if not np.all(np.isfinite(values)):
        raise ArgumentError(
            f"`density` must be finite, but has {values[~np.isfinite(values)][0]:g}."
        )
    widths = each_axis(known_spacing(spacing), 2)
    if tolerance is None:
        tolerance = min(widths) / 100
    allowed = _at_least_0(tolerance, "tolerance")
    least_area = _at_least_0(least_area, "least_area")
    height = known_number(level, "level")
    if not math.isfinite(height):
        raise ArgumentError(f"`level` must be finite, but is {height:g}.")
    edges = [
        low + width * np.arange(cells + 1)
        for low, width, cells in zip(_place(origin), widths, values.shape, strict=True)
    ]
    loops = level_loops(values, (edges[0], edges[1]), height)
    loops = [loop for loop in loops if abs(signed_area(loop)) >= least_area]
    return _grouped(simplified_loops(loops, allowed))


def _at_least_0(x: Any, name: str) -> float:
    value = known_number(x, name)
    if not (value >= 0 and math.isfinite(value)):
        raise ArgumentError(
            f"`{name}` must be at least 0 and finite, but is {value:g}."
        )
    return value


def _place(origin: Any) -> tuple[float, ...]:
    entries = as_sequence(origin, "origin", "(0.0, 0.0)")
    place = tuple(known_number(entry, "origin") for entry in entries)
    if len(place) != 2 or not all(map(math.isfinite, place)):
        raise ArgumentError(f"`origin` must be two finite numbers, but is {place}.")
    return place


def _grouped(loops: Sequence[Loop]) -> Contours:
    """Puts holes into the outlines around them."""
    around = parents(loops)
    holes: dict[int, list[Loop]] = {
        k: [] for k, loop in enumerate(loops) if signed_area(loop) > 0
    }
    for k, loop in enumerate(loops):
        if k not in holes:
            holes[int(around[k])].append(loop)
    return Contours([SolidPart(loops[k], tuple(inner)) for k, inner in holes.items()])
