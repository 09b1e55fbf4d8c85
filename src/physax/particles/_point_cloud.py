"""Fields given at scattered points."""

from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, as_array, at_least, refuse_traced, single, whole
from .._products import tensordot
from ..grid import AbstractInterpolation, AbstractOutside, Linear
from ._fields import AbstractField, Look
from ._instants import (
    Instants,
    Leave,
    check_place,
    check_values,
    left_where,
    make_instants,
)
from ._kd_tree import KDTree, make_kd_tree
from ._numbers import host_numbers, unmasked


_LINEAR = Linear()
_MOST_NEIGHBOURS = 32


class PointCloud(AbstractField):
    r"""Values at scattered points without a mesh, steady or at instants of time.

    With one neighbour it takes the value of the nearest point, exactly, and has no
    gradient with respect to the place. With more it is their mean with the weights
    $1 / d^2$ of their distances, which is the value itself at a point, and which jumps
    where the set of neighbours changes. Points have no outside: unless `reach` says how
    far they count, the field extends to infinity, and no particle leaves the data.

    Reference: Shepard, *A two-dimensional interpolation function for irregularly-spaced
    data*, Proceedings of the 23rd ACM National Conference (1968).

    Attributes:
        points: The points, in metres.
        values: The values at the points.
        reach: A place farther than this from the nearest point is outside the data;
            infinite if no place is.
        instants: When the values are known.
        tree: Finds the nearest points.
        neighbours: How many points take part.
    """

    points: Float[Array, "points ndim"]
    values: Num[Array, "..."]
    reach: Float[Array, ""]
    instants: Instants
    tree: KDTree
    neighbours: int = eqx.field(static=True)

    def __init__(
        self,
        points: Float[ArrayLike, "points ndim"],
        values: Num[ArrayLike, "..."],
        times: Float[ArrayLike, " times"] | None = None,
        *,
        neighbours: int = 1,
        reach: Float[ArrayLike, ""] = np.inf,
        time_period: float | None = None,
        time_method: AbstractInterpolation = _LINEAR,
        time_outside: AbstractOutside | Leave | None = None,
    ):
        """Makes a field of its values at points.

        Args:
            points: The points, 1-D to 3-D.
            values: Of shape `[points, *components]`, or `[times, points, *components]`.
                Masked ones are NaN: there particles end with the status `NOT_FINITE`.
            times: The instants, increasing; `None` for a steady field.
            neighbours: How many points take part, 1 to 32.
            reach: A place farther than this from the nearest point is outside the data.
                By default no place is.
            time_period: The time after which the field repeats.
            time_method: The interpolation in time.
            time_outside: What it is before the first and after the last instant, as for
                `GriddedField`.

        Raises:
            ArgumentError: If the points are not finite, there are fewer than
                neighbours, or the shape of the values does not fit.
        """
        host, neighbours = _checked(points), whole(neighbours, "neighbours", 0)
        if not 1 <= neighbours <= min(_MOST_NEIGHBOURS, len(host)):
            raise ArgumentError(
                f"`neighbours` must be 1 to {_MOST_NEIGHBOURS} and no more than the "
                f"{len(host)} points, but is {neighbours}."
            )
        self.reach = single(at_least("reach", 0.0)(reach), "reach")
        self.instants = make_instants(
            times,
            time_period=time_period,
            time_method=time_method,
            time_outside=time_outside,
        )
        self.values = as_array(unmasked(values), "values")
        check_values(self.values, self.instants, len(host), "points")
        dtype = np.dtype(jnp.result_type(float))
        self.points = jnp.asarray(host, dtype)
        self.tree = make_kd_tree(host, dtype, leaf=max(8, neighbours))
        self.neighbours = neighbours

    def start(self, x):
        check_place(x, self.points.shape[1])
        place = jax.lax.stop_gradient(jnp.where(jnp.isfinite(x), x, 0))
        numbers = self._tree().guess(place.astype(self.points.dtype), self.neighbours)
        return jnp.minimum(numbers, len(self.points) - 1)

    def span(self):
        return self.instants.span()

    def look(self, t, x, memory):
        check_place(x, self.points.shape[1])
        here, points = (
            jnp.where(jnp.isfinite(x), x, 0),
            jax.lax.stop_gradient(self.points),
        )
        place = jax.lax.stop_gradient(here).astype(points.dtype)
        # The neighbours of the last look bound how far the nearest are now. A point may
        # be among those of the guess twice, and then bounds nothing.
        squares = jnp.sum((points[memory] - place) ** 2, -1)
        twice = jnp.sum(memory[:, None] == memory, 1) > 1
        bound = jnp.max(jnp.where(twice, jnp.inf, squares))
        numbers = self._tree().nearest(place, bound, self.neighbours)
        squares = jnp.sum((points[numbers] - here) ** 2, -1)
        weights = _weights(squares)

        def at(instant):
            values = self.values[(*instant, numbers)]
            return tensordot(weights.astype(values.dtype), values, 1)

        value, status = self.instants.blend(t, at)
        found = jnp.all(jnp.isfinite(x)) & (jnp.min(squares) <= self.reach**2)
        return Look(value, numbers, left_where(~found, status))

    def _tree(self) -> KDTree:
        return jax.lax.stop_gradient(self.tree)


def _weights(squares: Float[Array, " neighbours"]) -> Float[Array, " neighbours"]:
    """Weights of points at distances whose squares are given."""
    if len(squares) == 1:
        return jnp.ones_like(squares)
    # At a point, and beyond all numbers, the weights are those of the nearest alone.
    nearest = jnp.min(squares)
    alone = ~((nearest > jnp.finfo(squares.dtype).tiny) & (nearest < jnp.inf))
    safe = jnp.where(alone, 1, squares)
    weights = jnp.min(safe) / safe
    only = jnp.arange(len(squares)) == jnp.argmin(squares)
    return jnp.where(alone, only, weights / jnp.sum(weights))


def _checked(points: Any) -> np.ndarray:
    """Returns the points in float64."""
    refuse_traced(points, "points", "Make the field outside and pass it in.")
    host = host_numbers(points, "points")
    if host.ndim != 2 or not 1 <= host.shape[1] <= 3 or not len(host):
        raise ArgumentError(
            "`points` must be at least one, of one to three coordinates each, shape "
            f"(points, ndim), but have shape {host.shape}."
        )
    wrong = np.flatnonzero(~np.all(np.isfinite(host), axis=1))
    if wrong.size:
        raise ArgumentError(
            f"`points` must be finite, but point {wrong[0]} is {host[wrong[0]]}."
        )
    return host
