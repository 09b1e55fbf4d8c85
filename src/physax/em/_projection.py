"""Projection of near fields to points at a finite distance."""

from functools import partial
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Complex, Float, Num

from .._checks import ArgumentError, real, traced
from ..units import SPEED_OF_LIGHT
from ._angular_spectrum import phasor
from ._components import AXES, components
from ._currents import WALLS, Currents, projectable, surface_currents, wavenumber
from ._hankel import hankel
from ._mirror import mirror_sign
from ._near_field import NearField
from ._rings import ring_fields


_BATCH = 16
# Largest error of a phase, in radians.
_PHASE = 1e-2


class ProjectedFields(eqx.Module):
    """Fields outside a box, at given points.

    Attributes:
        frequencies: In Hz.
        points: In metres, shape (..., axes).
        values: By component, shape (frequency, ...); E in V s/m, H as `eta0 H`.
    """

    frequencies: Float[Array, " freqs"]
    points: Float[Array, "..."]
    values: dict[str, Complex[Array, "..."]]


def project_fields(near: NearField, points: Num[ArrayLike, "..."]) -> ProjectedFields:
    r"""Projects near fields to points outside of the box, near or far.

    With the scalar Green function $G = e^{ikR} / 4 \pi R$, in 2-D
    $\frac{i}{4} H_0^{(1)}(kR)$,

    $$
    E = \oint i k \eta \left( J + \frac{1}{k^2} \nabla \nabla \cdot J \right) G
    - \nabla G \times M \; dS' , \qquad
    \eta H = \oint i k \left( M + \frac{1}{k^2} \nabla \nabla \cdot M \right) G
    + \eta \nabla G \times J \; dS' .
    $$

    Inside a closed box the sum is 0, to the accuracy of the grid. Stay a few cells away
    from the faces, whose samples are summed as points; the result is NaN within a
    quarter of a cell of one. Walls are mirrors, as in `far_field`. Differentiable;
    works under `jit`. The phase to a point is reduced in float64 on the host; where
    points or medium are traced the result is NaN beyond the distance at which rounding
    makes it wrong by 0.01 rad, in float32 2.6 cm at a wavelength of 1 µm: take
    `far_field` there.

    Args:
        near: From a `NearFieldMonitor`.
        points: In metres, shape (..., axes).

    Returns:
        All components of the simulation at the points.

    Raises:
        ArgumentError: As `far_field`.
    """
    near = projectable(near)
    places = real(points, "points")
    if places.shape[-1:] != (near.ndim,):
        raise ArgumentError(
            f"`points` must have {near.ndim} coordinates along the last axis, but have "
            f"shape {places.shape}."
        )
    return _project(near, places, _known_phase(near, points))


def _known_phase(near: NearField, points: ArrayLike) -> Array | None:
    """Returns wavenumber times distance from 0, modulo a turn, or `None` if traced."""
    medium = near.frequencies, near.permittivity, near.permeability
    if traced((medium, points)):
        return None
    frequencies, eps, mu = (np.asarray(x, np.float64) for x in medium)
    places = np.asarray(points, np.float64).reshape(-1, near.ndim)
    waves = frequencies * np.sqrt(eps * mu) / SPEED_OF_LIGHT
    turns = np.outer(np.linalg.norm(places, axis=-1), waves)
    return jnp.asarray(2 * np.pi * (turns - np.round(turns)), near.dt.dtype)


def _traced_phase(k: Float[Array, " freqs"], flat: Float[Array, "n axes"]) -> Array:
    """Returns wavenumber times distance from 0, NaN where rounding spoils it."""
    phase = _length(flat.T)[:, None] * k
    return jnp.where(phase * jnp.finfo(phase.dtype).eps < _PHASE, phase, jnp.nan)


def _length(parts: Float[Array, "axes *shape"]) -> Float[Array, "*shape"]:
    """Returns the length of vectors, whose derivative at 0 is 0."""
    square = jnp.sum(parts**2, axis=0)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


@eqx.filter_jit
def _project(
    near: NearField, places: Float[Array, "..."], phase: Array | None
) -> ProjectedFields:
    """Projects to points, given the phase to each."""
    flat = places.reshape(-1, near.ndim).astype(near.dt.dtype)
    k, eta = wavenumber(near)
    phase = _traced_phase(k, flat) if phase is None else phase
    one = partial(_fields, near, k, eta, surface_currents(near, k))
    found = jax.lax.map(lambda x: one(*x), (flat, phase), batch_size=_BATCH)
    shape = (len(near.frequencies), *places.shape[:-1])
    values = {name: value.T.reshape(shape) for name, value in found.items()}
    return ProjectedFields(near.frequencies, places, values)


