"""Which arrays are in memory now."""

import math
from collections import Counter

import equinox as eqx
import jax


class ArrayGroup(eqx.Module):
    """Arrays of one kind on one device.

    Attributes:
        device: The device, such as `"gpu:0"`.
        dtype: Their dtype.
        shape: Their shape; of an array on several devices, that of its part there.
        count: How many there are.
        bytes: What they take together.
    """

    device: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    bytes: int


class LiveArrays(eqx.Module):
    """The arrays that this process holds. Printing it gives a table.

    Attributes:
        groups: Arrays of one shape and dtype on one device, what takes most first.
        bytes: What all arrays of a device take, by the name of the device.
        peak: The most that was ever in use there, programs included; None where the
            platform does not report it (the CPU).
    """

    groups: tuple[ArrayGroup, ...]
    bytes: dict[str, int]
    peak: dict[str, int | None]

    def __str__(self) -> str:
        lines = [f"{'bytes':>14} {'arrays':>6}  array"]
        for group in self.groups:
            kind = f"{group.dtype}{list(group.shape)} on {group.device}"
            lines.append(f"{group.bytes:>14,} {group.count:>6}  {kind}")
        for device, total in self.bytes.items():
            peak = self.peak[device]
            told = "" if peak is None else f", at most {peak:,} so far"
            lines.append(f"{total:>14,}         on {device}{told}")
        return "\n".join(lines)


def live_arrays() -> LiveArrays:
    """Lists what holds the memory of the devices of this process.

    An array that nothing refers to any more is not there, nor is one that was donated.
    Two arrays that share one buffer, as copies by `jax.device_put` may, count twice.
    What a running program takes in between is in `peak` only.
    """
    counts: Counter[tuple[str, str, tuple[int, ...]]] = Counter()
    sizes: dict[tuple[str, str, tuple[int, ...]], int] = {}
    for array in jax.live_arrays():
        part = array.sharding.shard_shape(array.shape)
        for device in array.sharding.addressable_devices:
            kind = _name(device), str(array.dtype), part
            counts[kind] += 1
            sizes[kind] = math.prod(part) * array.dtype.itemsize
    groups = sorted(
        (
            ArrayGroup(*kind, count=count, bytes=count * sizes[kind])
            for kind, count in counts.items()
        ),
        key=lambda group: (-group.bytes, group.device, group.dtype, group.shape),
    )
    totals, peaks = {}, {}
    for device in jax.local_devices():
        name = _name(device)
        totals[name] = sum(group.bytes for group in groups if group.device == name)
        peaks[name] = (device.memory_stats() or {}).get("peak_bytes_in_use")
    return LiveArrays(tuple(groups), totals, peaks)


def _name(device: jax.Device) -> str:
    return f"{device.platform}:{device.id}"
