"""What a shape is, and the union, intersection and difference of shapes."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._checks import ArgumentError, kind_of, traced, whole
from ._overlap import Intervals
from ._sections import Cells, is_line, shape_of
from ._visible import beneath, visible


class AbstractShape(eqx.Module):
    """A region of space, differentiable in its position and size.

    Lengths are in metres. A grid with fewer than three axes is a cut through the shape
    at coordinate 0 of the axes that it lacks. `a | b`, `a & b` and `a - b` are the
    union, the intersection and the difference.
    """

    @abstractmethod
    def covered(self, cells: Sequence[Cells]) -> Float[Array, "..."]:
        """Returns the fraction of each cell that the shape covers, between 0 and 1.

        Differentiable in the shape and in the positions of the cells.

        Args:
            cells: The cells along x, y and z in arrays that broadcast against each
                other; a cut, or None for one at 0, for an axis that the grid lacks.

        Returns:
            An array that broadcasts against those of `cells`.
        """

    @abstractmethod
    def bounds(self) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        """Returns the lower and the upper corner of a box around the shape.

        The box of a difference is that of all of the first shape, that of an
        intersection what the boxes have in common.

        Returns:
            The corners (x, y, z) in metres, infinite along an axis without end.
        """

    def __or__(self, other: "AbstractShape") -> "Union":
        return Union((*_members(self, Union), other))

    def __and__(self, other: "AbstractShape") -> "Intersection":
        return Intersection((*_members(self, Intersection), other))

    def __sub__(self, other: "AbstractShape") -> "Difference":
        return Difference(self, other)


class Alike(NamedTuple):
    """Shapes of one kind, which differ in the values of their arrays alone.

    Attributes:
        places: Where they stand in the list of all shapes.
        arrays: The arrays of each.
        rest: What they have in common.
    """

    places: list[int]
    arrays: list[AbstractShape]
    rest: AbstractShape

    def stacked(self) -> AbstractShape:
        """Returns the arrays of all along a new leading axis."""
        return jax.tree.map(lambda *x: jnp.stack(x), *self.arrays)


def kinds_of(shapes: Sequence[AbstractShape]) -> list[Alike]:
    """Groups shapes by kind, those that are traced for themselves."""
    kinds: dict[Any, Alike] = {}
    for i, shape in enumerate(shapes):
        arrays, rest = eqx.partition(shape, eqx.is_array)
        leaves, tree = jax.tree.flatten(arrays)
        forms = [(leaf.shape, leaf.dtype) for leaf in leaves]
        common, outline = jax.tree.flatten(rest)
        # True is 1 as a key, but no number.
        common = [(type(leaf), leaf) for leaf in common]
        # A loop runs over arrays: shapes without any stay alone.
        key = (tree, *forms, outline, *common, traced(leaves) if leaves else i)
        alike = kinds.setdefault(key, Alike([], [], rest))
        alike.places.append(i)
        alike.arrays.append(arrays)
    return list(kinds.values())


def covered_by_each(
    shapes: Sequence[AbstractShape], cells: Sequence[Cells]
) -> list[Float[Array, "..."]]:
    """Returns the fraction of each cell that each of several shapes covers.

    Under `jit` or a derivative shapes of one kind go through a loop, which is compiled
    once, not once for each.
    """
    found = {}
    # Known shapes count as traced under `jit`, where every new array is.
    new = jnp.zeros(())
    for alike in kinds_of(shapes):
        if len(alike.places) == 1 or not traced((alike.arrays, cells, new)):
            parts = [_covered(shapes[i], cells) for i in alike.places]
        else:
            parts = _covered_in_turn(alike.stacked(), alike.rest, cells)
        found |= dict(zip(alike.places, parts, strict=True))
    return [found[i] for i in range(len(shapes))]


@eqx.filter_jit
def _covered(shape: AbstractShape, cells: Sequence[Cells]) -> Array:
    covered = shape.covered(cells)
    # A number that was refused under `jit` is NaN: a cell would count as outside of it.
    numbers = jax.tree.leaves(eqx.filter(shape, eqx.is_inexact_array))
    refused = [jnp.any(jnp.isnan(x)) for x in numbers]
    return jnp.where(jnp.any(jnp.asarray(refused)), jnp.nan, covered)


@eqx.filter_jit
def _covered_in_turn(
    arrays: AbstractShape, rest: AbstractShape, cells: Sequence[Cells]
) -> Array:
    @jax.checkpoint
    def one(arrays):
        return _covered(eqx.combine(arrays, rest), cells)

    return lax.map(one, arrays)


_FILL_LATER = "Combine shapes, then fill them: `Structure(a | b, material)`."


def as_shape(
    value: Any, name: str = "shape", remedy: str = _FILL_LATER
) -> AbstractShape:
    """Returns a shape, refusing anything else."""
    if isinstance(value, AbstractShape):
        return value
    raise ArgumentError(
        f"`{name}` must be a shape such as `Box`, but is {kind_of(value)} {remedy}"
    )


def _shapes(shapes: Any) -> tuple[AbstractShape, ...]:
    if not isinstance(shapes, Iterable):
        raise ArgumentError(
            f"`shapes` must be a list of shapes, but is {kind_of(shapes)} Write "
            "`[a, b]`."
        )
    shapes = tuple(as_shape(one, f"shapes[{k}]") for k, one in enumerate(shapes))
    if not shapes:
        raise ArgumentError("`shapes` must have at least one shape, but has none.")
    return shapes


def _parts(parts: Any) -> int:
    return whole(parts, "parts")


_PARTS = 2


def _members(shape: AbstractShape, kind: type) -> tuple[AbstractShape, ...]:
    """Returns the shapes of a combination of one kind, or else the shape.

    Of `a | b | c` cells are then divided once, not once for each `|`.
    """
    listed = isinstance(shape, (Union, Intersection))
    if listed and type(shape) is kind and shape.parts == _PARTS:
        return shape.shapes
    return (shape,)


def _ends(shapes: Sequence[AbstractShape]) -> tuple[Array, Array]:
    """Returns the lower and the upper corners of the boxes around shapes."""
    low, high = zip(*(shape.bounds() for shape in shapes), strict=True)
    return jnp.stack(low), jnp.stack(high)


def _divided(cells: Cells, axis: int, ndim: int, parts: int) -> Cells:
    """Cuts each cell along an axis into equal parts, which still touch."""
    if not isinstance(cells, Intervals):
        return cells
    width = (cells.below + cells.above).ravel() / parts
    number = jnp.arange(parts)
    middle = (number + 0.5)[None] * width[:, None] - cells.below.ravel()[:, None]
    shape = [1] * ndim
    shape[axis] = width.size * parts
    position = (cells.position.ravel()[:, None] + middle).reshape(shape)
    half = jnp.repeat(width / 2, parts).reshape(shape)
    return Intervals(position, half, half)


def _combined(cells: Sequence[Cells], parts: int, combine) -> Float[Array, "..."]:
    """Averages what `combine` makes of the parts of each cell."""
    present = [k for k, axis in enumerate(cells) if isinstance(axis, Intervals)]
    # The cells of a shape that is turned are parts already.
    if parts == 1 or not present or not all(is_line(cells[k], k) for k in present):
        return combine(cells)
    ndim = len(shape_of(cells))
    fine = [_divided(axis, k, ndim, parts) for k, axis in enumerate(cells)]
    whole, each = shape_of(fine), [parts if k in present else 1 for k in range(ndim)]

    @jax.checkpoint
    def mean(fine):
        fraction = jnp.broadcast_to(combine(fine), whole)
        split = [n for all_, p in zip(whole, each, strict=True) for n in (all_ // p, p)]
        return fraction.reshape(split).mean(axis=tuple(range(1, 2 * ndim, 2)))

    return mean(fine)


def left_free(
    covered: Callable[[Any], Array],
    copies: Any,
    cells: Sequence[Cells],
) -> Float[Array, "..."]:
    """Returns the part of each cell that several copies of a shape leave free.

    Args:
        covered: Returns the fraction of each cell that a copy covers.
        copies: The copies along the leading axis. They come one after the other, for
            the fractions of all may not fit in memory.
        cells: The cells.
    """

    @jax.checkpoint
    def without(room, copy):
        part = jnp.broadcast_to(covered(copy), room.shape)
        return beneath(part, room)[1], None

    first = jax.eval_shape(covered, jax.tree.map(lambda x: x[0], copies))
    return lax.scan(without, jnp.ones(shape_of(cells), first.dtype), copies)[0]


def _together(
    shapes: Sequence[AbstractShape], cells: Sequence[Cells], parts: int, *, all_: bool
) -> Float[Array, "..."]:
    """Returns what all of several shapes cover, or any of them."""

    def combine(cells):
        found = []
        for alike in kinds_of(shapes):

            def part_of(arrays, rest=alike.rest):
                part = eqx.combine(arrays, rest).covered(cells)
                # What all cover is what no complement does.
                return 1 - part if all_ else part

            if len(alike.places) == 1:
                found.append(part_of(alike.arrays[0]))
            else:
                found.append(1 - left_free(part_of, alike.stacked(), cells))
        free, _ = visible(found)
        return free if all_ else 1 - free

    return _combined(cells, parts, combine)


class Union(AbstractShape):
    """What any of several shapes covers.

    Exact where one shape alone cuts a part of a cell, or two whose borders are parallel
    or perpendicular: touching shapes leave no seam except at their ends. Where others
    cross, the error of that part is about 0.1.

    Attributes:
        shapes: The shapes.
        parts: Into how many parts each cell is divided along each axis.

    Raises:
        ArgumentError: If `shapes` is empty or holds anything else, or `parts` is not a
            positive integer.
    """

    shapes: tuple[AbstractShape, ...] = eqx.field(converter=_shapes)
    parts: int = eqx.field(static=True, default=_PARTS, converter=_parts)

    def covered(self, cells):
        return _together(self.shapes, cells, self.parts, all_=False)

    def bounds(self):
        low, high = _ends(self.shapes)
        return jnp.min(low, axis=0), jnp.max(high, axis=0)


class Intersection(AbstractShape):
    """What all of several shapes cover, with the accuracy of a `Union`.

    Attributes:
        shapes: The shapes.
        parts: Into how many parts each cell is divided along each axis.

    Raises:
        ArgumentError: If `shapes` is empty or holds anything else, or `parts` is not a
            positive integer.
    """

    shapes: tuple[AbstractShape, ...] = eqx.field(converter=_shapes)
    parts: int = eqx.field(static=True, default=_PARTS, converter=_parts)

    def covered(self, cells):
        return _together(self.shapes, cells, self.parts, all_=True)

    def bounds(self):
        low, high = _ends(self.shapes)
        low, high = jnp.max(low, axis=0), jnp.min(high, axis=0)
        # Of shapes that do not meet nothing is left, at a point.
        return low, jnp.maximum(low, high)


class Difference(AbstractShape):
    """What one shape covers and another does not, with the accuracy of a `Union`.

    Attributes:
        shape: The shape.
        hole: What is taken away.
        parts: Into how many parts each cell is divided along each axis.

    Raises:
        ArgumentError: If one is not a shape, or `parts` is not a positive integer.
    """

    shape: AbstractShape = eqx.field(converter=as_shape)
    hole: AbstractShape = eqx.field(converter=lambda hole: as_shape(hole, "hole"))
    parts: int = eqx.field(static=True, default=_PARTS, converter=_parts)

    def covered(self, cells):
        return _combined(
            cells,
            self.parts,
            lambda cells: visible(
                [1 - self.shape.covered(cells), self.hole.covered(cells)]
            )[0],
        )

    def bounds(self):
        return self.shape.bounds()
