"""Gaussian beams along the axis of cylindrical coordinates, on a disc."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex, Float

from .._products import matmul
from ..units import ETA_0
from ._angular_spectrum import azimuths, cone, phasor
from ._port_places import LinePlace
from ._setup import Setup


def disc_beam(
    place: LinePlace,
    setup: Setup,
    medium: tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]],
    waist: Float[Array, ""],
    power: Float[Array, ""],
    ahead: Float[Array, ""],
) -> dict[str, tuple[Complex[Array, "samples 1"], Float[Array, "samples 1"]]]:
    r"""Sums the plane waves of a beam whose E is along phi = 0 in its waist.

    Over the azimuth of the waves the sums are Bessel functions $J_0$ and $J_2$.

    Args:
        place: From `place_port`.
        setup: The run.
        medium: The wavenumber in vacuum in rad/m, permittivity and permeability.
        waist: Radius at which the amplitude falls to 1/e, in metres.
        power: Time-averaged, in W.
        ahead: How far the node of the disc lies ahead of the waist, in metres.

    Returns:
        By component E in V/m or `eta0 H`, that half a cell before, and its radii in
        metres.
    """
    grid, (k0, epsilon, mu) = setup.grid, medium
    k, cells = jnp.sqrt(epsilon * mu) * k0, place.box[0][1]
    sine, cosine, weights = (jnp.asarray(x, k.dtype) for x in cone(2 * cells))
    across, along = k * sine, k * cosine
    area = weights * along * across
    width = grid.cell_widths(1)[place.face.outside]
    advance = 2 * jnp.arcsin(jnp.clip(along * width / 2, -1.0, 1.0))
    envelope = jnp.exp(-(waist**2) * across**2 / 4)
    admittance = along / (mu * k0)
    flow = (1 - sine**2 / 2) * admittance * jnp.cos(advance / 2)
    sent = (2 * jnp.pi) ** 3 * jnp.sum(envelope**2 * flow * area) / (2 * ETA_0)
    scale = 2 * jnp.pi * jnp.sqrt(power / sent) * envelope * area
    electric = scale * phasor(advance / width * ahead)
    towards = -1 if place.face.high else 1
    magnetic = towards * admittance * electric * phasor(-advance / 2)
    # Of all waves E is along phi = 0 less what is along them, which takes half of sin^2
    # times J_0 - J_2 from it there, J_0 + J_2 at a quarter of a turn, and H across.
    out = {}
    for name, span in _radii(place).items():
        r = (grid.centres(0) if name in ("Er", "Hp") else grid.edges(0))[slice(*span)]
        zeroth, second = _bessel(r, across, cells)
        if name[0] == "H":
            value = matmul(zeroth, magnetic)
        elif name == "Er":
            value = matmul(zeroth - sine**2 / 2 * (zeroth - second), electric)
        else:
            value = -matmul(zeroth - sine**2 / 2 * (zeroth + second), electric)
        out[name] = value[:, None], r[:, None]
    return out


def _radii(place: LinePlace) -> dict[str, tuple[int, int]]:
    """Returns the samples along r of the components across the axis."""
    terms = (term for half in place.corrections for term in half)
    return {term.source: term.box[0] for term in terms}


def _bessel(
    r: Float[Array, " samples"], k: Float[Array, " waves"], cells: int
) -> Float[Array, "2 samples waves"]:
    """Returns the Bessel functions of order 0 and 2, by the trapezoidal rule.

    Args:
        r: Radii in metres.
        k: Wavenumbers in rad/m.
        cells: Number of cells up to the largest radius.
    """
    count = azimuths(cells, 2)
    psi = np.pi * np.arange(count) / count
    table = jnp.asarray(
        np.stack([np.ones(count), -np.cos(2 * psi)], -1) / count, k.dtype
    )
    slant = k[:, None] * jnp.asarray(np.cos(psi), k.dtype)

    # Row by row, to save memory.
    @jax.checkpoint  # pyright: ignore[reportPrivateImportUsage]
    def row(radius):
        return matmul(jnp.cos(radius * slant), table)

    return jnp.moveaxis(lax.map(row, r), -1, 0)
