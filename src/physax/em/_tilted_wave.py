"""How Bloch faces tilt a plane wave, and whether one of that tilt travels."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..units import SPEED_OF_LIGHT
from ._boundaries import Bloch, Boundaries
from ._setup import Setup


def across(
    boundaries: Boundaries, ndim: int, along: int
) -> list[Float[Array, ""] | None]:
    """Returns for each axis the Bloch wavevector of the wave in rad/m, if it has one.

    Args:
        boundaries: The faces of the grid.
        ndim: Its dimension.
        along: Axis along which the wave travels; its faces do not tilt it.
    """
    faces = [boundaries.axis(axis)[0] for axis in range(ndim)]
    return [
        face.wavevector if isinstance(face, Bloch) and axis != along else None
        for axis, face in enumerate(faces)
    ]


def turns(setup: Setup, along: int) -> list[Float[Array, ""] | None]:
    """Returns by how much the phase of the wave grows per cell of each axis across.

    From the wavevector itself: a phase over the period would leave out whole turns.
    """
    return [
        None if k is None else k * setup.grid.cell_widths(axis)[0]
        for axis, k in enumerate(across(setup.boundaries, setup.grid.ndim, along))
    ]


# Of the wavenumber: values known when the run is made were compared more finely.
_ROUNDING = 1e-6


def travels(
    setup: Setup,
    along: int,
    frequency: Float[Array, ""],
    permittivity: Float[Array, ""],
) -> Float[Array, ""]:
    """Returns 1 where a plane wave of the Bloch vector propagates, else NaN.

    Args:
        setup: The run.
        along: Axis along which the wave travels.
        frequency: In Hz.
        permittivity: Relative permittivity of its medium.
    """
    both = across(setup.boundaries, setup.grid.ndim, along)
    tilts = [k for k in both if k is not None]
    if not tilts:
        return jnp.ones(())
    limit = 2 * jnp.pi * frequency * jnp.sqrt(permittivity) / SPEED_OF_LIGHT
    size = jnp.linalg.norm(jnp.stack(tilts))
    return jnp.where(size < (1 + _ROUNDING) * limit, 1, jnp.nan)
