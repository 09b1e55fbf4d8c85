"""Which regions send particles to which others."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from .._checks import ArgumentError, instance, real
from .._products import matmul
from ._numbers import check_listed
from ._regions import Region, as_region
from ._status import ParticleStatus
from ._tracks import Tracks, check_tracks


Labels = Int[Array, " labels"] | Int[np.ndarray, " labels"]


def connectivity_matrix(
    tracks: Tracks,
    sources: Sequence[Region] | Labels,
    targets: Sequence[Region] | Labels,
    *,
    weights: Num[ArrayLike, " particles"] | None = None,
    count: tuple[ParticleStatus, ...] = (ParticleStatus.ALIVE, ParticleStatus.STUCK),
) -> Float[Array, "sources targets"]:
    r"""Returns the probability to get from each source to each target.

    Entry $(i, j)$ is the share of the particles that started in source $i$ which are in
    target $j$ at the last recorded time. Particles that have exited or were absorbed
    are in no target, so rows may add to less than 1. Those not released yet, and those
    that came in again through an inlet, whose start is not known, are left out.
    Differentiable in the weights.

    Args:
        tracks: The tracks.
        sources: Regions, or functions of one place that are negative inside; or the
            number of the region of each particle, from 0, and negative for none.
        targets: The same for the last places.
        weights: Importance of each particle, at least 0; all equal by default.
        count: What may have become of a particle that is in a target.

    Returns:
        The probabilities, NaN in the row of a source that no particle started from.

    Raises:
        ArgumentError: If there are no regions, or labels are not one for each particle.
    """
    check_tracks(tracks)
    check_listed(count, "count", "(ParticleStatus.ALIVE,)")
    if not len(count):
        raise ArgumentError("`count` must hold at least one status, but is empty.")
    for kind in count:
        instance(kind, "count", ParticleStatus)
    known = (tracks.entries == 0) & (tracks.status != ParticleStatus.WAITING)
    there = jnp.any(jnp.stack([tracks.status == int(kind) for kind in count]), 0)
    start = _members(sources, tracks.positions[0], "sources") & known[:, None]
    end = _members(targets, tracks.positions[-1], "targets") & there[:, None]
    dtype = tracks.positions.dtype
    mass = jnp.ones(known.shape, dtype)
    if weights is not None:
        mass = real(weights, "weights").astype(dtype)
        if mass.shape != known.shape:
            raise ArgumentError(
                f"`weights` must be one number for each of {known.size} particles, but "
                f"has shape {mass.shape}."
            )
    sent = start.astype(dtype) * mass[:, None]
    arrived = matmul(sent.T, end.astype(dtype))
    total = jnp.sum(sent, 0)[:, None]
    return arrived / jnp.where(total > 0, total, jnp.nan)


def _members(
    regions: Any, places: Float[Array, "particles ndim"], name: str
) -> Bool[Array, "particles regions"]:
    """Returns which particles are in which regions."""
    if isinstance(regions, (jax.Array, np.ndarray)):
        labels = np.asarray(regions)
        if labels.dtype.kind not in "iu":
            raise ArgumentError(
                f"`{name}` must be regions or integers, but has dtype {labels.dtype}."
            )
        if labels.shape != places.shape[:1]:
            raise ArgumentError(
                f"`{name}` must be regions, or one label for each of {places.shape[0]} "
                f"particles, but has shape {labels.shape}."
            )
        number = int(labels.max(initial=-1)) + 1
        if number == 0:
            raise ArgumentError(
                f"`{name}` must label at least one particle with 0 or more, but all "
                "labels are negative."
            )
        return jnp.asarray(labels)[:, None] == jnp.arange(number)
    check_listed(regions, name, "[BoxRegion(low, high)]")
    if not len(regions):
        raise ArgumentError(f"`{name}` must hold at least one region, but is empty.")
    columns = [jax.vmap(as_region(region, name).contains)(places) for region in regions]
    return jnp.stack(columns, 1)
