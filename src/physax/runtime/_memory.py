"""How much memory a program takes, and how much there is."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from .._byte_text import byte_text
from .._checks import ArgumentError, PhysaxError, whole
from .._known_number import known_number
from ._compile_ahead import compile_ahead, executable


class MemoryLimitError(PhysaxError, MemoryError):
    """Something needs more memory than there is."""


class MemoryUse(eqx.Module):
    """What a compiled program takes, in bytes on each device.

    Attributes:
        argument: Its arguments.
        output: Its results.
        temporary: What it needs in between.
        alias: The part of the results that lies in donated arguments.
        total: `argument + output + temporary - alias`.
    """

    argument: int
    output: int
    temporary: int
    alias: int

    @property
    def total(self) -> int:
        return self.argument + self.output + self.temporary - self.alias


def memory(fn: Callable, *args: Any, **static: Any) -> MemoryUse:
    """Compiles a function and asks XLA for the memory it takes; runs nothing.

    Args:
        fn: The function, jitted or not.
        *args: Arguments, or `jax.ShapeDtypeStruct`s in place of arrays.
        **static: Keyword arguments that are static.

    Returns:
        The bytes.

    Raises:
        NotImplementedError: If the platform's compiler does not report it.
    """
    stats = executable(compile_ahead(fn, *args, **static)).memory_analysis()
    if stats is None:
        raise NotImplementedError(
            f"The platform {jax.default_backend()} does not report memory."
        )
    return MemoryUse(
        argument=stats.argument_size_in_bytes,
        output=stats.output_size_in_bytes,
        temporary=stats.temp_size_in_bytes,
        alias=stats.alias_size_in_bytes,
    )


class AvailableMemory(eqx.Module):
    """The memory that is free now, in bytes.

    Attributes:
        host: Memory of the computer, within the limit of a container; None if unknown.
        devices: Memory of each device of this process, None where the platform does
            not report it. Devices of the CPU platform use the host's memory.
    """

    host: int | None
    devices: tuple[int | None, ...]


def available_memory() -> AvailableMemory:
    """Measures the memory that is free now.

    The environment variable `PHYSAX_MEMORY_LIMIT` (`4G`, `500M`, or bytes) limits what
    this process may take on the host; without it the limit of SLURM does
    (`SLURM_MEM_PER_NODE`, or `SLURM_MEM_PER_CPU` times `SLURM_CPUS_ON_NODE`).

    Raises:
        ArgumentError: If `PHYSAX_MEMORY_LIMIT` is not a size.
    """

    def free(device):
        stats = device.memory_stats()
        if stats is None or "bytes_limit" not in stats:
            return None
        return int(stats["bytes_limit"] - stats.get("bytes_in_use", 0))

    return AvailableMemory(
        host=host_memory(), devices=tuple(free(d) for d in jax.local_devices())
    )


def check_memory(required_bytes: float | int, what: str, *, count: int = 1) -> None:
    """Refuses what would not fit into memory, before anything is allocated.

    Args:
        required_bytes: Bytes needed, on all devices together.
        what: What needs them; the message begins with this.
        count: Number of devices over which they are spread evenly.

    Raises:
        ArgumentError: If `count` is not a positive integer, or `required_bytes` is
            negative.
        MemoryLimitError: If there is less.
    """
    count, needed = (
        whole(count, "count"),
        known_number(required_bytes, "required_bytes"),
    )
    if not needed >= 0:
        raise ArgumentError(f"`required_bytes` must be at least 0, but is {needed:g}.")
    available = available_memory()
    known = [free for free in available.devices[:count] if free is not None]
    if known:
        needed, limit, where = needed / count, min(known), "on each device"
    elif available.host is not None:
        limit, where = available.host, "in this computer"
    else:
        return
    if needed > limit:
        allowance = "" if known else _allowance(limit)
        raise MemoryLimitError(
            f"{what} must fit into the memory that is free {where}, "
            f"{byte_text(limit)}, but needs {byte_text(needed)}. Use a coarser or "
            "smaller grid, fewer recorded values, a shorter type, or more devices."
            f"{allowance}"
        )


def _allowance(free: int) -> str:
    """Says what allows no more than the host's free memory, where that is not all."""
    left, allowed = _allowed_memory(), memory_limit(os.environ)
    if left is None or allowed is None or left > free:
        return ""
    given = os.environ.get("PHYSAX_MEMORY_LIMIT", "").strip()
    by = "`PHYSAX_MEMORY_LIMIT`" if given else "SLURM"
    return f" {by} allows this process {byte_text(allowed)} in all: raise that."


def host_memory() -> int | None:
    """Measures the host's free memory in bytes, without starting JAX's backend."""
    limits = [_linux_memory(), _container_memory(), _allowed_memory()]
    known = [limit for limit in limits if limit is not None]
    if known:
        return max(min(known), 0)
    if os.name == "posix":
        # Elsewhere at least the size of the memory is known.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _linux_memory() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _container_memory() -> int | None:
    # Control groups, version 2 then 1. The page cache counts as used but is given up
    # when memory runs short.
    for folder, limit_file, used_file in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        limit = _lines(f"{folder}/{limit_file}")
        used = _lines(f"{folder}/{used_file}")
        if limit and used and limit[0].isdigit():
            cache = sum(
                int(line.split()[1])
                for line in _lines(f"{folder}/memory.stat")
                if line.split()[0] in ("inactive_file", "total_inactive_file")
            )
            return int(limit[0]) - int(used[0]) + cache
    return None


def _allowed_memory() -> int | None:
    """Returns what is left of the memory that the environment allows."""
    limit = memory_limit(os.environ)
    if limit is None:
        return None
    # Pages in memory are the second number.
    pages = [int(line.split()[1]) for line in _lines("/proc/self/statm")]
    used = pages[0] * os.sysconf("SC_PAGE_SIZE") if pages else 0
    return limit - used


_SIZE = re.compile(r"([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([KMGT]?)(I?B)?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def memory_limit(environment: Mapping[str, str]) -> int | None:
    """Reads the memory that the environment allows this process, in bytes.

    Args:
        environment: Its variables.

    Returns:
        The bytes; `None` if there is no limit.

    Raises:
        ArgumentError: If `PHYSAX_MEMORY_LIMIT` is not a size.
    """
    given = environment.get("PHYSAX_MEMORY_LIMIT", "").strip()
    if given:
        size = _SIZE.fullmatch(given)
        if size is None or float(size[1]) <= 0:
            raise ArgumentError(
                "`PHYSAX_MEMORY_LIMIT` must be a size such as 4G, 500M or a number of "
                f"bytes, but is {given!r}."
            )
        # As for SLURM, K is 1024.
        return int(float(size[1]) * 1024 ** _POWERS[size[2].upper()])

    def number(name: str) -> int:
        text = environment.get(name, "")
        return int(text) if text.isdigit() else 0

    # In megabytes; 0 stands for all there is.
    per_node = number("SLURM_MEM_PER_NODE")
    each = number("SLURM_MEM_PER_CPU") * number("SLURM_CPUS_ON_NODE")
    return (per_node or each) * 1024**2 or None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
