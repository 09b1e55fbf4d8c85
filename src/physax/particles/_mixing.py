"""How well particles of different kinds are mixed."""

from collections.abc import Sequence
from math import prod

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Int, Num

from .._checks import ArgumentError, real, refuse_text, whole
from .._products import matmul
from ._bins import as_edges, as_points, as_weights, cell_of, in_place, shape_of
from ._numbers import check_numbers
from ._seed_checks import Place, as_box


def mixing_entropy(
    points: Num[ArrayLike, "particles ndim"],
    kinds: Int[ArrayLike, " kinds"],
    edges: Sequence[Num[ArrayLike, " _"]],
    count: int,
) -> Float[Array, ""]:
    r"""Returns the entropy of the kinds of particles in cells, relative to its maximum.

    $S = -\sum_c p_c \sum_k p_{k|c} \ln p_{k|c} \,/\, (-\sum_k p_k \ln p_k)$ with the
    share $p_c$ of the particles in cell $c$ and the share $p_{k|c}$ of kind $k$ among
    them: 0 where each cell holds one kind, 1 where all cells hold the same mixture.
    Cells with few particles look less mixed than they are, by about $1/n$ each.
    Particles outside the cells are left out. It has no gradient.

    Reference: Camesasca, Kaufman and Manas-Zloczower, *Quantifying fluid mixing with
    the Shannon entropy*, Macromolecular Theory and Simulations 15, 595 (2006).

    Args:
        points: Where the particles are.
        kinds: The kind of each particle, from 0; negative for those left out.
        edges: Positions of the edges of the cells, for each axis one more than cells.
        count: How many kinds there are.

    Returns:
        The relative entropy, from 0 to 1; NaN where there is only one kind.

    Raises:
        ArgumentError: If shapes do not agree, edges do not increase, or there are fewer
            than 2 kinds.
    """
    count = whole(count, "count", 2)
    places = as_points(points)
    axes = as_edges(edges, places.shape[1])
    refuse_text(kinds, "kinds")
    check_numbers(kinds, "kinds")
    kind = jnp.asarray(kinds)
    if not jnp.issubdtype(kind.dtype, jnp.integer):
        raise ArgumentError(f"`kinds` must hold integers, but has dtype {kind.dtype}.")
    if kind.shape != places.shape[:1]:
        raise ArgumentError(
            f"`kinds` must be one number for each of {places.shape[0]} particles, but "
            f"has shape {kind.shape}."
        )
    return _entropy(places, kind, axes, count)


@eqx.filter_jit
def _entropy(
    places: Array, kind: Array, axes: Sequence[Array], count: int
) -> Float[Array, ""]:
    cell, inside = cell_of(places, axes)
    cells = prod(shape_of(axes))
    inside &= (kind >= 0) & (kind < count)
    table = jnp.zeros((cells, count), places.dtype)
    table = table.at[cell, jnp.clip(kind, 0, count - 1)].add(inside)
    table = table / jnp.sum(table)
    all_kinds = jnp.sum(table, 0)
    of_cells = jnp.sum(table, 1, keepdims=True)
    within = -jnp.sum(_x_log(table, of_cells))
    most = -jnp.sum(_x_log(all_kinds, jnp.sum(all_kinds)))
    return within / jnp.where(most > 0, most, jnp.nan)


def _x_log(x: Array, total: Array) -> Array:
    r"""Returns $x \ln(x / total)$, which is 0 where x is."""
    some = x > 0
    share = jnp.where(some, x, 1) / jnp.where(total > 0, total, 1)
    return jnp.where(some, x * jnp.log(jnp.where(some, share, 1)), 0)


def segregation_intensity(
    points: Num[ArrayLike, "particles ndim"],
    values: Num[ArrayLike, " values"],
    edges: Sequence[Num[ArrayLike, " _"]],
) -> Float[Array, ""]:
    r"""Returns Danckwerts' intensity of segregation of a concentration in cells.

    $I = \langle (c - \bar c)^2 \rangle / (\bar c (1 - \bar c))$ with the mean
    concentration $c$ in each cell and averages over the particles: 1 where each cell
    is pure, 0 where all are alike. With $n$ particles in a cell chance alone gives
    about $1/n$. Particles outside the cells are left out. Differentiable in the values.

    Reference: Danckwerts, *The definition and measurement of some characteristics of
    mixtures*, Applied Scientific Research A 3, 279 (1952).

    Args:
        points: Where the particles are.
        values: The concentration that each particle carries, from 0 to 1.
        edges: Positions of the edges of the cells, for each axis one more than cells.

    Returns:
        The intensity, NaN where all concentrations are 0, or all are 1.

    Raises:
        ArgumentError: If shapes do not agree, or edges do not increase.
    """
    places = as_points(points)
    axes = as_edges(edges, places.shape[1])
    return _intensity(places, _carried(values, places), axes)


