"""What physax finds on this machine, and how fast that is."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import physax

from .._checks import PhysaxError


_PACKAGES = (
    "jax",
    "jaxlib",
    "equinox",
    "diffrax",
    "optax",
    "numpy",
    "scipy",
    "h5py",
    "matplotlib",
)
_OPTIONAL = ("numpyro", "gdstk", "xarray", "zarr", "orbax-checkpoint")


class DeviceError(PhysaxError, RuntimeError):
    """JAX cannot start the devices it was asked for."""


class Speed(eqx.Module):
    """How fast one device is at two things that bound most programs.

    Attributes:
        device: The device, as JAX names it.
        bandwidth: Bytes that a large `a = (a + b) / 2` reads and writes per second.
        matmul: Floating point operations per second in a large float32 product, at
            JAX's default precision.
    """

    device: str = eqx.field(static=True)
    bandwidth: float = eqx.field(static=True)
    matmul: float = eqx.field(static=True)


def devices() -> list[jax.Device]:
    """Returns all devices.

    Raises:
        DeviceError: If JAX cannot start them.
    """
    try:
        return jax.devices()
    # The second where `JAX_PLATFORMS` names a platform that has no plugin (jax 0.10).
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(
            "JAX must find a device, but finds none for `JAX_PLATFORMS` = "
            f"{os.environ.get('JAX_PLATFORMS', '')!r}. Install the extra for it "
            f"(cuda12, cuda13 or tpu), or unset the variable. {error}".rstrip()
        ) from error


def memory(device: jax.Device) -> int | None:
    """Returns the bytes that JAX may use on a device, or None if it does not say."""
    stats = device.memory_stats()
    return None if stats is None else stats.get("bytes_limit")


def versions() -> dict[str, str]:
    """Returns the versions of Python, physax and what it builds on.

    Optional packages appear only if they are installed.
    """
    found = {"python": platform.python_version(), "physax": physax.__version__}
    for package in (*_PACKAGES, *_OPTIONAL):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            if package in _PACKAGES:
                found[package] = "missing"
    return found


def measure(device: jax.Device) -> Speed:
    """Measures the speed of a device in well under two seconds."""
    small = device.platform == "cpu"
    cells = 2**24 if small else 2**27
    width = 1024 if small else 8192

    # Both have a fixed point at one, so that a step can be repeated for ever.
    def mean(a: Float[Array, " n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
        return 0.5 * (a + b)

    vectors = [jnp.ones(cells, jnp.float32, device=device) for _ in range(2)]
    ones = jnp.ones((width, width), jnp.float32, device=device)
    average = jnp.full((width, width), 1 / width, jnp.float32, device=device)
    # Two reads and one write of four bytes each.
    bandwidth = 12 * cells / _shortest(mean, vectors[0], vectors[1])
    matmul = 2 * width**3 / _shortest(jnp.matmul, ones, average)
    return Speed(str(device), bandwidth, matmul)


def _shortest(step, state, other, budget=0.3) -> float:
    """Returns the shortest duration of a step within the budget, both in seconds."""
    # The state is donated as a solver's is: new memory for each result would halve
    # the rate on a CPU, where the system first has to clear it.
    compiled = jax.jit(step, donate_argnums=0).lower(state, other).compile()
    state = jax.block_until_ready(compiled(state, other))
    # To start a step on a GPU and to wait for it takes long beside a step.
    repeats = 1 if state.device.platform == "cpu" else 10
    durations = []
    stop = perf_counter() + budget
    while not durations or perf_counter() < stop:
        start = perf_counter()
        for _ in range(repeats):
            state = compiled(state, other)
        jax.block_until_ready(state)
        durations.append((perf_counter() - start) / repeats)
    return min(durations)
