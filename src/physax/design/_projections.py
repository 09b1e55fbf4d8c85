"""Projections: a smooth density made nearly or fully binary."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import (
    at_least,
    between,
    real,
    single,
    true_or_false,
)
from ._argument_checks import as_density


Projection = Callable[..., Array]
"""Takes a smooth density, a strength and a threshold to a projected density."""


def tanh_projection(
    density: Float[Array, "*cells"],
    beta: Float[ArrayLike, ""] | int,
    eta: Float[ArrayLike, ""] = 0.5,
) -> Float[Array, "*cells"]:
    r"""Pushes densities towards 0 and 1.

    $$\hat\rho = \frac{\tanh \beta\eta + \tanh \beta(\tilde\rho - \eta)}
    {\tanh \beta\eta + \tanh \beta(1 - \eta)}$$

    At $\beta = 0$ that is the identity, at infinity a step, whose gradient is 0.
    Reference: Wang, Lazarov and Sigmund, *On projection methods, convergence and robust
    formulations in topology optimization*, Structural and Multidisciplinary
    Optimization 43, 767 (2011).

    Args:
        density: Values in [0, 1].
        beta: The strength $\beta$, from 0 to infinity.
        eta: The threshold $\eta$, in (0, 1).

    Returns:
        Values in [0, 1].

    Raises:
        ArgumentError: If `beta` or `eta` is out of its range.
    """
    density = as_density(density)
    beta, eta = _strength(density, beta, eta)
    return _tanh(density, beta, eta)


def _strength(density, beta, eta):
    beta = at_least("beta", 0.0)(beta).astype(density.dtype)
    eta = between("eta", 0.0, 1.0)(eta).astype(density.dtype)
    return beta, eta


def _tanh(density, beta, eta):
    # Where beta is 0 or infinite, the formula is not used, but must not be NaN.
    usual = (beta > 0) & jnp.isfinite(beta)
    strength = jnp.where(usual, beta, 1)
    low = jnp.tanh(strength * eta)
    value = low + jnp.tanh(strength * (density - eta))
    value = value / (low + jnp.tanh(strength * (1 - eta)))
    step = (1 + jnp.sign(density - eta)) / 2
    extreme = jnp.where(jnp.isinf(beta), step, density)
    # A strength that is NaN, because it was refused under `jit`, must show.
    return jnp.where(usual, value, jnp.where(jnp.isnan(beta), beta, extreme))


def subpixel_projection(
    density: Float[Array, "*cells"],
    beta: Float[ArrayLike, ""] | int,
    eta: Float[ArrayLike, ""] = 0.5,
    *,
    radius: float = 0.55,
    curvature: bool = False,
    periodic: bool = False,
) -> Float[Array, "*cells"]:
    r"""Projects, with cells that the interface crosses filled in part.

    With the distance $d = (\eta - \tilde\rho) / |\nabla \tilde\rho|$ from the centre of
    a cell to the interface, cells with $|d| < R$ get
    $(1 - F) P(\tilde\rho_-) + F P(\tilde\rho_+)$, where $P$ is `tanh_projection`,
    $F(d) = \frac12 - \frac{15}{16} t + \frac58 t^3 - \frac3{16} t^5$ with $t = d / R$
    their fill fraction, and $\tilde\rho_\pm = \tilde\rho \pm R |\nabla \tilde\rho|
    F(\mp d)$. So the density moves smoothly with the interface at any $\beta$, infinity
    included: the gradient stays finite and useful where that of a step is 0. The
    density must be smooth on the scale of a cell: filter it before.

    Distances are counted in cells. That is right for oblong cells too, since fill
    fractions do not change when an axis is stretched.

    Reference: Hammond, Oskooi, Hammond, Chen, Ralph and Johnson, *Unifying and
    accelerating level-set and density-based topology optimization by subpixel-smoothed
    projection*, arXiv 2503.20189 (2025).

    Args:
        density: Smooth values in [0, 1].
        beta: The strength $\beta$, from 0 to infinity.
        eta: The threshold $\eta$, in (0, 1).
        radius: $R$ in cells; slightly more than half a cell covers all of it.
        curvature: Whether $|\nabla \tilde\rho|^2$ is $|\nabla \tilde\rho|^2 + R^2
            |\nabla\nabla \tilde\rho|^2$ instead, which keeps the gradient bounded where
            an island is born or two parts meet (arXiv 2601.10737, 2026).
        periodic: Whether the density repeats itself along every axis.

    Returns:
        Values in [0, 1].

    Raises:
        ArgumentError: If `beta`, `eta` or `radius` is out of its range.
    """
    density = as_density(density)
    curvature = true_or_false(curvature, "curvature")
    periodic = true_or_false(periodic, "periodic")
    beta, eta = _strength(density, beta, eta)
    reach = single(at_least("radius", 0.0)(radius), "radius").astype(density.dtype)
    steepness = _steepness(density, reach, curvature, periodic)
    crossed = jnp.abs(eta - density) < reach * steepness
    # Where there is no interface the steepness may be 0: made safe before dividing.
    t = jnp.where(
        crossed, (eta - density) / jnp.where(crossed, reach * steepness, 1), 1
    )
    fill = 0.5 - t * (15 / 16 - t**2 * (5 / 8 - t**2 * (3 / 16)))
    span = reach * jnp.where(crossed, steepness, 0)
    below = _tanh(density - span * fill, beta, eta)
    above = _tanh(density + span * (1 - fill), beta, eta)
    mixed = (1 - fill) * below + fill * above
    return jnp.where(crossed, mixed, _tanh(density, beta, eta))


def straight_through(
    density: Num[ArrayLike, "*cells"], threshold: Float[ArrayLike, ""] = 0.5
) -> Float[Array, "*cells"]:
    """Rounds a density, and differentiates as if it were not rounded.

    The objective is then that of the binary device, while its gradient moves the
    partly filled cells of `subpixel_projection`: for the last steps of a design, when
    the few cells that rounding changes cost more than the steps still gain. Values
    jump as cells flip, so keep the best step. Reference: Bengio, Leonard and Courville,
    *Estimating or propagating gradients through stochastic neurons*, arXiv 1308.3432
    (2013).

    Args:
        density: Values in [0, 1].
        threshold: Cells above it become 1, all others 0.

    Returns:
        Zeros and ones.

    Raises:
        ArgumentError: If `density` is not real or `threshold` not in (0, 1).
    """
    density = real(density, "density")
    threshold = between("threshold", 0.0, 1.0)(threshold).astype(density.dtype)
    binary = (density > threshold).astype(density.dtype)
    # A threshold that was refused under `jit` is NaN, and must show.
    binary = jnp.where(jnp.isnan(threshold), threshold, binary)
    return binary + (density - lax.stop_gradient(density))


def _steepness(density, reach, curvature: bool, periodic: bool):
    """The modulus of the gradient, per cell."""
    axes = [axis for axis in range(density.ndim) if density.shape[axis] > 1]
    slopes = [slope(density, axis, periodic) for axis in axes]
    squares = sum((part**2 for part in slopes), jnp.zeros_like(density))
    if curvature:
        bends = [slope(part, axis, periodic) for part in slopes for axis in axes]
        squares = squares + reach**2 * sum(
            (part**2 for part in bends), jnp.zeros_like(density)
        )
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1)), 0)


def slope(
    values: Float[Array, "*cells"], axis: int, periodic: bool = False
) -> Float[Array, "*cells"]:
    """Returns central differences per cell, one-sided at the ends.

    Args:
        values: At least two along `axis`.
        axis: Which axis.
        periodic: Whether the values repeat themselves.

    Returns:
        The differences, in the same cells.
    """
    if periodic:
        return (jnp.roll(values, -1, axis) - jnp.roll(values, 1, axis)) / 2
    return jnp.asarray(jnp.gradient(values, axis=axis))