@eqx.filter_jit
def _intensity(
    places: Array, carried: Array, axes: Sequence[Array]
) -> Float[Array, ""]:
    cell, inside = cell_of(places, axes)
    cells = prod(shape_of(axes))
    number = jnp.zeros(cells, carried.dtype).at[cell].add(inside)
    total = jnp.zeros(cells, carried.dtype).at[cell].add(carried * inside)
    means = total / jnp.where(number > 0, number, 1)
    mean = jnp.sum(total) / jnp.sum(number)
    variance = jnp.sum(number * (means - mean) ** 2) / jnp.sum(number)
    scale = mean * (1 - mean)
    return variance / jnp.where(scale > 0, scale, jnp.nan)


def mix_norm(
    points: Num[ArrayLike, "particles ndim"],
    values: Num[ArrayLike, " values"],
    low: Place,
    high: Place,
    *,
    modes: int = 8,
    weights: Num[ArrayLike, " weights"] | None = None,
) -> Float[Array, ""]:
    r"""Returns the mix-norm of a concentration that particles carry in a periodic box.

    $\Phi^2 = \sum_{|k_i| \le M} (1 + 4 \pi^2 |k|^2)^{-1/2} |c_k|^2$ with
    $c_k = \sum_j m_j (c_j - \bar c)\, e^{-2 \pi i\, k \cdot (x_j - x_0) / L}$, $L$ the
    lengths of the box. Fine stripes count less than coarse ones, so it decreases as a
    fluid is stirred, even without diffusion, and reaches 0 where it is mixed. No bins,
    and smooth: a good objective for optimising a flow. Chance alone gives $\Phi^2$ of
    about the variance of the values times the sum of the factors over the number of
    particles.
    Differentiable in the points, the values and the weights; its gradient is set to 0
    where the norm is 0.

    Reference: Mathew, Mezić and Petzold, *A multiscale measure for mixing*, Physica D
    211, 23 (2005).

    Args:
        points: Where the particles are, also beyond the ends. Those whose place is not
            finite are left out.
        values: The concentration that each particle carries.
        low: The low corner of the box.
        high: The high corner.
        modes: The largest wavenumber $M$ along each axis.
        weights: Mass of each particle. Without it all together have mass 1.

    Returns:
        The norm, in the unit of the values.

    Raises:
        ArgumentError: If shapes do not agree, `high` is not above `low`, or `modes` is
            below 1.
    """
    modes = whole(modes, "modes")
    places = as_points(points)
    ndim = places.shape[1]
    low, high = as_box(low, high)
    if low.shape[0] != ndim:
        raise ArgumentError(
            f"`low` must have {ndim} numbers, as `points` have, but has shape "
            f"{low.shape}."
        )
    mass = as_weights(weights, places)
    return _norm(places, _carried(values, places), low, high, mass, modes)


@eqx.filter_jit
def _norm(
    places: Array, carried: Array, low: Array, high: Array, mass: Array, modes: int
) -> Float[Array, ""]:
    mean = jnp.sum(mass * carried) / jnp.sum(mass)
    # Divided first: phases keep their precision also many boxes away.
    turns = (in_place(places) - low) / (high - low)
    charge = mass * (carried - mean)
    # The corners may have more digits than the points.
    turns = (turns - jnp.floor(turns)).astype(charge.dtype)
    k = jnp.arange(-modes, modes + 1)
    squared = jnp.zeros((), charge.dtype)
    for _ in range(places.shape[1]):
        squared = squared[..., None] + k**2
    found = _fourier_sums(turns, charge, modes)
    total = jnp.sum(found / jnp.sqrt(1 + 4 * jnp.pi**2 * squared))
    # The square root has no derivative at 0.
    some = total > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, total, 1)), total)


# Particles whose waves are summed at once.
_TOGETHER = 1024


def _fourier_sums(
    turns: Float[Array, "particles ndim"], charge: Float[Array, " particles"], modes
) -> Float[Array, "..."]:
    """Returns the squares of the Fourier coefficients of charges."""
    count, ndim = turns.shape
    blocks = -(-count // _TOGETHER)
    fill = blocks * _TOGETHER - count
    xs = jnp.pad(turns, ((0, fill), (0, 0))).reshape(blocks, _TOGETHER, ndim)
    qs = jnp.pad(charge, (0, fill)).reshape(blocks, _TOGETHER)
    k = jnp.arange(-modes, modes + 1)

    @jax.checkpoint  # pyright: ignore[reportPrivateImportUsage]
    def add(total, block):
        x, q = block
        wave = q[:, None] + 0j
        for axis in range(ndim):
            phase = jnp.exp(-2j * jnp.pi * (x[:, axis, None] * k))
            if axis == ndim - 1:
                found = matmul(wave.T, phase)
                return total + found, None
            wave = (wave[:, :, None] * phase[:, None, :]).reshape(_TOGETHER, -1)
        return total, None

    side = 2 * modes + 1
    start = jnp.zeros((side ** (ndim - 1), side), jnp.result_type(charge, 1j))
    total, _ = lax.scan(add, start, (xs, qs))
    return (total.real**2 + total.imag**2).reshape((side,) * ndim)


def _carried(values: Num[ArrayLike, "..."], places: Array) -> Float[Array, " _"]:
    array = real(values, "values")
    if array.shape != places.shape[:1]:
        raise ArgumentError(
            f"`values` must be one number for each of {places.shape[0]} particles, but "
            f"has shape {array.shape}."
        )
    return array.astype(places.dtype)
