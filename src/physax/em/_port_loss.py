"""Loss of the medium in a port, which its mode leaves out."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import check
from ..grid import Box
from ..units import EPSILON_0
from ._medium import Medium, Property, at_component


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


# The mode of a port leaves loss out: an error in the index of some percent of it.
_LOSS = 0.1


def check_loss(
    medium: Medium,
    shape: tuple[int, ...],
    names: tuple[str, ...],
    box: Box,
    frequency: Float[Array, "*freqs"],
    what: str,
) -> Float[Array, "*freqs"]:
    r"""Refuses a port in a medium that conducts.

    Args:
        medium: What fills the grid.
        shape: Cells of the grid.
        names: The electric components.
        box: The samples of the port.
        frequency: In Hz.
        what: How messages name the port.

    Returns:
        The largest $|\sigma| / (\omega \epsilon)$ in the box; NaN, under `jit`, above
        the limit.

    Raises:
        ArgumentError: If it is above the limit and known.
    """
    medium = medium.near(box, shape)
    if medium.conductivity is None:
        return jnp.zeros_like(frequency)
    ratios = [
        jnp.abs(property_in(medium.conductivity, name, box))
        / property_in(medium.permittivity, name, box)
        for name in names
    ]
    largest = jnp.max(jnp.stack([jnp.max(ratio) for ratio in ratios]))
    loss = largest / (2 * jnp.pi * frequency * EPSILON_0)
    return check(
        loss,
        loss <= _LOSS,
        "`conductivity` over the angular frequency times the permittivity must be at "
        f"most {_LOSS:g} in {what}, whose mode neglects loss (use PEC faces, or a "
        "smaller loss)",
    )
