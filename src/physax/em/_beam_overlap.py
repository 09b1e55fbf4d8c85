"""Overlap of near fields with a Gaussian beam: what a fibre or a lens collects."""

from collections.abc import Sequence
from functools import partial
from math import ceil, inf
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Complex, Float, Num
from numpy.polynomial.legendre import leggauss

from .._checks import (
    ArgumentError,
    as_array,
    at_once,
    between,
    check,
    real,
    single,
    traced,
)
from .._products import matmul
from ..units import ETA_0, FEMTO
from ._angular_spectrum import phasor
from ._currents import projectable, wavenumber
from ._far_field import far_field, tangents, unit_vectors
from ._near_field import NearField


# Waves of a smaller amplitude are left out.
_SMALLEST = 1e-8
# Nodes above those that the phases need, for the envelope of a frequency that fills
# the cone.
_ENVELOPE = 24
# Most nodes along an angle, by dimension.
_MOST = {2: 2500, 3: 500}
# Nodes come in multiples, so that a sweep does not compile for each beam.
_MULTIPLE = 16
# Largest ratio of frequencies that is allowed for where they are traced.
_OCTAVE = 2
# Least share of a polarisation that lies across the beam.
_ALONG = 1e-3


class _Beam(NamedTuple):
    """A Gaussian beam.

    Attributes:
        waist: Radius in metres.
        centre: Of the waist, in metres.
        frame: Unit vectors along it and across, in 3-D first along its field.
    """

    waist: Float[Array, ""]
    centre: Float[Array, " axes"]
    frame: tuple[Float[Array, " axes"], ...]


def beam_overlap(
    near: NearField,
    waist: Num[ArrayLike, "..."],
    *,
    centre: Num[ArrayLike, "..."] | Sequence[float | int],
    direction: Num[ArrayLike, "..."] | Sequence[float | int],
    polarisation: Num[ArrayLike, "..."] | Sequence[float | int] | None = None,
) -> Complex[Array, " freqs"]:
    r"""Returns the amplitude of a Gaussian beam in what a box radiates.

    Its squared modulus is the power that a fibre or a lens with this beam collects.
    Over the power that was sent, such as the squared modulus of
    `ModeAmplitudes.incoming` or a flux, it is the coupling efficiency. With F the far
    field of `far_field` and

    $$
    B(\hat k) \propto (e - \hat k\, \hat k \cdot e) \cos \theta\,
    e^{-k^2 w_0^2 \sin^2 \theta / 4 - i k \hat k \cdot r_0}
    $$

    that of a `GaussianBeam`, with $\theta$ from its axis, the amplitude is
    $\int F \cdot B^* d\Omega / \sqrt{2 \eta \int |B|^2 d\Omega}$: no wave is
    paraxial, and the beam need not pass through the faces. In 2-D the component out of
    the plane has this spectrum without the vector. The beam lies in the medium of the
    faces; at the facet of a fibre of another index some light is reflected. With walls
    the amplitude is that of the faces and their images, as in `far_field`: in a scene
    halved by a mirror its square is over twice the flux of the half.

    Under `jit`, with the medium, the faces or the beam traced, the number of directions
    must do for all beams: many more are computed, and the result is NaN if the waist is
    further from the middle of a box than its corners are, or the frequencies span more
    than an octave. Differentiable in the record and in the beam.

    Args:
        near: From a `NearFieldMonitor`; one wide face towards the beam is enough.
        waist: Radius $w_0$ at which the amplitude falls to 1/e, in metres.
        centre: Of the waist, $r_0$, in metres.
        direction: Unit vector along which the beam leaves, from `direction` or
            `k_direction`.
        polarisation: In 3-D, $e$, any vector across the direction; what it has along
            it is left out. None in 2-D.

    Returns:
        In sqrt(W) fs, in 2-D sqrt(W/m) fs, with the phase of the beam's field along
        `polarisation`, in 2-D of `"Ez"` or `"Hz"`, in the middle of its waist.

    Raises:
        ArgumentError: As `far_field`; if an argument has a wrong shape or is not
            finite, or the waist is so far away that it takes too many directions.
    """
    near = projectable(near)
    ndim, dtype = near.ndim, near.dt.dtype
    middle = between("centre", -inf, inf)(as_array(centre, "centre")).astype(dtype)
    if middle.shape != (ndim,):
        raise ArgumentError(
            f"`centre` must have {ndim} coordinates, but has shape {middle.shape}."
        )
    axis = unit_vectors(direction, "direction", ndim).astype(dtype)
    if axis.ndim != 1:
        raise ArgumentError(
            f"`direction` must be one vector, but has shape {axis.shape}. Take others "
            "one by one, or under `vmap`."
        )
    field = _transverse(axis, polarisation)
    radius = single(between("waist", 0.0, inf)(waist), "waist").astype(dtype)
    beam = _Beam(radius, middle, (axis, *field))
    count, sound = _count(near, radius, middle)
    return sound * _overlap(near, beam, count)


def _transverse(
    axis: Float[Array, " axes"],
    polarisation: Num[ArrayLike, "..."] | Sequence[float | int] | None,
) -> tuple[Float[Array, " axes"], ...]:
    """Returns unit vectors across a beam, first along its field in 3-D."""
    if (axis.size == 3) != (polarisation is not None):
        raise ArgumentError(
            "`polarisation` must be the direction of the electric field in 3-D, such "
            "as (0, 1, 0), and None in 2-D, where the simulation has one, but is "
            f"{polarisation!r}."
        )
    if polarisation is None:
        return (jnp.stack([-axis[1], axis[0]]),)
    along = real(polarisation, "polarisation").astype(axis.dtype)
    if along.shape != (3,):
        raise ArgumentError(
            f"`polarisation` must have 3 components, but has shape {along.shape}."
        )
    with at_once((axis, along)):
        size = jnp.sqrt(jnp.sum(along**2))
        along = along - jnp.sum(along * axis) * axis
        rest = jnp.sqrt(jnp.sum(along**2))
        rest = check(
            rest,
            rest > _ALONG * size,
            "`polarisation` must not point along `direction`: what it has across must "
            f"be more than {_ALONG:g} of it",
        )
        along = along / rest
        return along, jnp.cross(axis, along)


