"""The value of a field along tracks, such as temperature or salinity."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Num

from ._fields import as_field
from ._status import ParticleStatus
from ._tracks import Tracks, check_tracks


def sample_along(field: Any, tracks: Tracks) -> Num[Array, "times particles ..."]:
    """Evaluates a field at the recorded times and places of tracks.

    Works under `jit`, and is differentiable in the field and in the positions. What
    depends on the field all along the way, such as an exposure, is integrated while
    particles move: `variables` of `track`.

    On a sphere a track that has crossed a pole has latitudes beyond 90 degrees. Fields
    of `io.read_scalar`, `io.read_velocity` and `OnSphere` know of these; any other, as
    a `GriddedField` in degrees, has no data there: give it
    `replace(tracks, positions=wrap_globe(tracks.positions, west))`, with `west` where
    its longitudes begin.

    Args:
        field: A field, such as a scalar `GriddedField`, or a callable `s(t, x)`.
        tracks: The tracks.

    Returns:
        The values, NaN where there are no data, and where a particle had not been
        released or had ended.
    """
    check_tracks(tracks)
    field = as_field(field, "field")
    memory = jax.vmap(field.start)(tracks.positions[0])

    def row(memory, given):
        t, places = given
        seen = jax.vmap(field.look, in_axes=(None, 0, 0))(
            t.astype(places.dtype), places, memory
        )
        return seen.memory, (seen.value, seen.status)

    _, (values, status) = jax.lax.scan(row, memory, (tracks.times, tracks.positions))
    known = tracks.moving() & (status == int(ParticleStatus.ALIVE))
    return jnp.where(
        known.reshape(*known.shape, *(1,) * (values.ndim - 2)), values, jnp.nan
    )
