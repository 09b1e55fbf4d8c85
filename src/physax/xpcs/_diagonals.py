"""One-time correlations from two-time maps, as means along their diagonals."""

import jax
import jax.numpy as jnp
import numpy as np

from .._checks import ArgumentError
from ._known import known
from ._measured import wide
from ._one_time import OneTime
from ._scaling import bound_pair
from ._two_time import TwoTime, check_data


def one_time(data: TwoTime, age: tuple[float, float] | None = None) -> OneTime:
    r"""Averages two-time maps along their diagonals.

    $g_2(\tau)$ is the mean of $c_2(t_i, t_i + \tau)$ over the frames $i$ whose time,
    the age of the sample, lies in a window. $\tau = 0$, with its shot noise, is left
    out, and so are lags for which the window or the mask leaves no pair.

    Reference: Bikondoa, J. Appl. Cryst. 50, 357 (2017), on why to cut at one age.

    Args:
        data: The maps; their frames must be equally spaced in time.
        age: First and last time of the earlier frame in seconds, both included; `None`
            for all. Where the transport depends on time, a narrow window is needed for
            the result to be a correlation of one state.

    Returns:
        The curves, in float32 or wider. Their standard deviation assumes that pairs are
        independent, and is only relative where that of `data` is not known.

    Raises:
        ArgumentError: If the frames are not equally spaced, no pair is left, or `data`
            is not a `TwoTime`.
    """
    check_data(data)
    window = bound_pair((None, None) if age is None else age, "age")
    if not known(data.times, data.mask):
        raise ArgumentError(
            "`data.times` and `data.mask` must be known, as they decide how many lags "
            "there are, but are traced. Trace `data.c2` only."
        )
    times = np.asarray(data.times, float)
    step = _equal_step(times)
    columns, pairs = _shifted_rows(data, times, window, step)
    count = pairs.sum(0)
    if not count.any():
        raise ArgumentError(
            "`age` must leave at least one pair of frames that the mask allows, but "
            f"is {age} with times from {times[0]:g} to {times[-1]:g} s."
        )
    at = np.flatnonzero(count)
    g2, error = _means(data.c2, data.sigma, columns, pairs)
    known_sigma = data.sigma_is_known
    return OneTime(
        at * step, g2[:, at], error[:, at], data.q, data.phi, sigma_is_known=known_sigma
    )


@jax.jit
def _means(c2, sigma, columns, pairs):
    """Averages columns of maps whose rows are shifted; lags without pairs are 0."""
    rows = jnp.arange(c2.shape[1])[:, None]
    count = jnp.maximum(pairs.sum(0), 1)

    def total(values):
        # Pairs left out may be NaN: they must not enter a sum, nor its gradient.
        return jnp.where(pairs, wide(values[rows, columns]), 0).sum(0)

    sigma = jnp.broadcast_to(
        sigma[:, None, None] if sigma.ndim == 1 else sigma, c2.shape
    )
    return jax.vmap(total)(c2) / count, jnp.sqrt(jax.vmap(total)(sigma**2)) / count


def _equal_step(times) -> float:
    steps = np.diff(times)
    if not steps.size or np.ptp(steps) > 1e-3 * steps.mean():
        raise ArgumentError(
            "`data.times` must have equal steps for means along diagonals, but their "
            f"steps are from {steps.min(initial=np.inf):g} to "
            f"{steps.max(initial=0):g} s."
        )
    return float(steps.mean())


def _shifted_rows(data, times, window, step):
    """Returns where row i holds the pair (i, i + k), and which pairs count."""
    low, high = window
    rounding = 1e-3 * step
    wanted = (times >= low - rounding) & (times <= high + rounding)
    usable = np.triu(np.broadcast_to(wanted[:, None], (data.frames,) * 2), 1)
    if data.mask is not None:
        usable = usable & np.asarray(data.mask)
    rows = np.arange(data.frames)[:, None]
    columns = rows + np.arange(data.frames)
    inside = columns < data.frames
    columns = np.where(inside, columns, 0)
    return columns, usable[rows, columns] & inside
