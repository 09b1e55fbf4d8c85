"""Ports of 3-D simulations: the plane, the mode on it, and how it is launched."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._checks import ArgumentError
from ..grid import Box
from ..units import ETA_0, SPEED_OF_LIGHT
from ._boundaries import PEC, PMC, Periodic
from ._components import AXES, stagger
from ._cross_section_layers import build_section
from ._cross_section_operator import areas, power_density
from ._cross_section_solver import Request, eigenmodes
from ._faces import Correction, Face, corrections, metric_at
from ._frame import Frame, check_point
from ._injection import Injection
from ._port_medium import port_medium
from ._ports import Port, node_of, refuse_bloch, rim_share, seen_frequency
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


class PlaneModes(eqx.Module):
    """The mode of a port, propagating up the axis, at one or several frequencies.

    Attributes:
        effective_index: That of the discrete equations of the grid.
        fields: By component, E in V/m and `eta0 H` for 1 W, over the two axes that
            follow the normal.
        areas: Around the samples of the two components of E, in m^2.
        guided: Whether the index exceeds that of what continues beyond the port.
        square: Of the index: not positive where the mode is cut off, infinite where the
            solver did not converge.
        cladding_index: Index of what continues beyond the port.
        rim: Share of the power at the open ends, see `rim_share`.
    """

    effective_index: Float[Array, "*freqs"]
    fields: dict[str, Float[Array, "..."]]
    areas: tuple[Float[Array, "..."], Float[Array, "..."]]
    guided: Bool[Array, "*freqs"]
    square: Float[Array, "*freqs"]
    cladding_index: Float[Array, "*freqs"]
    rim: Float[Array, "*freqs"]


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


def _ends(plane: PortPlane, setup: Setup):
    """Returns what the nodes at the ends of the plane are, and which ends are open."""
    ends, open_ = [], []
    for axis, (low, high) in zip(plane.others, plane.cells, strict=True):
        faces = setup.boundaries.axis(axis)
        reached = low == 0, high == setup.grid.shape[axis]
        if all(reached) and isinstance(faces[0], Periodic):
            ends.append(None)
            open_.append((False, False))
            continue
        both = tuple(zip(faces, reached, strict=True))
        ends.append(tuple(there and isinstance(f, PMC) for f, there in both))
        open_.append(
            tuple(not (there and isinstance(f, PEC | PMC)) for f, there in both)
        )
    return tuple(ends), tuple(open_)


def _cells(plane: PortPlane, shape: tuple[int, ...]) -> Box:
    """Returns the cells behind the plane, at the end of the grid those before."""
    box = list(plane.box)
    cell = min(plane.node, shape[plane.axis] - 1)
    box[plane.axis] = (cell, cell + 1)
    return tuple(box)


def _parts(
    plane: PortPlane, setup: Setup, frequency: Float[Array, ""]
) -> dict[str, Array]:
    """Returns what fills the cells of a plane, as if light went along z."""
    shape = setup.grid.shape
    medium = port_medium(
        setup.medium, _cells(plane, shape), plane.axis, shape, setup.dt
    )
    parts = {}
    for k in range(3):
        axis = AXES[(plane.axis + 1 + k) % 3]
        epsilon = jnp.real(medium.permittivity("E" + axis, frequency))
        for letter, one in (("E", epsilon), ("H", medium.permeability("H" + axis))):
            if one.ndim:
                one = jnp.transpose(one, (*plane.others, plane.axis))[..., 0]
            parts[letter + AXES[k]] = one
    return parts


def plane_modes(
    port: Port, plane: PortPlane, setup: Setup, frequencies: Float[Array, "*freqs"]
) -> PlaneModes:
    """Solves for the mode of a port on the points and in the medium of a run.

    Args:
        port: The port.
        plane: From `port_plane`.
        setup: The run.
        frequencies: In Hz, as the source or the monitor uses them.

    Returns:
        The mode, at each frequency. Loss in the medium is left out.
    """
    if frequencies.ndim:
        return jax.vmap(lambda f: plane_modes(port, plane, setup, f))(frequencies)
    ends, open_ = _ends(plane, setup)
    widths = [
        setup.grid.cell_widths(axis)[slice(*span)]
        for axis, span in zip(plane.others, plane.cells, strict=True)
    ]
    k0 = 2 * jnp.pi * seen_frequency(frequencies, setup) / SPEED_OF_LIGHT
    parts, dtype = _parts(plane, setup, frequencies), widths[0].dtype
    section = build_section(parts, (widths[0], widths[1]), ends, k0.astype(dtype))
    target = jnp.zeros((), dtype)
    found = eigenmodes(section, target, Request(port.mode, open_))
    found = jax.tree.map(lambda x: x[-1] if x.ndim else x, found)
    scale = k0 * jnp.sqrt(2 * ETA_0)
    e, h = (tuple(scale * x for x in pair) for pair in (found.electric, found.magnetic))
    first, second = (AXES[axis] for axis in plane.others)
    fields = {
        "E" + first: e[0],
        "E" + second: e[1],
        "H" + first: -h[1],
        "H" + second: h[0],
    }
    square: Any = found.squares
    index = jnp.sqrt(jnp.where(jnp.isfinite(square), square, jnp.nan))
    cells = section.widths[0][:, None] * section.widths[1]
    density = power_density(section, *(tuple(x[None] for x in p) for p in (e, h)))[0]
    return PlaneModes(
        index,
        fields,
        tuple(x / k0**2 for x in areas(section)),  # pyright: ignore[reportArgumentType]
        index > found.outside,
        square,
        found.outside,
        rim_share(density * cells, open_),
    )


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


def to_plane(plane: PortPlane, value: Array, like: Array) -> Array:
    """Converts recorded samples (freqs, x, y, z) to arrays over the axes of a plane.

    They are averaged along the normal and padded to the shape of `like` with the zeros
    of nodes on electric walls, which are not stored.
    """
    order = [0, *(1 + axis for axis in plane.others), 1 + plane.axis]
    value = jnp.mean(jnp.transpose(value, order), axis=-1)
    more = [(0, n - m) for n, m in zip(like.shape[-2:], value.shape[-2:], strict=True)]
    return jnp.pad(value, [(0, 0), *more])


def plane_of(port: Port, boxes: dict[str, Box]) -> PortPlane:
    """Returns the plane of a port from what a monitor reads of it."""
    others = (port.axis + 1) % 3, (port.axis + 2) % 3
    first, second = (boxes["E" + AXES[axis]] for axis in others)
    node = first[port.axis][0] + 1
    return PortPlane(port.axis, node, (first[others[0]], second[others[1]]))
