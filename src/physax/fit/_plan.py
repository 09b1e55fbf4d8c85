"""How a fit is done, given its size and the available memory."""

import enum
import math

import equinox as eqx

from .._checks import ArgumentError, true_or_false, whole
from .._known_number import known_number
from ..runtime import MemoryLimitError, available_memory, default_platform


class Strategy(enum.Enum):
    """Where the data of a fit are, and what loops over them; one algorithm for all."""

    STANDARD = "STANDARD"
    LARGE = "LARGE"
    CHUNKED = "CHUNKED"
    STREAMING = "STREAMING"


_SENTENCES = {
    Strategy.STANDARD: "All points are in memory; one compiled loop does the fit.",
    Strategy.LARGE: (
        "All points are in memory; one compiled loop does the fit, chunk by chunk."
    ),
    Strategy.CHUNKED: (
        "All points are in memory; the host loops over blocks, shows progress and "
        "writes checkpoints."
    ),
    Strategy.STREAMING: (
        "Blocks of points are read while the previous one is processed; the host "
        "shows progress and writes checkpoints, also within a pass."
    ),
}

_MILLION = 1_000_000
_LIMITS = ((_MILLION, Strategy.STANDARD), (10 * _MILLION, Strategy.LARGE))
_RESIDENT_LIMIT = 100 * _MILLION
# What a chunk needs should stay in the caches of a CPU; a GPU wants much at once.
_CPU_CHUNK, _GPU_CHUNK = 2**14, 2**20
_CHUNK_BYTES = 2**26
_BLOCK = 2**20
# Of the memory that is free, so much may be used.
_SHARE = 0.75


class Plan(eqx.Module):
    """How a fit is done.

    Attributes:
        strategy: Where the data are and what loops over them.
        n_points: Number of points.
        n_params: Number of free parameters.
        chunk: Points that are evaluated at once.
        block: Points that the host passes on at once.
        required: Estimate of the bytes that the fit needs, without data in memory.
        data: Bytes of the data.
        memory: Bytes that were free; None if unknown.
        reason: Why it is this strategy.
    """

    strategy: Strategy = eqx.field(static=True)
    n_points: int = eqx.field(static=True)
    n_params: int = eqx.field(static=True)
    chunk: int = eqx.field(static=True)
    block: int = eqx.field(static=True)
    required: int = eqx.field(static=True)
    data: int = eqx.field(static=True)
    memory: int | None = eqx.field(static=True)
    reason: str = eqx.field(static=True)

    def __str__(self) -> str:
        free = "unknown" if self.memory is None else f"{self.memory / 1e9:.3g} GB"
        return (
            f"{self.strategy.value}: {self.n_points:,} points, {self.n_params} free "
            f"parameters.\n{self.reason} {_SENTENCES[self.strategy]}\n"
            f"{self.chunk:,} points at once; data {self.data / 1e9:.3g} GB, plus "
            f"about {self.required / 1e9:.3g} GB; free {free}."
        )

    @property
    def driven(self) -> bool:
        """Whether the host loops over blocks."""
        return self.strategy in (Strategy.CHUNKED, Strategy.STREAMING)


def plan(
    n_points: int,
    n_params: int,
    memory: float | None = None,
    *,
    columns: float = 2,
    resident: bool = True,
) -> Plan:
    """Chooses how a fit is done.

    Fewer than a million points: STANDARD; up to ten: LARGE; up to a hundred: CHUNKED;
    more, or data that are not in memory: STREAMING. All give the same answer to
    rounding: each pass adds up the same sums.

    Args:
        n_points: Number of points.
        n_params: Number of free parameters.
        memory: Bytes that may be used; by default what is free now.
        columns: Numbers of eight bytes that the data hold for one point.
        resident: Whether the data are, or may be, in memory.

    Returns:
        The plan; print it to read the reasons.

    Raises:
        ArgumentError: If a number is not positive.
        MemoryLimitError: If not even one block fits.
    """
    n_points, n_params = whole(n_points, "n_points"), whole(n_params, "n_params")
    columns, resident = _size(columns, "columns"), true_or_false(resident, "resident")
    if memory is None:
        free = available_memory()
        known = [m for m in free.devices if m is not None]
        memory = min(known) if known else free.host
    limit = None if memory is None else int(_size(memory, "memory"))
    strategy, reason = _choose(n_points, resident)
    data = int(8 * columns * n_points)
    if resident and strategy is not Strategy.STREAMING and limit is not None:
        chunk, _, required = _sizes(n_points, n_params, columns, strategy)
        if data + required > _SHARE * limit:
            strategy = Strategy.STREAMING
            reason = "The data would not fit into the memory that is free."
    chunk, block, required = _sizes(n_points, n_params, columns, strategy)
    if limit is not None and required > limit:
        raise MemoryLimitError(
            f"`memory` must hold one chunk, {required / 1e6:.3g} MB for {n_params} "
            f"parameters, but is {limit / 1e6:.3g} MB. Fit fewer parameters at once or "
            "eliminate linear ones with `Separable`."
        )
    return Plan(
        strategy, n_points, n_params, chunk, block, required, data, limit, reason
    )


def _size(x, name: str) -> float:
    found = known_number(x, name)
    if not 0 < found < math.inf:
        raise ArgumentError(f"`{name}` must be positive, but is {found:g}.")
    return found


def _choose(n_points: int, resident: bool) -> tuple[Strategy, str]:
    if not resident:
        return Strategy.STREAMING, "The data are not in memory."
    for most, strategy in _LIMITS:
        if n_points < most:
            return strategy, f"There are fewer than {most:,} points."
    if n_points <= _LIMITS[-1][0]:
        return Strategy.LARGE, f"There are {n_points:,} points."
    if n_points <= _RESIDENT_LIMIT:
        return Strategy.CHUNKED, f"There are more than {_LIMITS[-1][0]:,} points."
    return Strategy.STREAMING, f"There are more than {_RESIDENT_LIMIT:,} points."


def _sizes(n_points, n_params, columns, strategy) -> tuple[int, int, int]:
    """Returns chunk, block and the bytes that are needed in addition to the data."""
    row = 8 * (2 * n_params + 8)
    most = _CPU_CHUNK if default_platform() == "cpu" else _GPU_CHUNK
    chunk = max(1, min(n_points, most, _CHUNK_BYTES // row))
    block = max(chunk, min(n_points, _BLOCK))
    required = chunk * row + 16 * (n_params + 1) ** 2
    if strategy in (Strategy.CHUNKED, Strategy.STREAMING):
        # Two buffers, and the one that is computed with.
        required += int(3 * 8 * columns * block)
    return chunk, block, required
