"""The rectilinear grid on which fields live, uniform or graded along each axis."""

from collections.abc import Sequence
from functools import partial
from operator import index
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, at_once, real, refuse_text


AXES = ("x", "y", "z")
"""Names of the axes, in the order in which arrays store them."""


def _as_float(
    x: Num[ArrayLike, "*shape"], name: str = "widths"
) -> Float[Array, "*shape"]:
    x = real(x, name)
    # An integer spacing must give the result of the equal float, and `jnp.asarray(1.0)`
    # is weakly typed: it would compile a second time. Converting ends both.
    with at_once(x):
        return x.astype(x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else float)


def _checked_widths(widths: Sequence[ArrayLike]) -> tuple[Array, ...]:
    """Converts the widths and refuses those that are not positive and finite."""
    checked = []
    for axis, given in zip(AXES, widths, strict=False):
        width = _as_float(given)
        if isinstance(width, jax.core.Tracer):
            good = (width > 0) & jnp.isfinite(width)
            checked.append(jnp.where(good, width, jnp.nan))
            continue
        host = np.asarray(width)
        bad = np.flatnonzero(~((host > 0) & np.isfinite(host)))
        if bad.size:
            where = f"cell {bad[0]} has" if host.ndim else "the spacing is"
            raise ArgumentError(
                f"`widths` along {axis} must be positive and finite, but {where} "
                f"{host.flat[bad[0]]:g} m. Edges must increase strictly."
            )
        checked.append(width)
    # An entry too many is refused together with the other lengths.
    return (*checked, *map(_as_float, widths[len(AXES) :]))


def _checked_origin(origin: Sequence[ArrayLike]) -> tuple[Array, ...]:
    """Converts the origin and refuses positions that are not finite."""
    arrays = tuple(_as_float(low, "origin") for low in origin)
    for axis, low in zip(AXES, arrays, strict=False):
        if isinstance(low, jax.core.Tracer):
            continue
        if not np.all(np.isfinite(np.asarray(low))):
            raise ArgumentError(
                f"`origin` along {axis} must be finite, but is {np.asarray(low):g} m."
            )
    return arrays


def _per_axis(
    value: ArrayLike | Sequence[ArrayLike], name: str, ndim: int
) -> tuple[ArrayLike, ...]:
    """Returns one entry per axis from a scalar or from a sequence of `ndim`."""
    refuse_text(value, name)
    entries = tuple(value) if isinstance(value, Sequence) else (value,) * ndim
    if len(entries) != ndim:
        raise ArgumentError(
            f"`{name}` must be one number or one per axis ({ndim}), but has "
            f"{len(entries)} entries."
        )
    return entries


def _spacings(
    value: ArrayLike | Sequence[ArrayLike], ndim: int
) -> tuple[Float[Array, "..."], ...]:
    return tuple(_as_float(x, "spacing") for x in _per_axis(value, "spacing", ndim))


def _as_shape(shape: Any) -> tuple[int, ...]:
    """Returns numbers of cells along one to three axes as a tuple of integers."""
    told = f"`shape` must be a tuple of whole numbers of cells, but is {shape!r}."
    try:
        cells = tuple(map(index, shape))
    except TypeError as error:
        raise ArgumentError(told) from error
    if any(isinstance(one, bool) for one in shape):
        raise ArgumentError(told)
    if not 1 <= len(cells) <= len(AXES):
        raise ArgumentError(
            f"`shape` must have 1 to {len(AXES)} axes, but is {shape!r}."
        )
    return cells


