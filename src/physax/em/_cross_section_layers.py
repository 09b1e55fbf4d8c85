"""From a grid, its faces and a medium to the cross-section that is solved."""

from typing import NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from .._checks import ArgumentError
from ..grid import Grid
from ..units import EPSILON_0, ETA_0
from ._absorber import Absorber
from ._boundaries import PMC, Bloch, Boundaries, Periodic
from ._components import AXES, stagger
from ._cpml import CPML, cpml_coefficients
from ._cross_section_operator import CrossSection, Ends
from ._medium import Medium, at_component, cells_of
from ._poles import susceptibility


Open = tuple[tuple[bool, bool], tuple[bool, bool]]
"""For each axis whether what fills the section goes on beyond its ends."""


class Stretch(NamedTuple):
    """Factors that an absorbing layer puts on the widths along an axis."""

    axis: int
    cells: Complex[Array, " cells"]
    nodes: Complex[Array, " nodes"]


def section_ends(boundaries: Boundaries | None) -> tuple[Ends, Open]:
    """Returns what the nodes at the ends are, and which ends are open.

    Args:
        boundaries: Faces of x and y; `None`: open, closed by electric walls.

    Returns:
        Both.

    Raises:
        ArgumentError: If a face is a `Bloch` face or an `Absorber`.
    """
    if boundaries is None:
        closed, beyond = (False, False), (True, True)
        return (closed, closed), (beyond, beyond)
    ends, open_ = [], []
    for axis in (0, 1):
        faces = boundaries.axis(axis)
        if any(isinstance(face, Bloch) for face in faces):
            raise ArgumentError(
                f"`boundaries` along {AXES[axis]} must not be `Bloch` faces here. Use "
                "`Periodic`."
            )
        periodic = isinstance(faces[0], Periodic)
        low, high = (isinstance(face, PMC) for face in faces)
        ends.append(None if periodic else (low, high))
        if any(isinstance(face, Absorber) for face in faces):
            raise ArgumentError(
                f"`boundaries` along {AXES[axis]} must not be an `Absorber` here. Use "
                "a `CPML`, which takes fewer cells."
            )
        low, high = (isinstance(face, CPML) for face in faces)
        open_.append((low, high))
    return tuple(ends), (open_[0], open_[1])


def section_parts(
    medium: Medium,
    shape: tuple[int, ...],
    seen: Float[Array, ""],
    frequency: Float[Array, ""],
    dt: Float[Array, ""] | None,
) -> dict[str, Array]:
    """Returns relative permittivity and permeability by component, complex with loss.

    The time-domain step takes the loss at the mean of two moments, hence the cosine.

    Args:
        medium: What fills the section.
        shape: Cells of the section.
        seen: Frequency in Hz that the equations see.
        frequency: In Hz.
        dt: Time step in seconds, if any.
    """
    medium = medium.merged(shape)
    out = {}
    slow = 1.0 if dt is None else jnp.cos(jnp.pi * frequency * dt)
    for letter, name, loss_name, unit in (
        ("E", "permittivity", "conductivity", EPSILON_0),
        ("H", "permeability", "magnetic_conductivity", EPSILON_0 * ETA_0**2),
    ):
        for axis in "xyz":
            value = jnp.asarray(at_component(getattr(medium, name), letter + axis))
            loss = at_component(getattr(medium, loss_name), letter + axis)
            if loss is not None:
                value = value + 1j * slow * loss / (2 * jnp.pi * seen * unit)
            out[letter + axis] = value
    for one in medium.dispersions:
        more = susceptibility(one.poles, frequency)
        for name in ("Ex", "Ey", "Ez"):
            if one.covers(name):
                whole = jnp.broadcast_to(out[name] + 0j, shape)
                whole = whole.at[cells_of(one.box)].add(one.at(name) * more)
                out[name] = whole
    return out


def check_radius(grid: Grid, radius: Float[Array, ""]) -> None:
    """Refuses a bend whose centre lies in the section, where that is known.

    Args:
        grid: The section.
        radius: Of the bend, in metres.

    Raises:
        ArgumentError: If it does.
    """
    stretch = 1 + grid.edges(0) / radius
    if isinstance(stretch, jax.core.Tracer) or np.all(np.asarray(stretch) > 0):
        return
    raise ArgumentError(
        "`radius` must be large enough that the centre of the bend, at `x = -radius`, "
        f"lies outside the section, but is {float(radius):g} m."
    )


