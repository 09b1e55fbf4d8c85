"""What a filter finds beyond the edge of a design."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import ArgumentError, finite, forgotten, whole
from ._argument_checks import as_density, as_sequence


class AbstractBoundary(eqx.Module):
    """What lies beyond the edge of a design along one axis."""


class Replicate(AbstractBoundary):
    """The cell at the edge continues."""


class Wrap(AbstractBoundary):
    """The design repeats itself: one cell of a periodic structure."""


class Fill(AbstractBoundary):
    """One density everywhere, 0 for void and 1 for solid.

    Attributes:
        value: The density.
    """

    value: Float[Array, ""] = eqx.field(converter=finite("value"), default=0.0)


class Renormalise(AbstractBoundary):
    """Nothing: the mean is taken over the cells of the design alone."""


def _cell(low: Any) -> tuple[int, ...]:
    return tuple(whole(entry, "low", 0) for entry in as_sequence(low, "low", "(0, 0)"))


class Surround(eqx.Module):
    """A known density around the design, such as the waveguides that end there.

    Covers all axes at once. Beyond its own edge it is replicated.

    Attributes:
        values: Densities of a larger piece; those where the design is do not matter.
        low: The cell of `values` at which the design begins, along each axis.

    Raises:
        ArgumentError: If `low` does not have one integer of at least 0 for each axis.
    """

    values: Float[Array, "*cells"] = eqx.field(
        converter=lambda x: as_density(x, "values")
    )
    low: tuple[int, ...] = eqx.field(static=True, converter=_cell)

    def __check_init__(self):
        if len(self.low) != self.values.ndim:
            raise ArgumentError(
                f"`low` must have one entry for each axis of `values`, "
                f"{self.values.ndim}, but is {self.low}."
            )


Boundary = AbstractBoundary | Surround | Sequence[AbstractBoundary]


def as_boundary(boundary: Any) -> Boundary:
    """Returns what a filter finds beyond the edges.

    Args:
        boundary: What was given.

    Raises:
        ArgumentError: If it is neither a boundary nor a sequence of them.
    """
    if isinstance(boundary, Surround):
        return boundary
    for one in boundary if isinstance(boundary, list | tuple) else (boundary,):
        if not isinstance(one, AbstractBoundary):
            raise ArgumentError(
                "`boundary` must be a boundary such as `Replicate()`, or one for each "
                f"axis, but is {boundary!r}.{forgotten(one)}"
            )
    return boundary


def along_axes(
    boundary: Boundary, ndim: int
) -> Surround | tuple[AbstractBoundary, ...]:
    """Returns one boundary for each axis, or the surroundings of all.

    Args:
        boundary: One for all axes, or one for each.
        ndim: Number of axes.

    Returns:
        The surroundings, or a boundary for each axis.

    Raises:
        ArgumentError: If there is not one for each axis.
    """
    if isinstance(boundary, Surround):
        return boundary
    if isinstance(boundary, AbstractBoundary):
        return (boundary,) * ndim
    if len(boundary) != ndim:
        raise ArgumentError(
            f"`boundary` must be one boundary or one for each of {ndim} axes, but has "
            f"{len(boundary)}."
        )
    return tuple(boundary)


def surround(
    density: Float[Array, "*cells"], around: Surround, reach: Sequence[int]
) -> tuple[Float[Array, "..."], tuple[int, ...]]:
    """Sets a design into its surroundings, as far as a filter reaches.

    Args:
        density: The design.
        around: The surroundings.
        reach: Cells that the filter reaches along each axis.

    Returns:
        The piece, and the cell of it at which the design begins.

    Raises:
        ArgumentError: If the design does not fit into the surroundings.
    """
    shape = around.values.shape
    fits = density.ndim == len(shape) and all(
        low >= 0 and low + cells <= size
        for low, cells, size in zip(around.low, density.shape, shape, strict=False)
    )
    if not fits:
        raise ArgumentError(
            f"`values` of the surroundings, of shape {shape}, must hold the design of "
            f"shape {density.shape} at {around.low}, but do not. Give more cells or "
            "another `low`."
        )
    first = [max(low - far, 0) for low, far in zip(around.low, reach, strict=True)]
    last = [
        min(low + cells + far, size)
        for low, cells, far, size in zip(
            around.low, density.shape, reach, shape, strict=True
        )
    ]
    start = tuple(low - begin for low, begin in zip(around.low, first, strict=True))
    piece = jax.lax.slice(around.values, first, last).astype(density.dtype)
    return jax.lax.dynamic_update_slice(piece, density, start), start


def pad(
    density: Float[Array, "*cells"],
    boundaries: Sequence[AbstractBoundary],
    reach: Sequence[int],
) -> Float[Array, "..."]:
    """Continues a density beyond its edges.

    Args:
        density: The density.
        boundaries: What is there, for each axis. `Wrap` adds nothing: a Fourier
            transform wraps on its own.
        reach: Cells to add on either side of each axis.

    Returns:
        The longer density, with zeros for `Renormalise`.
    """
    for axis, (boundary, far) in enumerate(zip(boundaries, reach, strict=True)):
        if isinstance(boundary, Wrap) or far == 0:
            continue
        width = [(0, 0)] * density.ndim
        width[axis] = (far, far)
        if isinstance(boundary, Replicate):
            density = jnp.pad(density, width, mode="edge")
            continue
        value = boundary.value if isinstance(boundary, Fill) else 0.0
        density = jnp.pad(density, width, constant_values=value)
    return density
