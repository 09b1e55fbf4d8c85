import math

import jax
import jax.numpy as jnp
import pytest

from physax._checks import ArgumentError, PhysaxError
from physax.runtime import (
    MemoryLimitError,
    _memory,
    available_memory,
    check_memory,
    memory,
)


SHAPE = jax.ShapeDtypeStruct((1000, 1000), jnp.float32)
SIZE = 4_000_000


def test_arguments_and_results_are_counted_without_running():
    use = memory(lambda x: (x + 1, x[0]), SHAPE)
    assert use.argument == SIZE
    # Two results, and at most a table of pointers to them.
    assert SIZE + 4000 <= use.output <= SIZE + 4000 + 64
    assert use.alias == 0
    assert use.total == use.argument + use.output + use.temporary


def test_a_donated_argument_counts_once():
    use = memory(jax.jit(lambda x: x + 1, donate_argnums=0), SHAPE)
    assert use.alias == SIZE
    assert use.total == SIZE + use.temporary


def test_intermediate_results_are_temporary():
    # The product of the two sorted copies needs both at once.
    use = memory(lambda x: jnp.sort(x, 0) @ jnp.sort(x, 1), SHAPE)
    assert use.temporary >= 2 * SIZE


def test_free_memory_is_known():
    found = available_memory()
    assert found.host is not None
    assert found.host > 1e6
    assert len(found.devices) == len(jax.local_devices())


def test_too_much_is_refused_with_numbers():
    check_memory(1000, "A small field")
    with pytest.raises(
        MemoryLimitError, match="The fields must fit .* but needs 1e[+]06 TB. Use a"
    ):
        check_memory(1e18, "The fields")
    assert issubclass(MemoryLimitError, PhysaxError)
    assert issubclass(MemoryLimitError, MemoryError)


@pytest.mark.parametrize("bytes_", [-1, math.nan])
def test_no_negative_need_fits(bytes_):
    with pytest.raises(ArgumentError, match="`required_bytes` must be at least 0"):
        check_memory(bytes_, "The fields")


@pytest.mark.parametrize(
    ("variables", "allowed"),
    [
        (
            {"PHYSAX_MEMORY_LIMIT": "1M"},
            "`PHYSAX_MEMORY_LIMIT` allows .* 1.05 MB",
        ),
        (
            {"SLURM_MEM_PER_NODE": "2"},
            "SLURM allows this process 2.1 MB in all",
        ),
        ({}, "or more devices.$"),
    ],
)
def test_what_bounds_the_memory_is_named(monkeypatch, variables, allowed):
    monkeypatch.delenv("PHYSAX_MEMORY_LIMIT", raising=False)
    monkeypatch.delenv("SLURM_MEM_PER_NODE", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MemoryLimitError, match=allowed):
        check_memory(1e18, "The fields")


def test_devices_of_known_memory_share_the_load(monkeypatch):
    free = _memory.AvailableMemory(host=10, devices=(1000, 900))
    monkeypatch.setattr(_memory, "available_memory", lambda: free)
    check_memory(1800, "The fields", count=2)
    with pytest.raises(MemoryLimitError, match="free on each device, 900 B,"):
        check_memory(1801, "The fields", count=2)


def test_the_limit_of_a_container_holds(monkeypatch):
    files = {
        "/proc/meminfo": ["MemTotal: 9 kB", "MemAvailable: 8 kB"],
        "/sys/fs/cgroup/memory.max": ["5000"],
        "/sys/fs/cgroup/memory.current": ["3000"],
        "/sys/fs/cgroup/memory.stat": ["anon 100", "inactive_file 500"],
    }
    monkeypatch.setattr(_memory, "_lines", lambda path: files.get(path, []))
    assert _memory.host_memory() == 2500
    files["/sys/fs/cgroup/memory.max"] = ["max"]
    assert _memory.host_memory() == 8192


@pytest.mark.parametrize(
    ("environment", "limit"),
    [
        ({}, None),
        ({"PHYSAX_MEMORY_LIMIT": "4G"}, 4 * 2**30),
        ({"PHYSAX_MEMORY_LIMIT": "1.5 GiB"}, 3 * 2**29),
        ({"PHYSAX_MEMORY_LIMIT": "500m"}, 500 * 2**20),
        ({"PHYSAX_MEMORY_LIMIT": "2e9"}, 2_000_000_000),
        ({"SLURM_MEM_PER_NODE": "2048"}, 2**31),
        # All the memory of the node.
        ({"SLURM_MEM_PER_NODE": "0"}, None),
        ({"SLURM_MEM_PER_CPU": "512", "SLURM_CPUS_ON_NODE": "4"}, 2**31),
        # One's own word counts.
        ({"SLURM_MEM_PER_NODE": "2048", "PHYSAX_MEMORY_LIMIT": "1G"}, 2**30),
    ],
)
def test_the_environment_limits_memory(environment, limit):
    assert _memory.memory_limit(environment) == limit


def test_what_is_used_counts_against_the_limit(monkeypatch):
    free = _memory.host_memory()
    monkeypatch.setenv("PHYSAX_MEMORY_LIMIT", "1M")
    # Python alone takes more: nothing is left.
    assert _memory.host_memory() == available_memory().host == 0
    with pytest.raises(MemoryLimitError, match="in this computer, 0 B, but needs"):
        check_memory(1000, "The fields")
    monkeypatch.setenv("PHYSAX_MEMORY_LIMIT", "1000T")
    assert _memory.host_memory() > free / 2


def test_a_limit_that_is_no_size_is_refused(monkeypatch):
    monkeypatch.setenv("PHYSAX_MEMORY_LIMIT", "much")
    with pytest.raises(ArgumentError, match="must be a size such as 4G.* is 'much'"):
        available_memory()


def test_count_is_checked():
    with pytest.raises(
        ArgumentError, match="`count` must be an integer of at least 1, but is 0"
    ):
        check_memory(1, "A field", count=0)
