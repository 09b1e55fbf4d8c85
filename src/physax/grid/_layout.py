"""How a grid is laid out over the devices of a mesh."""

import equinox as eqx
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, ArrayLike, Shaped

from .._auto_mesh import auto_mesh
from .._checks import ArgumentError
from ._grid import AXES


class Layout(eqx.Module):
    """Which axis of the device mesh cuts each axis of the grid.

    All attributes are static, so a layout may be a static argument of `jit`. Values of
    a grid with `ndim` axes keep these last; axes before them are not cut.

    Attributes:
        mesh: The devices.
        x: Axis of the mesh that cuts the grid along x, or None.
        y: Axis of the mesh that cuts the grid along y, or None.
        z: Axis of the mesh that cuts the grid along z, or None.

    Raises:
        ArgumentError: If a name is not an axis of the mesh, or cuts twice.
    """

    mesh: Mesh = eqx.field(static=True, converter=auto_mesh)
    x: str | None = eqx.field(static=True, default=None)
    y: str | None = eqx.field(static=True, default=None)
    z: str | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        used = {}
        for axis, name in zip(AXES, self.names, strict=True):
            if name is None:
                continue
            if name not in self.mesh.axis_names:
                raise ArgumentError(
                    f"`{axis}` must be None or an axis of the mesh, "
                    f"{self.mesh.axis_names}, but is {name!r}."
                )
            if name in used:
                raise ArgumentError(
                    f"An axis of the mesh must cut one axis of the grid, but {name!r} "
                    f"cuts {used[name]} and {axis}."
                )
            used[name] = axis

    @property
    def names(self) -> tuple[str | None, ...]:
        """The axes of the mesh that cut x, y and z."""
        return (self.x, self.y, self.z)

    def parts(self, axis: int) -> int:
        """Into how many blocks an axis of the grid, counted from 0, is cut."""
        name = self.names[axis]
        return 1 if name is None else self.mesh.shape[name]

    def spec(self, ndim: int, leading: int = 0) -> PartitionSpec:
        """Partitioning of values on a grid.

        Args:
            ndim: Number of axes of the grid.
            leading: Number of axes of the values before those of the grid.

        Returns:
            The names of mesh axes, for `shard_map` or `NamedSharding`.

        Raises:
            ArgumentError: If the layout cuts an axis that the grid has not.
        """
        for axis in range(ndim, len(AXES)):
            if self.names[axis] is not None:
                raise ArgumentError(
                    f"`{AXES[axis]}` must be None for a grid of {ndim} axes, but is "
                    f"{self.names[axis]!r}."
                )
        return PartitionSpec(*(None,) * leading, *self.names[:ndim])

    def sharding(self, ndim: int, leading: int = 0) -> NamedSharding:
        """Sharding of values on a grid of `ndim` axes, behind `leading` free axes."""
        return NamedSharding(self.mesh, self.spec(ndim, leading))

    def padded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape rounded up until every axis falls into equal blocks."""
        return tuple(
            -(-cells // self.parts(axis)) * self.parts(axis)
            for axis, cells in enumerate(shape)
        )

    def block_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the block that each device holds.

        Args:
            shape: Number of cells of the grid along each axis.

        Returns:
            Number of cells of a block along each axis.

        Raises:
            ArgumentError: If an axis does not fall into equal blocks.
        """
        for axis, cells in enumerate(shape):
            parts = self.parts(axis)
            if cells % parts:
                raise ArgumentError(
                    f"`shape` along {AXES[axis]} must be a multiple of {parts}, the "
                    f"size of mesh axis {self.names[axis]!r}, but is {cells}. "
                    "`padded_shape` rounds it up."
                )
        return tuple(cells // self.parts(axis) for axis, cells in enumerate(shape))


def pad(
    values: Shaped[Array, "..."],
    shape: tuple[int, ...],
    fill: Shaped[ArrayLike, ""] = 0,
) -> Shaped[Array, "..."]:
    """Extends values at the high ends of their last axes.

    Args:
        values: Samples; the last `len(shape)` axes are those of the grid.
        shape: Shape that these axes shall have, from `Layout.padded_shape`.
        fill: What the new cells hold, in the unit of the values.

    Returns:
        The padded values, of unchanged dtype.

    Raises:
        ArgumentError: If an axis would shrink.
    """
    leading, old = _split_shape(values, shape)
    for axis, (cells, more) in enumerate(zip(old, shape, strict=True)):
        if more < cells:
            raise ArgumentError(
                f"`shape` along {AXES[axis]} must be at least {cells}, the size of "
                f"`values`, but is {more}. `crop` makes values smaller."
            )
    if old == tuple(shape):
        return values
    widths = [(0, 0)] * leading + [(0, m - n) for n, m in zip(old, shape, strict=True)]
    return jnp.pad(values, widths, constant_values=jnp.asarray(fill, values.dtype))


def crop(values: Shaped[Array, "..."], shape: tuple[int, ...]) -> Shaped[Array, "..."]:
    """Takes off what `pad` added.

    Args:
        values: Padded samples; the last `len(shape)` axes are those of the grid.
        shape: Shape that these axes had.

    Returns:
        The values without the padding.

    Raises:
        ArgumentError: If an axis would grow.
    """
    leading, old = _split_shape(values, shape)
    for axis, (cells, fewer) in enumerate(zip(old, shape, strict=True)):
        if fewer > cells:
            raise ArgumentError(
                f"`shape` along {AXES[axis]} must be at most {cells}, the size of "
                f"`values`, but is {fewer}. `pad` makes values larger."
            )
    if old == tuple(shape):
        return values
    return values[(slice(None),) * leading + tuple(slice(n) for n in shape)]


def _split_shape(values: Array, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """Counts the leading axes of the values and returns the shape of the others."""
    leading = values.ndim - len(shape)
    if not 1 <= len(shape) <= len(AXES) or leading < 0:
        raise ArgumentError(
            f"`shape` must have 1 to {len(AXES)} axes and not more than `values`, "
            f"but is {shape} for values of shape {values.shape}."
        )
    return leading, values.shape[leading:]
