"""Limits that a simulation must keep: time step, resolution, places."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, traced
from ..grid import Box, Grid
from ..units import SPEED_OF_LIGHT
from ._apodised import Apodised
from ._components import Components
from ._cylindrical import largest_eigenvalue
from ._emission import EmissionMonitor
from ._force import ForceMonitor
from ._huygens import HuygensSource
from ._medium import Medium, Property, at_component
from ._metal import Metal, largest_step_around
from ._monitors import AbstractMonitor, AbstractSpectralMonitor
from ._near_field_monitor import NearFieldMonitor
from ._plain import check_plain
from ._plane_wave import PlaneWave
from ._resolution import check_cells
from ._sources import AbstractSource, Dipole
from ._tilt import stiffest


def _smallest(value: Property, names: tuple[str, ...]) -> Array:
    entries = [jnp.asarray(at_component(value, name)) for name in names]
    return jnp.min(jnp.stack([jnp.min(entry) for entry in entries]))


def largest_step(grid: Grid, medium: Medium, parts: Components) -> Float[Array, ""]:
    r"""Returns the largest stable time step.

    $\Delta t \le n_\mathrm{min} / (c \sqrt{\sum_a 1/\Delta_a^2})$ with the smallest
    cell of each axis. In cylindrical coordinates a quarter of the largest eigenvalue of
    the Laplacian of r and $\phi$ takes the place of $1/\Delta_r^2$. Reference: Taflove
    and Hagness, *Computational Electrodynamics*, 3rd edition (2005), section 4.7.

    Args:
        grid: The grid.
        medium: The medium.
        parts: The components.

    Returns:
        The limit in seconds. Around perfect metal see `largest_step_around`.
    """
    if medium.metal is not None:
        return _around_metal(grid, medium, medium.metal, parts)
    around = 0.0 if parts.m is None else largest_eigenvalue(grid, parts.m) / 4
    return _without_metal(grid, medium, parts, around)


# As one program, where each operation would be one; inside others nothing changes.
@partial(jax.jit, static_argnames="parts", inline=True)
def _without_metal(
    grid: Grid, medium: Medium, parts: Components, around: ArrayLike
) -> Float[Array, ""]:
    inverse = jnp.zeros((), grid.widths[0].dtype) + around
    for axis in range(grid.ndim) if parts.m is None else (1,):
        inverse = inverse + 1 / jnp.min(grid.widths[axis]) ** 2
    epsilon = _smallest(medium.permittivity, parts.electric)
    of = {name: at_component(medium.permittivity, name) for name in parts.electric}
    for one in medium.off_diagonals:
        for bound in stiffest(one, of).values():
            epsilon = jnp.minimum(epsilon, 1 / jnp.max(bound))
    index = jnp.sqrt(epsilon * _smallest(medium.permeability, parts.magnetic))
    return index / (SPEED_OF_LIGHT * jnp.sqrt(inverse))


def _around_metal(grid: Grid, medium: Medium, metal: Metal, parts: Components) -> Array:
    mobility = {
        name: metal.open[name] / at_component(medium.permittivity, name)
        for name in parts.electric
    }
    inertia = {
        name: metal.open[name] * at_component(medium.permeability, name)
        for name in parts.magnetic
    }
    return largest_step_around(mobility, inertia, grid, parts)


def check_step(dt: Array, limit: Array) -> None:
    """Refuses a time step above the stability limit, when both are concrete.

    Args:
        dt: Time step in seconds.
        limit: The largest stable one.

    Raises:
        ArgumentError: If it is above.
    """
    if traced((dt, limit)):
        return
    # A relative slack of a few roundings: the limit itself is stable.
    if float(dt) > float(limit) * (1 + 4 * float(jnp.finfo(dt.dtype).eps)):
        raise ArgumentError(
            f"`dt` must be at most {float(limit):.6g} s, the Courant limit of this "
            f"grid and medium, but is {float(dt):.6g} s. Leave `dt` out to have it "
            "chosen, or lower `courant`."
        )


def check_resolution(
    sources: Mapping[str, AbstractSource],
    grid: Grid,
    medium: Medium,
    electric: Sequence[str],
) -> None:
    """Refuses or warns of too few cells per wavelength of the sources.

    Args:
        sources: By name.
        grid: The grid.
        medium: The medium, without design regions.
        electric: The components of E.

    Raises:
        ArgumentError: Below 4 cells per wavelength at the frequency of a pulse.
    """
    frequencies = {
        f"the frequency of source {name!r}": source.pulse.frequency
        for name, source in sources.items()
    }
    check_cells(grid, medium, frequencies, electric)


_STRAIGHT = (
    "must lie where the principal axes of the medium are along the grid, but the "
    "inverse permittivity has off-diagonal entries there."
)


def check_places(
    medium: Medium,
    parts: Mapping[str, AbstractSource | AbstractMonitor],
    places: Iterable[tuple[str, Any]],
) -> None:
    """Refuses sources and monitors in a medium that they do not serve, if it is known.

    Args:
        medium: The medium.
        parts: Sources and monitors by name.
        places: Their names, and where they are.

    Raises:
        ArgumentError: If a port, a dipole whose emission is asked for or a face of a
            force monitor reads cells with off-diagonal entries, the face of a plane
            wave lies in a medium that is not plain, or one of these, a dipole or a face
            of a near field lies in perfect metal.
    """
    for name, place in places:
        part = parts[name]
        part = part.monitor if isinstance(part, Apodised) else part
        _check_metal(medium, name, part, place)
        if isinstance(part, PlaneWave):
            check_plain(
                medium,
                part.face_boxes(place),
                f"The faces of the plane wave {name!r}",
                "It is a wave of a uniform medium: move the faces.",
            )
        elif isinstance(part, EmissionMonitor | ForceMonitor):
            if any(not _sound(medium, read.box) for read in place):
                faces = not isinstance(part, EmissionMonitor)
                told = "The faces" if faces else "The dipole"
                remedy = "Move them." if faces else "Move it."
                raise ArgumentError(f"{told} of monitor {name!r} {_STRAIGHT} {remedy}")
        elif (port := getattr(part, "port", None)) is not None and not all(
            _sound(medium, box, port.axis) for box in _port_boxes(place)
        ):
            raise ArgumentError(
                f"The port of {name!r} {_STRAIGHT} Move it to a straight piece of "
                "waveguide along the grid."
            )


def _check_metal(
    medium: Medium, name: str, part: AbstractSource | AbstractMonitor, place: Any
) -> None:
    """Refuses what needs a medium around it, and dipoles, in perfect metal."""
    if medium.metal is None:
        return
    if isinstance(part, Dipole):
        for one in place:
            edges = _edges_at(medium.metal, part.component, one.box)
            # The node on a magnetic wall at the high end is not among them.
            if isinstance(edges, jax.core.Tracer):
                return
            if not edges.size or np.any(np.asarray(edges) > 0):
                return
        raise ArgumentError(
            f"Source {name!r} must not lie inside perfect metal, but does: it would "
            "drive nothing. Move it out."
        )
    boxes: list[Box] = []
    if isinstance(part, EmissionMonitor | NearFieldMonitor | ForceMonitor):
        boxes = [read.box for read in place]
    elif isinstance(part, HuygensSource):
        boxes = [term.box for terms in place for _, term in terms]
    elif getattr(part, "port", None) is not None:
        boxes = _port_boxes(place)
    for box in boxes:
        absent = medium.metal.absent(box)
        if not isinstance(absent, jax.core.Tracer) and not bool(absent):
            raise ArgumentError(
                f"{name!r} must not meet perfect metal, but does: it needs a medium "
                "that fills the cells around it. Move it or make it smaller."
            )


def _port_boxes(place: Any) -> list[Box]:
    """Returns the boxes of cells in which a source or monitor reads a port."""
    place = getattr(place, "plane", place)
    box = getattr(place, "box", None)
    return [one.box for one in place] if box is None else [box]


def _edges_at(metal: Metal, component: str, box: Box) -> Array:
    """Returns what is open of an edge, or of those around a face."""
    if component[0] == "E":
        return metal.cut(box).open[component]
    wide = metal.cut(tuple((low, high + 1) for low, high in box)).open
    around = [n for n in wide if n[0] == "E" and n[1] != component[1]]
    return jnp.concatenate([wide[name].ravel() for name in around])


def _sound(medium: Medium, box: Box, normal: int | None = None) -> bool:
    """Whether no off-diagonal entry is known in some cells."""
    sound = (one.sound(box, normal) for one in medium.off_diagonals)
    return all(isinstance(one, jax.core.Tracer) or bool(one) for one in sound)


def check_frequencies(
    monitors: Mapping[str, AbstractMonitor], dt: Float[Array, ""], steps: int
) -> None:
    """Refuses frequencies that the steps of a run cannot tell from others.

    Args:
        monitors: By name.
        dt: Time step in seconds.
        steps: Number of steps.

    Raises:
        ArgumentError: At or above half the sampling rate, or where a period is longer
            than a billion runs.
    """
    if isinstance(dt, jax.core.Tracer):
        return
    limit, least = 0.5 / float(dt), 1e-9 / (float(dt) * steps)
    for name, monitor in monitors.items():
        monitor = monitor.monitor if isinstance(monitor, Apodised) else monitor
        if not isinstance(monitor, AbstractSpectralMonitor):
            continue
        if isinstance(monitor.frequencies, jax.core.Tracer):
            continue
        given = np.asarray(monitor.frequencies)
        lowest, highest = float(np.min(given)), float(np.max(given))
        if lowest < least:
            raise ArgumentError(
                f"`frequencies` of monitor {name!r} must be at least {least:.4g} Hz, "
                f"a billionth of a period in a run, but one is {lowest:.4g}. Are they "
                "in Hz, or are they wavelengths?"
            )
        if highest >= limit:
            raise ArgumentError(
                f"`frequencies` of monitor {name!r} must be below {limit:.4g} Hz, half "
                f"the sampling rate of the run, but one is {highest:.4g}. Are they in "
                "Hz?"
            )