def bent_parts(
    parts: dict[str, Array], grid: Grid, radius: Float[Array, ""]
) -> dict[str, Array]:
    """Unrolls a bend: along x and y the medium is denser outside, along z thinner.

    Args:
        parts: From `section_parts`.
        grid: The section.
        radius: Of the bend, in metres.

    Returns:
        The same for the straight guide.
    """
    out = {}
    for name, value in parts.items():
        stretch = 1 + grid.coordinates(0, stagger(name, 2)[0]) / radius
        factor = stretch if name[1] != "z" else 1 / stretch
        out[name] = jnp.broadcast_to(value, grid.shape) * factor[:, None]
    return out


def bent_fields(
    fields: dict[str, Array],
    coordinates: dict[str, tuple[Array, Array]],
    radius: Float[Array, ""],
) -> dict[str, Array]:
    """Rolls up the fields of the straight guide: along z a metre is longer outside.

    Args:
        fields: By component, modes along the first axis.
        coordinates: By component, of the samples along x and y, in metres.
        radius: Of the bend, in metres.

    Returns:
        Those of the bend.
    """
    out = dict(fields)
    for name in ("Ez", "Hz"):
        stretch = 1 + coordinates[name][0] / radius
        out[name] = fields[name] / stretch[:, None]
    return out


def build_section(
    parts: dict[str, Array],
    widths: tuple[Float[Array, " nu"], Float[Array, " nv"]],
    ends: Ends,
    k0: Float[Array, ""],
    stretches: list[Stretch] | None = None,
) -> CrossSection:
    """Builds a cross-section from what fills its cells.

    Args:
        parts: Permittivity and permeability by component, light going along z: numbers
            or an entry for each cell. Nodes behind the last cells are like those
            before.
        widths: Of the cells along x and y, in metres.
        ends: What the nodes at the ends are.
        k0: Wavenumber in 1/m.
        stretches: Of absorbing layers.

    Returns:
        The cross-section.
    """
    shape = tuple(len(w) for w in widths)
    scaled, duals = [], []
    for axis in (0, 1):
        cells = widths[axis] * k0
        if ends[axis] is None:
            nodes = (cells + jnp.roll(cells, 1)) / 2
        else:
            padded = jnp.pad(cells, 1)
            nodes = (padded[1:] + padded[:-1]) / 2
        for stretch in stretches or ():
            if stretch.axis == axis:
                cells = cells * stretch.cells
                nodes = nodes * stretch.nodes[: len(nodes)]
        scaled.append(cells)
        duals.append(nodes)
    dtype = jnp.result_type(*parts.values(), *scaled)

    def at_points(name: str) -> Array:
        value = jnp.broadcast_to(parts[name], shape)
        for axis, half in enumerate(stagger(name, 2)):
            if not half and ends[axis] is not None:
                more = [(0, int(a == axis)) for a in (0, 1)]
                value = jnp.pad(value, more, mode="edge")
        return value.astype(dtype)

    return CrossSection(
        (at_points("Ex"), at_points("Ey"), at_points("Ez")),
        (at_points("Hx"), at_points("Hy"), at_points("Hz")),
        (scaled[0].astype(dtype), scaled[1].astype(dtype)),
        (duals[0].astype(dtype), duals[1].astype(dtype)),
        ends,
    )


def layer_stretches(
    grid: Grid, boundaries: Boundaries | None, frequency: Float[Array, ""]
) -> list[Stretch]:
    """Returns the complex stretches of the absorbing layers at the faces.

    Args:
        grid: The section.
        boundaries: Its faces.
        frequency: In Hz.

    Returns:
        One for each layer.
    """
    out = []
    if boundaries is None:
        return out
    for axis in (0, 1):
        for high, face in enumerate(boundaries.axis(axis)):
            if isinstance(face, CPML):
                both = _stretches(face, grid, axis, bool(high), frequency)
                out.append(Stretch(axis, *both))
    return out


def _stretches(layer: CPML, grid: Grid, axis: int, high: bool, frequency):
    """Returns the complex stretches of an absorbing layer, in cells and at nodes."""
    n = grid.shape[axis]
    width = grid.cell_widths(axis)[-1 if high else 0]
    # The recursion of the time-domain layer with a step so short that it is exact.
    dt = 0.01 / frequency
    turn = jnp.exp(2j * jnp.pi * frequency * dt)
    out = []
    for place in (jnp.arange(n) + 0.5, jnp.arange(n + 1.0)):
        depth = place - (n - layer.cells) if high else layer.cells - place
        inside = depth > 0
        depth = jnp.clip(depth / layer.cells, 0.0, 1.0).astype(width.dtype)
        factors = cpml_coefficients(layer, depth, width, dt)
        inverse = factors.inv_kappa + factors.c / (1 - factors.b * turn)
        out.append(jnp.where(inside, 1 / inverse, 1.0))
    return out