def _count(
    near: NearField, waist: Float[Array, ""], centre: Float[Array, " axes"]
) -> tuple[int, Float[Array, ""]]:
    """Returns nodes of a rule over angles that resolves an overlap, and 1; else NaN."""
    # Known under `grad`, too.
    need = _need(*lax.stop_gradient((near, waist, centre)))
    if traced(need):
        # Half the box at 5 cells per wavelength, and as much to the waist.
        most = 1.25 * near.across + _OCTAVE * _ENVELOPE
    else:
        most = min(float(need), _MOST[near.ndim])
    need = check(
        need,
        need <= most,
        f"`centre` must be so near, and frequencies so close, that {most:.0f} angles "
        "resolve the beam: move it along the beam, or record fewer at once. Their "
        "number must be less",
    )
    return _MULTIPLE * ceil(most / _MULTIPLE), 1 + 0 * need


@eqx.filter_jit
def _need(
    near: NearField, waist: Float[Array, ""], centre: Float[Array, " axes"]
) -> Float[Array, ""]:
    """Returns how many angles resolve the phases and the envelopes of an overlap."""
    k, _ = wavenumber(near)
    sine, versine = _largest_angle(k, waist)
    square = jnp.zeros((), k.dtype)
    for axis, x in enumerate(centre):
        places = near.places(axis)
        for (wall, _), plane in zip(near.walls, near.planes, strict=True):
            if wall == axis:
                places += [2 * plane - one for one in places]
        square = square + jnp.max(jnp.abs(jnp.concatenate(places) - x)) ** 2
    # The phase between a place on the faces and the waist varies by less over the beam.
    phase = jnp.max(k) * jnp.sqrt(square) * (sine + versine)
    return phase / 2 + _ENVELOPE * jnp.max(k) / jnp.min(k)


def _largest_angle(k: Array, waist: Array) -> tuple[Array, Array]:
    """Returns the sine and 1 - cosine of the largest angle of a wave in a beam."""
    # Whatever the cone, the integral is the same.
    k, waist = lax.stop_gradient((k, waist))
    sine = jnp.minimum(2 * np.sqrt(-np.log(_SMALLEST)) / (jnp.min(k) * waist), 1)
    # A narrow cone would lose its angle in 1 minus a cosine.
    return sine, sine**2 / (1 + jnp.sqrt(1 - sine**2))


@eqx.filter_jit
def _overlap(near: NearField, beam: _Beam, count: int) -> Complex[Array, " freqs"]:
    """Returns the amplitude, by a rule of so many nodes."""
    k, eta = wavenumber(near)
    cone = _cone(k, beam, count)
    far = far_field(near, cone.towards).values
    if near.ndim == 2:
        ((name, values),) = far.items()
        share, over, lag = jnp.ones(()), eta if name == "Hz" else 1 / eta, 0.25
    else:
        parts = [matmul(tangent, beam.frame[1]) for tangent in tangents(cone.towards)]
        values = parts[0] * far["Etheta"] + parts[1] * far["Ephi"]
        share, over, lag = parts[0] ** 2 + parts[1] ** 2, 1 / eta, 0.5
    width = k[:, None] * beam.waist * cone.sine / 2
    amplitude = cone.cosine * jnp.exp(-(width**2))
    angle = k[:, None] * matmul(cone.towards, beam.centre) + lag * np.pi
    wave = amplitude * phasor(angle)
    norm = jnp.sum(cone.weights * share * amplitude**2, axis=-1)
    total = jnp.sum(cone.weights * wave * values / FEMTO, axis=-1)
    return total * jnp.sqrt(over / (2 * ETA_0 * norm))


class _Cone(NamedTuple):
    """A rule over the directions in which a beam has waves.

    Attributes:
        cosine: Of the angle to its axis.
        sine: Of the same angle.
        weights: Of the angles, in rad or sr.
        towards: Unit vectors.
    """

    cosine: Float[Array, " n"]
    sine: Float[Array, " n"]
    weights: Float[Array, " n"]
    towards: Float[Array, "n axes"]


def _cone(k: Float[Array, " freqs"], beam: _Beam, count: int) -> _Cone:
    """Returns a rule with so many nodes, and in 3-D twice as many around the axis."""
    sine, versine = _largest_angle(k, beam.waist)
    nodes, gauss = map(partial(jnp.asarray, dtype=k.dtype), leggauss(count))
    if beam.centre.size == 2:
        angle = jnp.arcsin(sine) * nodes
        cosine, sines = jnp.cos(angle), jnp.sin(angle)
        weights, sides = jnp.arcsin(sine) * gauss, (sines,)
    else:
        less, step = jnp.repeat(versine * (1 - nodes) / 2, 2 * count), np.pi / count
        cosine, sines = 1 - less, jnp.sqrt(less * (2 - less))
        weights = step * jnp.repeat(versine * gauss / 2, 2 * count)
        turn = jnp.tile(step * jnp.arange(2 * count), count)
        sides = sines * jnp.cos(turn), sines * jnp.sin(turn)
    parts = zip((cosine, *sides), beam.frame, strict=True)
    towards = sum((one[:, None] * unit for one, unit in parts), jnp.zeros(()))
    return _Cone(cosine, sines, weights, towards)
