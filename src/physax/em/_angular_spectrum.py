"""Plane waves of the grid that leave a port, by their angles."""

from collections.abc import Sequence
from math import ceil

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex, Float

from .._products import matmul
from ..grid import Grid
from ._ports import Port


# Nodes above those of a wide port, for narrow ones.
_NODES = 32
# Largest sine of half the phase per cell: a grid carries no shorter waves.
_SINE = 0.99
# Wavenumber times width of the largest cells that resolve a wave, 5 per wavelength.
_LARGEST = 1.26


def plane_waves(
    port: Port,
    across: tuple[int, ...],
    counts: Sequence[int],
    wavenumber: Array,
    grid: Grid,
) -> tuple[tuple[Array, ...], Array, Array]:
    r"""Returns the plane waves that leave a port, by a rule over their angles.

    The weight $1 / k_\parallel$ of a beam is singular at grazing waves, where a rule
    with equal steps of $k_\perp$ fails. With
    $\hat k = (\sin \alpha, \cos \alpha \sin \beta, \cos \alpha \cos \beta)$ along the
    axes across and ahead,

    $d^2 k_\perp / k_\parallel = k \cos \alpha\, d\alpha\, d\beta$

    (in 2-D $d\alpha$) is smooth, as is what it weighs, but for a kink at right angles
    to the beam: the rule of Fejér, with nodes as of Gauss and weights in closed form.

    Reference: Waldvogel, *Fast construction of the Fejér and Clenshaw-Curtis quadrature
    rules*, BIT Numerical Mathematics 46, 195 (2006).

    Args:
        port: The port.
        across: The axes across it.
        counts: Its cells along them.
        wavenumber: In the medium of the port.
        grid: The grid.

    Returns:
        The components along these axes, whose axes are the angles; the vectors as the
        differences of the grid see them; and the $d^2 k_\perp$ of each.
    """
    k: list[Array] = []
    steps = [jnp.zeros_like(wavenumber)] * 3
    # Of the wavenumber, what is not along the axes so far.
    left = jnp.reshape(wavenumber, (1,) * len(across))
    area = jnp.ones_like(left)
    for number, (axis, count) in enumerate(zip(across, counts, strict=True)):
        # So dense that the nearest copy of a beam is twice the port away at 7 cells per
        # wavelength, and further on smaller cells.
        nodes, weights = _fejer(count + count // 2 + _NODES)
        shape = (1,) * number + (-1,) + (1,) * (len(across) - 1 - number)
        angle = np.reshape(np.pi / 2 * nodes, shape)
        steps[axis] = left * jnp.asarray(np.sin(angle), left.dtype)
        left = left * jnp.asarray(np.cos(angle), left.dtype)
        weights = np.reshape(np.pi / 2 * weights, shape)
        area = area * left * jnp.asarray(weights, left.dtype)
        if grid.is_uniform(axis):
            width = grid.widths[axis]
            half = jnp.clip(steps[axis] * width / 2, -_SINE, _SINE)
            k.append(2 / width * jnp.arcsin(half))
            area = area / jnp.sqrt(1 - half**2)
        else:
            # The derivative itself on cells that are not equal.
            k.append(steps[axis])
    steps[port.axis] = port.sign * left
    return tuple(k), jnp.stack(jnp.broadcast_arrays(*steps), axis=-1), area


def cone(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns a rule over angles to an axis: sines, cosines and weights.

    Args:
        count: Cells of the port across the axis.
    """
    # As dense as those of `plane_waves`.
    nodes, weights = _fejer(3 * count // 4 + _NODES)
    angle = np.pi / 4 * (1 + nodes)
    return np.sin(angle), np.cos(angle), np.pi / 4 * weights


def azimuths(cells: float | int, m: int) -> int:
    """Returns how many azimuths of half a turn sum a ring's phases to rounding.

    Args:
        cells: Of its radius.
        m: The angular number of what is summed.
    """
    largest = _LARGEST * cells
    return ceil((largest + 8 * largest ** (1 / 3) + m + 12) / 2)


def _fejer(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns nodes and weights of Fejér's first rule on (-1, 1)."""
    angles = np.pi * (np.arange(count) + 0.5) / count
    even = 2 * np.arange(1, count // 2 + 1)
    terms = np.cos(angles[:, None] * even) / (even**2 - 1)
    return np.cos(angles), 2 / count * (1 - 2 * np.sum(terms, axis=1))


def summed(
    k: Sequence[Float[Array, "..."]],
    amplitudes: Complex[Array, "..."],
    places: Sequence[Float[Array, "..."]],
) -> Complex[Array, "..."]:
    """Returns the sum of plane waves on a line or a plane of places.

    Args:
        k: As of `plane_waves`, in rad/m.
        amplitudes: Of the waves.
        places: Along each axis, in metres.
    """
    if len(k) == 2:
        # The second components depend on the first: row by row, to save memory.
        @jax.checkpoint  # pyright: ignore[reportPrivateImportUsage]
        def row(waves):
            return matmul(phasor(places[1][:, None] * waves[0]), waves[1])

        amplitudes = lax.map(row, (k[1], amplitudes))
    return matmul(phasor(places[0][:, None] * jnp.ravel(k[0])), amplitudes)


def phasor(angle: Float[Array, "..."]) -> Complex[Array, "..."]:
    """Returns exp(i angle)."""
    return lax.complex(jnp.cos(angle), jnp.sin(angle))
