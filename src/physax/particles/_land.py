"""Land in the sea: where it is, and particles that strand on it."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from .._checks import ArgumentError, between, instance, real, single, whole
from ..grid import Clamp
from ._boundaries import AbstractBoundary, Turn, end
from ._gridded import GriddedField
from ._numbers import check_mask, unmasked
from ._seed_checks import check_seeds
from ._state import bounded, select
from ._status import ParticleStatus


class Land(eqx.Module):
    """Which nodes of a grid are land.

    Between nodes the share of land is interpolated linearly, and a place is land where
    the share is above `threshold`.

    Attributes:
        share: 1 on land, 0 at sea, a field over the grid.
        threshold: Between 0 and 1. At 0.5 the coast is half way between nodes; near 1
            it runs along the nodes that are land.
    """

    share: GriddedField
    threshold: Float[Array, ""]

    def __init__(
        self,
        mask: Bool[ArrayLike, "..."],
        axes: Sequence[Float[ArrayLike, " _"]],
        *,
        periods: Sequence[float | None] | None = None,
        threshold: float | Float[ArrayLike, ""] = 0.5,
    ):
        """Makes land of a mask.

        Args:
            mask: Whether each node is land, of the shape of the nodes.
            axes: For each axis the positions of the nodes, increasing.
            periods: For each axis the length after which the mask repeats, or `None`.
            threshold: As the attribute.
        """
        check_mask(mask, "mask")
        values = jnp.asarray(unmasked(mask)).astype(jnp.result_type(float))
        self.share = GriddedField(values, axes, periods=periods, outside=Clamp())
        self.threshold = single(between("threshold", 0.0, 1.0)(threshold), "threshold")

    def __check_init__(self):
        if self.share.components:
            raise ArgumentError(
                "`mask` must have one axis for each of `axes`, "
                f"{len(self.share.axes)}, but has shape {self.share.values.shape}."
            )

    @property
    def mask(self) -> Bool[Array, "..."]:
        """Whether each node is land."""
        return self.share.values > 0.5

    def coordinates(self) -> tuple[Float[Array, " _"], ...]:
        """Returns the positions of the nodes along each axis."""
        return tuple(axis.positions() for axis in self.share.axes)

    def excess(self, x: Float[Array, " ndim"]) -> Float[Array, ""]:
        """Returns the share of land above the threshold, at one place.

        Args:
            x: The place.
        """
        t = jnp.zeros((), x.dtype)
        return self.share.look(t, x, ()).value.astype(x.dtype) - self.threshold

    def covers(
        self, positions: Float[ArrayLike, "*places ndim"]
    ) -> Bool[Array, "*places"]:
        """Tells which places are land, such as seeds that should not start there.

        Args:
            positions: The places; those of tracks across a pole by `wrap_globe`.
        """
        x, ndim = real(positions, "positions"), len(self.share.axes)
        if x.shape[-1:] != (ndim,):
            raise ArgumentError(
                f"`positions` must have {ndim} coordinates along the last axis, but "
                f"have shape {x.shape}."
            )
        found = jax.vmap(self.excess)(x.reshape(-1, x.shape[-1])) > 0
        return found.reshape(x.shape[:-1])


class Coast(AbstractBoundary):
    """Particles that reach land end there, with the status `STUCK`.

    Asked at the end of each step; the hit is then found along the step by three secants
    of the share of land, and two steps of Newton between the last of them. A step must
    not lead over a whole piece of land. Where the velocity is `OnSphere`, land has axes
    of longitude and latitude, and is met behind a pole, too. Along walls where
    particles should slide instead, interpolate by `SlipField`.

    Attributes:
        land: Where land is.
    """

    land: Land = eqx.field(converter=lambda x: instance(x, "land", Land))

    def faces(self):
        return 1

    def is_random(self):
        return False

    def check(self, positions):
        if isinstance(self.land.covers(positions), jax.core.Tracer):
            return positions
        found = np.flatnonzero(np.asarray(self.land.covers(check_seeds(positions))))
        if found.size:
            first = int(found[0])
            raise ArgumentError(
                f"`seeds` must lie at sea, but {found.size} of {len(positions)} are "
                f"on land; number {first} is at {np.asarray(positions)[first]}. Leave "
                "them out: `seeds[~land.covers(seeds)]`."
            )
        return positions

    def meet(self, before, after, passage):
        met = self.turn(before, after, passage)
        return select(met.found, met.particle, after)

    def settle(self, particle, passage):
        del passage
        return particle

    def turn(self, before, after, passage):
        ndim = len(self.land.share.axes)
        start, stop = before.y[:ndim], after.y[:ndim]
        excess = passage.seen(self.land.excess)
        last = excess(stop)
        part = _crossing(excess, start, stop, last)
        at = start + part * (stop - start)
        stuck = ParticleStatus.STUCK
        stranded = end(before, after, passage, part=part, position=at, status=stuck)
        return Turn(last > 0, part, at, stranded)


def _crossing(excess: Callable[[Array], Array], start, stop, last) -> Float[Array, ""]:
    """Returns the part of the way from sea to land where the coast is."""

    def along(part):
        return excess(start + part * (stop - start))

    def secant(bracket, _):
        low, high, below, above, _ = bracket
        rise = above - below
        # Steps that do not reach land are thrown away, and so are their secants.
        safe = jnp.where(rise > 0, rise, 1)
        part = low + jnp.clip(-below / safe, 0, 1) * (high - low)
        here = along(part)
        wet = here <= 0
        low, below = jnp.where(wet, part, low), jnp.where(wet, here, below)
        high, above = jnp.where(wet, high, part), jnp.where(wet, above, here)
        return (low, high, below, above, part), None

    # In loops: XLA would compute all of it again for each use of a result.
    first, whole = excess(start), jnp.ones_like(last)
    begin = jnp.zeros_like(last), whole, first, last, whole
    found, _ = lax.scan(secant, begin, length=3)
    # A secant that passes a node has another slope than the coast. Two steps of Newton
    # from there have the derivatives of the coast, of first and second order. They stay
    # where the secants have found it to be: across a node they may lead far away.
    low, high, _, _, part = lax.stop_gradient(found)
    least = 1e-6 * lax.stop_gradient(last - first)

    def newton(part, _):
        value, slope = jax.jvp(along, (part,), (jnp.ones_like(part),))
        steep = (slope > 0) & (slope > least)
        part = part - jnp.where(steep, value / jnp.where(steep, slope, 1), 0)
        inside = lax.stop_gradient(bounded(part, low, high))
        # Values are bounded, derivatives are not: a rounding may lead over a bound.
        return inside + (part - lax.stop_gradient(part)), None

    part, _ = lax.scan(newton, part, length=2)
    return part


def fill_land(
    values: Num[ArrayLike, "..."],
    axes: Sequence[Float[ArrayLike, " _"]],
    *,
    periods: Sequence[float | None] | None = None,
    leading: int = 0,
    trailing: int = 0,
) -> tuple[Num[np.ndarray, "..."], Land | None]:
    """Puts 0 on land, where samples are not finite, or masked, at all times.

    A node is land if that holds for any component. What a node lacks at some times
    only is a gap, and stays NaN: a particle that meets one ends with the status
    `NOT_FINITE`.

    Args:
        values: The samples.
        axes: For each axis the positions of the nodes.
        periods: For each axis the length after which the mask repeats, or `None`.
        leading: Number of axes before those of the nodes, such as times.
        trailing: Number of axes behind them, such as components.

    Returns:
        The samples, and the land, `None` if there is none.
    """
    leading, trailing = whole(leading, "leading", 0), whole(trailing, "trailing", 0)
    host = np.asarray(unmasked(values))
    if host.dtype.kind not in "biufc" or host.ndim < leading + trailing:
        raise ArgumentError(
            f"`values` must be numbers with at least {leading + trailing} axes, but is "
            f"{host.dtype}{list(host.shape)}."
        )
    never = ~np.any(np.isfinite(host), axis=tuple(range(leading)))
    dry = np.any(never, axis=tuple(range(never.ndim - trailing, never.ndim)))
    if not dry.any():
        return host, None
    wide = dry.reshape((1,) * leading + dry.shape + (1,) * trailing)
    return np.where(wide, 0, host).astype(host.dtype), Land(dry, axes, periods=periods)
