"""Types of numbers, devices and layouts, as they are named."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import Mesh, PartitionSpec

from ..runtime import mesh as make_mesh
from ..runtime._precision import dtype_name as checked_name
from ._block import GraphError


_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_WHOLE = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)


def dtype_name(dtype: Any, *, whole: bool = False) -> str:
    """Returns the name of a type.

    Args:
        dtype: A type, or its name.
        whole: Whether it may be an integer or boolean type too.

    Returns:
        The name.

    Raises:
        PrecisionError: If the type is not supported, or needs 64 bits while JAX has
            them off.
    """
    return checked_name(dtype, "dtype", (*_DTYPES, *_WHOLE) if whole else _DTYPES)


def device_named(name: str) -> jax.Device:
    """Returns a device.

    Args:
        name: Its platform, and its number after a colon if it is not the first.

    Returns:
        The device.

    Raises:
        GraphError: If there is none.
    """
    platform, _, index = name.partition(":")
    present = [f"{device.platform}:{device.id}" for device in jax.devices()]
    shown = ", ".join(present)
    try:
        found = jax.devices(platform)
    except RuntimeError:
        raise GraphError(
            f"`device` must be a platform, and a number after a colon, of {shown}, but "
            f"is {name!r}."
        ) from None
    if not (index or "0").isdigit() or int(index or 0) >= len(found):
        raise GraphError(
            f"`device` must have a number from 0 to {len(found) - 1} after the colon, "
            f"but is {name!r}. The devices are {shown}."
        )
    return found[int(index or 0)]


def cut_axes(
    mesh: Mesh | None,
    shape: Sequence[int],
    device_mesh: Sequence[int] | None,
    tensor_split: Sequence[int] | None,
) -> tuple[Mesh, PartitionSpec]:
    """Turns numbers of parts into a mesh and a layout.

    Args:
        mesh: The mesh that there is, or None.
        shape: Sizes of the array.
        device_mesh: Sizes of the mesh to cut by; by default those of `mesh`.
        tensor_split: The axis of the array that each axis of the mesh cuts; by default
            the first ones.

    Returns:
        The mesh, and which axis of it cuts each axis of the array.

    Raises:
        GraphError: If there is no mesh, or the axes do not fit.
    """
    if device_mesh is not None:
        sizes = tuple(device_mesh)
        if mesh is None or tuple(mesh.shape.values()) != sizes:
            mesh = make_mesh(*sizes)
    if mesh is None:
        raise GraphError(
            f"`tensor_split` must come with a mesh, but is {tensor_split} without one. "
            "Give `device_mesh`."
        )
    count = len(mesh.axis_names)
    axes = tuple(range(count) if tensor_split is None else tensor_split)
    if len(set(axes)) != count:
        raise GraphError(
            f"`tensor_split` must name a different axis of the array for each of the "
            f"{count} axes of the mesh, but is {axes}."
        )
    entries: list[str | None] = [None] * len(shape)
    for axis, name in zip(axes, mesh.axis_names, strict=True):
        if not 0 <= axis < len(shape):
            raise GraphError(
                f"`tensor_split` must name axes from 0 to {len(shape) - 1}, but names "
                f"{axis}."
            )
        entries[axis] = name
    return mesh, PartitionSpec(*entries)
