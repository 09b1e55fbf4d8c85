"""Devices, and meshes of them."""

import math
from collections.abc import Sequence
from contextlib import suppress

import equinox as eqx
import jax
from jax.sharding import AxisType, Mesh

from .._checks import ArgumentError, whole


_AXIS_NAMES = ("x", "y", "z")


class DeviceInfo(eqx.Module):
    """What one device is.

    Attributes:
        platform: `"cpu"`, `"gpu"` or `"tpu"`.
        kind: The name its maker gives it.
        index: Its number among the devices of its platform.
        process: The process it belongs to.
        memory: Its memory that JAX may use, in bytes; None where the platform does not
            report it (the CPU).
    """

    platform: str = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    index: int = eqx.field(static=True)
    process: int = eqx.field(static=True)
    memory: int | None = eqx.field(static=True)


def devices() -> tuple[DeviceInfo, ...]:
    """Describes the devices that computations may use, of all processes."""

    def describe(device):
        # The memory of another process's device cannot be asked for from here.
        mine = device.process_index == jax.process_index()
        stats = device.memory_stats() if mine else None
        memory = None if stats is None else stats.get("bytes_limit")
        return DeviceInfo(
            device.platform, device.device_kind, device.id, device.process_index, memory
        )

    return tuple(describe(device) for device in jax.devices())


def default_platform() -> str:
    """Returns the platform of the device that JAX uses where none is asked for."""
    device = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if device is None:
        return jax.default_backend()
    return device if isinstance(device, str) else device.platform


def best_device(among: Sequence | None = None) -> jax.Device:
    """Chooses the device with the most free memory, an accelerator before a CPU.

    Args:
        among: The devices to choose from; by default all of this process, of every
            platform that it can use.

    Returns:
        The device. Where the memory of several is equal or unknown, the first.

    Raises:
        ArgumentError: If there is none to choose from.
    """
    candidates = _local_devices() if among is None else among
    if not candidates:
        raise ArgumentError("`among` must hold at least one device, but is empty.")

    return merit_order(candidates)[0]


def merit_order(candidates: Sequence) -> list:
    """Sorts devices: accelerators before CPUs, then by free memory, most first."""

    def merit(device) -> tuple[bool, int]:
        stats = device.memory_stats() or {}
        free = stats.get("bytes_limit", 0) - stats.get("bytes_in_use", 0)
        return device.platform != "cpu", free

    return sorted(candidates, key=merit, reverse=True)


def _local_devices() -> list[jax.Device]:
    found = []
    for platform in ("gpu", "tpu", "cpu"):
        # JAX says that a platform is absent, or that JAX_PLATFORMS excludes it, in no
        # other way.
        with suppress(RuntimeError):
            found += jax.local_devices(backend=platform)
    return found or jax.local_devices()


def mesh(*sizes: int, **named: int) -> Mesh:
    """Arranges the first devices as a mesh.

    The axes are of the kind `Auto`: under JAX's default kind, `Explicit`, a stencil
    does not trace.

    Args:
        *sizes: Number of devices along the axes `"x"`, `"y"` and `"z"`. Without any
            sizes, all devices lie along `"x"`.
        **named: Number of devices along axes with names of your own, as in
            `mesh(data=2, model=2)`.

    Returns:
        The mesh. It may use fewer devices than there are.

    Raises:
        ArgumentError: If a size is not a positive integer, or there are too few
            devices.
    """
    if sizes and named:
        raise ArgumentError(
            "`mesh` must get either sizes or named sizes, but got both: "
            f"{sizes} and {named}."
        )
    if len(sizes) > len(_AXIS_NAMES):
        raise ArgumentError(
            f"`sizes` must have at most {len(_AXIS_NAMES)} entries, but has "
            f"{len(sizes)}. Name the axes to have more: `mesh(a=2, b=2, c=2, d=2)`."
        )
    present = jax.devices()
    shape = named or dict(zip(_AXIS_NAMES, sizes or (len(present),), strict=False))
    shape = {name: whole(size, name) for name, size in shape.items()}
    count = math.prod(shape.values())
    if count > len(present):
        raise ArgumentError(
            f"`mesh` must use at most {len(present)} devices, but {shape} needs "
            f"{count}. There are: {_list_devices(present)}. To try a mesh without such "
            "hardware, set the environment variable "
            f"`XLA_FLAGS=--xla_force_host_platform_device_count={count}` beforehand."
        )
    return jax.make_mesh(
        tuple(shape.values()),
        tuple(shape),
        axis_types=(AxisType.Auto,) * len(shape),
        devices=present[:count],
    )


def _list_devices(present: list[jax.Device]) -> str:
    names = [f"{device.platform}:{device.id}" for device in present]
    return ", ".join(names if len(names) <= 8 else [*names[:8], "..."])
