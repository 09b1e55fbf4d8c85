"""Gaussian beams, made of the plane waves of the grid."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from .._checks import (
    ArgumentError,
    at_least,
    at_once,
    between,
    positive,
    traced,
    warn,
)
from .._products import matmul
from ..grid import Box
from ..units import ETA_0, SPEED_OF_LIGHT
from ._angular_spectrum import phasor, plane_waves, summed
from ._components import AXES, stagger
from ._disc import disc_beam
from ._injection import Injection
from ._monitors import Read
from ._port_medium import PortMedium
from ._port_places import LinePlace, launch, place_port
from ._port_plane import PlanePlace
from ._ports import Port, as_port, seen_frequency
from ._pulses import AbstractPulse
from ._setup import Setup
from ._sources import AbstractSource
from ._surroundings import one_medium


def _finite(name: str):
    return between(name, -math.inf, math.inf)


class GaussianBeam(AbstractSource):
    r"""A Gaussian beam in a uniform medium, launched one way from a line or a plane.

    A spectrum of plane waves, with $k_\perp$ across the axis of the beam,

    $E(r) \propto \int (e - \hat k\, \hat k \cdot e)\, e^{-w_0^2 k_\perp^2 / 4}
    e^{i k \cdot (r - r_0)}\, d^2 k_\perp$,

    each of which solves the equations of the grid, at the frequency of the pulse: the
    beam is exact for narrow waists and large angles, too, where paraxial beams are not.
    In 2-D the component out of the plane has this spectrum. At other frequencies the
    phases become the delays of spherical fronts, so that focus and direction are kept,
    as far as the index is the same there.
    Waves that would travel back are left out. In cylindrical coordinates it goes along
    the axis, of m = 1, with e along phi = 0.

    Reference: Novotny and Hecht, *Principles of Nano-Optics*, 2nd edition (2012), 3.3.

    Attributes:
        port: Line or plane and direction; `mode` and `offset` are not used. What lies
            beyond its ends is cut off, with a warning above 1e-3 of the power. It must
            lie in one isotropic medium without loss. In cylindrical coordinates its
            middle is on the axis, and the width the diameter of a disc.
        pulse: The time dependence.
        waist: Radius $w_0$ at which the amplitude falls to 1/e, in metres.
        distance: From the middle of the port to that of the waist, $r_0$, along the
            beam, in metres.
        tilt: Angle of the beam to the direction of the port in radians, between
            -pi / 2 and pi / 2.
        power: Time-averaged power at the peak of the envelope, in W/m (W in 3-D and
            cylindrical coordinates).
        azimuth: In 3-D, towards where it is tilted: 0 to the first, pi / 2 to the
            second of the other axes in the order x, y, z.
        polarisation: In 3-D, the angle of $e$ in radians from the plane of the tilt;
            without tilt and azimuth 0 is the first, pi / 2 the second of those axes.
    """

    port: Port = eqx.field(converter=as_port)
    pulse: AbstractPulse
    waist: Float[Array, ""] = eqx.field(converter=lambda x: positive(x, "waist"))
    distance: Float[Array, ""] = eqx.field(converter=_finite("distance"), default=0.0)
    tilt: Float[Array, ""] = eqx.field(
        converter=between("tilt", -math.pi / 2, math.pi / 2), default=0.0
    )
    power: Float[Array, ""] = eqx.field(converter=at_least("power", 0.0), default=1.0)
    azimuth: Float[Array, ""] = eqx.field(converter=_finite("azimuth"), default=0.0)
    polarisation: Float[Array, ""] = eqx.field(
        converter=_finite("polarisation"), default=0.0
    )

    def locate(self, frame, what):
        if frame.ndim < 3:
            self._check_angles(frame, what)
        return place_port(self.port, frame, what)

    def _check_angles(self, frame, what):
        around = frame.components.m is not None
        told = (
            "in cylindrical coordinates, where a beam goes along the axis"
            if around
            else "in 2-D, where the polarisation is that of the simulation and the "
            "tilt lies in its plane"
        )
        for name in (*(("tilt",) if around else ()), "azimuth", "polarisation"):
            angle = getattr(self, name)
            if not isinstance(angle, jax.core.Tracer) and float(angle) != 0:
                raise ArgumentError(
                    f"`{name}` of {what} must be left out {told}, but is "
                    f"{float(angle):g}."
                )
        if around and frame.components.m != 1:
            raise ArgumentError(
                f"`cylindrical` must be `Cylindrical(1)` for {what}, but has m = "
                f"{frame.components.m}: a beam along z has the angular number 1."
            )

    def injections(self, place, setup):
        on = _on_plane if setup.components.m is None else _on_disc
        found = on(self, place, setup)
        sound = _one_medium(place, self.pulse.frequency, setup, "a Gaussian beam")
        quarter = 1 / (4 * self.pulse.frequency)
        parts: tuple[dict[str, Array], ...] = ({}, {})
        delays: tuple[dict[str, Array], ...] = ({}, {})
        for name, (field, phase) in found.items():
            field = sound * field * phasor(-phase)
            delay = phase / (2 * jnp.pi * self.pulse.frequency)
            # The pulse a quarter of a period later has i times its spectrum.
            parts[0][name], parts[1][name] = jnp.real(field), jnp.imag(field)
            delays[0][name], delays[1][name] = delay, delay + quarter
        out: list[Injection] = []
        for values, delay in zip(parts, delays, strict=True):
            out += launch(place, setup, values, delay, self.pulse)
        return out


class _Waves(NamedTuple):
    """Plane waves of a beam.

    Attributes:
        across: The axes across the port, in the order of its plane.
        k: Along each of them, in rad/m, from `plane_waves`.
        fields: By component along those axes, E in V/m and `eta0 H`, on the nodes
            nearest to the middle of the port, H half a cell before.
        axis: Direction of the beam, along x, y, z.
        wavenumber: In rad/m.
        beyond: How far these nodes lie ahead of the middle of the port, in metres.
        before: Half a cell along the port, in metres.
    """

    across: tuple[int, ...]
    k: tuple[Float[Array, "..."], ...]
    fields: dict[str, Complex[Array, "..."]]
    axis: Float[Array, "3"]
    wavenumber: Float[Array, ""]
    beyond: Float[Array, ""]
    before: Float[Array, ""]


def _waves(beam: GaussianBeam, box: Box, cell: int, setup: Setup) -> _Waves:
    """Makes the plane waves of a beam.

    Args:
        beam: The beam.
        box: The port.
        cell: Number of the one along the port between E and H of the source.
        setup: The run.
    """
    port, grid = beam.port, setup.grid
    across = tuple((port.axis + n) % 3 for n in (1, 2))
    across = tuple(axis for axis in across if axis < grid.ndim)
    epsilon, mu = _in_middle(beam, box, setup)
    k0 = 2 * jnp.pi * seen_frequency(beam.pulse.frequency, setup) / SPEED_OF_LIGHT
    wavenumber = jnp.sqrt(epsilon * mu) * k0
    direction, polarisation = _directions(beam, setup)

    counts = [box[a][1] - box[a][0] for a in across]
    k, vectors, area = plane_waves(port, across, counts, wavenumber, grid)
    along = jnp.abs(vectors[..., port.axis])
    width = grid.cell_widths(port.axis)[cell]
    advance = 2 * jnp.arcsin(jnp.clip(along * width / 2, -1.0, 1.0))

    forward = matmul(vectors, direction)
    side = jnp.sum((vectors - forward[..., None] * direction) ** 2, axis=-1)
    amplitude = jnp.exp(-(beam.waist**2) * side / 4) * (forward > 0)
    if setup.components.electric == ("Ez",) or grid.ndim == 3:
        amplitude = amplitude * forward / wavenumber
    aligned = vectors * matmul(vectors, polarisation)[..., None] / wavenumber**2
    electric = (polarisation - aligned) * amplitude[..., None]
    magnetic = jnp.cross(vectors, electric) / (mu * k0)
    # The spectrum is this over `along`, which no node lets vanish.
    solid = area / along
    flow = jnp.sum(electric**2, axis=-1) * jnp.cos(advance / 2) / (mu * k0)
    power = (2 * jnp.pi) ** len(across) * jnp.sum(flow * solid) / (2 * ETA_0)
    scale = jnp.sqrt(beam.power / power) * solid

    start = sum(
        (values * direction[axis] for axis, values in zip(across, k, strict=True)),
        advance / width * direction[port.axis] * port.sign,
    )
    node = grid.edges(port.axis)[box[port.axis][0]]
    beyond = port.sign * (node - port.centre[port.axis])
    to_port = phasor(advance / width * beyond - start * beam.distance)
    fields = {}
    for axis in across if grid.ndim == 3 else (*across, 2):
        for letter, vector in (("E", electric), ("H", magnetic)):
            name = letter + AXES[axis]
            if name in setup.components.names:
                early = phasor(-advance / 2) if letter == "H" else 1
                fields[name] = scale * vector[..., axis] * to_port * early
    return _Waves(across, k, fields, direction, wavenumber, beyond, width / 2)


def _directions(beam: GaussianBeam, setup: Setup) -> tuple[Array, Array]:
    """Returns the directions of a beam and of its electric field, along x, y, z."""
    port = beam.port
    unit = jnp.eye(3, dtype=setup.dt.dtype)
    ahead = port.sign * unit[port.axis]
    first, *second = (a for a in range(setup.grid.ndim) if a != port.axis)
    azimuth = beam.azimuth if second else jnp.zeros(())
    last = unit[second[0]] if second else unit[2]
    towards = jnp.cos(azimuth) * unit[first] + jnp.sin(azimuth) * last
    aside = jnp.cos(azimuth) * last - jnp.sin(azimuth) * unit[first]
    axis = jnp.cos(beam.tilt) * ahead + jnp.sin(beam.tilt) * towards
    inside = jnp.cos(beam.tilt) * towards - jnp.sin(beam.tilt) * ahead
    if not second:
        return axis, inside if "Hz" in setup.components.names else aside
    angle = beam.polarisation
    return axis, jnp.cos(angle) * inside + jnp.sin(angle) * aside


# A component, and the phase of it that becomes a delay.
_Field = tuple[Complex[Array, "..."], Float[Array, "..."]]


def _on_plane(
    beam: GaussianBeam, place: LinePlace | PlanePlace, setup: Setup
) -> dict[str, _Field]:
    """Returns the components across a port at their samples: see `_waves`."""
    grid, port, box = setup.grid, beam.port, place.box
    waves = _waves(beam, box, place.face.outside, setup)
    line = "Hz" if "Hz" in setup.components.names else "Ez"
    out = {}
    for name, amplitudes in waves.fields.items():
        places: list[Array] = []
        for axis in waves.across:
            low, high = box[axis]
            halves = stagger(name if grid.ndim == 3 else line, grid.ndim)
            points = grid.centres(axis) if halves[axis] else grid.edges(axis)
            extra = 0 if halves[axis] or grid.ndim == 2 else 1
            places.append(points[low : high + extra] - port.centre[axis])
        field = summed(waves.k, amplitudes, places)
        mesh = jnp.meshgrid(*places, indexing="ij")
        ahead = waves.beyond - (waves.before if name[0] == "H" else 0)
        ends = dict(zip(waves.across, mesh, strict=True))
        ends |= {port.axis: port.sign * ahead}
        s = sum((x * waves.axis[axis] for axis, x in ends.items()), jnp.zeros(()))
        side = sum((x**2 for x in ends.values()), jnp.zeros(())) - s**2
        out[name] = field, _fronts(beam, waves.wavenumber, s, side)
    return out


def _on_disc(beam: GaussianBeam, place: LinePlace, setup: Setup) -> dict[str, _Field]:
    """Returns the components across a port around the axis at their samples."""
    k0 = 2 * jnp.pi * seen_frequency(beam.pulse.frequency, setup) / SPEED_OF_LIGHT
    epsilon, mu = _in_middle(beam, place.box, setup)
    node = setup.grid.edges(1)[place.box[1][0]]
    beyond = beam.port.sign * (node - beam.port.centre[1])
    found = disc_beam(
        place,
        setup,
        (k0, epsilon, mu),
        beam.waist,
        beam.power,
        beyond - beam.distance,
    )
    before = setup.grid.cell_widths(1)[place.face.outside] / 2
    out = {}
    for name, (field, r) in found.items():
        s = beyond - (before if name[0] == "H" else 0)
        out[name] = field, _fronts(beam, jnp.sqrt(epsilon * mu) * k0, s, r**2)
    return out


def _fronts(beam: GaussianBeam, k: Array, s: Array, side: Array) -> Array:
    """Returns the phase of spherical fronts with the curvature of the paraxial beam.

    Args:
        beam: The beam.
        k: Wavenumber in rad/m.
        s: Place along the beam from the middle of the port, in metres.
        side: Square of the distance from its axis, in m^2.
    """
    z = s - beam.distance
    bent = z / (z**2 + (k * beam.waist**2 / 2) ** 2)
    # To lowest order half the square of the distance over the radius of curvature.
    return k * (s + side * bent / (1 + jnp.sqrt(1 + side * bent**2)))


def _in_middle(beam: GaussianBeam, box: Box, setup: Setup) -> tuple[Array, Array]:
    """Returns permittivity and permeability in the middle of a port."""
    parts, shape = setup.components, setup.grid.shape
    cell = tuple(((low + high) // 2, (low + high) // 2 + 1) for low, high in box)
    medium = setup.medium.near(cell, shape)
    middle = PortMedium(medium, cell, shape, setup.dt)
    epsilon = middle.permittivity(parts.electric[0], beam.pulse.frequency)
    mu = middle.permeability(parts.magnetic[0])
    return jnp.real(epsilon).reshape(()), mu.reshape(())


def _one_medium(
    place: LinePlace | PlanePlace,
    frequency: Float[Array, ""],
    setup: Setup,
    what: str,
) -> Array:
    """Returns 1 if a port lies in one lossless isotropic medium, else raises or NaN."""
    normal = setup.components.axes[place.face.axis]
    terms = (term for both in place.corrections for term in both)
    return one_medium(
        tuple(Read(f"{t.target} +{normal}", t.target, t.box) for t in terms),
        setup,
        frequency[None],
        f"The port of {what} must lie in one isotropic medium: make it smaller or move "
        "it",
        f"The port of {what} must lie in a medium without conductivity, nonlinear "
        "susceptibilities, poles that absorb and metals: move it",
    )


def check_beams(
    sources: Mapping[str, AbstractSource],
    places: Iterable[tuple[str, Any]],
    setup: Setup,
) -> None:
    """Refuses beams in other than one medium, and warns of those that are cut off.

    Args:
        sources: By name.
        places: Names of sources and monitors, and where they are.
        setup: The run; metrics and phases are not asked for.

    Raises:
        ArgumentError: If the medium of a port is known and not one, or has losses.
    """
    for name, place in places:
        beam = sources.get(name)
        if not isinstance(beam, GaussianBeam):
            continue
        known = (beam, setup)
        with at_once(known):
            _one_medium(place, beam.pulse.frequency, setup, f"source {name!r}")
            if traced(known):
                continue
            lost = _cut_off(beam, place, setup)
        if lost > _RIM:
            warn(
                f"`width` of the port of source {name!r} should hold its beam, but "
                f"cuts off {lost:.1e} of the power, more than {_RIM:g}, so that "
                "`power` is not what is sent. Widen it to about four radii of the "
                "beam there.",
            )


# As of the ports of modes.
_RIM = 1e-3


def _cut_off(beam: GaussianBeam, place: LinePlace | PlanePlace, setup: Setup) -> float:
    """Returns the share of the power of a paraxial beam beyond the ends of its port."""
    port, grid = beam.port, setup.grid
    box = place.box
    epsilon, mu = _in_middle(beam, box, setup)
    index = math.sqrt(float(epsilon * mu))
    wavelength = SPEED_OF_LIGHT / float(beam.pulse.frequency) / index
    waist = float(beam.waist)
    if setup.components.m is not None:
        end = float(grid.edges(0)[box[0][1]])
        radius = waist * math.hypot(
            1, float(beam.distance) * wavelength / (math.pi * waist**2)
        )
        return math.exp(-2 * end**2 / radius**2)
    axis = np.asarray(_directions(beam, setup)[0], np.float64)
    lost = 0.0
    for number in range(grid.ndim):
        if number == port.axis:
            continue
        edges = np.asarray(grid.edges(number), np.float64)
        low, high = box[number]
        # A beam that the plane cuts obliquely is wider on it.
        oblique = math.hypot(1, axis[number] / axis[port.axis])
        for end in edges[[low, min(high, len(edges) - 1)]] - port.centre[number]:
            away = end * axis[number] - float(beam.distance)
            radius = waist * math.hypot(1, away * wavelength / (math.pi * waist**2))
            lost += math.erfc(math.sqrt(2) * abs(end) / (radius * oblique)) / 2
    return lost
