"""Far fields: what a box of near fields radiates into each direction."""

from collections.abc import Sequence
from functools import partial
from math import ceil

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Complex, Float, Num

from .._checks import ArgumentError, at_once, check, real
from .._products import einsum, matmul
from ..units import ETA_0, FEMTO
from ._components import AXES
from ._currents import Currents, phases, projectable, surface_currents, wavenumber
from ._near_field import NearField
from ._rings import ring_sums


_BATCH = 512

# Unit vectors may have been written to three digits.
_ROUNDED = 1e-3


class FarField(eqx.Module):
    r"""Amplitudes of the outgoing wave far away.

    In 3-D the field at a distance r is `values` times $e^{ikr} / r$, in 2-D times
    $e^{ikr} / \sqrt{r}$; r is measured from the point where all coordinates are 0.

    Attributes:
        frequencies: In Hz.
        directions: Unit vectors, shape (..., axes).
        values: By component, shape (frequency, ...): `"Etheta"` and `"Ephi"` in 3-D, in
            V s; `"Ez"` or `"Hz"` (as `eta0 H`) in 2-D, in V s/sqrt(m).
        intensity: Spectral energy per angle, shape (frequency, ...): W fs^2/sr in 3-D,
            W fs^2/(m rad) in 2-D.
    """

    frequencies: Float[Array, " freqs"]
    directions: Float[Array, "..."]
    values: dict[str, Complex[Array, "..."]]
    intensity: Float[Array, "..."]


def direction(
    phi: Num[ArrayLike, "..."], theta: Num[ArrayLike, "..."] | None = None
) -> Float[Array, "..."]:
    """Returns unit vectors by angle.

    Args:
        phi: Angle from x towards y, in radians.
        theta: Angle from z in radians, of a shape that broadcasts with `phi`; none in
            2-D.

    Returns:
        The vectors, shape (..., axes), with two components without `theta`, else
        three.

    Raises:
        ArgumentError: If an angle is more than two turns, such as one in degrees.
    """
    phi = _radians(phi, "phi")
    if theta is None:
        return jnp.stack([jnp.cos(phi), jnp.sin(phi)], axis=-1)
    phi, theta = jnp.broadcast_arrays(phi, _radians(theta, "theta"))
    across = jnp.sin(theta)
    # That of pi in floating point is some rounding of either sign.
    small = jnp.abs(across) < 2 * jnp.finfo(across.dtype).eps
    across = across - lax.stop_gradient(jnp.where(small, across, 0))
    return jnp.stack(
        [across * jnp.cos(phi), across * jnp.sin(phi), jnp.cos(theta)], axis=-1
    )


def _radians(angle: Num[ArrayLike, "..."], name: str) -> Num[Array, "..."]:
    """Returns angles as an array, refusing those that must be degrees."""
    angle = real(angle, name)
    with at_once(angle):
        # NaN goes on.
        good = ~(jnp.abs(angle) > 4 * np.pi)
        told = f"`{name}` must be in radians (see `np.radians`) and at most 4 pi"
        return check(angle, good, told)


