"""Modes that do not travel, told before a run."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, at_once, traced
from ..grid import Box
from ..units import SPEED_OF_LIGHT
from ._apodised import Apodised
from ._frame import build_frame
from ._mode_monitor import ModeMonitor
from ._plane_modes import plane_modes
from ._port_disc import Disc
from ._port_medium import check_loss, may_absorb, port_medium
from ._port_places import find_port, samples_of
from ._port_plane import PortPlane
from ._ports import Port, normal_of, port_mode
from ._program import outline
from ._simulation import Simulation
from ._sources import ModeSource


@eqx.filter_jit
def _solved(
    sim: Simulation, places: Mapping[str, tuple[Port, Any]], frequency
) -> dict[str, tuple[Array, Array | None]]:
    """Returns the square of the index of each mode, and the index of what is around."""
    setup = outline(sim).setup
    found = {}
    for name, (port, place) in places.items():
        if isinstance(place, PortPlane | Disc):
            mode = plane_modes(port, place, setup, frequency[name])
            found[name] = mode.square, mode.cladding_index
        else:
            index = port_mode(port, place, setup, frequency[name]).effective_index
            found[name] = index**2, None
    return found


# For cells of different widths.
_MARGIN = 1.2


def _surely_travels(sim: Simulation, port: Port, place: Any, frequency: Array) -> bool:
    r"""Whether a mode of a line would travel in the thinnest of what fills the grid.

    Between electric walls mode m then has $m \pi$ over the length of the line across.
    """
    if isinstance(place, PortPlane | Disc) or sim.medium.dispersions:
        return False
    other = 1 - port.axis
    length = np.sum(np.asarray(sim.grid.cell_widths(other))[slice(*place[other])])
    regions = [one.permittivity for one in sim.medium.regions]
    index = 1.0
    for part in ((sim.medium.permittivity, regions), sim.medium.permeability):
        index *= min(float(np.min(np.asarray(x))) for x in jax.tree.leaves(part)) ** 0.5
    turns = 2 * index * float(frequency) * length / SPEED_OF_LIGHT
    return bool(turns > _MARGIN * port.mode)


def check_modes(
    sim: Simulation,
    ports: Mapping[str, Port],
    frequencies: Mapping[str, Float[Array, "*freqs"]],
    remedy: str,
) -> None:
    """Raises if the mode of a port is cut off or in much loss, when that is concrete.

    Args:
        sim: The simulation.
        ports: By how messages name them.
        frequencies: In Hz, of each; the lowest decides whether it is cut off.
        remedy: What else may help than another mode or a wider core.

    Raises:
        ArgumentError: Names the mode and the frequency, or the loss tangent.
    """
    known = (sim.grid, sim.medium, sim.dt, frequencies)
    if not ports or traced(known):
        return
    sim = eqx.tree_at(lambda s: (s.sources, s.monitors), sim, ({}, {}))
    frame = build_frame(sim.grid, sim.boundaries, sim.components)
    places = {
        name: (port, find_port(port, frame, name)) for name, port in ports.items()
    }
    if may_absorb(sim.medium):
        for name, (port, place) in places.items():
            _check_medium(sim, port, place, frequencies[name], name)
    with at_once(known):
        lowest = {name: jnp.min(frequencies[name]) for name in places}
        places = {
            name: pair
            for name, pair in places.items()
            if not _surely_travels(sim, *pair, lowest[name])
        }
        if not places:
            return
        found = _solved(sim, places, lowest)
    for name, (square, cladding) in found.items():
        check_travels(name, ports[name].mode, lowest[name], square, cladding, remedy)


def _check_medium(
    sim: Simulation,
    port: Port,
    place: Box | PortPlane | Disc,
    frequencies: Array,
    name: str,
) -> None:
    """Raises if a port lies in a metal or in much loss."""
    box, axis = samples_of(place), normal_of(port, sim.components)
    found = port_medium(sim.medium, box, axis, sim.grid.shape, sim.dt)
    check_loss(found, sim.components.electric, frequencies, name)


def _check_monitors(sim: Simulation) -> None:
    """Raises if a mode monitor lies in a metal or in much loss, when concrete."""
    frame = build_frame(sim.grid, sim.boundaries, sim.components)
    for name, one in sim.monitors.items():
        one = one.monitor if isinstance(one, Apodised) else one
        if isinstance(one, ModeMonitor) and not traced(one):
            what = f"monitor {name!r}"
            place = find_port(one.port, frame, what, along=one.port.offset)
            _check_medium(sim, one.port, place, one.frequencies, what)


def check_ports(sim: Simulation) -> None:
    """Raises if the mode of a source is cut off, or a port lies in much loss.

    What is traced is not checked; see `check_modes`.
    """
    modes = {k: s for k, s in sim.sources.items() if isinstance(s, ModeSource)}
    frequencies = {
        name: source.pulse.frequency if source.frequency is None else source.frequency
        for name, source in modes.items()
    }
    check_modes(
        sim,
        {f"source {name!r}": one.port for name, one in modes.items()},
        {f"source {name!r}": f for name, f in frequencies.items()},
        "take a higher `frequency`",
    )
    if may_absorb(sim.medium) and not traced((sim.grid, sim.medium, sim.dt)):
        _check_monitors(sim)


def check_travels(
    name: str,
    mode: int,
    frequencies: Float[Array, "*freqs"],
    squares: Float[Array, "*freqs"],
    cladding: Float[Array, "*freqs"] | None,
    remedy: str,
) -> None:
    """Refuses a mode that is cut off at some frequency.

    Args:
        name: How the message names the port.
        mode: Number of the mode.
        frequencies: In Hz.
        squares: Of the effective index.
        cladding: Index of what goes on beyond the port, if known.
        remedy: What else may help than another mode or a wider core.

    Raises:
        ArgumentError: If one is.
    """
    found = np.ravel(np.asarray(squares))
    if np.all(found > 0):
        return
    at = int(np.argmin(found > 0))
    index = "imaginary"
    if np.isfinite(found[at]):
        index = f"{np.sqrt(-found[at]):.6g}i"
    around = ""
    if cladding is not None:
        around = f" (the cladding has {float(np.ravel(cladding)[at]):.6g})"
    raise ArgumentError(
        f"`mode` of {name} must propagate, but the effective index of mode {mode} is "
        f"{index}{around} at {float(np.ravel(frequencies)[at]):.6g} Hz. Ask for a "
        f"lower `mode`, {remedy}, or widen the core."
    )
