"""Regions of space that particles are in, enter and leave."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._checks import ArgumentError, at_once, check
from ._fields import as_function
from ._seed_checks import in_default_precision


Interval = tuple[Float[Array, ""], Float[Array, ""]]


class AbstractRegion(eqx.Module):
    """A part of space."""

    @abstractmethod
    def contains(self, x: Float[Array, " ndim"]) -> Bool[Array, ""]:
        """Returns whether a place lies in the region.

        Args:
            x: The place.
        """

    @abstractmethod
    def interval(
        self, start: Float[Array, " ndim"], stop: Float[Array, " ndim"]
    ) -> Interval:
        """Returns which part of a straight path lies in the region.

        Args:
            start: Where the path begins.
            stop: Where it ends.

        Returns:
            Where the path enters and where it leaves, from 0 at its begin to 1 at its
            end; if it is nowhere inside, it leaves before it enters.
        """


class LevelRegion(AbstractRegion):
    """Where a function is negative or zero, such as a signed distance.

    Along a path the function is taken as linear between the ends. With a function that
    only returns whether a place is inside, a path enters halfway between two places.

    Attributes:
        function: A function of one place that returns a number, negative inside, or
            whether the place is inside.
    """

    function: Callable[[Float[Array, " ndim"]], Any] = eqx.field(
        converter=lambda x: as_function(x, "function", "phi(x)")
    )

    def _level(self, x):
        level = jnp.asarray(self.function(x))
        return jnp.where(level, -1.0, 1.0) if level.dtype == bool else level

    def contains(self, x):
        return self._level(x) <= 0

    def interval(self, start, stop):
        a, b = self._level(start), self._level(stop)
        mixed = (a <= 0) != (b <= 0)
        crossing = jnp.where(mixed, a, 0) / jnp.where(mixed, a - b, 1)
        enter = jnp.where(a <= 0, 0, jnp.where(mixed, crossing, 1))
        leave = jnp.where(b <= 0, 1, jnp.where(mixed, crossing, 0))
        return enter, leave


class BoxRegion(AbstractRegion):
    """A box; infinite corners make half-spaces and slabs.

    Straight paths are cut exactly, also those that pass through in one step.

    Attributes:
        low: The low corner, one number for each axis.
        high: The high corner.
    """

    low: Float[Array, " ndim"] = eqx.field(converter=lambda low: _corner(low, "low"))
    high: Float[Array, " ndim"] = eqx.field(
        converter=lambda high: _corner(high, "high")
    )

    def __check_init__(self):
        if self.low.shape != self.high.shape:
            raise ArgumentError(
                "`high` must have as many coordinates as `low`, "
                f"{self.low.shape[0]}, but has {self.high.shape[0]}."
            )
        with at_once((self.low, self.high)):
            good = self.low < self.high
            check(self.low, good, "`low` must be less than `high` along each axis")

    def contains(self, x):
        return jnp.all((x >= self.low) & (x <= self.high))

    def interval(self, start, stop):
        step = stop - start
        moves = step != 0
        # A path along a face stays on its side of it for ever.
        stays = jnp.where((start >= self.low) & (start <= self.high), 1, -1)
        to_low = _reached(self.low, start, step)
        to_high = _reached(self.high, start, step)
        first = jnp.where(moves, jnp.minimum(to_low, to_high), 0)
        last = jnp.where(moves, jnp.maximum(to_low, to_high), stays)
        return jnp.maximum(jnp.max(first), 0), jnp.minimum(jnp.min(last), 1)


def _reached(face: Array, start: Array, step: Array) -> Array:
    """Returns when a path comes to a face, infinite where the face is far away.

    Infinite faces are kept out of the quotient, whose gradient would be NaN.
    """
    finite = jnp.isfinite(face)
    away = jnp.where(finite, face, start) - start
    never = jnp.where((face > 0) == (step > 0), jnp.inf, -jnp.inf)
    return jnp.where(finite, away / jnp.where(step != 0, step, 1), never)


def _corner(x: Any, name: str) -> Float[Array, " ndim"]:
    x = in_default_precision(x, name)
    if x.ndim != 1:
        raise ArgumentError(
            f"`{name}` must be one number for each axis, but has shape {x.shape}."
        )
    with at_once(x):
        return check(x, ~jnp.isnan(x), f"`{name}` must be a number")


class PolygonRegion(AbstractRegion):
    """The inside of a polygon in two dimensions.

    Along a path the distance to the outline is taken as linear between the ends.

    Attributes:
        vertices: The corners in either sense, at least three.
    """

    vertices: Float[Array, "corners 2"] = eqx.field(
        converter=lambda corners: in_default_precision(corners, "vertices")
    )

    def __check_init__(self):
        shape = self.vertices.shape
        if len(shape) != 2 or shape[0] < 3 or shape[1] != 2:
            raise ArgumentError(
                "`vertices` must be at least 3 corners with 2 coordinates each, but "
                f"have shape {shape}."
            )

    @partial(jax.jit, inline=True)
    def distance(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        """Returns the distance from the outline, negative inside.

        Args:
            x: The place.
        """
        a, b = self.vertices, jnp.roll(self.vertices, -1, 0)
        side, away = b - a, x - a
        squared = jnp.sum(side**2, 1)
        along = jnp.sum(away * side, 1) / jnp.where(squared > 0, squared, 1)
        gap = away - jnp.clip(along, 0, 1)[:, None] * side
        nearest = jnp.min(jnp.sum(gap**2, 1))
        far = nearest > 0
        distance = jnp.where(far, jnp.sqrt(jnp.where(far, nearest, 1)), 0)
        # A ray to the right crosses the outline an odd number of times from inside.
        spans = (a[:, 1] > x[1]) != (b[:, 1] > x[1])
        turned = side[:, 0] * away[:, 1] - side[:, 1] * away[:, 0]
        right = jnp.where(side[:, 1] > 0, turned > 0, turned < 0)
        inside = jnp.sum(spans & right) % 2 == 1
        return jnp.where(inside, -distance, distance)

    def contains(self, x):
        return self.distance(x) <= 0

    def interval(self, start, stop):
        return LevelRegion(self.distance).interval(start, stop)


Region = AbstractRegion | Callable[[Float[Array, " ndim"]], Any]


def as_region(region: Any, name: str = "region") -> AbstractRegion:
    """Returns a region.

    Args:
        region: A region, or a function of one place for a `LevelRegion`.
        name: What the caller calls it.

    Raises:
        ArgumentError: If it is neither.
    """
    if isinstance(region, AbstractRegion):
        return region
    if not callable(region) or isinstance(region, type):
        raise ArgumentError(
            f"`{name}` must be a region or a function of one place that is negative "
            f"inside, but is {region!r}. `BoxRegion(low, high)` makes a box."
        )
    return LevelRegion(region)
