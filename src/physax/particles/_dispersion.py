"""How clouds of particles spread."""

from collections.abc import Sequence
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num
from scipy.spatial import KDTree

from .._checks import ArgumentError, at_once, check
from .._known_number import known_number
from .._products import einsum
from ._seed_checks import check_seeds, in_default_precision
from ._tracks import Tracks, check_tracks


@eqx.filter_jit
def absolute_dispersion(tracks: Tracks) -> Float[Array, "times ndim"]:
    r"""Returns the mean squared distance of particles from their seeds, axis by axis.

    $\langle (x_i(t) - x_i(t_0))^2 \rangle$ over the particles that move at that time:
    those that wait, have ended, or came in again through an inlet are left out. For
    Brownian motion each axis gives $2 K t$. Where walls are periodic, see
    `unwrap_periodic`. Differentiable in the positions.

    Args:
        tracks: The tracks.

    Returns:
        The dispersion in square units of the positions, NaN where no particle moves.
        The sum over the axes is the total.
    """
    check_tracks(tracks)
    away = tracks.positions - tracks.positions[0]
    return _mean(away**2, _followed(tracks))


@eqx.filter_jit
def cloud_covariance(tracks: Tracks) -> Float[Array, "times ndim ndim"]:
    r"""Returns the covariance of the particles' places: their spread about the mean.

    $\langle (x_i - \langle x_i \rangle) (x_j - \langle x_j \rangle) \rangle$ over the
    particles that move at that time. Half the slope of the diagonal is the apparent
    diffusivity. Differentiable in the positions.

    Args:
        tracks: The tracks.

    Returns:
        The covariance in square units of the positions, NaN where no particle moves.
    """
    check_tracks(tracks)
    followed = tracks.moving()
    away = tracks.positions - _mean(tracks.positions, followed)[:, None]
    count = jnp.sum(followed, 1).astype(away.dtype)
    kept = jnp.where(followed[..., None], away, 0)
    total = einsum("tpi,tpj->tij", kept, kept)
    return total / jnp.where(count > 0, count, jnp.nan)[:, None, None]


def relative_dispersion(
    tracks: Tracks, pairs: Int[ArrayLike, "pairs 2"]
) -> Float[Array, "times ndim"]:
    r"""Returns the mean squared separation of pairs of particles, axis by axis.

    $\langle (x_i^a(t) - x_i^b(t))^2 \rangle$ over the pairs of which both particles
    move at that time and never came in again through an inlet. Differentiable in the
    positions.

    Args:
        tracks: The tracks.
        pairs: Two indices of particles for each pair; `neighbour_pairs` finds pairs
            that start close to each other.

    Returns:
        The dispersion in square units of the positions, NaN where no pair moves.

    Raises:
        ArgumentError: If there are no pairs, or there is no particle of some index.
    """
    check_tracks(tracks)
    particles = tracks.positions.shape[1]
    host = np.asarray(pairs)
    if host.dtype.kind not in "iu":
        raise ArgumentError(f"`pairs` must hold integers, but has dtype {host.dtype}.")
    if host.ndim != 2 or host.shape[1] != 2 or not host.size:
        raise ArgumentError(
            "`pairs` must hold two indices for each of at least one pair, but has "
            f"shape {host.shape}."
        )
    if host.min() < 0 or host.max() >= particles:
        raise ArgumentError(
            f"`pairs` must be indices from 0 to {particles - 1}, but go from "
            f"{host.min()} to {host.max()}."
        )
    one, other = host[:, 0], host[:, 1]
    apart = tracks.positions[:, one] - tracks.positions[:, other]
    followed = _followed(tracks)
    return _mean(apart**2, followed[:, one] & followed[:, other])


def neighbour_pairs(
    seeds: Num[ArrayLike, "particles ndim"], distance: float
) -> Int[np.ndarray, "pairs 2"]:
    """Finds all pairs of particles that start close to each other, on the host.

    Args:
        seeds: Where the particles start.
        distance: The largest distance of a pair, in the unit of the seeds.

    Returns:
        Two indices for each pair, the lower one first.

    Raises:
        ArgumentError: If there is no such pair, or the seeds cannot be used.
    """
    distance = known_number(distance, "distance", "Call it outside: it is on the host.")
    if not distance > 0:
        raise ArgumentError(f"`distance` must be positive, but is {distance:g}.")
    places = np.asarray(check_seeds(seeds), np.float64)
    pairs = KDTree(places).query_pairs(distance, output_type="ndarray")
    if not pairs.size:
        raise ArgumentError(
            "`distance` must be at least that of the two nearest seeds, but no two are "
            f"within {distance:g} of each other."
        )
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def unwrap_periodic(tracks: Tracks, periods: ArrayLike | Sequence[ArrayLike]) -> Tracks:
    """Undoes the jumps of positions from one end of a periodic axis to the other.

    Between recorded rows a particle must move less than half a period.

    Args:
        tracks: The tracks.
        periods: Length of each axis, infinite where nothing repeats; one number or one
            for each axis.

    Returns:
        The tracks, with positions that continue beyond the ends.

    Raises:
        ArgumentError: If the periods are not one for each axis, or one is not
            positive.
    """
    check_tracks(tracks)
    lengths = in_default_precision(periods, "periods").astype(tracks.positions.dtype)
    ndim = tracks.positions.shape[-1]
    if lengths.shape not in ((), (ndim,)):
        raise ArgumentError(
            f"`periods` must be one number or {ndim}, one for each axis, but has shape "
            f"{lengths.shape}."
        )
    with at_once(lengths):
        lengths = check(lengths, lengths > 0, "`periods` must be positive")
    finite = jnp.isfinite(lengths)
    safe = jnp.where(finite, lengths, 1)
    steps = jnp.diff(tracks.positions, axis=0)
    # Whole periods are counted, not steps added up: rounding stays that of one row.
    turns = -jnp.cumsum(jnp.round(steps / safe), 0)
    turns = jnp.concatenate([jnp.zeros_like(turns[:1]), turns])
    moved = tracks.positions + jnp.where(finite, safe * turns, 0)
    return replace(tracks, positions=moved, wraps=None)


def _followed(tracks: Tracks) -> Bool[Array, "times particles"]:
    """Returns which particles move and are still those that started."""
    return tracks.moving() & (tracks.entries == 0)


def _mean(
    x: Float[Array, "times items ndim"], used: Bool[Array, "times items"]
) -> Float[Array, "times ndim"]:
    """Averages over the items in use; NaN where there are none."""
    count = jnp.sum(used, 1).astype(x.dtype)[:, None]
    total = jnp.sum(jnp.where(used[..., None], x, 0), 1)
    return total / jnp.where(count > 0, count, jnp.nan)
