"""Ports across the axis of cylindrical coordinates: discs."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from .._checks import ArgumentError
from ..grid import Box
from ._components import staggered
from ._frame import Frame, check_point
from ._ports import Port, node_of


class Disc(NamedTuple):
    """Cells of a port about the axis, light going along z.

    Attributes:
        node: Node of the plane along z.
        cells: Their number along r.
    """

    node: int
    cells: int

    @property
    def axis(self) -> int:
        """The normal."""
        return 1

    @property
    def names(self) -> tuple[str, str, str]:
        """Names of the two axes in the plane and of the normal."""
        return "r", "p", "z"

    @property
    def box(self) -> Box:
        """The cells, one node thick."""
        return (0, self.cells), (self.node, self.node + 1)

    def spans(self, component: str, stored: tuple[int, ...]) -> list[tuple[int, int]]:
        """Returns the samples of a component along all axes, the normal left as it is.

        The last node counts too where it is stored.
        """
        half = staggered(component, ("r", "z"))[0]
        last = self.cells if half else min(self.cells + 1, stored[0])
        return [(0, last), (self.node, self.node + 1)]

    def flattened(self, value: Array) -> Array:
        """Averages samples (..., r, z) along the normal, with one entry along phi."""
        return jnp.mean(value, axis=-1, keepdims=True)


def port_disc(port: Port, frame: Frame, what: str, along: float = 0.0) -> Disc:
    """Finds the cells of a port in cylindrical coordinates.

    Args:
        port: The port, whose width is the diameter of the disc.
        frame: The frame of the simulation.
        what: How messages name it.
        along: Distance in metres from the port plane, along its direction.

    Raises:
        ArgumentError: If the grid does not begin on the axis, or the port does not lie
            on it, across it or inside the grid.
    """
    if not frame.on_axis:
        raise ArgumentError(
            f"`origin` along r must be 0 for {what}, a disc around the axis, but is "
            f"{frame.nodes[0][0]:g} m. Begin the grid on the axis."
        )
    if port.direction[1] != "z":
        raise ArgumentError(
            f"`direction` of {what} must be '+z' or '-z' in cylindrical coordinates, "
            f"but is {port.direction!r}."
        )
    centre = check_point(port.centre, 2, "centre", what)
    if centre[0] != 0:
        raise ArgumentError(
            f"`centre` of {what} must be 0 along r: its width is the diameter of a "
            f"disc around the axis; but is {centre[0]:g} m."
        )
    radius = port.widths(1)[0] / 2
    node = node_of(port, centre, frame, what, along)
    _, cells = frame.span(0, radius / 2, radius, 0.5, what)
    if cells < 3:
        raise ArgumentError(
            f"`width` of {what} must hold at least 3 cells along r, half of it, but "
            f"{2 * radius:g} m holds {cells}."
        )
    return Disc(node, cells)


def disc_read(boxes: dict[str, Box]) -> Disc:
    """Returns the disc of a port from what a monitor reads of it."""
    (_, cells), (before, _) = boxes["Er"]
    return Disc(before + 1, cells)


def disc_of(box: Box) -> Disc:
    """Returns the disc whose cells a box holds, one node thick."""
    (_, cells), (node, _) = box
    return Disc(node, cells)
