"""Densities of particles, each smoothed by a Gaussian."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, at_once, check, kind_of, traced
from .._known_number import known_number
from .._products import matmul
from ..grid import AXES
from ._bins import as_points, as_weights, in_place
from ._numbers import check_listed
from ._pair_sums import check_places, pair_sums
from ._seed_checks import in_default_precision


class AbstractBandwidth(eqx.Module):
    """How the width of the Gaussians follows from the particles."""

    @abstractmethod
    def factor(self, effective: Float[Array, ""], ndim: int) -> Float[Array, ""]:
        """Returns the width relative to that of the cloud of particles.

        Args:
            effective: Number of particles of equal weight that tell as much.
            ndim: Number of axes.
        """


class ScottRule(AbstractBandwidth):
    r"""The width $n^{-1/(d + 4)}$ times that of the cloud.

    Reference: Scott, *Multivariate Density Estimation* (1992).
    """

    def factor(self, effective, ndim):
        return effective ** (-1 / (ndim + 4))


class SilvermanRule(AbstractBandwidth):
    r"""The width $(n (d + 2) / 4)^{-1/(d + 4)}$ times that of the cloud.

    Best for a cloud that is Gaussian itself.

    Reference: Silverman, *Density Estimation for Statistics and Data Analysis* (1986).
    """

    def factor(self, effective, ndim):
        return (effective * (ndim + 2) / 4) ** (-1 / (ndim + 4))


_SCOTT = ScottRule()


class _Gaussian(eqx.Module):
    def __call__(self, squared: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(-squared / 2)


def kernel_density(
    points: Num[ArrayLike, "particles ndim"],
    at: Num[ArrayLike, "places coordinates"],
    bandwidth: AbstractBandwidth | ArrayLike | Sequence[ArrayLike] = _SCOTT,
    weights: Num[ArrayLike, " weights"] | None = None,
    *,
    periodic: Mapping[str, tuple[float, float]] | None = None,
    walls: Mapping[str, tuple[float, float]] | None = None,
) -> Float[Array, " places"]:
    r"""Estimates a density by a Gaussian around each particle.

    $\rho(y) = \sum_j m_j (2 \pi)^{-d/2} |\det L|^{-1}
    \exp(-|L^{-1} (y - x_j)|^2 / 2)$

    A rule takes $L L^T$ as its squared factor times the covariance of the particles,
    as SciPy's `gaussian_kde` does; a number is the same standard deviation along each
    axis. All pairs are evaluated, block by block. Differentiable in all numbers.

    Mass that reaches over the end of a periodic axis comes in at the other end, and
    that which reaches through a wall is folded back, so that the integral between the
    ends stays the mass, to 1e-3 for widths up to 0.3 of the length between the ends.

    Args:
        points: Where the particles are. Those whose place is not finite are left out.
        at: Where the density is evaluated; between the ends along axes that have any.
        bandwidth: `ScottRule()`, `SilvermanRule()`, or standard deviations in the unit
            of the points: one number, or one for each axis.
        weights: Mass of each particle. Without it all together have mass 1, and the
            result is a probability density.
        periodic: The ends of axes that repeat, by name: `{"x": (0.0, 1.0)}`.
        walls: The ends of axes where walls keep the particles, by name.

    Returns:
        The density at each place: mass for each length, area or volume.

    Raises:
        ArgumentError: If shapes do not agree, a bandwidth is not positive, a rule meets
            particles that have no extent along some direction, or an axis is unknown or
            has no length.
    """
    places = as_points(points)
    queries = as_points(at, "at")
    check_places(queries, places)
    ndim = places.shape[1]
    mass = as_weights(weights, places)
    places = in_place(places)
    factor = _width(bandwidth, places, mass)
    inverse = jsp.linalg.solve_triangular(
        factor, jnp.eye(ndim, dtype=factor.dtype), lower=True
    )
    # In units of the width; the images of a place then need no care of their own.
    norm = jnp.prod(jnp.abs(jnp.diagonal(inverse))) / (2 * jnp.pi) ** (ndim / 2)
    images = _images(queries, periodic, walls)
    middle = jnp.mean(places, 0)
    found = pair_sums(
        _Gaussian(),
        matmul(images - middle, inverse.T),
        matmul(places - middle, inverse.T),
        mass,
    )
    return norm * jnp.sum(found.reshape(-1, queries.shape[0]), 0)


def _width(bandwidth, points: Array, mass: Array) -> Float[Array, "ndim ndim"]:
    """Returns the lower triangular factor of the Gaussians' covariance."""
    ndim = points.shape[1]
    if isinstance(bandwidth, AbstractBandwidth):
        share = mass / jnp.sum(mass)
        effective = 1 / jnp.sum(share**2)
        apart = points - jnp.sum(share[:, None] * points, 0)
        # Unbiased, also where the weights differ.
        covariance = matmul(apart.T * share, apart) / (1 - 1 / effective)
        scale = jnp.sqrt(jnp.diagonal(covariance))
        # Of the correlations, since axes may have scales of their own.
        root = jnp.linalg.cholesky(covariance / (scale[:, None] * scale))
        with at_once((points, mass)):
            flat = jnp.nan_to_num(jnp.min(jnp.diagonal(root)))
            check(
                flat,
                flat > jnp.sqrt(jnp.finfo(root.dtype).eps),
                "The relative spread of `points` along each direction must be positive "
                "for a bandwidth to follow from it (give a number instead)",
            )
        return scale[:, None] * root * bandwidth.factor(effective, ndim)
    width = in_default_precision(bandwidth, "bandwidth").astype(points.dtype)
    if width.shape not in ((), (ndim,)):
        raise ArgumentError(
            f"`bandwidth` must be a rule, one number, or {ndim} numbers, but has shape "
            f"{width.shape}."
        )
    with at_once(width):
        width = check(width, width > 0, "`bandwidth` must be positive")
    return jnp.diag(jnp.broadcast_to(width, (ndim,)))


