"""Equivalent currents on the faces of a box, and the medium that they radiate into."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from .._checks import ArgumentError, check
from ..units import SPEED_OF_LIGHT
from ._angular_spectrum import phasor
from ._boundaries import PEC, PMC
from ._components import AXES, in_space
from ._flux import poynting_pairs
from ._mirror import mirror_sign
from ._near_field import NearField, recorded


WALLS = {"PEC": PEC(), "PMC": PMC()}


class Currents(NamedTuple):
    """One component of a current on a face.

    In cylindrical coordinates it is that at phi = 0, of three axes, and its widths
    along r are for one radian.

    Attributes:
        kind: "J" (as `eta0 J`) or "M".
        axis: Its axis, by name; r and phi are x and y.
        normal: Number of the face's axis.
        values: In V s/m, shape (frequency, x, y, z).
        coordinates: Along each axis, in metres.
        widths: Widths of the samples times the wavenumber along each axis, shape
            (frequency, samples); 1 along the normal.
        gap: Half the distance of E and H along the normal, in metres.
    """

    kind: str
    axis: str
    normal: int
    values: Complex[Array, "..."]
    coordinates: tuple[Float[Array, "..."], ...]
    widths: tuple[Float[Array, "..."], ...]
    gap: Float[Array, ""]


def wavenumber(
    near: NearField,
) -> tuple[Float[Array, " freqs"], Float[Array, " freqs"]]:
    """Returns wavenumbers in rad/m, and impedances over that of vacuum."""
    index = jnp.sqrt(near.permittivity * near.permeability)
    k = 2 * jnp.pi * near.frequencies.astype(near.dt.dtype) * index / SPEED_OF_LIGHT
    impedance = jnp.sqrt(near.permeability / near.permittivity)
    return k, jnp.broadcast_to(impedance, k.shape)


def surface_currents(near: NearField, k: Float[Array, " freqs"]) -> list[Currents]:
    r"""Returns the currents $J = n \times H$ and $M = -n \times E$ of all faces.

    Each stands where the field equations have it that join the fields outside to none
    inside: J, made of H half a cell outside, on the nodes of the face, and M, made of E
    on the face, half a cell outside.

    Args:
        near: The fields.
        k: Wavenumbers in rad/m.

    Returns:
        The currents.
    """
    names = {key.split()[0] for key in near.values}
    out = []
    for face in near.faces:
        normal, outward = near.axes.index(face[1]), 1 if face[0] == "+" else -1
        for electric, magnetic, sign in poynting_pairs(face[1], names):
            e, h = f"{electric} {face}", f"{magnetic} {face}"
            apart = near.coordinates[h][normal] - near.coordinates[e][normal]
            gap = jnp.abs(apart[0]) / 2
            for kind, place, field in (("J", e, h), ("M", h, e)):
                values, points = near.values[field], near.coordinates[place]
                widths = tuple(
                    jnp.ones_like(k)[:, None] * width
                    if axis == normal
                    else k[:, None] * width
                    for axis, width in enumerate(near.widths[place])
                )
                if near.m is not None:
                    # The half plane phi = 0; one more length is along the azimuth.
                    widths = (
                        k[:, None] * widths[0],
                        jnp.ones((1, 1), k.dtype),
                        widths[1],
                    )
                    points = points[0], jnp.zeros_like(points[0][:1]), points[1]
                    values = values[:, :, None]
                out.append(
                    Currents(
                        kind,
                        AXES[in_space(place[1])],
                        in_space(face[1]),
                        -outward * sign * values,
                        points,
                        widths,
                        gap,
                    )
                )
    return out


def phases(
    near: NearField,
    k: Float[Array, " freqs"],
    current: Currents,
    axis: int,
    cosine: Float[Array, ""],
) -> Complex[Array, "freqs samples"]:
    """Returns the phases along an axis of what a current and its images radiate.

    Args:
        near: The fields, with their walls.
        k: Wavenumbers in rad/m.
        current: The current.
        axis: Number of the axis.
        cosine: Component of the direction along it.

    Returns:
        The phases, times the widths of the samples.
    """
    letter = "E" if current.kind == "J" else "H"
    points = current.coordinates[axis]
    phase = phasor(-cosine * k[:, None] * points)
    for (wall, kind), plane in zip(near.walls, near.planes, strict=True):
        if wall == axis:
            sign = mirror_sign(letter + current.axis, axis, WALLS[kind])
            image = phasor(-cosine * k[:, None] * (2 * plane - points))
            phase = phase + sign * image
    return phase * current.widths[axis]


# A few roundings of a permittivity that was computed.
_SAME = 1e-5


def projectable(near: NearField) -> NearField:
    """Returns near fields that radiate into one lossless, unbounded medium.

    Args:
        near: The fields.

    Returns:
        The same; NaN under `jit` where the medium is not of that kind.

    Raises:
        ArgumentError: If the simulation is 1-D, periodic, or walled on both sides of an
            axis, or, outside of `jit`, if the medium is not of that kind.
    """
    if recorded(near).ndim == 1:
        raise ArgumentError(
            "`near` must be from a 2-D or 3-D simulation to be projected, but is from "
            "a 1-D one. Its waves do not spread: use the fields as they are."
        )
    if near.repeated:
        names = [AXES[axis] for axis in near.repeated]
        raise ArgumentError(
            "`near` must be from a simulation without periodic axes to be projected, "
            f"but is periodic along {names}. Take `diffraction_orders`."
        )
    axes = [axis for axis, _ in near.walls]
    if near.m is not None and 0 in axes:
        raise ArgumentError(
            "`near` in cylindrical coordinates must be from a simulation that reaches "
            "the axis and has no wall along r to be projected, but has one. Begin the "
            "grid at r = 0, and put a `CPML` at its outer face."
        )
    for axis in axes:
        if axes.count(axis) > 1:
            raise ArgumentError(
                "`near` must be from a simulation with at most one wall along an axis "
                f"to be projected, but has two along {AXES[axis]}. Put a `CPML` there."
            )
    return in_one_medium(near)


def in_one_medium(near: NearField) -> NearField:
    """Returns near fields with faces in one lossless material, or NaN, or raises."""
    spread = check(
        near.spread,
        near.spread <= _SAME,
        "The material on all faces of `near` must be the same and isotropic, because "
        "layers such as a substrate and anisotropic media are not modelled: put the "
        "box in one medium, or leave out `faces`. The relative spread of permittivity "
        "and permeability over faces and components, infinite in a crystal whose axes "
        "are not along the grid, must be 0",
    )
    loss = check(
        near.loss,
        near.loss == 0,
        "The material on the faces of `near` must be lossless and linear: put the box "
        "in a medium without conductivity, and without metals, poles that absorb and "
        "nonlinear susceptibilities, which count as infinite. The largest loss there "
        "must be 0",
    )
    sound = near.permittivity + 0 * (spread + loss)
    return eqx.tree_at(lambda n: n.permittivity, near, sound)
