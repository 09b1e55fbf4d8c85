"""How long particles stay in a region, and when they first come there."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._checks import ArgumentError, whole
from ._regions import AbstractRegion, Region, as_region
from ._tracks import Tracks, check_tracks


@eqx.filter_jit
def ages(tracks: Tracks) -> Float[Array, "times particles"]:
    """Returns how long ago each particle was released, at each recorded time.

    A particle that came in again through an inlet counts from then on; of its earlier
    lives nothing is known.

    Args:
        tracks: The tracks.

    Returns:
        The ages in seconds, NaN before the release and after the end. Their
        distribution is `histogram_density(ages[row, :, None], [edges])`.
    """
    check_tracks(tracks)
    age = _forward(tracks) * (tracks.times[:, None] - tracks.since)
    return jnp.where((age >= 0) & tracks.moving(), age, jnp.nan)


def lifetimes(tracks: Tracks, face: int | None = None) -> Float[Array, " particles"]:
    """Returns how long each particle lived, from its release to its end.

    Taken from the time of the hit, not from the recorded rows. This is the residence
    time in the whole domain, and the first passage to its outlets.

    Args:
        tracks: The tracks.
        face: Only of particles that ended at this boundary, numbered as in `Tracks`.

    Returns:
        The times in seconds, NaN for particles that have not ended, or elsewhere.
    """
    check_tracks(tracks)
    face = None if face is None else whole(face, "face", 0)
    life = _forward(tracks) * (tracks.ended - tracks.since)
    return life if face is None else jnp.where(tracks.face == face, life, jnp.nan)


@eqx.filter_jit
def residence_time(tracks: Tracks, region: Region) -> Float[Array, " particles"]:
    """Returns how long each particle has been in a region.

    Paths are straight between the recorded rows, from the release of a particle to its
    end, both at their exact times; so a particle that has exited, or sticks, stays no
    longer. All visits are added. A particle that came in again through an inlet counts
    from then on, and until the first row after that its place is taken from that row.
    Of a particle that is still inside at the last row, the time is what it is so far.
    Along the periodic axes of a box, which `track` and `run` note in `tracks.wraps`,
    paths go the shorter way, out at one end and in at the other: less than half of a
    period from row to row. Differentiable in the positions and times.

    Args:
        tracks: The tracks.
        region: A region, or a function of one place that is negative inside.

    Returns:
        The times in seconds, 0 for particles that were never there.

    Raises:
        ArgumentError: If `region` is neither, or there are fewer than two rows.
    """
    check_tracks(tracks)
    begin, end, enter, leave = _legs(tracks, as_region(region))
    lived = jnp.maximum(end - begin, 0)
    return jnp.sum(lived * jnp.maximum(leave - enter, 0), 0)


@eqx.filter_jit
def first_passage(tracks: Tracks, region: Region) -> Float[Array, " particles"]:
    """Returns how long after its release each particle first came to a region.

    Paths are taken as in `residence_time`. For walls and outlets, where particles end,
    use `lifetimes`: rounding may leave their last place just before the wall.

    Args:
        tracks: The tracks.
        region: A region, or a function of one place that is negative inside.

    Returns:
        The times in seconds, 0 for particles released inside, NaN for those that never
        came there.

    Raises:
        ArgumentError: If `region` is neither, or there are fewer than two rows.
    """
    check_tracks(tracks)
    begin, end, enter, leave = _legs(tracks, as_region(region))
    came = (enter <= leave) & (end >= begin)
    leg = jnp.argmax(came, 0)[None]

    def of_leg(x):
        return jnp.take_along_axis(x, leg, 0)[0]

    first = of_leg(begin) + of_leg(enter) * (of_leg(end) - of_leg(begin))
    first = first - _forward(tracks) * tracks.since
    return jnp.where(jnp.any(came, 0), first, jnp.nan)


def inside_region(tracks: Tracks, region: Region) -> Bool[Array, "times particles"]:
    """Returns which particles move in a region at each recorded time.

    Args:
        tracks: The tracks.
        region: A region, or a function of one place that is negative inside.

    Raises:
        ArgumentError: If `region` is neither.
    """
    check_tracks(tracks)
    contains = jax.vmap(jax.vmap(as_region(region).contains))
    return contains(tracks.positions) & tracks.moving()


def _forward(tracks: Tracks) -> Float[Array, ""]:
    """Returns 1 where time runs forward, -1 where it runs backward."""
    times = tracks.times
    return jnp.where(times[-1] >= times[0], 1, -1).astype(times.dtype)


def _legs(tracks: Tracks, region: AbstractRegion) -> tuple[Array, ...]:
    """Cuts paths into straight legs between rows.

    Returns:
        When each leg begins and ends, in a time that runs forward, and where it enters
        and leaves the region, from 0 to 1. A leg without duration ends when it begins,
        one that was not lived ends before.
    """
    if tracks.times.shape[0] < 2:
        raise ArgumentError(
            "`tracks` must hold at least 2 recorded times, but hold "
            f"{tracks.times.shape[0]}."
        )
    forward = _forward(tracks)
    times = forward * tracks.times[:, None]
    since = forward * tracks.since
    ended = jnp.where(jnp.isnan(tracks.ended), jnp.inf, forward * tracks.ended)
    begin = jnp.maximum(times[:-1], since)
    end = jnp.minimum(times[1:], ended)
    lived = (times[1:] >= since) & (times[:-1] <= ended)
    start, stop = tracks.positions[:-1], tracks.positions[1:]
    # Where it came in again is not recorded: only where it was soon after.
    anew = (tracks.entries > 0) & (times[:-1] < since)
    start = jnp.where(anew[..., None], stop, start)
    end = jnp.maximum(end, begin)
    if tracks.wraps is not None:
        begin, end, lived, start, stop = _pieces(
            tracks.wraps, begin, end, lived, start, stop
        )
    enter, leave = jax.vmap(jax.vmap(region.interval))(start, stop)
    return begin, jnp.where(lived, end, begin - 1), enter, leave


def _pieces(wraps, begin, end, lived, start, stop) -> tuple[Array, ...]:
    """Cuts legs where they leave a periodic box, and goes on at its other end.

    Returns:
        As given, with the pieces of a leg one after the other along the first axis.
    """
    low, high = wraps
    repeats = jnp.isfinite(high - low)
    size, base = jnp.where(repeats, high - low, 1), jnp.where(repeats, low, 0)
    step = stop - start
    step = step - jnp.where(repeats, size * jnp.round(step / size), 0)
    goal = start + step
    out = repeats & ((goal > high) | (goal < low))
    ends = jnp.where(out, jnp.where(goal > high, high, low), start)
    part = jnp.clip((ends - start) / jnp.where(out, step, 1), 0, 1)
    cuts = jnp.sort(jnp.where(out, part, 1), axis=-1)
    whole = jnp.ones_like(cuts[..., :1])
    cuts = jnp.concatenate([0 * whole, cuts, whole], -1)
    first, last = cuts[..., :-1], cuts[..., 1:]

    def along(part):
        return start[..., None, :] + part[..., None] * step[..., None, :]

    turns = jnp.floor((along((first + last) / 2) - base) / size)
    shift = jnp.where(repeats, size * turns, 0)

    def in_a_row(x):
        x = jnp.moveaxis(x, 2, 1)
        return x.reshape(-1, *x.shape[2:])

    begin, width = begin[..., None], (end - begin)[..., None]
    lived = jnp.broadcast_to(lived[..., None], first.shape)
    pieces = (begin + first * width, begin + last * width, lived)
    return tuple(
        in_a_row(x) for x in (*pieces, along(first) - shift, along(last) - shift)
    )
