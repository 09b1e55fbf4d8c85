"""Seeds that lie outside the data: the error, and what would bring them inside."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._checks import ArgumentError
from ._march import Problem, enter
from ._sphere import sphere_of, wrap_globe
from ._state import Particles
from ._status import ParticleStatus


def refuse_outside(
    problem: Problem, begin: Particles, seeds: Array, release: Array | None
) -> None:
    """Refuses seeds that lie outside the data.

    Args:
        problem: The problem.
        begin: States of particles before the first step.
        seeds: Where they begin.
        release: When each begins, `None` for all at the first time.

    Raises:
        ArgumentError: If one has left the data.
    """
    left = begin.status[: seeds.shape[0]] == int(ParticleStatus.LEFT_DATA)
    outside = jnp.flatnonzero(left)
    if outside.size:
        first = int(outside[0])
        remedy = _wrapped(problem, seeds, release, np.asarray(left)) or (
            "Leave them out, or make the field with `outside=Clamp()`."
        )
        raise ArgumentError(
            f"`seeds` must lie within the data of all fields, but {outside.size} of "
            f"{seeds.shape[0]} do not; number {first} is at "
            f"{np.asarray(seeds[first])}. {remedy}"
        )


def _wrapped(problem: Problem, seeds: Array, release, left: np.ndarray) -> str:
    """Returns the remedy for longitudes of another turn than those of the data.

    It is empty where a turn of 360 degrees helps no seed that was outside.
    """
    if sphere_of(problem.motion) is None:
        return ""
    numbers = jnp.arange(seeds.shape[0], dtype=jnp.int32)

    def inside(places: Array) -> np.ndarray:
        status = eqx.filter_jit(enter)(problem, places, release, numbers).status
        return np.asarray(status) != int(ParticleStatus.LEFT_DATA)

    turned = np.asarray(seeds)[:, 0]
    for turn in (360.0, -360.0):
        helped = left & inside(seeds.at[:, 0].add(turn))
        turned = np.where(helped, np.asarray(seeds)[:, 0] + turn, turned)
    moved = turned != np.asarray(seeds)[:, 0]
    if not moved.any():
        return ""
    # The two that are common, if they will do, or what begins west of all. Latitudes
    # stay; behind them may follow what belongs to no place, the gradient of a flow map.
    lowest = float(np.floor(turned[moved | ~left].min()))
    wrapped = lambda west: wrap_globe(seeds[:, :2], west)[:, 0]  # noqa: E731
    counts = {
        west: np.sum(inside(seeds.at[:, 0].set(wrapped(west))))
        for west in (0.0, -180.0, lowest)
    }
    west = max(counts, key=lambda west: counts[west])
    if counts[west] <= np.sum(~left):
        return ""
    rest = seeds.shape[0] - counts[west]
    return (
        "Longitudes of the data may be 360 degrees away: take "
        f"`wrap_globe(seeds, west={west:g})`"
        + (f", and leave out {rest} that are outside still." if rest else ".")
    )
