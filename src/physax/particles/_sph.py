"""Densities of particles, each smoothed by a kernel of finite support (SPH)."""

from abc import abstractmethod
from collections.abc import Mapping
from math import pi
from typing import Any, ClassVar

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, check, instance, positive, single
from ..grid import AXES
from ._bins import as_points, as_weights, in_place
from ._kde import check_ends
from ._pair_sums import check_places, pair_sums


class AbstractSmoothingKernel(eqx.Module):
    r"""A function $W(r) = c_d\, w(r / h) / h^d$ whose integral over space is 1.

    Attributes:
        support: Where $w$ ends, in smoothing lengths.
        constants: $c_1$, $c_2$ and $c_3$, for one to three dimensions.
    """

    support: eqx.AbstractClassVar[float]
    constants: eqx.AbstractClassVar[tuple[float, float, float]]

    @abstractmethod
    def shape(self, q: Float[Array, "..."], ndim: int) -> Float[Array, "..."]:
        """Returns $w$.

        Args:
            q: Distance in smoothing lengths.
            ndim: Number of dimensions.
        """


class CubicSpline(AbstractSmoothingKernel):
    """The cubic B-spline, with support 2 h.

    Reference: Monaghan, *Smoothed particle hydrodynamics*, Annual Review of Astronomy
    and Astrophysics 30, 543 (1992).
    """

    support: ClassVar[float] = 2.0
    constants: ClassVar[tuple[float, float, float]] = (2 / 3, 10 / (7 * pi), 1 / pi)

    def shape(self, q, ndim):
        del ndim
        inner = 1 - 1.5 * q**2 + 0.75 * q**3
        return jnp.where(q < 1, inner, 0.25 * jnp.maximum(2 - q, 0) ** 3)


class QuinticSpline(AbstractSmoothingKernel):
    """The quintic B-spline, with support 3 h: smoother, and dearer.

    Reference: Morris, Fox and Zhu, *Modeling low Reynolds number incompressible flows
    using SPH*, Journal of Computational Physics 136, 214 (1997).
    """

    support: ClassVar[float] = 3.0
    constants: ClassVar[tuple[float, float, float]] = (
        1 / 120,
        7 / (478 * pi),
        1 / (120 * pi),
    )

    def shape(self, q, ndim):
        del ndim
        pieces = ((3, 1), (2, -6), (1, 15))
        return sum(k * jnp.maximum(end - q, 0) ** 5 for end, k in pieces)


class WendlandC2(AbstractSmoothingKernel):
    """Wendland's function with a continuous second derivative, with support 2 h.

    $(1 - q/2)^4 (1 + 2 q)$, in one dimension $(1 - q/2)^3 (1 + 3 q / 2)$.

    Reference: Dehnen and Aly, *Improving convergence in smoothed particle
    hydrodynamics simulations without pairing instability*, Monthly Notices of the
    Royal Astronomical Society 425, 1068 (2012).
    """

    support: ClassVar[float] = 2.0
    constants: ClassVar[tuple[float, float, float]] = (
        5 / 8,
        7 / (4 * pi),
        21 / (16 * pi),
    )

    def shape(self, q, ndim):
        s = jnp.maximum(1 - q / 2, 0)
        return s**3 * (1 + 1.5 * q) if ndim == 1 else s**4 * (1 + 2 * q)


_CUBIC = CubicSpline()


class _Smoothing(eqx.Module):
    """A kernel of some smoothing length, as a function of the squared distance."""

    kernel: AbstractSmoothingKernel
    h: Float[Array, ""]
    ndim: int = eqx.field(static=True)

    def __call__(self, squared: Float[Array, "..."]) -> Float[Array, "..."]:
        away = squared > 0
        # The slope of a root at 0 is infinite; that of the kernel is 0 there.
        q = jnp.where(away, jnp.sqrt(jnp.where(away, squared, 1)), 0) / self.h
        scale = self.kernel.constants[self.ndim - 1] / self.h**self.ndim
        return scale * self.kernel.shape(q, self.ndim)


def sph_density(
    points: Num[ArrayLike, "particles ndim"],
    at: Num[ArrayLike, "places coordinates"],
    h: Num[ArrayLike, ""],
    kernel: AbstractSmoothingKernel = _CUBIC,
    weights: Num[ArrayLike, " weights"] | None = None,
    *,
    periodic: Mapping[str, tuple[float, float]] | None = None,
) -> Float[Array, " places"]:
    r"""Estimates a density as smoothed particle hydrodynamics does.

    $\rho(y) = \sum_j m_j W(|y - x_j|, h)$

    Every particle within the support counts, however many there are; blocks of
    particles out of reach are skipped (not under `vmap`, where all are evaluated).
    Differentiable in the points, the places, the weights and `h`.

    Args:
        points: Where the particles are, in one to three dimensions. Those whose place
            is not finite are left out.
        at: Where the density is evaluated; `points` themselves, or others.
        h: The smoothing length, in the unit of the points.
        kernel: `CubicSpline()`, `QuinticSpline()` or `WendlandC2()`.
        weights: Mass of each particle. Without it all together have mass 1, and the
            result is a probability density.
        periodic: The ends of axes that repeat, by name: `{"x": (0.0, 1.0)}`, at least
            twice the support apart.

    Returns:
        The density at each place: mass for each length, area or volume.

    Raises:
        ArgumentError: If shapes do not agree, `h` is not positive, there are more than
            three axes, or the support is too wide for a periodic axis.
    """
    instance(kernel, "kernel", AbstractSmoothingKernel)
    places = as_points(points)
    queries = as_points(at, "at")
    check_places(queries, places)
    ndim = places.shape[1]
    if ndim > len(kernel.constants):
        raise ArgumentError(
            f"`points` must have 1 to {len(kernel.constants)} coordinates, but have "
            f"shape {places.shape}."
        )
    h = single(positive(h, "h"), "h").astype(places.dtype)
    reach = kernel.support * h
    mass = as_weights(weights, places)
    return pair_sums(
        _Smoothing(kernel, h, ndim),
        queries,
        in_place(places),
        mass,
        reach=reach,
        periods=_periods(periodic, ndim, reach),
    )


def _periods(periodic, ndim: int, reach: Array) -> Float[Array, " ndim"] | None:
    """Returns the period of each axis, `None` if there is none."""
    periodic = check_ends(periodic, "periodic", ndim)
    if not periodic:
        return None
    periods: list[Any] = [np.inf] * ndim
    for name, (low, high) in periodic.items():
        periods[AXES.index(name)] = high - low
    lengths = jnp.stack([jnp.asarray(length, reach.dtype) for length in periods])
    limit = "" if isinstance(reach, jax.core.Tracer) else f", {2 * float(reach):g},"
    message = f"`periodic` axes must be at least twice the support{limit} long"
    return check(lengths, lengths >= 2 * reach, message)
