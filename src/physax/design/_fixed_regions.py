"""Cells of a design that are not free."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from .._checks import ArgumentError, refuse_traced
from ._argument_checks import as_density


def _mask(x: ArrayLike | None, name: str) -> np.ndarray | None:
    if x is None:
        return None
    refuse_traced(x, name, "Make the regions outside of the traced function.")
    mask = np.asarray(x)
    if mask.dtype != bool:
        raise ArgumentError(f"`{name}` must hold booleans, but holds {mask.dtype}.")
    return mask


class FixedRegions(eqx.Module):
    """Cells that are always solid, and cells that are always void.

    Call it with a density. Before the filter it fixes what the filter sees; after the
    projection it fixes the device. Usually you need both.

    Attributes:
        solid: Where the density is 1; None for nowhere.
        void: Where the density is 0; None for nowhere.

    Raises:
        ArgumentError: If a mask is not of booleans, the two have different shapes, or a
            cell is in both.
    """

    solid: Bool[Array, "*cells"] | None
    void: Bool[Array, "*cells"] | None

    def __init__(self, solid: ArrayLike | None = None, void: ArrayLike | None = None):
        """Checks the masks.

        Args:
            solid: Where the density is 1.
            void: Where the density is 0.
        """
        one, other = _mask(solid, "solid"), _mask(void, "void")
        if one is not None and other is not None:
            _check_pair(one, other)
        self.solid = None if one is None else jnp.asarray(one)
        self.void = None if other is None else jnp.asarray(other)

    def __call__(self, density: Float[Array, "*cells"]) -> Float[Array, "*cells"]:
        """Sets the cells that are not free.

        Args:
            density: Values on cells.

        Returns:
            The density with 1 and 0 there.

        Raises:
            ArgumentError: If a mask does not have the shape of the density.
        """
        density = as_density(density)
        for name, mask, value in (("solid", self.solid, 1), ("void", self.void, 0)):
            if mask is None:
                continue
            if mask.shape != density.shape:
                raise ArgumentError(
                    f"`{name}` must have the shape of the density, {density.shape}, "
                    f"but has {mask.shape}."
                )
            density = jnp.where(mask, jnp.asarray(value, density.dtype), density)
        return density


def _check_pair(solid: np.ndarray, void: np.ndarray) -> None:
    if solid.shape != void.shape:
        raise ArgumentError(
            f"`solid` and `void` must have one shape, but have {solid.shape} and "
            f"{void.shape}."
        )
    both = np.argwhere(solid & void)
    if both.size:
        first = tuple(int(i) for i in both[0])
        raise ArgumentError(
            f"`solid` and `void` must have no cell in common, but share {len(both)}, "
            f"the first at {first}. Clear these cells in one of the masks."
        )
