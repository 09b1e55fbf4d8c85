"""The least-squares problem of a two-time fit."""

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, check_picker, instance, traced
from ..fit import (
    AbstractSeparable,
    Columns,
    Mixing,
    Parameters,
    Parts,
    Tie,
    linear_limits,
    projected_cost,
)
from ..fit._given import check_pair
from ..fit._problems import as_absolute_sigma
from ..fit._used import first_used
from ._correlation import AbstractCorrelation, LaminarFlow, check_model
from ._known import known, on_host
from ._scaling import (
    AbstractScaling,
    Constant,
    Limits,
    PerAngle,
    check_bounds,
    linear_bounds,
)
from ._tiles import Tiles, at_pairs, is_pair
from ._transport import Diffusion, Shear
from ._two_time import TwoTime, check_data


# Of an exponent of time from time 0 on, where it must stay above -1.
_LEAST_EXPONENT = -0.99


class TwoTimeProblem(AbstractSeparable):
    r"""Fits $c_2 = o + b f(t_1, t_2)$ to the pairs of frames above the diagonal.

    Contrasts and offsets are eliminated exactly; the parameters are those of the model.

    Attributes:
        parameters: The model, and which of its numbers are free.
        data: Tiles of the maps: their frames, values, weights.
        times: Times of the frames in seconds.
        q: Wavevector of each map in 1/angstrom.
        phi: Its direction in radians.
        weight: One over the standard deviation of the values of each map.
        mixing: How maps share coefficients.
        low: Lower bounds of the coefficients.
        high: Their upper bounds.
        coefficients: Coefficients that are not eliminated, or None.
        centre: A constant that is subtracted from the data.
        size: Frames along the side of a tile.
        parts: What the columns of a map are.
        linear_names: Names of the coefficients.
        absolute_sigma: Whether standard deviations are known.
    """

    parameters: Parameters
    data: PyTree
    times: Float[Array, " frames"]
    q: Float[Array, " maps"]
    phi: Float[Array, " maps"]
    weight: Float[Array, " maps"]
    mixing: Mixing
    low: Float[Array, " linear"]
    high: Float[Array, " linear"]
    coefficients: Float[Array, " linear"] | None
    centre: Float[Array, ""]
    size: int = eqx.field(static=True)
    parts: Parts = eqx.field(static=True)
    linear_names: tuple[str, ...] = eqx.field(static=True)
    absolute_sigma: bool = eqx.field(static=True, converter=as_absolute_sigma)

    def columns(self, vector, batch, used, unit=1.0):
        c2 = batch[1]
        moving = vector[-self.parts.free :]
        factor, keep, scale = self._counting(batch, used)
        scale = scale * unit
        values, push = jax.linearize(factor, moving)
        slopes = jax.vmap(push)(jnp.eye(moving.size, dtype=moving.dtype))
        columns = [values, jnp.ones_like(values), *slopes, c2 - self.centre]
        rows = jnp.stack(
            [
                jnp.moveaxis(jnp.where(keep, column, 0) * scale, 1, 0)
                for column in columns
            ],
            axis=1,
        ).astype(vector.dtype)
        rows = rows.reshape(len(self.mixing.rows), self.parts.size, -1)
        count = jnp.sum(keep) * len(self.mixing.rows)
        return Columns(rows, jnp.zeros((), vector.dtype), count)

    def _counting(self, batch, used):
        """Returns the factor of the contrast, which pairs count, and weights."""
        starts, _, weight, mask = batch

        def factor(moving):
            model = self.parameters.tree(moving)
            prepared = model.prepare(self.times)
            first, second = at_pairs(prepared, starts, self.size)
            q, phi = self.q[:, None, None], self.phi[:, None, None]
            return model.factor(first, second, q, phi)

        keep = is_pair(starts, self.size, self.times.size) & used[:, None, None]
        keep = (keep if mask is None else keep & mask)[:, None]
        scale = self.weight[:, None, None] if weight is None else weight
        return factor, keep, jnp.where(keep, scale, 0)

    def residuals_each(self):
        return math.prod(self.data[1].shape[1:])

    def cost(self, vector, unit=1.0):
        c2 = self.data[1]
        given, moving = self.divided(vector)
        factor, keep, scale = self._counting(self.data, jnp.ones(len(c2), bool))
        scale = jnp.broadcast_to(scale, c2.shape) * unit
        values = jnp.where(keep, factor(moving), 0)[..., None]
        parts, mixing = self.parts, self.mixing
        return projected_cost(values, c2, scale, parts, mixing, given)


def _check_count(used: Array | np.ndarray, maps: int, parameters: int) -> None:
    """Raises if maps cannot determine this many parameters."""
    if traced(used):
        return
    count = maps * int(used.sum())
    if count < parameters:
        raise ArgumentError(
            "`data` must have at least as many values as there are parameters, "
            f"{parameters} with contrasts and offsets, but has {count} pairs of frames "
            "to use. Take more of them, or fix parameters."
        )


