"""A block of a grid and its neighbours: the halo provider of every stencil."""

import math
from collections.abc import Callable
from typing import ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, Num

from .._loop import shared
from ._in_place import write_in_place


Box = tuple[tuple[int, int], ...]
"""Half-open ranges of cells, one for each axis, in the numbering of the whole grid."""

Spans = tuple[tuple[int, int] | None, ...]
"""The same, or `None` for all cells that a block has along an axis."""

Carry = TypeVar("Carry")

# Cells of a plane from which on two threads are faster than one compiled loop.
_SMALL = 100_000


def _along(values: Array, axis: int, low: int, high: int) -> Array:
    """Pads with zeros along one axis."""
    pad = [(0, 0)] * values.ndim
    pad[axis] = (low, high)
    return jnp.pad(values, pad)


def _smaller(n: Array) -> Array:
    """Returns the smaller of a number and 0."""
    return lax.sort(jnp.stack([n, jnp.zeros_like(n)]))[0]


class Block(eqx.Module):
    """The part of the grid that one device holds, and how it meets the other parts.

    A stencil is written once, for a local block. On one device the plane beyond the
    block is zero, or the wrapped plane of a periodic axis; inside `shard_map` it comes
    from the neighbour by `ppermute`, which leaves zeros at the rim of the mesh.

    Attributes:
        shape: Cells of the block along each axis.
        names: For each axis the mesh axis that cuts it, or `None`.
        parts: For each axis the number of blocks.
        periodic: For each axis whether it wraps.
        phase: For each axis the Bloch factor `exp(i k L)` by which a field grows over
            one period, or `None` for 1.
        zero: A zero that the compiler does not know to be one, inside a loop.
        keeps_barriers: Whether fusions respect barriers; older compilers for CPUs drop
            these before.
    """

    keeps_barriers: ClassVar[bool] = jax.__version_info__ >= (0, 12)

    shape: tuple[int, ...] = eqx.field(static=True)
    names: tuple[str | None, ...] = eqx.field(static=True)
    parts: tuple[int, ...] = eqx.field(static=True)
    periodic: tuple[bool, ...] = eqx.field(static=True)
    phase: tuple[Num[Array, ""] | None, ...]
    zero: Int[Array, ""] | None = None

    def within(self, n: Int[Array, ""]) -> "Block":
        """Returns the block as it adds fastest in turn `n`, from 0, of a loop."""
        # In a batch of runs of their own bounds only the zero is the same for all.
        n = shared(n)
        zero = jnp.minimum(n, 0)
        if len(self.shape) == 3 or math.prod(self.shape) > _SMALL:
            # XLA's CPU backend compiles a loop of some sizes into one function, for one
            # thread, unless a step of it needs the runtime, as sorting does.
            zero = lax.platform_dependent(n, cpu=_smaller, default=lambda _: zero)
        return eqx.tree_at(lambda b: b.zero, self, zero, is_leaf=lambda x: x is None)

    def once(self, compute: Callable[[Carry], Carry], carry: Carry) -> Carry:
        """Returns `compute(carry)`, not to be computed again in each of its users."""
        if self.keeps_barriers or self.zero is None:
            return lax.optimization_barrier(compute(carry))
        # A loop of one turn, as far as the compiler knows of any number.
        turn = lambda _, c: compute(c)  # noqa: E731
        return lax.fori_loop(self.zero, self.zero + 1, turn, carry)

    def beyond(
        self, plane: Num[Array, "*plane"], axis: int, *, after: bool
    ) -> Array | None:
        """Returns the plane next to the block, from the one at its other end.

        Args:
            plane: The first plane of a field on this block, or the last.
            axis: Its normal.
            after: Whether the plane that follows the block is asked for, which is the
                first of the next block; `False` for the one that precedes it.

        Returns:
            The plane, or `None` where it is zero.
        """
        cut, wraps = self.parts[axis] > 1, self.periodic[axis]
        if not (cut or wraps):
            return None
        parts = self.parts[axis]
        if cut:
            shift = -1 if after else 1
            to = [(i, i + shift) for i in range(parts)]
            pairs = [(i, j % parts) for i, j in to if wraps or 0 <= j < parts]
            plane = lax.ppermute(plane, self.names[axis], pairs)
        phase = self.phase[axis]
        if not wraps or phase is None:
            return plane
        factor = phase if after else jnp.conj(phase)
        if cut:
            rim = parts - 1 if after else 0
            here = lax.axis_index(self.names[axis])
            factor = jnp.where(here == rim, factor, jnp.ones_like(factor))
        return plane * factor

    def end(self, values: Num[Array, "*cells"], axis: int, *, last: bool) -> Array:
        """Returns the first or the last plane of a field along `axis`."""
        at = self.shape[axis] - 1 if last else 0
        return lax.slice_in_dim(values, at, at + 1, axis=axis)

    def after(self, values: Num[Array, "*cells"], axis: int) -> Array | None:
        """Returns the plane that follows the block along `axis`, `None` if zero."""
        return self.beyond(self.end(values, axis, last=False), axis, after=True)

    def before(self, values: Num[Array, "*cells"], axis: int) -> Array | None:
        """Returns the plane that precedes the block along `axis`, `None` if zero."""
        return self.beyond(self.end(values, axis, last=True), axis, after=False)

    def start(self, axis: int) -> Array | int:
        """Returns the number of the first cell of the block in the whole grid."""
        if self.parts[axis] == 1:
            return 0
        return lax.axis_index(self.names[axis]) * self.shape[axis]

    def mirrored(self) -> "Block":
        """Returns the block of the transposed stencil: the opposite Bloch phases."""
        phase = tuple(None if p is None else jnp.conj(p) for p in self.phase)
        return eqx.tree_at(lambda b: b.phase, self, phase, is_leaf=lambda x: x is None)

    def _local(self, axis: int, low: int, high: int) -> Array:
        """Returns local numbers of global cells; those of other blocks lie outside."""
        local = jnp.arange(low, high) - self.start(axis)
        cells = self.shape[axis]
        return jnp.where((local >= 0) & (local < cells), local, cells)

    def read(
        self, values: Num[Array, "*cells"], box: Spans, fill: float = 0.0
    ) -> Num[Array, "*box"]:
        """Returns the values in a box, `fill` where another block holds them.

        A span that is `None` stands for all cells of this block.
        """
        for axis, span in enumerate(box):
            if span is None:
                continue
            if self.parts[axis] == 1:
                values = lax.slice_in_dim(values, *span, axis=axis)
            else:
                local = self._local(axis, *span)
                values = jnp.take(values, local, axis, mode="fill", fill_value=fill)
        return values

    def put(
        self, values: Num[Array, "*cells"], box: Spans, what: Num[Array, "*box"]
    ) -> Num[Array, "*cells"]:
        """Returns the values with those in a box replaced: the inverse of `read`."""
        if all(s is None or n == 1 for s, n in zip(box, self.parts, strict=True)):
            corner = [0 if span is None else span[0] for span in box]
            if self.zero is None:
                return lax.dynamic_update_slice(values, what, corner)
            return write_in_place(values, corner, what, self.zero, add=False)
        index = []
        for axis, span in enumerate(box):
            cells = (
                jnp.arange(self.shape[axis])
                if span is None
                else self._local(axis, *span)
            )
            shape = [1] * len(box)
            shape[axis] = -1
            index.append(cells.reshape(shape))
        return values.at[tuple(index)].set(what, mode="drop")

    def add(
        self, values: Num[Array, "*cells"], box: Box, what: Num[Array, "*#box"]
    ) -> Num[Array, "*cells"]:
        """Returns the values with `what` added in a box, as far as this block goes."""
        if all(parts == 1 for parts in self.parts):
            return self.add_here(values, box, what)
        what = jnp.asarray(what, values.dtype)
        index = []
        for axis, (low, high) in enumerate(box):
            shape = [1] * len(box)
            shape[axis] = high - low
            index.append(self._local(axis, low, high).reshape(shape))
        return values.at[tuple(index)].add(what, mode="drop")

    def add_here(
        self, values: Num[Array, "*cells"], box: Box, what: Num[Array, "*#box"]
    ) -> Num[Array, "*cells"]:
        """Returns the values with `what` added in a box of local cells, in place."""
        what = jnp.asarray(what, values.dtype)
        if self.zero is None:
            return values.at[tuple(slice(*span) for span in box)].add(what)
        what = jnp.broadcast_to(what, [high - low for low, high in box])
        corner = [low for low, _ in box]
        return write_in_place(values, corner, what, self.zero, add=True)

    def difference(
        self,
        values: Num[Array, "*cells"],
        axis: int,
        plane: Num[Array, "*plane"] | None,
        start: int,
        stop: int,
        *,
        forward: bool,
    ) -> Num[Array, "*part"]:
        """Returns neighbour differences for local cells `start` to `stop` of an axis.

        Forward is `f[i + 1] - f[i]`, backward `f[i] - f[i - 1]`. Padding rather than
        concatenation lets XLA fuse the difference into its user.

        Args:
            values: The field on this block.
            axis: Axis of the difference.
            plane: From `after` (forward) or `before` (backward).
            start: First local cell.
            stop: One past the last local cell.
            forward: Which of the two.

        Returns:
            The differences, of length `stop - start` along `axis`.
        """
        cells = self.shape[axis]
        here = lax.slice_in_dim(values, start, stop, axis=axis)
        shift = 1 if forward else -1
        low, high = max(start + shift, 0), min(stop + shift, cells)
        other = lax.slice_in_dim(values, low, high, axis=axis)
        missing = stop - start - (high - low)
        if missing == stop - start == 1 and plane is not None:
            other = plane
        elif missing:
            side = (0, missing) if forward else (missing, 0)
            other = _along(other, axis, *side)
            if plane is not None:
                rest = stop - start - 1
                side = (rest, 0) if forward else (0, rest)
                other = other + _along(plane, axis, *side)
        return other - here if forward else here - other