class Grid(eqx.Module):
    r"""A rectilinear grid of one to three axes, stored as cell widths and a low corner.

    Node $i$ of an axis lies at the low end of cell $i$, and the centre of the cell at
    $i + 1/2$. The first `ndim` of the axes x, y, z exist. Widths rather than edges are
    stored because the difference of two float32 edges a thousand cells from the origin
    is known to about 1e-4 only. Differentiable in the widths and in the origin.

    Attributes:
        widths: For each axis the width of the cells in metres: a scalar where the axis
            is uniform, else one entry per cell.
        origin: For each axis the position of node 0, in metres.
        shape: Number of cells along each axis.

    Raises:
        ArgumentError: If a width is not positive and finite, the origin is not finite,
            or the lengths do not agree with `shape`.
    """

    widths: tuple[Float[Array, "..."], ...] = eqx.field(converter=_checked_widths)
    origin: tuple[Float[Array, ""], ...] = eqx.field(converter=_checked_origin)
    shape: tuple[int, ...] = eqx.field(static=True, converter=_as_shape)

    def __check_init__(self):
        for name in ("widths", "origin"):
            entries = len(getattr(self, name))
            if entries != self.ndim:
                raise ArgumentError(
                    f"`{name}` must have one entry per axis of `shape` ({self.ndim}), "
                    f"but has {entries}."
                )
        for axis, cells, width in zip(self.axes, self.shape, self.widths, strict=True):
            if cells < 1:
                raise ArgumentError(
                    f"`shape` must be at least 1 along {axis}, but is {cells}."
                )
            if width.shape not in ((), (cells,)):
                raise ArgumentError(
                    f"`widths` along {axis} must be a scalar or have shape "
                    f"({cells},), but has shape {width.shape}."
                )

    @classmethod
    def uniform(
        cls,
        shape: Sequence[int],
        spacing: Num[ArrayLike, ""] | Sequence[Num[ArrayLike, ""]],
        origin: Num[ArrayLike, ""] | Sequence[Num[ArrayLike, ""]] = 0.0,
    ) -> "Grid":
        """Makes a grid of equal cells.

        Args:
            shape: Number of cells along each axis.
            spacing: Width of the cells in metres, one number or one per axis.
            origin: Position of the low corner in metres, one number or one per axis.

        Returns:
            The grid.

        Raises:
            ArgumentError: If a spacing is not positive and finite, or the lengths do
                not agree.
        """
        ndim = len(_as_shape(shape))
        widths = _spacings(spacing, ndim)
        return cls(widths, _like(widths, _per_axis(origin, "origin", ndim)), shape)  # pyright: ignore[reportArgumentType]

    @classmethod
    def centred(
        cls,
        shape: Sequence[int],
        spacing: Num[ArrayLike, ""] | Sequence[Num[ArrayLike, ""]],
    ) -> "Grid":
        """Makes a grid of equal cells whose middle is the point (0, 0, 0).

        Args:
            shape: Number of cells along each axis.
            spacing: Width of the cells in metres, one number or one per axis.

        Returns:
            The grid.

        Raises:
            ArgumentError: If a spacing is not positive and finite, or the lengths do
                not agree.
        """
        shape = _as_shape(shape)
        widths = _spacings(spacing, len(shape))
        with at_once(widths):
            low = tuple(-cells / 2 * w for cells, w in zip(shape, widths, strict=True))
        return cls(widths, low, shape)  # pyright: ignore[reportArgumentType]

    @classmethod
    def graded(cls, edges: Sequence[Num[ArrayLike, " _"]]) -> "Grid":
        """Makes a grid from the edges of its cells.

        Args:
            edges: For each axis the positions of the cell edges in metres, strictly
                increasing, one more than cells. Pass NumPy arrays in float64: the
                widths are then taken before they are rounded.

        Returns:
            The grid. An axis of NumPy edges whose widths agree to the rounding of
            float64 is uniform; JAX's arrays are not looked at, as they may be traced.

        Raises:
            ArgumentError: If edges do not increase, are not finite, or are fewer than
                two.
        """
        if not 1 <= len(edges) <= len(AXES):
            raise ArgumentError(
                f"`edges` must have 1 to {len(AXES)} entries, but has {len(edges)}."
            )
        widths, origin, shape = [], [], []
        for axis, given in zip(AXES, edges, strict=False):
            refuse_text(given, "edges")
            points = given if isinstance(given, jax.Array) else np.asarray(given, float)
            if points.ndim != 1 or points.size < 2:
                raise ArgumentError(
                    f"`edges` along {axis} must be a one-dimensional array of at least "
                    f"2 positions, but has shape {points.shape}."
                )
            known = not isinstance(points, jax.Array)
            widths.append(_as_float(_between(points) if known else jnp.diff(points)))
            origin.append(points[0])
            shape.append(points.size - 1)
        return cls(tuple(widths), _like(widths, origin), tuple(shape))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes that exist."""
        return AXES[: self.ndim]

    @property
    def smallest_width(self) -> Float[Array, ""]:
        """Width of the narrowest cell of all axes, in metres."""
        return jnp.min(jnp.stack([jnp.min(width) for width in self.widths]))

    def is_uniform(self, axis: int) -> bool:
        """Whether all cells along an axis have one width, known without its value."""
        return self.widths[axis].ndim == 0

    def size(self, axis: int) -> Float[Array, ""]:
        """Length of the grid along an axis, in metres."""
        width = self.widths[axis]
        with at_once(width):
            return width * self.shape[axis] if self.is_uniform(axis) else jnp.sum(width)

    def cell_widths(self, axis: int) -> Float[Array, " cells"]:
        """Widths of all cells along an axis, in metres."""
        return jnp.broadcast_to(self.widths[axis], (self.shape[axis],))

    def dual_widths(self, axis: int) -> Float[Array, " cells"]:
        """Distances between the centres on either side of each node, in metres.

        Entry i is $(w_{i-1} + w_i) / 2$; at node 0, which has no cell before it, it is
        $w_0$.
        """
        width = self.cell_widths(axis)
        if self.is_uniform(axis):
            return width
        return jnp.concatenate([width[:1], (width[:-1] + width[1:]) / 2])

    def edges(self, axis: int) -> Float[Array, " edges"]:
        """Positions of the cell edges along an axis in metres, one more than cells."""
        return _edges(self.widths[axis], self.origin[axis], self.shape[axis])

    def centres(self, axis: int) -> Float[Array, " cells"]:
        """Positions of the cell centres along an axis, in metres."""
        return _centres(self.widths[axis], self.origin[axis], self.shape[axis])

    def coordinates(self, axis: int, stagger: float) -> Float[Array, " cells"]:
        """Positions of the samples of a field along an axis, in metres.

        Args:
            axis: Which axis, counted from 0.
            stagger: 0 for samples at the nodes i, 0.5 for samples at i + 1/2.

        Returns:
            One position per cell.

        Raises:
            ArgumentError: If `stagger` is neither 0 nor 0.5.
        """
        if stagger not in (0.0, 0.5):
            raise ArgumentError(f"`stagger` must be 0 or 0.5, but is {stagger}.")
        return self.centres(axis) if stagger else self.edges(axis)[:-1]


# As one program, where each operation would be one; inside others nothing changes.
@partial(jax.jit, static_argnames="cells", inline=True)
def _edges(
    width: Float[Array, "..."], origin: Float[Array, ""], cells: int
) -> Float[Array, " edges"]:
    if not width.ndim:
        # A product is rounded once; a running sum once per cell.
        return origin + jnp.arange(cells + 1, dtype=width.dtype) * width
    return origin + jnp.concatenate([jnp.zeros_like(width[:1]), jnp.cumsum(width)])


@partial(jax.jit, static_argnames="cells", inline=True)
def _centres(
    width: Float[Array, "..."], origin: Float[Array, ""], cells: int
) -> Float[Array, " cells"]:
    if not width.ndim:
        return origin + (jnp.arange(cells, dtype=width.dtype) + 0.5) * width
    return origin + (jnp.cumsum(width) - width / 2)


def _between(edges: Float[np.ndarray, " edges"]) -> Float[np.ndarray, "..."]:
    """Returns the widths between edges, one number where they agree to rounding."""
    widths = np.diff(edges)
    # A few roundings of the edge that is furthest from 0.
    slack = 8 * np.finfo(float).eps * np.max(np.abs(edges))
    # Where rounding is as large as a width, nothing is known of it.
    known = slack < 1e-3 * np.min(widths)
    if known and np.max(widths) <= np.min(widths) + slack < np.inf:
        return np.asarray((edges[-1] - edges[0]) / widths.size)
    return widths


def _like(
    widths: Sequence[Array], origin: Sequence[ArrayLike]
) -> tuple[Float[Array, ""], ...]:
    """Gives the origin the precision of the widths."""
    dtype = jnp.result_type(*widths)
    arrays = []
    for low in origin:
        with at_once(low):
            arrays.append(real(low, "low").astype(dtype))
    return tuple(arrays)
