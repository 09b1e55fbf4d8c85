"""Rings of current: what near fields in cylindrical coordinates radiate."""

from collections.abc import Callable
from math import ceil

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex, Float

from .._products import einsum, matmul
from ._angular_spectrum import phasor
from ._components import AXES
from ._currents import Currents, phases
from ._near_field import NearField


# Wavenumber times width of the largest cells that resolve a wave, 5 per wavelength.
_LARGEST = 1.26

# Spectra in V s/m: the six fields at a point.
Fields = tuple[Complex[Array, "freqs 3"], Complex[Array, "freqs 3"]]


def _is_even(current: Currents) -> bool:
    r"""Whether a current goes as $\cos m \phi$, as Er, Ez and Hp do."""
    return (current.kind == "J") == (current.axis != "y")


def ring_sums(
    near: NearField,
    m: int,
    k: Float[Array, " freqs"],
    current: Currents,
    unit: Float[Array, " 3"],
) -> dict[str, Complex[Array, " freqs"]]:
    r"""Sums a current over its face, all around, with the phases of a direction.

    With $\psi$ from the azimuth of the direction and $x = k r \sin \theta$ the
    integrals over the ring are of $e^{-i x \cos \psi}$ times $\cos m \psi$, $\cos m
    \psi \cos \psi$ and $\sin m \psi \sin \psi$: Bessel functions $J_m$, its derivative
    and $m J_m / x$, here by the trapezoidal rule, whose error is rounding.

    Args:
        near: The fields.
        m: The angular number.
        k: Wavenumbers in rad/m.
        current: The current at phi = 0.
        unit: Unit vector of the direction.

    Returns:
        By axis of space.
    """
    x, y, z = unit
    axial = (x == 0) & (y == 0)
    across = jnp.where(axial, 0, jnp.sqrt(jnp.where(axial, 1, x**2 + y**2)))
    over = jnp.where(axial, 1, across)
    # On the axis phi is 0.
    c, s = jnp.where(axial, 1, x / over), jnp.where(axial, 0, y / over)
    psi, table = _rule(near, m)
    slant = k[:, None] * across * jnp.asarray(np.cos(psi), across.dtype)
    kernel = phasor(-slant[:, None] * current.coordinates[0][:, None])
    lost = jnp.cos(k * z * current.gap) if current.normal else jnp.ones_like(k)
    if current.normal == 0:
        kernel = kernel / jnp.cos(slant * current.gap)[:, None]
    found = (
        matmul(kernel, jnp.asarray(table, kernel.dtype)) * current.widths[0][..., None]
    )
    along = phases(near, k, current, 2, z)
    straight, level, turn = (
        einsum("frz,frn,fz->nf", current.values[:, :, 0], found, along) / lost
    )
    power = lax.complex(c, s) ** m
    g, h = (power.real, -power.imag) if _is_even(current) else (power.imag, power.real)
    if m == 0:
        # All fields are constant around the axis.
        g, h = jnp.ones_like(g), jnp.zeros_like(g)
    if current.axis == "z":
        return {"z": g * straight}
    # Along the direction's radius and azimuth.
    radial, azimuthal = g * level, h * turn
    if current.axis == "y":
        radial, azimuthal = -azimuthal, radial
    return {
        "x": c * radial - s * azimuthal,
        "y": s * radial + c * azimuthal,
    }


def _rule(near: NearField, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns angles of half a turn, and weights of the three integrals over all."""
    largest = _LARGEST * near.cells[0] / 2
    count = ceil((largest + 8 * largest ** (1 / 3) + m + 12) / 2)
    psi = np.pi * np.arange(count + 1) / count
    weight = np.full(count + 1, 2 * np.pi / count)
    weight[[0, -1]] /= 2
    both = np.cos(m * psi), np.cos(m * psi) * np.cos(psi), np.sin(m * psi) * np.sin(psi)
    return psi, weight[:, None] * np.stack(both, axis=-1)


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
    def add(total, angle):
        c, s = jnp.cos(angle), jnp.sin(angle)
        factors = jnp.cos(m * angle), jnp.sin(m * angle) if m else jnp.ones_like(angle)
        scale = 2 * np.pi / count
        here = [
            one._replace(values=one.values * factors[not _is_even(one)] * scale)
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
    start = zero, zero
    return lax.scan(add, start, jnp.asarray(angles, point.dtype))[0]
