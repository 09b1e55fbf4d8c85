"""Symmetries of a design: the same after a mirror, a rotation or a transposition."""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import ArgumentError, instance, whole
from ._argument_checks import as_density, as_sequence


class _Move(NamedTuple):
    """A rearrangement: axis i comes from axis `source[i]`, reversed if flipped."""

    source: tuple[int, ...]
    flipped: tuple[bool, ...]

    def after(self, first: "_Move") -> "_Move":
        """Returns the move that does `first` and then this one."""
        return _Move(
            tuple(first.source[axis] for axis in self.source),
            tuple(
                flip != first.flipped[axis]
                for flip, axis in zip(self.flipped, self.source, strict=True)
            ),
        )

    def of(self, values: Array) -> Array:
        moved = jnp.transpose(values, self.source)
        return jnp.flip(moved, [i for i, flip in enumerate(self.flipped) if flip])


def _still(ndim: int) -> _Move:
    return _Move(tuple(range(ndim)), (False,) * ndim)


class AbstractSymmetry(eqx.Module):
    """An operation that leaves a design as it is."""

    @abstractmethod
    def move(self, ndim: int) -> _Move:
        """Returns the operation as a rearrangement of `ndim` axes."""


def _check_axes(axes: tuple[int, ...], ndim: int) -> None:
    if len(set(axes)) != len(axes) or not all(0 <= axis < ndim for axis in axes):
        raise ArgumentError(
            f"The axes of a symmetry must be different and lie between 0 and "
            f"{ndim - 1}, but are {axes}."
        )


def _pair(axes: Any) -> tuple[int, ...]:
    each = as_sequence(axes, "axes", "(0, 1)")
    if len(each) != 2:
        raise ArgumentError(f"`axes` must be two axes, but is {axes!r}.")
    return tuple(whole(axis, "axes", 0) for axis in each)


class Mirror(AbstractSymmetry):
    """A mirror through the middle.

    Attributes:
        axis: The axis that is reversed.
    """

    axis: int = eqx.field(static=True, converter=lambda x: whole(x, "axis", 0))

    def move(self, ndim: int) -> _Move:
        _check_axes((self.axis,), ndim)
        flipped = tuple(axis == self.axis for axis in range(ndim))
        return _Move(tuple(range(ndim)), flipped)


class Rotation(AbstractSymmetry):
    """A rotation about the middle, by half a turn or a quarter.

    Attributes:
        order: How many of them make a whole turn: 2 for 180 degrees, 4 for 90.
        axes: The two axes of the plane in which it turns.

    Raises:
        ArgumentError: If `order` is neither 2 nor 4.
    """

    order: int = eqx.field(
        static=True, default=2, converter=lambda x: whole(x, "order")
    )
    axes: tuple[int, ...] = eqx.field(static=True, default=(0, 1), converter=_pair)

    def __check_init__(self):
        if self.order not in (2, 4):
            raise ArgumentError(f"`order` must be 2 or 4, but is {self.order}.")

    def move(self, ndim: int) -> _Move:
        _check_axes(self.axes, ndim)
        a, b = self.axes
        source, flipped = list(range(ndim)), [False] * ndim
        flipped[a] = True
        if self.order == 2:
            flipped[b] = True
        else:
            source[a], source[b] = b, a
        return _Move(tuple(source), tuple(flipped))


class Transposition(AbstractSymmetry):
    """Two axes exchanged: a mirror through the diagonal.

    Attributes:
        axes: The two axes.
    """

    axes: tuple[int, ...] = eqx.field(static=True, default=(0, 1), converter=_pair)

    def move(self, ndim: int) -> _Move:
        _check_axes(self.axes, ndim)
        source = list(range(ndim))
        a, b = self.axes
        source[a], source[b] = b, a
        return _Move(tuple(source), (False,) * ndim)


def symmetrise(
    density: Float[Array, "*cells"], *symmetries: AbstractSymmetry
) -> Float[Array, "*cells"]:
    """Returns the mean over all images of a density under its symmetries.

    The result has every one of them, and what follows from several together, to the
    last bit. One that already has them does not change.

    Args:
        density: Values on cells.
        *symmetries: The symmetries.

    Returns:
        The symmetric density.

    Raises:
        ArgumentError: If an axis is missing, if axes of different lengths would be
            exchanged, or if together the symmetries permute three axes cyclically.
    """
    density = as_density(density)
    for symmetry in symmetries:
        instance(symmetry, "symmetries", AbstractSymmetry)
    moves = [symmetry.move(density.ndim) for symmetry in symmetries]
    for move in moves:
        lengths = tuple(density.shape[axis] for axis in move.source)
        if lengths != density.shape:
            raise ArgumentError(
                "`density` must have the same number of cells along axes that a "
                f"symmetry exchanges, but has shape {density.shape}."
            )
    whole = _generated(moves, density.ndim)
    done = {_still(density.ndim)}
    while len(done) < len(whole):
        move = _next(whole, done)
        # A mean of two is the same whichever comes first: this keeps it exact.
        density = (density + move.of(density)) / 2
        done |= {move.after(other) for other in done}
    return density


def _generated(moves: list[_Move], ndim: int) -> set[_Move]:
    """All moves that follow from some."""
    found = {_still(ndim)}
    fresh = found
    while fresh:
        fresh = {move.after(old) for move in moves for old in fresh} - found
        found = found | fresh
    return found


def _next(whole: set[_Move], done: set[_Move]) -> _Move:
    """A move that, done twice, is among those done, and that exchanges only those."""
    for move in sorted(whole - done):
        same = {move.after(old) for old in done} == {old.after(move) for old in done}
        if same and move.after(move) in done:
            return move
    raise ArgumentError(
        "`symmetries` must not permute three axes cyclically, but together these do. "
        "Leave one of the transpositions or rotations out."
    )
