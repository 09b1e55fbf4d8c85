"""Designs that are over- or under-etched."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError
from .._known_number import known_number
from .._written_for_jax import check_function
from ._argument_checks import as_density
from ._projections import Projection, subpixel_projection


class RobustDensities(NamedTuple):
    """Three versions of one design.

    Attributes:
        eroded: With the highest threshold: the thinnest parts.
        intermediate: The design itself.
        dilated: With the lowest threshold: the thickest parts.
    """

    eroded: Float[Array, "*cells"]
    intermediate: Float[Array, "*cells"]
    dilated: Float[Array, "*cells"]


def robust_densities(
    density: Float[Array, "*cells"],
    beta: Float[ArrayLike, ""] | int,
    eta: float = 0.5,
    *,
    shift: float = 0.25,
    projection: Projection = subpixel_projection,
) -> RobustDensities:
    """Projects one filtered density with three thresholds.

    A design whose worst of the three is good tolerates etching errors, and keeps the
    length that `erosion_threshold` relates to `shift` if all three have the same
    topology. Reference: Wang, Lazarov and Sigmund, *On projection methods, convergence
    and robust formulations in topology optimization*, Structural and Multidisciplinary
    Optimization 43, 767 (2011).

    Args:
        density: The filtered density.
        beta: Strength of the projection.
        eta: Threshold of the design itself.
        shift: How far the thresholds of the other two are from it.
        projection: How it is projected.

    Returns:
        The three densities.

    Raises:
        ArgumentError: If a threshold is not in (0, 1).
    """
    check_function(projection, "projection")
    eta, shift = known_number(eta, "eta"), known_number(shift, "shift")
    if not (shift >= 0 and eta - shift > 0 and eta + shift < 1):
        raise ArgumentError(
            "`eta - shift` and `eta + shift` must lie in (0, 1), but are "
            f"{eta - shift:g} and {eta + shift:g}."
        )
    return RobustDensities(
        projection(density, beta, eta + shift),
        projection(density, beta, eta),
        projection(density, beta, eta - shift),
    )


def erosion_threshold(length: float | int, radius: float | int) -> float:
    r"""Returns the threshold above which a conic filter lifts every part of a width.

    $$\eta_e = \tfrac14 (l/R)^2 + \tfrac12 \;(l \le R), \quad
    -\tfrac14 (l/R)^2 + l/R \;(R \le l \le 2R), \quad 1 \;(l \ge 2R)$$

    By symmetry spacings have $\eta_d = 1 - \eta_e$. The theory is one-dimensional.
    Reference: Qian and Sigmund, *Topological design of electromechanical actuators with
    robustness toward over- and under-etching*, Computer Methods in Applied Mechanics
    and Engineering 253, 237 (2013).

    Args:
        length: The least width $l$, in metres.
        radius: The radius $R$ of the conic filter, in metres.

    Returns:
        The threshold $\eta_e$, between 0.5 and 1.

    Raises:
        ArgumentError: If a length is not positive.
    """
    length, radius = known_number(length, "length"), known_number(radius, "radius")
    if not (length > 0 and radius > 0):
        raise ArgumentError(
            "`length` and `radius` must be positive, but are "
            f"{length:g} and {radius:g}."
        )
    ratio = length / radius
    if ratio <= 1:
        return ratio**2 / 4 + 0.5
    return ratio - ratio**2 / 4 if ratio <= 2 else 1.0


def filter_radius(length: float | int, eroded: float = 0.75) -> float:
    r"""Returns the radius of the conic filter for a least width, given a threshold.

    Inverts `erosion_threshold`. At the usual 0.75 the radius is the length.

    Args:
        length: The least width, in metres.
        eroded: The threshold $\eta_e$ of the eroded design, in (0.5, 1).

    Returns:
        The radius, in metres.

    Raises:
        ArgumentError: If `length` is not positive or `eroded` not in (0.5, 1).
    """
    length, eroded = known_number(length, "length"), known_number(eroded, "eroded")
    if not length > 0:
        raise ArgumentError(f"`length` must be positive, but is {length:g}.")
    if not 0.5 < eroded < 1:
        raise ArgumentError(f"`eroded` must lie in (0.5, 1), but is {eroded:g}.")
    if eroded <= 0.75:
        return length / (2 * math.sqrt(eroded - 0.5))
    return length / (2 - 2 * math.sqrt(1 - eroded))


def greyness(density: Float[Array, "*cells"]) -> Float[Array, ""]:
    r"""Returns how far a density is from binary: the mean of $4\rho(1 - \rho)$.

    Reference: Sigmund, *Morphology-based black and white filters for topology
    optimization*, Structural and Multidisciplinary Optimization 33, 401 (2007).

    Args:
        density: Values in [0, 1].

    Returns:
        0 for a binary density, 1 for one half everywhere.
    """
    density = as_density(density)
    return jnp.mean(4 * density * (1 - density))
