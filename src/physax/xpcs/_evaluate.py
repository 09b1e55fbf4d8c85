"""Values of the correlation: for pairs of times, whole maps and lags."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import as_array, real
from ._correlation import AbstractCorrelation, check_model
from ._known import known, on_host
from ._measured import directions, per_map, wavevectors, wide


def _factor(model, t1, t2, q, phi):
    """Returns the factor of the contrast for pairs of times, elementwise."""
    check_model(model)
    t1, t2 = wide(real(t1, "t1")), wide(real(t2, "t2"))
    q, phi = wavevectors(q), directions(phi)
    if known(t1, t2) and t1.size and t2.size:
        # Checks within a program cannot raise, so the whole range is tried here.
        every = np.concatenate([np.ravel(t) for t in on_host(t1, t2)])
        model.prepare(as_array(np.array([every.min(), every.max()])))
    return _pairs(model, t1, t2, q, phi)


@eqx.filter_jit
def _pairs(model, t1, t2, q, phi):
    first, last = jnp.minimum(t1, t2), jnp.maximum(t1, t2)
    first, last, q, phi = jnp.broadcast_arrays(first, last, q, phi)

    def one(start, stop, q, phi):
        prepared = model.prepare(jnp.stack([start, stop]))
        before = jax.tree.map(lambda x: x[0], prepared)
        after = jax.tree.map(lambda x: x[1], prepared)
        return model.factor(before, after, q, phi)

    flat = [x.ravel() for x in (first, last, q, phi)]
    return jax.vmap(one)(*flat).reshape(first.shape)


def g1(
    model: AbstractCorrelation,
    t1: Num[ArrayLike, "..."],
    t2: Num[ArrayLike, "..."],
    q: Num[ArrayLike, "..."],
    phi: Num[ArrayLike, "..."] = 0.0,
) -> Float[Array, "..."]:
    r"""Evaluates the modulus of the field correlation at pairs of times.

    $|g_1| = \sqrt f$ with $f$ as the model defines it. All arguments broadcast. Its
    gradient is set to 0 where $g_1$ is 0, at the zeros of the shear factor.

    Each pair is one interval: with `quadrature="trapezoid"` its integral is a single
    trapezoid from time to time, and not that of `two_time`, which adds up those of the
    frames between.

    Args:
        model: The model.
        t1: One time of each pair, in seconds since the start of the transport.
        t2: The other time, earlier or later.
        q: Wavevector in 1/angstrom.
        phi: Its direction in radians.

    Returns:
        The values, from 0 to 1.

    Raises:
        ArgumentError: If a time is negative, `q` is not positive, `phi` is in degrees,
            or an integral diverges.
    """
    f = _factor(model, t1, t2, q, phi)
    there = f > 0
    return jnp.where(there, jnp.sqrt(jnp.where(there, f, 1)), 0 * f)


def c2(
    model: AbstractCorrelation,
    t1: Num[ArrayLike, "..."],
    t2: Num[ArrayLike, "..."],
    q: Num[ArrayLike, "..."],
    phi: Num[ArrayLike, "..."] = 0.0,
    *,
    contrast: Num[ArrayLike, "..."] = 1.0,
    offset: Num[ArrayLike, "..."] = 1.0,
) -> Float[Array, "..."]:
    r"""Evaluates the two-time intensity correlation at pairs of times.

    $c_2 = o + b\,f(t_1, t_2; q, \phi)$. All arguments broadcast. Each pair is one
    interval, as for `g1`.

    Args:
        model: The model.
        t1: One time of each pair, in seconds since the start of the transport.
        t2: The other time, earlier or later.
        q: Wavevector in 1/angstrom.
        phi: Its direction in radians.
        contrast: $b$, dimensionless.
        offset: $o$, dimensionless.

    Returns:
        The values, dimensionless.

    Raises:
        ArgumentError: As for `g1`.
    """
    f = _factor(model, t1, t2, q, phi)
    return real(offset, "offset") + real(contrast, "contrast") * f


def g2(
    model: AbstractCorrelation,
    lags: Num[ArrayLike, "..."],
    q: Num[ArrayLike, "..."],
    phi: Num[ArrayLike, "..."] = 0.0,
    *,
    contrast: Num[ArrayLike, "..."] = 1.0,
    offset: Num[ArrayLike, "..."] = 1.0,
    age: Num[ArrayLike, "..."] = 0.0,
) -> Float[Array, "..."]:
    r"""Evaluates the one-time intensity correlation.

    $g_2(\tau) = c_2(t_a, t_a + \tau)$, where the age $t_a$ is the earlier time. All
    arguments broadcast. Each pair is one interval, as for `g1`.

    Args:
        model: The model.
        lags: $\tau$ in seconds.
        q: Wavevector in 1/angstrom.
        phi: Its direction in radians.
        contrast: $b$, dimensionless.
        offset: $o$, dimensionless.
        age: $t_a$ in seconds; it matters if the transport depends on time.

    Returns:
        The values, dimensionless.

    Raises:
        ArgumentError: As for `g1`.
    """
    start = wide(real(age, "age"))
    stop = start + wide(real(lags, "lags"))
    return c2(model, start, stop, q, phi, contrast=contrast, offset=offset)


def two_time(
    model: AbstractCorrelation,
    times: Num[ArrayLike, " frames"],
    q: Num[ArrayLike, "..."],
    phi: Num[ArrayLike, "..."] = 0.0,
    *,
    contrast: Num[ArrayLike, "..."] = 1.0,
    offset: Num[ArrayLike, "..."] = 1.0,
) -> Float[Array, "maps frames frames"]:
    r"""Evaluates whole two-time maps, both triangles and the diagonal.

    $c_2(t_i, t_j) = o + b\,f(t_i, t_j; q, \phi)$, which is $o + b$ on the diagonal:
    shot noise is not part of the model. A single number applies to all maps.

    Args:
        model: The model.
        times: Times of the frames in seconds, at least 0, in increasing order.
        q: Wavevector of each map in 1/angstrom.
        phi: Its direction in radians.
        contrast: $b$ of each map, dimensionless.
        offset: $o$ of each map, dimensionless.

    Returns:
        The maps, dimensionless.

    Raises:
        ArgumentError: If times are negative or decrease, `q` is not positive, `phi` is
            in degrees, an integral diverges, there is not one number for each map, or
            `model` is not a model.
    """
    check_model(model)
    named = {
        "q": wavevectors(q),
        "phi": directions(phi),
        "contrast": real(contrast, "contrast"),
        "offset": real(offset, "offset"),
    }
    maps = max([x.shape[0] for x in named.values() if x.ndim], default=1)
    numbers = [per_map(x, maps, name) for name, x in named.items()]
    return _maps(model, model.prepare(real(times, "times")), *numbers)


@eqx.filter_jit
def _maps(model, prepared, *numbers):
    first = jax.tree.map(lambda x: x[:, None], prepared)
    second = jax.tree.map(lambda x: x[None, :], prepared)

    def one(q, phi, contrast, offset):
        return offset + contrast * model.factor(first, second, q, phi)

    return jax.vmap(one)(*numbers)
