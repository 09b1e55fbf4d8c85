"""Convolutional perfectly matched layers: how a simulation absorbs outgoing waves."""

from functools import partial
from math import log

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import at_least, between, optional, positive, whole
from ..units import EPSILON_0, ETA_0


class CPMLCoefficients(eqx.Module):
    r"""Factors of the recursion that stretches a derivative $\partial u$.

    Each step does $\psi \gets b\,\psi + c\,\partial u$ and then
    $\partial u \gets \partial u / \kappa + \psi$. All three are dimensionless.
    """

    b: Float[Array, " cells"]
    c: Float[Array, " cells"]
    inv_kappa: Float[Array, " cells"]


# The defaults, chosen by the measurements in the docs. The conductivity per cell that
# a grid of 20 cells per wavelength carries well does not depend on the thickness, so
# that each cell more takes 1.2 decades of the power. With alpha in proportion to
# 1 / spacing the grading of a layer looks the same on every grid.
_DECADES_PER_CELL = 0.6
_ALPHA = 0.01


class CPML(eqx.Module):
    r"""An absorbing layer on one face of the grid.

    Stretches the coordinate normal to the face by
    $s = \kappa + \sigma / (\alpha - i \omega \epsilon_0)$. With depth $d$ running from
    0 at the inner edge to 1 at the outer edge, $\sigma$ and $\kappa - 1$ grow as $d^m$
    and $\alpha$ falls linearly to 0. Differentiable in every array attribute. The
    spacing is uniform inside the layer.

    Reference: Roden and Gedney, *Convolution PML (CPML)*, Microwave and Optical
    Technology Letters 27, 334 (2000).

    Attributes:
        cells: Thickness of the layer in grid cells, at least 4. 8 to 20 is typical.
        order: The power $m$ of the grading, at least 1.
        reflection: Target reflection coefficient (of the amplitude) at normal
            incidence, in (0, 1); $10^{-0.6\,\mathrm{cells}}$ if `None`.
        kappa_max: $\kappa$ at the outer edge, at least 1. Raise it to absorb evanescent
            waves sooner. `None` is 1 without the arithmetic.
        alpha_max: $\alpha$ at the inner edge, in S/m, at least 0; $0.01\,\epsilon_0 c$
            over the spacing if `None`, which is $\omega \epsilon_0 / 30$ at 20 cells
            per wavelength. It keeps long runs stable and absorbs evanescent waves.

    Raises:
        ArgumentError: If an attribute is out of its range.
    """

    cells: int = eqx.field(static=True, converter=lambda n: whole(n, "cells", 4))
    order: int = eqx.field(
        static=True, converter=lambda m: whole(m, "order"), default=4
    )
    reflection: Float[Array, ""] | None = eqx.field(
        converter=optional(between("reflection", 0.0, 1.0)), default=None
    )
    kappa_max: Float[Array, ""] | None = eqx.field(
        converter=optional(at_least("kappa_max", 1.0)), default=None
    )
    alpha_max: Float[Array, ""] | None = eqx.field(
        converter=optional(at_least("alpha_max", 0.0)), default=None
    )


def cpml_coefficients(
    layer: CPML,
    depth: Float[Array, " cells"],
    spacing: Float[Array, ""],
    dt: Float[Array, ""],
) -> CPMLCoefficients:
    """Evaluates the update factors of a layer at the given depths.

    Args:
        layer: The layer.
        depth: Where each sample lies in the layer, from 0 to 1. Yee components differ
            by half a cell here, so call this once for each component.
        spacing: Size of a grid cell along the normal, in metres.
        dt: Time step, in seconds.

    Returns:
        The factors, one per entry of `depth`.

    Raises:
        ArgumentError: If `spacing` or `dt` is not positive.
    """
    return _graded(layer, depth, positive(spacing, "spacing"), positive(dt, "dt"))


