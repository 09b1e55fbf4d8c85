"""Ports of 3-D simulations: the plane, the mode on it, and how it is launched."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from .._checks import ArgumentError
from ..grid import Box
from ._components import AXES, stagger
from ._faces import Correction, Face, corrections, metric_at
from ._frame import Frame, check_point
from ._injection import Injection
from ._ports import Port, node_of, refuse_bloch
from ._pulses import AbstractPulse
from ._setup import Setup


class PortPlane(NamedTuple):
    """Cells of a port.

    Attributes:
        axis: The normal.
        node: Node of the plane along it.
        cells: First cell and one past the last, along the two axes that follow the
            normal (y, z for x; z, x for y; x, y for z).
    """

    axis: int
    node: int
    cells: tuple[tuple[int, int], tuple[int, int]]

    @property
    def names(self) -> tuple[str, str, str]:
        """Names of the two axes in the plane and of the normal."""
        first, second = self.others
        return AXES[first], AXES[second], AXES[self.axis]

    @property
    def others(self) -> tuple[int, int]:
        """Numbers of the axes in the plane."""
        return (self.axis + 1) % 3, (self.axis + 2) % 3

    @property
    def box(self) -> Box:
        """The cells, one node thick."""
        out = [(self.node, self.node + 1)] * 3
        for axis, span in zip(self.others, self.cells, strict=True):
            out[axis] = span
        return tuple(out)

    def spans(self, component: str, stored: tuple[int, ...]) -> list[tuple[int, int]]:
        """Returns the samples of a component along all axes, the normal left as it is.

        Along an axis on whose nodes the component lies, the last node counts too where
        it is stored.
        """
        out = list(self.box)
        halves = stagger(component, 3)
        for axis, (low, high) in zip(self.others, self.cells, strict=True):
            last = high if halves[axis] else min(high + 1, stored[axis])
            out[axis] = (low, last)
        return out

    def flattened(self, value: Array) -> Array:
        """Averages samples (..., x, y, z) along the normal, those axes in order."""
        lead = value.ndim - 3
        order = *range(lead), *(lead + axis for axis in (*self.others, self.axis))
        return jnp.mean(jnp.transpose(value, order), axis=-1)


def port_plane(port: Port, frame: Frame, what: str, along: float = 0.0) -> PortPlane:
    """Finds the cells of a port in a 3-D simulation.

    Args:
        port: The port.
        frame: The frame of the simulation.
        what: How messages name it.
        along: Distance in metres from the port plane, along its direction.

    Returns:
        The plane.

    Raises:
        ArgumentError: If the port leaves the grid, has fewer than 3 cells a side, or
            reaches a `Bloch` face.
    """
    axis = port.axis
    centre = check_point(port.centre, 3, "centre", what)
    node = node_of(port, centre, frame, what, along)
    left = [a for a in range(3) if a != axis]
    lengths = dict(zip(left, port.widths(2), strict=True))
    others = (axis + 1) % 3, (axis + 2) % 3
    low, high = (frame.span(a, centre[a], lengths[a], 0.5, what) for a in others)
    plane = PortPlane(axis, node, (low, high))
    for a, (start, stop) in zip(others, plane.cells, strict=True):
        if stop - start < 3:
            raise ArgumentError(
                f"`width` of {what} must hold at least 3 cells along {AXES[a]}, but "
                f"{lengths[a]:g} m holds {stop - start}."
            )
        refuse_bloch(frame, a, (start, stop), what)
    return plane


class PlanePlace(NamedTuple):
    """A port plane and the corrections of the rows on either side of it."""

    plane: PortPlane
    face: Face
    corrections: tuple[tuple[Correction, ...], tuple[Correction, ...]]

    @property
    def box(self) -> Box:
        """The cells, one node thick."""
        return self.plane.box


def place_plane(port: Port, frame: Frame, what: str) -> PlanePlace:
    """Finds the rows from which a wave starts one way.

    Args:
        port: The port.
        frame: The frame of the simulation.
        what: How messages name it.

    Returns:
        The place.
    """
    plane = port_plane(port, frame, what)
    frame.warn_in_layer(plane.box, what, axes=(plane.axis,))
    region = [(plane.node, plane.node)] * 3
    for axis, span in zip(plane.others, plane.cells, strict=True):
        region[axis] = span
    face = Face(plane.axis, port.sign < 0, plane.node)
    electric, magnetic = (
        tuple(corrections(frame, tuple(region), [face], electric=half))
        for half in (True, False)
    )
    return PlanePlace(plane, face, (electric, magnetic))


def launch_plane(
    place: PlanePlace,
    setup: Setup,
    fields: dict[str, Array],
    delays: dict[str, Array],
    pulse: AbstractPulse,
) -> list[Injection]:
    """Turns incident fields on a plane into the currents of a one-way source.

    Args:
        place: From `place_plane`.
        setup: The run.
        fields: By component, over the axes of the plane.
        delays: By component, in seconds: one, or over the axes of the plane.
        pulse: The time dependence.

    Returns:
        The currents.
    """
    out = []
    for terms, electric in zip(place.corrections, (True, False), strict=True):
        for term in terms:
            incident = to_box(place.plane, fields[term.source])
            keep = tuple(slice(0, high - low) for low, high in term.box)
            metric = metric_at(setup.axes, term, electric)
            profile = term.sign * metric * incident[keep]
            delay = delays[term.source]
            delay = to_box(place.plane, delay)[keep] if delay.ndim else delay
            delay = jnp.broadcast_to(delay, profile.shape)
            out.append(Injection(term.target, term.box, profile, delay, pulse))
    return out


def to_box(plane: PortPlane, value: Array) -> Array:
    """Reorders values over the axes of a plane to those of the grid, one node thick."""
    order = (*plane.others, plane.axis)
    back = [order.index(axis) for axis in range(3)]
    return jnp.transpose(value[..., None], back)


def plane_read(port: Port, boxes: dict[str, Box]) -> PortPlane:
    """Returns the plane of a port from what a monitor reads of it."""
    others = (port.axis + 1) % 3, (port.axis + 2) % 3
    first, second = (boxes["E" + AXES[axis]] for axis in others)
    node = first[port.axis][0] + 1
    return PortPlane(port.axis, node, (first[others[0]], second[others[1]]))
