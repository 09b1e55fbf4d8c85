"""What fills the cells of a port, at a frequency."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from .._checks import check
from ..grid import Box
from ..units import EPSILON_0, MU_0
from ._boxes import meet
from ._clock import stepped
from ._dispersion import Dispersion
from ._medium import Medium, Property, at_component
from ._poles import susceptibility


def property_in(value: Property, component: str, box: Box) -> Array:
    """Returns the entries of a property in a box; a number stands for all.

    Args:
        value: The property.
        component: Of which component.
        box: Samples of it.
    """
    value = jnp.asarray(at_component(value, component))
    if value.ndim == 0:
        return value
    for axis, span in enumerate(box):
        # The node of a magnetic wall behind the last cell is like its neighbour.
        cells = jnp.clip(jnp.arange(*span), 0, value.shape[axis] - 1)
        value = jnp.take(value, cells, axis)
    return value


class PortMedium(NamedTuple):
    """What fills the cells of a port in a run.

    Attributes:
        medium: The medium near the port, its design regions painted in.
        box: The samples of the port.
        shape: Cells of the grid.
        dt: Time step in seconds.
    """

    medium: Medium
    box: Box
    shape: tuple[int, ...]
    dt: Float[Array, ""]

    def permittivity(
        self, component: str, frequency: Float[Array, ""]
    ) -> Num[Array, "..."]:
        """Returns the permittivity of the samples, complex where there are poles.

        Conductivity is left out.

        Args:
            component: Of the electric field.
            frequency: In Hz.
        """
        value = property_in(self.medium.permittivity, component, self.box)
        seen = stepped(frequency, self.dt)
        for one in self.medium.dispersions:
            share = share_in(one, component, self.box, self.shape)
            if share is not None:
                value = value + share * susceptibility(one.poles, seen)
        return value

    def permeability(self, component: str) -> Float[Array, "..."]:
        """Returns the permeability of the samples of a magnetic component."""
        return property_in(self.medium.permeability, component, self.box)


def port_medium(
    medium: Medium,
    box: Box,
    normal: int,
    shape: tuple[int, ...],
    dt: Float[Array, ""],
) -> PortMedium:
    """Returns what fills the cells of a port.

    Args:
        medium: Of the whole run.
        box: The samples of the port.
        normal: The axis of the port.
        shape: Cells of the grid.
        dt: Time step in seconds.
    """
    return PortMedium(medium.near(box, shape, normal=normal), box, shape, dt)


def share_in(
    one: Dispersion, component: str, box: Box, shape: tuple[int, ...]
) -> Float[Array, "..."] | None:
    """Returns the fraction of a dispersion in each sample of a box, if in any."""
    cells = [
        np.clip(np.arange(*span), 0, n - 1) for span, n in zip(box, shape, strict=True)
    ]
    if not one.covers(component) or not meet(
        one.box, tuple((int(c[0]), int(c[-1]) + 1) for c in cells)
    ):
        return None
    value, inside = one.at(component), True
    for axis, (own, (low, high)) in enumerate(zip(cells, one.box, strict=True)):
        value = jnp.take(value, np.clip(own - low, 0, high - low - 1), axis)
        along = [-1 if a == axis else 1 for a in range(len(cells))]
        inside = inside & ((low <= own) & (own < high)).reshape(along)
    return jnp.where(inside, value, 0)


def may_absorb(medium: Medium) -> bool:
    """Whether anything in a medium may absorb: a conductivity, or poles."""
    regions = (one.conductivity for one in medium.regions)
    losses = medium.conductivity, medium.magnetic_conductivity, *regions
    return any(one is not None for one in losses) or bool(medium.dispersions)


# The mode of a port leaves loss out: an error in the index of some percent of it.
_LOSS = 0.1


def check_loss(
    found: PortMedium,
    names: tuple[str, ...],
    frequency: Float[Array, "*freqs"],
    what: str,
) -> Float[Array, "*freqs"]:
    r"""Raises if the medium of a port is a metal, or absorbs much.

    Args:
        found: What fills its cells.
        names: The electric components.
        frequency: In Hz.
        what: How messages name the port.

    Returns:
        The largest loss tangent $|\mathrm{Im}\,\epsilon| / \mathrm{Re}\,\epsilon$, or
        that of the permeability, of the samples; NaN, under `jit`, above the limit and
        in metals.

    Raises:
        ArgumentError: If it is above the limit, or the real part of the permittivity
            is not positive, and known.
    """
    if not may_absorb(found.medium):
        return jnp.zeros_like(frequency)
    # In 2-D the magnetic field has the axes that the electric one lacks.
    axes = [axis for axis in "xyz" if "E" + axis not in names] or list("xyz")

    def of(f: Float[Array, ""]) -> tuple[Array, Array]:
        least, losses = [], []
        for name in names:
            epsilon = found.permittivity(name, f)
            loss = jnp.abs(jnp.imag(epsilon))
            if found.medium.conductivity is not None:
                sigma = property_in(found.medium.conductivity, name, found.box)
                loss = loss + jnp.abs(sigma) / (2 * jnp.pi * f * EPSILON_0)
            least.append(jnp.min(jnp.real(epsilon)))
            losses.append(jnp.max(loss / jnp.abs(jnp.real(epsilon))))
        for name in ["H" + axis for axis in axes]:
            if found.medium.magnetic_conductivity is not None:
                sigma = property_in(found.medium.magnetic_conductivity, name, found.box)
                mu = 2 * jnp.pi * f * MU_0 * found.permeability(name)
                losses.append(jnp.max(jnp.abs(sigma) / mu))
        return jnp.min(jnp.stack(least)), jnp.max(jnp.stack(losses))

    least, loss = (jax.vmap(of) if frequency.ndim else of)(frequency)
    least = check(
        least,
        least > 0,
        f"The real part of the permittivity must be positive in {what} (end the port "
        "before the metal, or use PEC faces)",
    )
    return 0 * least + check(
        loss,
        loss <= _LOSS,
        f"The loss tangent of the medium must be at most {_LOSS:g} in {what}, whose "
        "mode neglects loss (use PEC faces, or a smaller loss)",
    )
