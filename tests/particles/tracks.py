"""Tracks that tests of statistics share."""

import jax.numpy as jnp
import numpy as np

from physax.particles import ParticleStatus, Tracks


ALIVE, WAITING = ParticleStatus.ALIVE, ParticleStatus.WAITING
EXITED, STUCK = ParticleStatus.EXITED, ParticleStatus.STUCK


def make_tracks(times, positions, **known):
    """Makes tracks of particles that start at once and go on, but for what is known."""
    times = jnp.asarray(times, float)
    positions = jnp.asarray(positions, float)
    count = positions.shape[1]
    rows = {
        "status": jnp.zeros(count, int),
        "ended": jnp.full(count, jnp.nan),
        "face": jnp.full(count, -1),
        "since": jnp.full(count, times[0]),
        "entries": jnp.zeros(count, int),
    }
    for name, values in known.items():
        rows[name] = jnp.asarray(values, rows[name].dtype)
    return Tracks(times, positions, None, {}, **rows)


def straight(times, seeds, velocities, **known):
    """Makes tracks of particles that move straight while they live."""
    times, seeds = np.asarray(times, float), np.asarray(seeds, float)
    since = np.asarray(known.get("since", np.full(len(seeds), times[0])), float)
    ended = np.asarray(known.get("ended", np.full(len(seeds), np.nan)), float)
    # np.fmin takes the number where the other is NaN.
    if times[-1] >= times[0]:
        clock = np.fmin(np.maximum(times[:, None], since), ended)
    else:
        clock = np.fmax(np.minimum(times[:, None], since), ended)
    elapsed = (clock - since)[..., None]
    return make_tracks(times, seeds + elapsed * np.asarray(velocities, float), **known)
