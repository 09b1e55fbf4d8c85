"""Correlations directly from the positions of particles, without a model."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Complex, Float, Num

from .._checks import ArgumentError, real, true_or_false, whole
from .._products import matmul
from ._measured import wide


def field_correlation_from_positions(
    x: Num[ArrayLike, "frames particles dims"],
    q: Num[ArrayLike, "*maps components"],
    *,
    chunk: int = 4096,
) -> Complex[Array, "*maps frames frames"]:
    r"""Correlates the fields scattered by particles with themselves.

    $F(t_i, t_j) = \langle \exp(i\,\mathbf q \cdot [\mathbf x(t_j) - \mathbf x(t_i)])
    \rangle$, the mean over particles: the self (incoherent) intermediate scattering
    function. Time dependence of fields $\exp(-i \omega t)$.

    Particles are taken in chunks, so that only `frames * chunk` numbers are held in
    addition to the positions and the result. Differentiable in positions and
    wavevectors.

    Args:
        x: Positions, in angstrom if `q` is in 1/angstrom.
        q: One wavevector, or several along leading axes.
        chunk: How many particles to take at once.

    Returns:
        $F$, Hermitian, 1 on the diagonal.

    Raises:
        ArgumentError: If a shape does not fit, or `chunk` is not positive.
    """
    x, q = real(x, "x"), wide(real(q, "q"))
    if x.ndim != 3 or not x.size:
        raise ArgumentError(
            "`x` must have shape (frames, particles, dims) and hold at least one "
            f"particle, but has shape {x.shape}."
        )
    if q.ndim == 0 or q.shape[-1] != x.shape[-1]:
        raise ArgumentError(
            f"`q` must have {x.shape[-1]} components along its last axis, as positions "
            f"have, but has shape {q.shape}."
        )
    chunk = whole(chunk, "chunk")
    one = lambda vector: _self_part(x, vector, min(chunk, x.shape[1]))  # noqa: E731
    # One wavevector after the other: memory as for one.
    found = lax.map(one, q.reshape(-1, q.shape[-1]))
    return found.reshape(*q.shape[:-1], *found.shape[1:])


def _self_part(x, q, chunk: int):
    """Sums over chunks of particles, and over what is left of them."""
    particles = x.shape[1]

    @jax.checkpoint  # pyright: ignore[reportPrivateImportUsage]
    def pairs(part):
        # Only displacements matter: without the way to the origin phases are exact.
        field = jnp.exp(1j * matmul(wide(part) - wide(part[:1]), q))
        return matmul(field.conj(), field.T)

    def add(total, k):
        part = lax.dynamic_slice_in_dim(x, k * chunk, chunk, axis=1)
        return total + pairs(part), None

    whole = particles // chunk
    total = jnp.zeros((x.shape[0],) * 2, jnp.result_type(x.dtype, q.dtype, 1j))
    total, _ = lax.scan(add, total, jnp.arange(whole))
    if particles % chunk:
        total = total + pairs(x[:, whole * chunk :])
    return total / particles


def two_time_from_positions(
    x: Num[ArrayLike, "frames particles dims"],
    q: Num[ArrayLike, "*maps components"],
    *,
    chunk: int = 4096,
    unbiased: bool = True,
) -> Float[Array, "*maps frames frames"]:
    r"""Computes the factor of the contrast from the positions of particles.

    $f(t_i, t_j) = |F(t_i, t_j)|^2$ with the $F$ of `field_correlation_from_positions`;
    the two-time correlation of intensities is $c_2 = o + b f$ (homodyne detection of
    many independent particles). It assumes no model, so it can test them.

    The modulus squared of a mean over $P$ independent particles is on average
    $(1 - f) / P$ above $f$; by default, this is subtracted.

    Args:
        x: Positions, in angstrom if `q` is in 1/angstrom.
        q: One wavevector, or several along leading axes.
        chunk: How many particles to take at once.
        unbiased: Whether to subtract the bias of the finite number of particles;
            values may then be slightly negative.

    Returns:
        $f$, symmetric, 1 on the diagonal.

    Raises:
        ArgumentError: As for `field_correlation_from_positions`, or if there is a
            single particle and the bias is to be subtracted.
    """
    unbiased = true_or_false(unbiased, "unbiased")
    found = field_correlation_from_positions(x, q, chunk=chunk)
    square = found.real**2 + found.imag**2
    if not unbiased:
        return square
    particles = np.shape(x)[1]
    if particles < 2:
        raise ArgumentError(
            "`x` must hold at least 2 particles for an estimate without bias, but "
            "holds 1. Set `unbiased=False`."
        )
    return (particles * square - 1) / (particles - 1)