def _fields(
    near: NearField,
    k: Float[Array, " freqs"],
    eta: Float[Array, " freqs"],
    currents: list[Currents],
    point: Float[Array, " axes"],
    phase: Float[Array, " freqs"],
) -> dict[str, Complex[Array, " freqs"]]:
    """Returns the fields at one point."""

    def at(currents, point):
        return _vectors(near, k, eta, currents, point, phase)

    if near.m is None:
        e, h = at(currents, point)
    else:
        e, h = ring_fields(near, near.m, currents, point, at)
    names = [key.split()[0] for key in near.values]
    polarisation = None
    if near.ndim == 2:
        polarisation = "Ez" if "Ez" in names else "Hz"
    both = {"E": e, "H": h}
    return {
        name: both[name[0]][:, AXES.index(name[1])]
        for name in components(near.ndim, polarisation).names
    }


def _vectors(
    near: NearField,
    k: Float[Array, " freqs"],
    eta: Float[Array, " freqs"],
    currents: list[Currents],
    point: Float[Array, " axes"],
    phase: Float[Array, " freqs"],
) -> tuple[Complex[Array, "freqs 3"], Complex[Array, "freqs 3"]]:
    """Returns E and H of some currents and their images at one point."""
    kinds = {one.kind: jnp.zeros((), near.dt.dtype) for one in currents}
    straight, crossed = dict(kinds), dict(kinds)
    for one in currents:
        for pattern in product((False, True), repeat=len(near.walls)):
            along, across = _radiated(near, k, one, pattern, point, phase)
            straight[one.kind] = straight[one.kind] + along
            crossed[one.kind] = crossed[one.kind] + across
    # The weights have a factor k for each axis across the normal: see `_radiated`.
    e = eta[:, None] * straight["J"] - crossed["M"]
    h = straight["M"] / eta[:, None] + crossed["J"]
    return e, h


def _radiated(
    near: NearField,
    k: Float[Array, " freqs"],
    current: Currents,
    pattern: tuple[bool, ...],
    point: Float[Array, " axes"],
    phase: Float[Array, " freqs"],
) -> tuple[Complex[Array, "freqs 3"], Complex[Array, "freqs 3"]]:
    r"""Returns $ik (1 + \nabla \nabla \cdot / k^2) G$ and $\nabla G \times$ of one.

    Args:
        near: The near fields.
        k: Wavenumbers.
        current: The current.
        pattern: For each wall whether the current is mirrored at it.
        point: Where.
        phase: Wavenumber times distance of the point from 0.

    Returns:
        Both, summed over the face.
    """
    axis, ndim = AXES.index(current.axis), near.ndim
    letter = "E" if current.kind == "J" else "H"
    places, sign = list(current.coordinates), 1
    for mirrored, (wall, kind), plane in zip(
        pattern, near.walls, near.planes, strict=True
    ):
        if mirrored:
            places[wall] = 2 * plane - places[wall]
            sign *= mirror_sign(letter + current.axis, wall, WALLS[kind])
    gaps = [point[a] - x for a, x in enumerate(places)]
    apart = jnp.stack(jnp.meshgrid(*gaps, indexing="ij"))
    distance = jnp.sqrt(jnp.sum(apart**2, axis=0))
    distance = jnp.where(distance < current.gap, jnp.nan, distance)
    # Far away the difference of two distances would be lost to rounding.
    more = [x * (x - 2 * point[a]) for a, x in enumerate(places)]
    longer = sum(jnp.meshgrid(*more, indexing="ij")) / (distance + _length(point))
    # Unit vectors from the samples to the point, shape (3, samples).
    away = (apart / distance).reshape(ndim, -1)
    away = jnp.concatenate([away, jnp.zeros((3 - ndim, away.shape[1]), away.dtype)])
    kr = k[:, None] * distance.reshape(-1)
    turn = phase[:, None] + k[:, None] * longer.reshape(-1)
    g, slope, bend = _green(kr, turn, ndim)
    weight = sign * current.values
    for a, width in enumerate(current.widths):
        shape = [-1 if b == a else 1 for b in range(ndim)]
        weight = weight * width.reshape(width.shape[0], *shape)
    weight = weight.reshape(k.shape[0], -1)
    lost = jnp.cos(k[:, None] * away[current.normal] * current.gap)
    weight = weight / lost
    unit = jnp.eye(3, dtype=away.dtype)[axis][:, None]
    radial = away * away[axis]
    # Nothing varies along an axis that the grid lacks.
    level = (unit if axis < ndim else 0) - radial
    curved = (slope / kr)[:, None] * level + bend[:, None] * radial
    along = 1j * (g[:, None] * unit + curved)
    across = jnp.cross(away, jnp.broadcast_to(unit, away.shape), axis=0)
    return (
        jnp.sum(weight[:, None] * along, axis=-1),
        jnp.sum(weight[:, None] * slope[:, None] * across, axis=-1),
    )


def _green(kr: Array, phase: Array, ndim: int) -> tuple[Array, Array, Array]:
    """Returns the Green function over k^(ndim - 2), and two derivatives by kr.

    `phase` is `kr` up to whole turns.
    """
    turn = phasor(phase)
    if ndim == 3:
        g = turn / (4 * jnp.pi * kr)
        slope = (1j - 1 / kr) * g
    else:
        zeroth, first = hankel(kr)
        g, slope = 0.25j * turn * zeroth, -0.25j * turn * first
    return g, slope, -(ndim - 1) * slope / kr - g