def k_direction(axis: str, *cosines: Num[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Returns unit vectors by their components across an axis.

    Args:
        axis: `"+z"`, `"-x"`, ...: the half space.
        cosines: The components along the other axes, in their order: transverse
            wavevectors over the wavenumber. One in 2-D, two in 3-D.

    Returns:
        The vectors, shape (..., axes); NaN where a wave is evanescent.

    Raises:
        ArgumentError: If the axis does not exist.
    """
    ndim = len(cosines) + 1
    allowed = [sign + name for name in AXES[:ndim] for sign in "-+"]
    if ndim not in (2, 3) or axis not in allowed:
        raise ArgumentError(
            "`axis` must be one of '-x', '+x', ... of a grid with one axis more than "
            f"the {len(cosines)} `cosines` (1 or 2), but is {axis!r}."
        )
    parts = list(jnp.broadcast_arrays(*(real(u, "cosines") for u in cosines)))
    rest = 1 - jnp.sum(jnp.stack([u**2 for u in parts]), axis=0)
    along = jnp.where(rest >= 0, jnp.sqrt(jnp.where(rest > 0, rest, 1)), jnp.nan)
    along = jnp.where(rest == 0, 0, along)
    parts.insert(AXES.index(axis[1]), along if axis[0] == "+" else -along)
    return jnp.stack(parts, axis=-1)


def far_field(near: NearField, directions: Num[ArrayLike, "..."]) -> FarField:
    r"""Projects near fields to infinity.

    The currents $J = n \times H$ and $M = -n \times E$ on the faces radiate into the
    uniform medium around them. With $N = \oint J e^{-ik \hat r \cdot r'} dS'$ and L
    likewise of M,

    $$
    E_\theta = \frac{ik}{4 \pi} (\eta N_\theta + L_\phi) , \qquad
    E_\phi = \frac{ik}{4 \pi} (\eta N_\phi - L_\theta) .
    $$

    In 2-D $1 / 4 \pi$ is $e^{i \pi / 4} / \sqrt{8 \pi k}$. Each current enters at its
    own place in the cell, and half a cell between E and H is corrected for by the
    cosine it costs a wave of that direction. An open surface gives the radiation of the
    faces it has. A `PEC` or `PMC` face of the simulation is a mirror: the far field is
    that of the faces and their images. Behind a wall that is not a plane of symmetry it
    has no meaning. Differentiable; works under `jit`.

    Reference: Taflove and Hagness, *Computational Electrodynamics*, 3rd edition (2005),
    chapter 8.

    Args:
        near: From a `NearFieldMonitor`.
        directions: Unit vectors towards the observer, shape (..., axes), from
            `direction` or `k_direction`.

    Returns:
        Amplitudes and intensity.

    Raises:
        ArgumentError: If the faces lie in more than one material or in a lossy one, or
            the simulation is periodic, or 1-D, or walled on both sides of an axis, or
            a vector is longer or shorter than 1 by more than a thousandth.
    """
    near = projectable(near)
    return _project(near, unit_vectors(directions, "directions", near.ndim))


def unit_vectors(
    vectors: Num[ArrayLike, "..."] | Sequence[float | int], name: str, ndim: int
) -> Float[Array, "..."]:
    """Returns vectors of length 1, refusing those that are not.

    Args:
        vectors: Shape (..., axes), of length 1 to three digits.
        name: That of the argument.
        ndim: Components of each.
    """
    vectors = real(vectors, name)
    if vectors.shape[-1:] != (ndim,):
        raise ArgumentError(
            f"`{name}` must have {ndim} components along the last axis, but have shape "
            f"{vectors.shape}."
        )
    with at_once(vectors):
        length = jnp.sqrt(jnp.sum(vectors**2, axis=-1))
        # Evanescent directions are NaN, and give NaN.
        length = check(
            length,
            ~(jnp.abs(length - 1) > _ROUNDED),
            f"The length of `{name}` must be 1, as `em.direction` makes it",
        )
    return vectors / length[..., None]


@eqx.filter_jit
def _project(near: NearField, units: Float[Array, "..."]) -> FarField:
    """Projects into unit vectors."""
    flat = units.reshape(-1, near.ndim).astype(near.dt.dtype)
    k, eta = wavenumber(near)
    currents = surface_currents(near, k)
    one = partial(_amplitudes, near, k, eta, currents)
    found = lax.map(one, flat, batch_size=_BATCH)
    shape = (len(near.frequencies), *units.shape[:-1])
    values = {name: value.T.reshape(shape) for name, value in found.items()}
    power = jnp.zeros(shape, near.dt.dtype)
    eta = eta.reshape(-1, *(1,) * (len(shape) - 1))
    for name, value in values.items():
        # Of a plane wave |E|^2 / 2 eta, or eta |H|^2 / 2.
        over = eta if name[0] == "H" else 1 / eta
        power = power + over * jnp.abs(value / FEMTO) ** 2 / (2 * ETA_0)
    return FarField(near.frequencies, units, values, power)


def _amplitudes(
    near: NearField,
    k: Float[Array, " freqs"],
    eta: Float[Array, " freqs"],
    currents: list[Currents],
    unit: Float[Array, " axes"],
) -> dict[str, Complex[Array, " freqs"]]:
    """Returns the amplitudes in one direction."""
    sums: dict[str, Array] = {}
    for one in currents:
        if near.m is None:
            parts = {one.axis: _radiated(near, k, one, unit)}
        else:
            parts = ring_sums(near, near.m, k, one, unit)
        for axis, more in parts.items():
            sums[one.kind + axis] = sums.get(one.kind + axis, 0) + more
    zero = jnp.zeros(k.shape, next(iter(sums.values())).dtype)
    n = [sums.get("J" + axis, zero) for axis in AXES]
    m = [sums.get("M" + axis, zero) for axis in AXES]
    # The weights of the sums have a factor k for each axis across the normal.
    if near.ndim == 3:
        factor = 1j / (4 * jnp.pi * k)
        theta, phi = tangents(unit)
        n, m = jnp.stack(n, axis=-1), jnp.stack(m, axis=-1)
        return {
            "Etheta": factor * (eta * matmul(n, theta) + matmul(m, phi)),
            "Ephi": factor * (eta * matmul(n, phi) - matmul(m, theta)),
        }
    factor = 1j * np.exp(0.25j * np.pi) / jnp.sqrt(8 * jnp.pi * k)
    x, y = unit
    if "Jz" in sums:
        return {"Ez": factor * (eta * n[2] - (x * m[1] - y * m[0]))}
    return {"Hz": factor * (m[2] / eta + (x * n[1] - y * n[0]))}


def tangents(
    units: Float[Array, "*shape 3"],
) -> tuple[Float[Array, "*shape 3"], Float[Array, "*shape 3"]]:
    r"""Returns the unit vectors of growing $\theta$ and $\phi$; x and y on the z axis.

    Args:
        units: Unit vectors.
    """
    x, y, z = jnp.moveaxis(units, -1, 0)
    pole = (x == 0) & (y == 0)
    across = jnp.sqrt(jnp.where(pole, 1, x**2 + y**2))
    c, s = jnp.where(pole, 1, x / across), jnp.where(pole, 0, y / across)
    # At a pole the last components are 0, but their derivatives keep the vectors
    # perpendicular to those around it.
    theta = jnp.stack([z * c, z * s, -jnp.where(pole, x, across)], axis=-1)
    tilt = jnp.where(pole, -y / jnp.where(pole, z, 1), 0)
    return theta, jnp.stack([-s, c, tilt], axis=-1)


def _radiated(
    near: NearField, k: Float[Array, " freqs"], current: Currents, unit: Array
) -> Complex[Array, " freqs"]:
    """Sums a current over its face and its images, with the phases of a direction."""
    factors = [phases(near, k, current, axis, unit[axis]) for axis in range(near.ndim)]
    lost = jnp.cos(k * unit[current.normal] * current.gap)
    letters = "abc"[: near.ndim]
    places = ",".join("f" + one for one in letters)
    total = einsum(f"f{letters},{places}->f", current.values, *factors)
    return total / lost


def _order(near: NearField) -> int:
    """Returns the nodes of a rule over angles that resolves the pattern of a box.

    An intensity has harmonics up to twice the wavenumber times the radius, which at 5
    cells per wavelength is 1.3 for each cell across.
    """
    return ceil(0.65 * near.across) + 16


def radiated_power(near: NearField) -> Float[Array, " freqs"]:
    """Returns the power radiated to infinity, the intensity summed over all angles.

    With walls, over the directions inside the simulation: half the sphere over one
    wall. In lossless surroundings it is `near.outflow` to the accuracy of the
    projection.

    Args:
        near: From a `NearFieldMonitor`.

    Returns:
        At each frequency: W fs^2 in 3-D, W fs^2/m in 2-D.

    Raises:
        ArgumentError: As `far_field`.
    """
    near = projectable(near)
    count = _order(near)
    phi = 2 * np.pi * np.arange(2 * count) / (2 * count)
    if near.ndim == 2:
        found = far_field(near, direction(phi))
        total = jnp.mean(found.intensity, axis=-1) * 2 * np.pi
    else:
        if near.m is not None:
            # Of cos(m phi) and sin(m phi) one is 1 where the other is 0.
            phi = np.pi / (2 * near.m) * np.arange(2) if near.m else np.zeros(1)
        nodes, weights = np.polynomial.legendre.leggauss(count)
        theta = np.arccos(nodes)[:, None]
        found = far_field(near, direction(phi, theta))
        rings = jnp.mean(found.intensity, axis=-1) * 2 * np.pi
        total = matmul(rings, jnp.asarray(weights, rings.dtype))
    # The images of the scene radiate the rest.
    return total / 2 ** len(near.walls)


def directivity(
    near: NearField, directions: Num[ArrayLike, "..."]
) -> Float[Array, "..."]:
    """Returns the intensity over its mean over all angles.

    In 3-D 1.5 at the equator of a dipole. Over a wall the mean spreads the power in
    front of it over the whole sphere, as is usual over a ground plane; for a scene
    halved by symmetry it is therefore twice the directivity of the whole.

    Args:
        near: From a `NearFieldMonitor`.
        directions: As for `far_field`.

    Returns:
        Dimensionless, shape (frequency, ...).

    Raises:
        ArgumentError: As `far_field`.
    """
    found = far_field(near, directions).intensity
    power = radiated_power(near)
    whole = 4 * jnp.pi if near.ndim == 3 else 2 * jnp.pi
    return whole * found / power.reshape(-1, *(1,) * (found.ndim - 1))
