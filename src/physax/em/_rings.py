"""Rings of current: what near fields in cylindrical coordinates radiate."""

from collections.abc import Callable
from math import ceil

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex, Float

from .._products import einsum, matmul
from ._angular_spectrum import azimuths
from ._components import AXES
from ._currents import Currents, phases
from ._near_field import NearField


# Spectra in V s/m: the six fields at a point.
Fields = tuple[Complex[Array, "freqs 3"], Complex[Array, "freqs 3"]]


def _is_even(current: Currents) -> bool:
    r"""Whether a current goes as $\cos m \phi$, as Er, Ez and Hp do."""
    return (current.kind == "J") == (current.axis != "y")


def _around(m: int, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns what even and odd currents are over those at phi = 0."""
    # All fields of m = 0 are constant around the axis.
    return np.cos(m * angles), np.sin(m * angles) if m else np.ones_like(angles)


def ring_sums(
    near: NearField,
    m: int,
    k: Float[Array, " freqs"],
    current: Currents,
    unit: Float[Array, " 3"],
) -> dict[str, Complex[Array, " freqs"]]:
    r"""Sums a current over its face, all around, with the phases of a direction.

    With $x = k r \sin \theta$ the integrals over the ring are Bessel functions $J_m$,
    its derivative and $m J_m / x$, here by the trapezoidal rule in the azimuth, whose
    error is rounding. Opposite azimuths have opposite phases, so that half a turn of
    cosines, or of sines, is all.

    Args:
        near: The fields.
        m: The angular number.
        k: Wavenumbers in rad/m.
        current: The current at phi = 0.
        unit: Unit vector of the direction.

    Returns:
        By axis of space.
    """
    count = azimuths(near.cells[0] / 2, m)
    angles = np.pi * np.arange(count) / count
    weight = 2 * np.pi / count * _around(m, angles)[not _is_even(current)]
    c, s = (jnp.asarray(f(angles), unit.dtype) for f in (np.cos, np.sin))
    parts, odd = {"z": weight}, m % 2 == 1
    if current.axis != "z":
        level, turn = weight * np.cos(angles), weight * np.sin(angles)
        x, y = (level, turn) if current.axis == "x" else (-turn, level)
        parts, odd = {"x": x, "y": y}, m % 2 == 0
    slant = k[:, None] * (unit[0] * c + unit[1] * s)
    phase = slant[:, None] * current.coordinates[0][:, None]
    kernel = jnp.sin(phase) if odd else jnp.cos(phase)
    lost = jnp.cos(k * unit[2] * current.gap) if current.normal else jnp.ones_like(k)
    if current.normal == 0:
        kernel = kernel / jnp.cos(slant * current.gap)[:, None]
    table = np.stack(list(parts.values()), axis=-1)
    found = matmul(kernel, jnp.asarray(table, kernel.dtype))
    found = found * current.widths[0][..., None]
    along = phases(near, k, current, 2, unit[2])
    sums = einsum("frz,frn,fz->nf", current.values[:, :, 0], found, along) / lost
    return dict(zip(parts, -1j * sums if odd else sums, strict=True))


def ring_fields(
    near: NearField,
    m: int,
    currents: list[Currents],
    point: Float[Array, " 3"],
    fields: Callable[[list[Currents], Float[Array, " 3"]], Fields],
) -> Fields:
    """Returns the fields of rings of currents at a point.

    Of each azimuth they are those of the currents at phi = 0 at the point turned back.
    The azimuths are as far apart as the cells, at the largest radius.

    Args:
        near: The near fields.
        m: The angular number.
        currents: The currents at phi = 0.
        point: Where, in metres.
        fields: Returns E and H of such currents at a point.

    Returns:
        E and H, by axis of space.
    """
    count = ceil(np.pi * near.cells[0]) + 2 * m + 24
    angles = 2 * np.pi * np.arange(count) / count

    # Kept for a gradient they would be as large as the fields of all samples.
    @jax.checkpoint
    def add(total, turned):
        c, s, *factors = turned
        here = [
            one._replace(values=one.values * factors[not _is_even(one)])
            for one in currents
        ]
        x, y, z = point
        found = fields(here, jnp.stack([c * x + s * y, c * y - s * x, z]))
        back = jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])
        return tuple(
            old + jnp.concatenate([matmul(one[:, :2], back.T), one[:, 2:]], axis=-1)
            for old, one in zip(total, found, strict=True)
        ), None

    zero = jnp.zeros((near.frequencies.size, len(AXES)), currents[0].values.dtype)
    weights = (2 * np.pi / count * one for one in _around(m, angles))
    turns = np.cos(angles), np.sin(angles), *weights
    turns = tuple(jnp.asarray(one, point.dtype) for one in turns)
    return lax.scan(add, (zero, zero), turns)[0]