def _images(at: Array, periodic, walls) -> Float[Array, "images ndim"]:
    """Returns all places whose density belongs to a place, block after block."""
    ndim = at.shape[1]
    periodic = check_ends(periodic, "periodic", ndim)
    walls = check_ends(walls, "walls", ndim)
    both = sorted(set(periodic) & set(walls))
    if both:
        raise ArgumentError(
            f"`walls` must name axes not in `periodic`, but has {both}."
        )
    choices = []
    for axis, name in enumerate(AXES[:ndim]):
        x = at[:, axis]
        if name in periodic:
            low, high = periodic[name]
            choices.append([x, x - (high - low), x + (high - low)])
        elif name in walls:
            low, high = walls[name]
            choices.append([x, 2 * low - x, 2 * high - x])
        else:
            choices.append([x])
    return jnp.concatenate([jnp.stack(image, -1) for image in product(*choices)])


def check_ends(ends: Any, name: str, ndim: int) -> dict[str, tuple[Any, Any]]:
    """Returns the ends of axes by name.

    Args:
        ends: The ends of axes by name, `None` for none.
        name: What the caller calls them.
        ndim: Number of axes.

    Raises:
        ArgumentError: If an axis does not exist, or its ends are not in order.
    """
    ends = {} if ends is None else ends
    if not isinstance(ends, Mapping):
        raise ArgumentError(
            f"`{name}` must give ends by axis, as `{{'x': (0.0, 1.0)}}`, but is "
            f"{kind_of(ends)}"
        )
    found = {}
    for axis, pair in ends.items():
        check_listed(pair, f"{name}[{axis!r}]", "(0.0, 1.0)")
        if len(pair) != 2:
            raise ArgumentError(
                f"`{name}[{axis!r}]` must be two numbers, but has {len(pair)} entries."
            )
        low, high = (x if traced(x) else known_number(x, name) for x in pair)
        found[axis] = low, high
        if axis not in AXES[:ndim]:
            raise ArgumentError(
                f"`{name}` must name axes of the points, {AXES[:ndim]}, but has "
                f"{axis!r}."
            )
        known = not traced((low, high))
        if known and not (low < high and np.isfinite(high - low)):
            raise ArgumentError(
                f"`{name}` must give the low and the high end of {axis}, but gives "
                f"({low:g}, {high:g})."
            )
    return found
