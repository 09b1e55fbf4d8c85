"""Particles that start at several times."""

from collections.abc import Sequence

import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, as_array
from ._numbers import check_numbers
from ._seed_checks import check_seeds, in_default_precision


def release_repeatedly(
    seeds: Num[ArrayLike, "seeds ndim"],
    times: Num[ArrayLike, " releases"] | Sequence[ArrayLike],
) -> tuple[Float[Array, "particles ndim"], Float[Array, " particles"]]:
    """Makes particles that start from the same seeds at several times.

    With evenly spaced times this is a continuous release.

    Args:
        seeds: Where they start.
        times: When they start, in seconds, in any order.

    Returns:
        The positions of all particles, those of the first release first, and the time
        at which each starts, for the argument `release` of `track`.

    Raises:
        ArgumentError: If there are no times, one is not finite, or the seeds cannot be
            used.
    """
    seeds = check_seeds(seeds)
    check_numbers(times, "times")
    times = in_default_precision(
        np.asarray(times, float) if isinstance(times, Sequence) else as_array(times)
    )
    if times.ndim != 1 or not times.size:
        raise ArgumentError(
            f"`times` must be a list of at least one time, but has shape {times.shape}."
        )
    if not isinstance(times, jax.core.Tracer):
        bad = np.flatnonzero(~np.isfinite(np.asarray(times)))
        if bad.size:
            raise ArgumentError(
                f"`times` must be finite, but entry {bad[0]} is {times[bad[0]]}."
            )
    return jnp.tile(seeds, (times.size, 1)), jnp.repeat(times, seeds.shape[0])
