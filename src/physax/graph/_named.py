"""Types of numbers and devices, by their names."""

from typing import Any

import jax
import jax.numpy as jnp

from ..runtime import PrecisionError, require_x64
from ._block import GraphError


_DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_WIDE = ("float64", "complex128", "int64", "uint64")


def dtype_name(dtype: Any, *, whole: bool = False) -> str:
    """Returns the name of a type.

    Args:
        dtype: A type, or its name.
        whole: Whether it may be a type of integers or truth values too.

    Returns:
        The name.

    Raises:
        PrecisionError: If the type is not supported, or needs 64 bits while JAX has
            them off.
    """
    known = (*_DTYPES, "bool", *_WHOLE) if whole else _DTYPES
    try:
        name = dtype if isinstance(dtype, str) else jnp.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in known:
        raise PrecisionError(
            f"`dtype` must be one of {', '.join(known)}, but is {name}."
        )
    if name in _WIDE:
        require_x64("`dtype`")
    return name


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
            f"`device` must be a platform and, after a colon, a number, of those that "
            f"there are: {shown}; but is {name!r}."
        ) from None
    if not (index or "0").isdigit() or int(index or 0) >= len(found):
        raise GraphError(
            f"`device` must have a number from 0 to {len(found) - 1} after the colon, "
            f"but is {name!r}. There are: {shown}."
        )
    return found[int(index or 0)]
