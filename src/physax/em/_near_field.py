"""Near fields: what passes through the faces of a box."""

from math import hypot
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from .._checks import ArgumentError, kind_of
from ._components import AXES, CYLINDRICAL_AXES


class NearField(eqx.Module):
    """Tangential fields on the faces of a box.

    Keys are a component and a face, as in `"Ey +x"`. E lies on the nodes of the face, H
    half a cell outside of it.

    Attributes:
        frequencies: In Hz.
        values: Shape (frequency, x, y, z), (frequency, r, z) in cylindrical
            coordinates; E in V s/m, H as `eta0 H`.
        coordinates: Positions along each axis, in metres.
        widths: Widths of the cells around the samples along each axis, in metres; 1
            along the normal. Along r, for one radian, the areas of their rings in m^2,
            and their radius along the normal.
        flux: By face, the power out of the box: W fs^2 (3-D), W fs^2/m (2-D),
            W fs^2/m^2 (1-D).
        permittivity: Relative permittivity of the faces, their mean; among poles one
            for each frequency.
        permeability: Relative permeability of the faces, their mean.
        spread: How far both differ on the faces and between components, those normal to
            the faces included, relative to their mean.
        loss: Largest electric (S/m) or magnetic (ohm/m) conductivity on the faces;
            infinite in a nonlinear medium or a metal, and where poles absorb.
        planes: Where the walls lie, in metres.
        spacing: For each axis the width of the cells, in metres.
        dt: Time step in seconds.
        periods: For each axis the length of the grid, in metres.
        wavevectors: For each axis the Bloch wavevector in rad/m, 0 without.
        walls: Axis and kind of each PEC and PMC face of the simulation; of the axes of
            space, where r counts as x.
        repeated: Axes along which the simulation is periodic.
        closed: Whether the faces, with walls and periods, enclose a region.
        cells: For each axis the cells that the box spans, with its image behind a wall
            or across the axis r = 0.
        shape: Cells of the grid.
        m: The angular number in cylindrical coordinates, else `None`.
    """

    frequencies: Float[Array, " freqs"]
    values: dict[str, Complex[Array, "..."]]
    coordinates: dict[str, tuple[Float[Array, "..."], ...]]
    widths: dict[str, tuple[Float[Array, "..."], ...]]
    flux: dict[str, Float[Array, " freqs"]]
    permittivity: Float[Array, "..."]
    permeability: Float[Array, ""]
    spread: Float[Array, ""]
    loss: Float[Array, ""]
    planes: tuple[Float[Array, ""], ...]
    spacing: tuple[Float[Array, "..."], ...]
    dt: Float[Array, ""]
    periods: tuple[Float[Array, ""], ...]
    wavevectors: tuple[Float[Array, ""], ...]
    walls: tuple[tuple[int, str], ...] = eqx.field(static=True)
    repeated: tuple[int, ...] = eqx.field(static=True)
    closed: bool = eqx.field(static=True)
    cells: tuple[int, ...] = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    m: int | None = eqx.field(static=True, default=None)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of the grid."""
        return AXES[: len(self.spacing)] if self.m is None else CYLINDRICAL_AXES

    @property
    def faces(self) -> tuple[str, ...]:
        """Names of the faces."""
        return tuple(self.flux)

    @property
    def ndim(self) -> int:
        """Dimension of the space: 3 in cylindrical coordinates."""
        return len(self.spacing) if self.m is None else 3

    @property
    def across(self) -> float:
        """Cells of the diagonal of the box, which about r = 0 is as wide along y."""
        return hypot(*self.cells, 0 if self.m is None else self.cells[0])

    def places(self, axis: int) -> list[Float[Array, "..."]]:
        """Returns the positions of all samples along an axis of space, in metres."""
        if self.m is None:
            return [one[axis] for one in self.coordinates.values()]
        found = [one[self.of_grid(axis)] for one in self.coordinates.values()]
        return found if axis == 2 else found + [-one for one in found]

    def of_grid(self, axis: int) -> int:
        """Returns the number of an axis of space among those of the grid."""
        return axis if self.m is None else axis // 2

    @property
    def outflow(self) -> Float[Array, " freqs"]:
        """Power out of the box through all faces, in the unit of `flux`."""
        return jnp.sum(jnp.stack(list(self.flux.values())), axis=0)


def recorded(near: Any) -> NearField:
    """Returns near fields, refusing what other monitors record."""
    if not isinstance(near, NearField):
        raise ArgumentError(
            f"`near` must be what a `NearFieldMonitor` recorded, but is {kind_of(near)}"
        )
    return near


def absorbed_power(near: NearField) -> Float[Array, " freqs"]:
    """Returns the power absorbed inside a box: minus the outflow.

    With the box of a plane wave around this one, it is what the inside absorbs. Sources
    inside count as negative absorption. What an `Apodised` monitor recorded does not
    balance: fields under a window do not solve Maxwell's equations.

    Args:
        near: From a `NearFieldMonitor` whose faces, with walls and periods, close.

    Returns:
        At each frequency, in the unit of a flux.

    Raises:
        ArgumentError: If the surface is open, or `near` of another monitor.
    """
    if not recorded(near).closed:
        raise ArgumentError(
            "`near` must be a closed surface for a balance of power, but has only the "
            f"faces {near.faces}. Record the others, too."
        )
    return -near.outflow
