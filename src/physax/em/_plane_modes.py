"""Modes of ports with a section: planes in 3-D, discs in cylindrical coordinates."""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..grid import Box
from ..units import ETA_0, SPEED_OF_LIGHT
from ._boundaries import PEC, PMC, Periodic
from ._components import AXES
from ._cross_section_layers import build_section
from ._cross_section_operator import CrossSection, areas, power_density
from ._cross_section_solver import Request, eigenmodes
from ._cylindrical import around, ring_radii
from ._port_disc import Disc
from ._port_medium import port_medium
from ._port_plane import PortPlane
from ._ports import Port, rim_share, seen_frequency
from ._setup import Setup


class PlaneModes(eqx.Module):
    """The mode of a port, propagating up the axis, at one or several frequencies.

    Attributes:
        effective_index: That of the discrete equations of the grid.
        fields: By component, E in V/m and `eta0 H` for 1 W, over the two axes that
            follow the normal, r and phi of a disc.
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


class _Section(NamedTuple):
    """What is solved for a port.

    Attributes:
        solved: The cross-section.
        open: For each axis which ends are open.
        stretch: What the fields along v are times, at the samples of Eu and of Ev.
    """

    solved: CrossSection
    open: tuple[tuple[bool, bool], tuple[bool, bool]]
    stretch: tuple[Any, Any]


def _walls(
    setup: Setup, axis: int, cells: tuple[int, int]
) -> tuple[tuple[bool, bool] | None, tuple[bool, bool]]:
    """Returns what the nodes at the ends along an axis are, and which are open."""
    low, high = cells
    faces = setup.boundaries.axis(axis)
    reached = low == 0, high == setup.grid.shape[axis]
    if all(reached) and isinstance(faces[0], Periodic):
        return None, (False, False)
    first, last = (
        (there and isinstance(f, PMC), not (there and isinstance(f, PEC | PMC)))
        for f, there in zip(faces, reached, strict=True)
    )
    return (first[0], last[0]), (first[1], last[1])


def _cells(plane: PortPlane | Disc, shape: tuple[int, ...]) -> Box:
    """Returns the cells behind the plane, at the end of the grid those before."""
    box = list(plane.box)
    cell = min(plane.node, shape[plane.axis] - 1)
    box[plane.axis] = (cell, cell + 1)
    return tuple(box)


def _parts(
    plane: PortPlane | Disc, setup: Setup, frequency: Float[Array, ""]
) -> dict[str, Array]:
    """Returns what fills the cells of a plane, as if light went along z."""
    shape = setup.grid.shape
    medium = port_medium(
        setup.medium, _cells(plane, shape), plane.axis, shape, setup.dt
    )
    parts = {}
    for axis, name in zip(AXES, plane.names, strict=True):
        epsilon = jnp.real(medium.permittivity("E" + name, frequency))
        for letter, one in (("E", epsilon), ("H", medium.permeability("H" + name))):
            parts[letter + axis] = plane.flattened(one) if one.ndim else one
    return parts


def _on_plane(plane: PortPlane, setup: Setup, parts: dict[str, Array], k0) -> _Section:
    first, second = zip(plane.others, plane.cells, strict=True)
    (u, open_u), (v, open_v) = (_walls(setup, *span) for span in (first, second))
    widths = [
        setup.grid.cell_widths(axis)[slice(*span)] for axis, span in (first, second)
    ]
    section = build_section(parts, (widths[0], widths[1]), (u, v), k0)
    return _Section(section, (open_u, open_v), (1.0, 1.0))


def _on_disc(disc: Disc, setup: Setup, parts: dict[str, Array], k0) -> _Section:
    grid, n, m = setup.grid, disc.cells, setup.components.m
    wall = setup.boundaries.axis(0)[1] if n == grid.shape[0] else None
    ends = (m == 0, isinstance(wall, PMC)), None
    is_open = not isinstance(wall, PEC | PMC)
    # One radian, whose length has no unit.
    section = build_section(parts, (grid.cell_widths(0)[:n], 1 / k0[None]), ends, k0)
    centres, edges = grid.centres(0)[:n, None] * k0, grid.edges(0)[: n + 1, None] * k0
    means = ring_radii(edges, centres)
    # Of nothing on the axis, which only must not be divided by.
    nodes = jnp.concatenate([means[:1], edges[1:]])
    (er, ep, ez), (hr, hp, hz) = section.permittivity, section.permeability
    section = replace(
        section,
        permittivity=(er * centres, ep / nodes, ez * means),
        permeability=(hr * nodes, hp / centres, hz * centres),
        around=m,
    )
    return _Section(section, ((False, is_open), (False, False)), (centres, nodes))


def _section(plane: PortPlane | Disc, setup: Setup, frequency, k0) -> _Section:
    parts = _parts(plane, setup, frequency)
    if isinstance(plane, Disc):
        return _on_disc(plane, setup, parts, k0)
    return _on_plane(plane, setup, parts, k0)


def plane_modes(
    port: Port,
    plane: PortPlane | Disc,
    setup: Setup,
    frequencies: Float[Array, "*freqs"],
) -> PlaneModes:
    """Solves for the mode of a port on the points and in the medium of a run.

    Args:
        port: The port.
        plane: From `port_plane` or `port_disc`.
        setup: The run.
        frequencies: In Hz, as the source or the monitor uses them.

    Returns:
        The mode, at each frequency. Loss in the medium is left out.
    """
    if frequencies.ndim:
        return jax.vmap(lambda f: plane_modes(port, plane, setup, f))(frequencies)
    k0 = 2 * jnp.pi * seen_frequency(frequencies, setup) / SPEED_OF_LIGHT
    dtype = setup.grid.cell_widths(0).dtype
    section, open_, stretch = _section(plane, setup, frequencies, k0.astype(dtype))
    found = eigenmodes(section, jnp.zeros((), dtype), Request(port.mode, open_))
    found = jax.tree.map(lambda x: x[-1] if x.ndim else x, found)
    turn = around(setup.components.m)
    scale = k0 * jnp.sqrt(2 * ETA_0 / turn)
    e, h = (tuple(scale * x for x in pair) for pair in (found.electric, found.magnetic))
    first, second, _ = plane.names
    fields = {
        "E" + first: e[0],
        "E" + second: e[1] / stretch[1],
        "H" + first: -h[1],
        "H" + second: h[0] / stretch[0],
    }
    square: Any = found.squares
    index = jnp.sqrt(jnp.where(jnp.isfinite(square), square, jnp.nan))
    cells = section.widths[0][:, None] * section.widths[1]
    density = power_density(section, *(tuple(x[None] for x in p) for p in (e, h)))[0]
    return PlaneModes(
        index,
        fields,
        tuple(
            turn * w * x / k0**2 for w, x in zip(stretch, areas(section), strict=True)
        ),  # pyright: ignore[reportArgumentType]
        index > found.outside,
        square,
        found.outside,
        rim_share(density * cells, open_),
    )
