"""A field: sampled values together with where the samples lie."""

import operator
from collections.abc import Callable
from numbers import Number
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, numeric
from ._grid import Grid


class GridMismatchError(ArgumentError):
    """Two fields are sampled at different points, or values do not fit to a grid."""


class Field(eqx.Module):
    r"""Values on a grid, with the place of the samples inside the cells.

    Along an axis of stagger 0 the sample $i$ lies at node $i$, along one of stagger 0.5
    at $i + 1/2$. All fields of a grid have its shape, whatever their stagger. Fields
    add, subtract, multiply and divide sample by sample with numbers and with fields of
    equal stagger and grid shape; a mismatch is an error and never an interpolation.

    Attributes:
        values: Samples, in the unit of the quantity. The last axes are those of the
            grid; axes before them are free (components, frequencies, times).
        stagger: For each axis of the grid 0 or 0.5.
        grid: Where the cells lie.

    Raises:
        GridMismatchError: If the values do not have the shape of the grid.
        ArgumentError: If the stagger is not one of 0 and 0.5 for each axis.
    """

    values: Num[Array, "..."] = eqx.field(converter=numeric("values"))
    stagger: tuple[float, ...] = eqx.field(
        static=True, converter=lambda stagger: tuple(map(float, stagger))
    )
    grid: Grid

    # NumPy arrays and scalars on the left leave the operation to this class.
    __array_ufunc__ = None

    def __check_init__(self):
        ndim = self.grid.ndim
        if len(self.stagger) != ndim or not set(self.stagger) <= {0.0, 0.5}:
            raise ArgumentError(
                f"`stagger` must be 0 or 0.5 for each of the {ndim} axes of the grid, "
                f"but is {self.stagger}."
            )
        if self.values.shape[-ndim:] != self.grid.shape:
            raise GridMismatchError(
                f"`values` must end in the shape of the grid, {self.grid.shape}, but "
                f"have shape {self.values.shape}."
            )

    def coordinates(self) -> tuple[Float[Array, " _"], ...]:
        """Positions of the samples along each axis, in metres."""
        return tuple(
            self.grid.coordinates(axis, stagger)
            for axis, stagger in enumerate(self.stagger)
        )

    def __add__(self, other: "Field | Num[ArrayLike, '...']") -> "Field":
        return _combine(operator.add, self, other)

    def __radd__(self, other: Num[ArrayLike, "..."]) -> "Field":
        return _combine(operator.add, self, other)

    def __sub__(self, other: "Field | Num[ArrayLike, '...']") -> "Field":
        return _combine(operator.sub, self, other)

    def __rsub__(self, other: Num[ArrayLike, "..."]) -> "Field":
        return _combine(lambda a, b: b - a, self, other)

    def __mul__(self, other: "Field | Num[ArrayLike, '...']") -> "Field":
        return _combine(operator.mul, self, other)

    def __rmul__(self, other: Num[ArrayLike, "..."]) -> "Field":
        return _combine(operator.mul, self, other)

    def __truediv__(self, other: "Field | Num[ArrayLike, '...']") -> "Field":
        return _combine(operator.truediv, self, other)

    def __rtruediv__(self, other: Num[ArrayLike, "..."]) -> "Field":
        return _combine(lambda a, b: b / a, self, other)

    def __neg__(self) -> "Field":
        return Field(-self.values, self.stagger, self.grid)


def _combine(
    operation: Callable[[Any, Any], Any],
    field: Field,
    other: Field | ArrayLike,
) -> Field:
    """Applies an operation to a field and to a number or a matching field."""
    if isinstance(other, Field):
        if field.stagger != other.stagger:
            raise GridMismatchError(
                "Fields must have equal stagger, but have "
                f"{field.stagger} and {other.stagger}. Sample one where the other is."
            )
        if field.grid.shape != other.grid.shape:
            raise GridMismatchError(
                "Fields must have grids of equal shape, but have "
                f"{field.grid.shape} and {other.grid.shape}."
            )
        return Field(operation(field.values, other.values), field.stagger, field.grid)
    # A bare array has no stagger that could be compared; only numbers are safe.
    if not isinstance(other, Number | np.generic | np.ndarray | jax.Array):
        return NotImplemented
    if jnp.ndim(other):
        raise GridMismatchError(
            "A field combines with numbers and with fields, but the array has shape "
            f"{jnp.shape(other)}. Make a Field of it, with its stagger."
        )
    return Field(operation(field.values, other), field.stagger, field.grid)