def two_time_problem(
    data: TwoTime,
    model: AbstractCorrelation,
    *,
    scaling: AbstractScaling | None = None,
    bounds: tuple[Any, Any] = (None, None),
    fixed: Callable | None = None,
    ties: Tie | Sequence[Tie] = (),
    contrast_bounds: Limits = (None, None),
    offset_bounds: Limits = (None, None),
    absolute_sigma: bool | None = None,
) -> TwoTimeProblem:
    """Sets up the problem that `fit_two_time` solves.

    Args:
        data: The maps.
        model: Where to start. Its numbers are the parameters, but for the gap.
        scaling: How maps share contrast and offset; by default `PerAngle()`.
        bounds: Lower and upper bounds, each a model like `model` or None. By default
            only a free `D0` or shear rate that starts at 0 or above, with its offset
            fixed at 0, is bounded, by 0 from below, and a free exponent that starts
            above -0.99, by this from below, where the first time is 0 and its integral
            exact. What is tied has no bounds.
        fixed: Picks parameters that stay fixed, in addition to the gap.
        ties: Parameters that follow from others.
        contrast_bounds: Lower and upper bound of the contrasts, with `PerAngle` or
            `Shared`.
        offset_bounds: Lower and upper bound of the offsets, likewise.
        absolute_sigma: Whether `data.sigma` is known, and not only relative; by default
            whether the data were made with one.

    Returns:
        The problem.

    Raises:
        ArgumentError: If a start is outside its bounds, a tied parameter is bounded,
            fixed or follows from itself, the scaling does not suit the angles or the
            bounds, or there are fewer values than parameters.
    """
    check_data(data)
    check_model(model)
    scaling = PerAngle() if scaling is None else scaling
    instance(scaling, "scaling", AbstractScaling, "Take `PerAngle()` or `Shared()`.")
    linear = linear_bounds(contrast_bounds, offset_bounds)
    check_bounds(scaling, linear)
    check_picker(fixed)
    check_pair(bounds, "bounds")
    if absolute_sigma is None:
        absolute_sigma = data.sigma_is_known
    held = _held(model, fixed)
    parameters = Parameters(model, bounds, held, ties).with_free()
    if bounds[0] is None:
        low = _lower_bounds(model, parameters, data.times)
        parameters = Parameters(model, (low, bounds[1]), held, ties).with_free()
    mixing = scaling.mixing(data.phi)
    tiles = Tiles(data.frames)
    whole = data.sigma.ndim == 3
    # The precision of the data on disk is enough for them, not for the sums.
    starts = jnp.asarray(tiles.starts)
    used = _used(data)
    c2 = _only(data.c2, used)
    weight = tiles.cut(1 / data.sigma) if whole else None
    mask = None if data.mask is None else tiles.cut(data.mask)
    each = 1 / (jnp.ones(()) if whole else data.sigma)
    width = mixing.rows.shape[1]
    low, high = linear_limits(linear, 2, width)
    given = None
    if isinstance(scaling, Constant):
        # Held between equal bounds: they are not parameters, and have no error.
        given = low = high = scaling.coefficients(data.maps).reshape(-1)
    count = 2 * width if given is None else 0
    _check_count(used, data.maps, len(parameters.names) + count)
    return TwoTimeProblem(
        parameters=parameters,
        data=(starts, tiles.cut(c2), weight, mask),
        times=data.times.astype(float),
        q=data.q.astype(float),
        phi=data.phi.astype(float),
        weight=jnp.broadcast_to(each, (data.maps,)).astype(float),
        mixing=mixing,
        low=low,
        high=high,
        coefficients=given,
        # Where the correlation has decayed: the pair that is longest apart.
        centre=first_used(c2[0, :, ::-1], used[:, ::-1]).astype(float),
        size=tiles.size,
        parts=Parts(1, 1, len(parameters.names)),
        linear_names=mixing.coefficients(("contrast", "offset")),
        absolute_sigma=absolute_sigma,
    )


def _lower_bounds(
    model: AbstractCorrelation, parameters: Parameters, times: Array
) -> AbstractCorrelation:
    """Returns lower bounds of rates where both signs fit, and of exponents at time 0.

    Maps hold the size of the diffusion and the square of the shear. With an offset, the
    sign of the other part counts. What does not move by itself has no bounds.
    """
    low = jax.tree.map(lambda x: np.full(jnp.shape(x), -np.inf), model)
    (frames,) = on_host(times)
    from_zero = known(frames) and frames[0] == 0
    for part, rate, exponent, offset in (
        ("diffusion", "D0", "alpha", "D_offset"),
        ("shear", "rate", "beta", "offset"),
    ):
        law = getattr(model, part, None)
        if not isinstance(law, Diffusion | Shear):
            continue
        start, other, power = on_host(
            getattr(law, rate), getattr(law, offset), getattr(law, exponent)
        )
        moving = [f"{part}.{name}" in parameters.names for name in (rate, exponent)]
        held = f"{part}.{offset}" not in parameters.names + parameters.tied
        alone = moving[0] and held and known(start, other)
        if alone and np.all((start >= 0) & (other == 0)):
            where = attrgetter(f"{part}.{rate}")
            low = eqx.tree_at(where, low, np.zeros(jnp.shape(start)))
        # At -1 and below an integral from 0 diverges unless its rate is 0: a search
        # that steps there with both could never leave again.
        exact = moving[1] and from_zero and law.quadrature == "exact"
        if exact and known(power) and np.all(power > _LEAST_EXPONENT):
            where = attrgetter(f"{part}.{exponent}")
            low = eqx.tree_at(where, low, np.full(jnp.shape(power), _LEAST_EXPONENT))
    return low


def _used(data: TwoTime) -> Array | np.ndarray:
    """Returns which pairs count: those above the diagonal that the mask allows."""
    if data.mask is None:
        return np.triu(np.ones((data.frames,) * 2, bool), 1)
    return jnp.triu(data.mask, 1) if traced(data.mask) else np.triu(data.mask, 1)


def _only(c2: Array, used: Array | np.ndarray) -> Array | np.ndarray:
    """Clears what does not count: whatever is there may overflow."""
    if known(c2, used):
        return np.where(used, np.asarray(c2), 0)
    return jnp.where(used, c2, 0)


def _held(model: AbstractCorrelation, fixed: Callable | None) -> Callable | None:
    """Adds the gap, which is measured and not fitted, to what stays fixed."""
    if not isinstance(model, LaminarFlow):
        return fixed
    return lambda m: (m.gap, () if fixed is None else fixed(m))