# As one program, where each operation would be one; inside others nothing changes.
@partial(jax.jit, inline=True)
def _graded(layer: CPML, depth: Array, spacing: Array, dt: Array) -> CPMLCoefficients:
    sigma_max, alpha_max = _largest(layer, spacing)
    grading = depth**layer.order
    sigma = sigma_max * grading
    kappa = 1 + (0 if layer.kappa_max is None else layer.kappa_max - 1) * grading
    return _factors(sigma, kappa, alpha_max * (1 - depth), dt)


def radial_coefficients(
    layer: CPML,
    depth: Float[Array, " cells"],
    spacing: Float[Array, ""],
    dt: Float[Array, ""],
    radius: Float[Array, " cells"],
    way: int,
) -> CPMLCoefficients:
    r"""Evaluates the update factors of a layer around an axis.

    Beside the derivatives by r, the radius itself has to be stretched, by
    $\tilde r / r$ with $\tilde r = \int s\,dr$; else the layer reflects near fields.
    Both have one pole only if $\alpha$ is the same in the whole layer. Reference:
    Teixeira and Chew, *Systematic derivation of anisotropic PML absorbing media in
    cylindrical and spherical coordinates*, IEEE Microwave and Guided Wave Letters 7,
    371 (1997).

    Args:
        layer: The layer.
        depth: Where each sample lies in the layer, from 0 to 1.
        spacing: Size of a grid cell along r, in metres.
        dt: Time step, in seconds.
        radius: Where each sample lies, in metres.
        way: 0 for the factors of $1 / s$, -1 for those of $r / \tilde r$, 1 for those
            of $\tilde r / r$.

    Returns:
        The factors, one per entry of `depth`; of the last kind `inv_kappa` is kappa.
    """
    sigma_max, alpha = _largest(layer, spacing)
    grading = depth**layer.order
    if way:
        length = layer.cells * spacing
        grading = grading * depth * length / (layer.order + 1) / radius
    sigma = sigma_max * grading
    kappa = 1 + (0 if layer.kappa_max is None else layer.kappa_max - 1) * grading
    if way <= 0:
        return _factors(sigma, kappa, alpha, dt)
    x = jnp.asarray(alpha * dt / EPSILON_0)
    # The limit of no alpha at all is 1; safe before dividing.
    share = jnp.where(x > 0, -jnp.expm1(-x) / jnp.where(x > 0, x, 1), 1)
    kappa = jnp.broadcast_to(kappa, depth.shape)
    b = jnp.broadcast_to(jnp.exp(-x), depth.shape)
    return CPMLCoefficients(b, share * sigma * dt / EPSILON_0, kappa)


def _largest(layer: CPML, spacing: Float[Array, ""]) -> tuple[Array, Array]:
    """Returns the largest conductivity and alpha."""
    length = layer.cells * spacing
    loss = _DECADES_PER_CELL * log(10) * layer.cells
    if layer.reflection is not None:
        loss = -jnp.log(layer.reflection)
    sigma_max = (layer.order + 1) * loss / (2 * ETA_0 * length)
    alpha_max = layer.alpha_max
    if alpha_max is None:
        alpha_max = _ALPHA / (ETA_0 * spacing)
    return sigma_max, alpha_max


def _factors(sigma: Array, kappa: Array, alpha: Array, dt: Array) -> CPMLCoefficients:
    kappa = jnp.broadcast_to(kappa, sigma.shape)
    exponent = -(sigma / kappa + alpha) * dt / EPSILON_0
    # Where sigma = alpha = 0 we meet 0 / 0, whose limit is 0. The denominator must be
    # made safe *before* dividing: a `where` on the quotient still has a NaN gradient.
    denominator = kappa * (sigma + kappa * alpha)
    lossy = denominator > 0
    # expm1, not exp - 1: near the inner edge the exponent is below float32's rounding.
    gain = sigma * jnp.expm1(exponent) / jnp.where(lossy, denominator, 1)
    return CPMLCoefficients(
        b=jnp.exp(exponent), c=jnp.where(lossy, gain, 0), inv_kappa=1 / kappa
    )
