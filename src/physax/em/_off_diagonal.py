"""Media whose principal axes do not lie along the grid."""

from typing import Any

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._checks import ArgumentError, as_array
from ..grid import AXES, Box
from ._boxes import as_box, cells_of, common, size_of


PAIRS = ("xy", "xz", "yz")


def _entries(value: Any) -> dict[str, Array]:
    if not isinstance(value, dict) or not value or set(value) - set(PAIRS):
        raise ArgumentError(
            f"`inverse` must be a dictionary with keys of {PAIRS}, but is {value!r}."
        )
    found = {}
    for key, given in value.items():
        entry = as_array(given, "inverse")
        if not jnp.issubdtype(entry.dtype, jnp.floating):
            raise ArgumentError(
                f"`inverse`[{key!r}] must be real, but has dtype {entry.dtype}."
            )
        if not isinstance(entry, jax.core.Tracer):
            bad = ~np.isfinite(np.asarray(entry))
            if bad.any():
                index = tuple(map(int, np.argwhere(bad)[0]))
                raise ArgumentError(
                    f"`inverse`[{key!r}] must be finite, but is not in cell {index}."
                )
        found[key] = entry
    return found


class OffDiagonal(eqx.Module):
    r"""The off-diagonal entries of the inverse permittivity, in a box of cells.

    With them $\partial_t E = c\, \Xi\, \nabla \times (\eta_0 H)$, where $\Xi$ has on
    its diagonal the inverse of the permittivity of each component, at its points, and
    off it these entries, at the nodes: curls are averaged to the nodes along their own
    axes, multiplied and averaged back, so that the energy is conserved. Reference:
    Werner and Cary, J. Comput. Phys. 226, 1085 (2007).

    Attributes:
        box: For each axis the first cell and one past the last.
        inverse: By pair of axes, `"xy"`, `"xz"` or `"yz"`, an entry for the node at
            the low corner of each cell of the box. Zero at its low end along the axes
            of the pair, where the box neither spans a period nor begins at a wall: the
            nodes there lack a neighbour. On a wall the field along it is not coupled.

    Raises:
        ArgumentError: If an entry is not real and finite, or not of the shape of the
            box.
    """

    box: Box = eqx.field(static=True, converter=as_box)
    inverse: dict[str, Float[Array, "*box"]] = eqx.field(converter=_entries)

    def cut(self, box: Box) -> Float[Array, "pairs ..."]:
        """Returns the entries in some cells of the grid."""
        return self._cut(tuple(self.inverse), box)

    def _cut(self, pairs: tuple[str, ...], box: Box) -> Float[Array, "pairs ..."]:
        where = cells_of(common(box, self.box), self.box)
        found = [self.inverse[pair][where] for pair in pairs]
        return jnp.stack(found) if found else jnp.zeros(0)

    def sound(self, box: Box, normal: int | None = None) -> Bool[Array, ""]:
        """Whether the entries in some cells of the grid are zero.

        Args:
            box: The cells.
            normal: The axis of a port. Entries within its plane may be those of
                borders, not those of a crystal.
        """
        if normal is None:
            return jnp.all(self.cut(box) == 0)
        across = tuple(pair for pair in self.inverse if AXES[normal] in pair)
        inside = tuple(pair for pair in self.inverse if AXES[normal] not in pair)
        crystal = largest_of_crystals(self._cut(inside, box), normal) > NOISE
        return jnp.all(self._cut(across, box) == 0) & ~crystal

    def __check_init__(self):
        for key, entry in self.inverse.items():
            if entry.shape != size_of(self.box):
                raise ArgumentError(
                    f"`inverse`[{key!r}] must have the shape {size_of(self.box)} of "
                    f"its box, but has shape {entry.shape}."
                )


NOISE = 1e-5
"""Off-diagonal entries below this part of the diagonal are rounding."""

# Relative difference of entries in one crystal.
_ALIKE = 1e-3


def largest_of_crystals(
    entries: Float[Array, "pairs ..."], normal: int | None = None
) -> Float[Array, ""]:
    """Returns the largest entry of a cell whose neighbour has the same.

    Args:
        entries: Of cells of the grid. Cells on borders differ from their neighbours.
        normal: An axis of the grid along which they do not.
    """
    largest = jnp.zeros((), entries.dtype)
    for axis in range(1, entries.ndim):
        # Of a single cell there is none, and of no entry the tangent would be NaN.
        if axis - 1 == normal or entries.shape[axis] == 1:
            continue
        same = jnp.abs(_repeated(entries, axis))
        largest = jnp.maximum(largest, jnp.max(same, initial=0))
    return largest


def _repeated(entries: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Returns entries that the next cell along an axis has too, others as 0."""
    along = (slice(None),) * axis
    one, other = entries[*along, :-1], entries[*along, 1:]
    return jnp.where(jnp.abs(one - other) <= _ALIKE * jnp.abs(one), one, 0)


def largest_of_patches(
    entries: Float[Array, "*cells"], axes: tuple[int, ...]
) -> Float[Array, ""]:
    """Returns the largest entry that neighbours along all of some axes have.

    With the axes of its pair it is one of a crystal, also of one a cell thick along the
    third: a border that is oblique to both does not cut a patch of four cells in the
    same way.

    Args:
        entries: Of one pair, in cells of the grid.
        axes: Those of the patch; where there is one cell along an axis it counts.
    """
    for axis in axes:
        if entries.shape[axis] > 1:
            entries = _repeated(entries, axis)
    return jnp.max(jnp.abs(entries), initial=0)
