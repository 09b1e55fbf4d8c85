"""From positions in metres to cells: where sources and monitors lie on the grid."""

from typing import NamedTuple

import numpy as np

from .._checks import ArgumentError, real, refuse_traced, traced, warn
from ..grid import Box, Grid
from ._boundaries import PEC, PMC, Bloch, Boundaries, Periodic, layer_cells
from ._components import Components
from ._layers import stored_cells


Point = tuple[float, ...]

_MOVE = "Move it, make it smaller if it has a size, or take a larger grid."


class Frame(NamedTuple):
    """What placing a source or a monitor needs to know, all of it on the host.

    Attributes:
        components: The components of the simulation.
        nodes: For each axis the positions of the cell edges in metres, in float64.
        stored: Samples stored along each axis.
        layers: For each axis the cells in the low and the high absorbing layer.
        faces: For each axis the kinds of the low and the high face.
    """

    components: Components
    nodes: tuple[np.ndarray, ...]
    stored: tuple[int, ...]
    layers: tuple[tuple[int, int], ...]
    faces: tuple[tuple[type, type], ...]

    @property
    def ndim(self) -> int:
        """Dimension of the grid."""
        return len(self.nodes)

    @property
    def on_axis(self) -> bool:
        """Whether the grid begins on the axis of cylindrical coordinates."""
        return self.faces[0][0] is type(None)

    def positions(self, axis: int, half: float) -> np.ndarray:
        """Returns the positions of the samples of one stagger along an axis."""
        nodes = self.nodes[axis]
        return (nodes[:-1] + nodes[1:]) / 2 if half else nodes[: self.stored[axis]]

    def nearest(
        self, axis: int, x: float, half: float, what: str, remedy: str = _MOVE
    ) -> int:
        """Returns the sample nearest to a position; refuses one outside the grid."""
        nodes = self.nodes[axis]
        slack = 1e-6 * (nodes[-1] - nodes[0])
        if not nodes[0] - slack <= x <= nodes[-1] + slack:
            raise self._outside(axis, what, f"is at {x:g} m", remedy)
        return int(np.argmin(np.abs(self.positions(axis, half) - x)))

    def node(self, axis: int, x: float, what: str, *, mirrored: bool) -> int:
        """Returns the node nearest to a position, also a last one that is a wall.

        Args:
            axis: The axis.
            x: The position in metres.
            what: What lies there, for messages.
            mirrored: Whether walls of this axis are mirrors to it.
        """
        wall = self.faces[axis][int(x > self.nodes[axis][-1])]
        remedy = _MOVE
        if mirrored and wall in (PEC, PMC):
            remedy += f" If the `{wall.__name__}` face there is a mirror, end it there."
        self.nearest(axis, x, 0.0, what, remedy)
        return int(np.argmin(np.abs(self.nodes[axis] - x)))

    def _outside(
        self, axis: int, what: str, where: str, remedy: str = _MOVE
    ) -> ArgumentError:
        nodes = self.nodes[axis]
        return ArgumentError(
            f"{what} must lie in the grid, {nodes[0]:g} to {nodes[-1]:g} m along "
            f"{self.components.axes[axis]}, but {where}. {remedy}"
        )

    def span(
        self, axis: int, centre: float, size: float, half: float, what: str
    ) -> tuple[int, int]:
        """Returns the samples in `[centre - size / 2, centre + size / 2)`.

        An infinite size takes all samples, a size of zero the nearest one.
        """
        points = self.positions(axis, half)
        if np.isinf(size):
            return 0, len(points)
        low, high, slack = self._ends(axis, centre, size, what)
        if size == 0:
            here = self.nearest(axis, centre, half, what)
            return here, here + 1
        start = int(np.searchsorted(points, low - slack))
        stop = int(np.searchsorted(points, high - slack))
        if stop <= start:
            raise ArgumentError(
                f"{what} must contain a sample along {self.components.axes[axis]}, "
                f"but lies between two, from {low:g} to {high:g} m. Make it larger, "
                "or of size 0."
            )
        return start, stop

    def cover(
        self, axis: int, centre: float, size: float, half: float, what: str
    ) -> tuple[int, int]:
        """Returns the samples whose cells a region shares, or touches.

        Sizes that are infinite or zero are as for `span`. At a period the first node
        has half a cell at either end: all samples are taken where both are meant.
        """
        if size == 0 or np.isinf(size):
            return self.span(axis, centre, size, half, what)
        low, high, slack = self._ends(axis, centre, size, what)
        nodes, stored = self.nodes[axis], self.stored[axis]
        if half:
            stored, between = len(nodes) - 1, nodes[1:-1]
        else:
            between = (nodes[1:] + nodes[:-1]) / 2
            repeated = issubclass(self.faces[axis][0], (Periodic, Bloch))
            if repeated and high + slack > between[-1]:
                return 0, stored
        start = int(np.searchsorted(between, low - slack))
        stop = int(np.searchsorted(between, high + slack)) + 1
        # The wall at the end of the grid is not stored: its field is zero.
        return min(start, stored - 1), min(stop, stored)

    def _ends(
        self, axis: int, centre: float, size: float, what: str
    ) -> tuple[float, float, float]:
        """Returns where a region begins and ends in the grid, and their rounding."""
        nodes = self.nodes[axis]
        beyond = 1e-6 * (nodes[-1] - nodes[0])
        low, high = centre - size / 2, centre + size / 2
        if not (nodes[0] - beyond <= low and high <= nodes[-1] + beyond):
            raise self._outside(axis, what, f"reaches from {low:g} to {high:g} m")
        # Half a thousandth of a cell.
        return low, high, 5e-4 * float(np.min(np.diff(nodes)))

    def box(self, component: str, centre: Point, size: Point, what: str) -> Box:
        """Returns the samples of a component in a region."""
        halves = self.components.stagger(component)
        spans = [
            self.span(axis, centre[axis], size[axis], halves[axis], what)
            for axis in range(self.ndim)
        ]
        first = self.first(component, 0)
        low, high = spans[0]
        spans[0] = max(low, first), max(high, first + 1)
        return tuple(spans)

    def first(self, component: str, axis: int) -> int:
        """Returns the first sample of a component along an axis that is one.

        On the axis of cylindrical coordinates those of Ep and Hr are held at zero,
        which is wrong for m = 1.
        """
        return int(component in ("Ep", "Hr") and axis == 0 and self.on_axis)

    def warn_in_layer(self, box: Box, what: str, axes: tuple[int, ...] | None = None):
        """Warns if a box lies wholly in an absorbing layer along some axis."""
        for axis in range(self.ndim) if axes is None else axes:
            low, high = self.layers[axis]
            start, stop = box[axis]
            inside_low = stop <= low
            inside_high = start >= len(self.nodes[axis]) - 1 - high
            if inside_low or (high and inside_high):
                warn(
                    f"{what} lies in the absorbing layer along "
                    f"{self.components.axes[axis]}.",
                )


def check_point(value: Point, ndim: int, name: str, what: str) -> Point:
    """Returns a position or size as floats, one for each axis."""
    values = as_point(value, name)
    if len(values) != ndim:
        raise ArgumentError(
            f"`{name}` of {what} must have one entry for each of the {ndim} axes, but "
            f"has {len(values)}."
        )
    return values


def check_size(value: Point, frame: Frame, what: str) -> Point:
    """Returns the lengths of a box as floats, one for each axis, none negative."""
    values = check_point(value, frame.ndim, "size", what)
    for axis, length in zip(frame.components.axes, values, strict=True):
        if not length >= 0:
            raise ArgumentError(
                f"`size` of {what} must be at least 0 along {axis}, but is {length:g} "
                "m. Give the length between its ends."
            )
    return values


def as_point(value, name: str) -> Point:
    """Converts a number, a list or an array to a tuple of floats."""
    if traced(value):
        raise ArgumentError(
            "Positions and sizes of sources, ports and monitors must be known before "
            f"compilation, but `{name}` is traced, as all arithmetic on arrays is "
            "under `jit`. The shapes of a medium may be traced."
        )
    real(value, name)
    return tuple(float(v) for v in np.ravel(value))


def build_frame(grid: Grid, boundaries: Boundaries, components: Components) -> Frame:
    """Builds the frame of a simulation.

    Args:
        grid: The grid, with known widths.
        boundaries: Its faces.
        components: The components.

    Returns:
        The frame.

    Raises:
        ArgumentError: If the grid is traced: where things lie must be known before the
            program is compiled.
    """
    refuse_traced(
        (*grid.widths, *grid.origin),
        "grid",
        "Build the `Simulation` outside and replace its traced leaves inside.",
    )
    nodes = []
    for axis in range(grid.ndim):
        width = np.asarray(grid.widths[axis], np.float64)
        cells = grid.shape[axis]
        edges = (
            np.arange(cells + 1) * width
            if width.ndim == 0
            else np.concatenate([[0.0], np.cumsum(width)])
        )
        nodes.append(float(grid.origin[axis]) + edges)
    layers = tuple(layer_cells(boundaries, axis) for axis in range(grid.ndim))
    pairs = map(boundaries.axis, range(grid.ndim))
    faces = tuple((type(low), type(high)) for low, high in pairs)
    stored = stored_cells(grid, boundaries)
    return Frame(components, tuple(nodes), stored, layers, faces)
