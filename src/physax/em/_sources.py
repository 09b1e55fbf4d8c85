"""Sources: dipoles and guided modes."""

from abc import abstractmethod
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, at_least, finite, positive
from ..grid import Box
from ..units import ETA_0, SPEED_OF_LIGHT
from ._boundaries import PEC, PMC, Bloch, Periodic
from ._components import KNOWN
from ._frame import Frame, Point, as_point, check_point
from ._injection import Injection
from ._plane_modes import plane_modes
from ._port_disc import disc_of
from ._port_medium import check_loss, port_medium
from ._port_places import launch, place_port
from ._port_plane import PlanePlace
from ._ports import Port, as_port, mode_fields, phase_per_cell, port_mode
from ._pulses import AbstractPulse
from ._setup import Setup


class AbstractSource(eqx.Module):
    """Something that drives the fields by currents on fixed samples."""

    pulse: eqx.AbstractVar[AbstractPulse]

    def __check_init__(self):
        if not isinstance(self.pulse, AbstractPulse):
            raise ArgumentError(
                f"`pulse` of a {type(self).__name__} must be a pulse, but is "
                f"{self.pulse!r}. Give the frequency to one: `GaussianPulse(frequency, "
                "bandwidth)` or `ContinuousWave(frequency)`."
            )

    @abstractmethod
    def locate(self, frame: Frame, what: str) -> Any:
        """Finds the samples on the host; refuses places outside the grid."""

    @abstractmethod
    def injections(self, place: Any, setup: Setup) -> list[Injection]:
        """Returns the currents, given what `locate` found."""


class DipolePlace(NamedTuple):
    """Samples of one period of the grid around a dipole.

    Attributes:
        box: The samples.
        weights: For each axis the weight of each.
        turns: For each axis how many periods further on they stand for.
    """

    box: Box
    weights: tuple[tuple[float, ...], ...]
    turns: tuple[int, ...]


class Dipole(AbstractSource):
    """A point current: electric with an E component, magnetic with an H component.

    A position between samples is shared linearly by its neighbours, which may lie at
    both ends of a period. In 2-D the source is a line, in 1-D a sheet, and the moment
    is per length or per area.

    Attributes:
        component: `"Ex"` ... `"Hz"`.
        position: In metres.
        pulse: The time dependence.
        moment: Current moment: A m for electric, V m for magnetic dipoles in 3-D. Real:
            the pulse has the phase.

    Raises:
        ArgumentError: If `component` is no component, the moment is complex, not finite
            or not one number, or if `pulse` is not a pulse.
    """

    component: str = eqx.field(static=True)
    position: Point = eqx.field(
        static=True, converter=partial(as_point, name="position")
    )
    pulse: AbstractPulse
    moment: Float[Array, ""] = eqx.field(
        converter=finite("moment", "Give its phase as `phase` of the pulse."),
        default=1.0,
    )

    def __check_init__(self):
        if self.component not in KNOWN:
            raise ArgumentError(
                f"`component` of a dipole must be one of {KNOWN}, but is "
                f"{self.component!r}."
            )

    def locate(self, frame, what):
        if self.component not in frame.components.names:
            raise ArgumentError(
                f"`component` of {what} must be one of {frame.components.names}, but "
                f"is {self.component!r}."
            )
        position = check_point(self.position, frame.ndim, "position", what)
        halves = frame.components.stagger(self.component)
        rows = [
            _shares(frame, axis, half, position[axis], what)
            for axis, half in enumerate(halves)
        ]
        self._check_walls(frame, position, what)
        places = [DipolePlace(*zip(*one, strict=True)) for one in product(*rows)]
        frame.warn_in_layer(places[0].box, what)
        return tuple(places)

    def _check_walls(self, frame: Frame, position: Point, what: str) -> None:
        """Refuses a dipole at a wall on which its field is zero."""
        halves = frame.components.stagger(self.component)
        self._check_axis(frame, position, halves, what)
        for axis, half in enumerate(halves):
            for face, gap, distance in _walls(frame, axis, position[axis]):
                # E along and H normal to a PEC have samples on it, the others of a PMC
                # half a cell off.
                if face is not (PMC if half else PEC):
                    continue
                least, told = (gap / 2, "half a cell") if half else (gap, "a cell")
                if distance < (1 - _AT) * least:
                    raise ArgumentError(
                        f"`position` of {what} must be at least {told}, {least:g} m, "
                        f"off the {face.__name__} along "
                        f"{frame.components.axes[axis]}, but is {distance:g} m off: "
                        f"{self.component} is zero on that wall, which cancels the "
                        "dipole."
                    )

    def _check_axis(self, frame: Frame, position: Point, halves, what: str) -> None:
        """Refuses a current on the axis where its field is zero."""
        if not frame.on_axis:
            return
        cell, m = frame.nodes[0][1] - frame.nodes[0][0], frame.components.m
        least, told = (cell / 2, "half a cell") if halves[0] else (cell, "a cell")
        alive = {("Ez", 0), ("Hz", 0), ("Er", 1), ("Hp", 1)}
        if (self.component, m) not in alive and position[0] < (1 - _AT) * least:
            raise ArgumentError(
                f"`position` of {what} must be at least {told}, {least:g} m, off the "
                f"axis, where {self.component} of m = {m} drives nothing, but is "
                f"{position[0]:g} m off. On the axis take Ez or Hz of m = 0, or Er or "
                "Hp of m = 1."
            )

    def injections(self, place, setup):
        return [self._injection(one, setup) for one in place]

    def _injection(self, place: DipolePlace, setup: Setup) -> Injection:
        grid, ndim = setup.grid, setup.grid.ndim
        density = self.moment * SPEED_OF_LIGHT * setup.dt
        electric = self.component[0] == "E"
        if electric:
            density = density * ETA_0
        halves = setup.components.stagger(self.component)
        for axis, (low, high) in enumerate(place.box):
            half = halves[axis]
            if setup.axes[axis].radial is not None:
                widths = setup.sample_widths(axis, half, self.component)
            else:
                widths = grid.cell_widths(axis) if half else _node_widths(setup, axis)
            widths = widths[low:high]
            row = jnp.asarray(place.weights[axis], widths.dtype) / widths
            density = density * row.reshape(
                [-1 if a == axis else 1 for a in range(ndim)]
            )
        zero = jnp.zeros((), density.dtype)
        for turns, phase in zip(place.turns, setup.phases, strict=True):
            if turns and phase is not None:
                # A current grows by the phase over a period, as fields do.
                density = density * (jnp.conj(phase) if turns > 0 else phase)
        return Injection(self.component, place.box, -density, zero, self.pulse)


def _node_widths(setup: Setup, axis: int) -> Float[Array, " nodes"]:
    """Returns the width around each node along an axis: half a cell on a PMC."""
    low, high = setup.boundaries.axis(axis)
    widths = jnp.pad(setup.node_gaps(axis), (0, 1), mode="edge")
    widths = widths.at[0].divide(2 if isinstance(low, PMC) else 1)
    return widths.at[-1].divide(2 if isinstance(high, PMC) else 1)


# What counts as on a sample or on a wall, in cells: nodes are rounded to float32.
_ON, _AT = 1e-6, 1e-3


def _shares(
    frame: Frame, axis: int, half: float, x: float, what: str
) -> list[tuple[tuple[int, int], tuple[float, ...], int]]:
    """Returns samples along an axis, their weights and by how many periods they lie on.

    Two entries, if a dipole lies between the samples at both ends of a period.
    """
    near, points = frame.nearest(axis, x, half, what), frame.positions(axis, half)
    # With one sample only the phase of all fields depends on where it is.
    count, first = len(points), 0
    if frame.faces[axis][0] in (Periodic, Bloch) and count > 1:
        nodes, first = frame.nodes[axis], -1
        period = nodes[-1] - nodes[0]
        points = np.concatenate([points[-1:] - period, points, points[:1] + period])
        near = int(np.argmin(np.abs(points - x)))
    step = 1 if x > points[near] else -1
    next_ = min(max(near + step, 0), len(points) - 1)
    low = min(near, next_)
    gap = points[low + 1] - points[low] if next_ != near else 1.0
    share = float(min(abs(x - points[near]) / gap, 1.0))
    if next_ == near or share < _ON:
        low, weights = near, (_part_inside(frame, axis, half, x),)
    else:
        weights = (1 - share, share) if low == near else (share, 1 - share)
    turns, low = divmod(low + first, count)
    if low + len(weights) <= count:
        return [((low, low + len(weights)), weights, turns)]
    return [((low, count), weights[:1], turns), ((0, 1), weights[1:], turns + 1)]


def _walls(frame: Frame, axis: int, x: float) -> list[tuple[type, float, float]]:
    """Lists both faces of an axis with the cell there and how far a place is off."""
    nodes = frame.nodes[axis]
    low, high = frame.faces[axis]
    return [
        (low, float(nodes[1] - nodes[0]), float(x - nodes[0])),
        (high, float(nodes[-1] - nodes[-2]), float(nodes[-1] - x)),
    ]


def _part_inside(frame: Frame, axis: int, half: float, x: float) -> float:
    """Returns which part of a dipole at one sample the grid holds.

    On a mirror it is a half. The other is that of the image of the sample, or of the
    half of a sample on the mirror that is beyond it. A cylinder's wall is no mirror.
    """
    if frame.components.m is not None and axis == 0:
        return 1.0
    mirror = PEC if half else PMC
    on_mirror = any(
        face is mirror and distance < _AT * gap
        for face, gap, distance in _walls(frame, axis, x)
    )
    return 0.5 if on_mirror else 1.0


class ModeSource(AbstractSource):
    """A guided mode of a waveguide, launched one way along its port.

    Its profile is that of one frequency. At other frequencies the source excites a
    little of other modes, and some 1e-3 in amplitude of the backward wave: normalise by
    the amplitude measured in the same run, as `s_parameters` does. Nonlinear terms are
    left out: in a nonlinear port it is the mode of weak light.

    Attributes:
        port: Plane, line, direction and mode.
        pulse: The time dependence.
        power: Time-averaged power at the peak of the envelope, in W/m (W in 3-D and
            cylindrical coordinates).
        frequency: Frequency in Hz of the profile; that of the pulse if `None`.

    Raises:
        ArgumentError: If `port` is not a port, `pulse` not a pulse, or a number is out
            of range.
    """

    port: Port = eqx.field(converter=as_port)
    pulse: AbstractPulse
    power: Float[Array, ""] = eqx.field(converter=at_least("power", 0.0), default=1.0)
    frequency: Float[Array, ""] | None = eqx.field(
        converter=lambda x: None if x is None else positive(x, "frequency"),
        default=None,
    )

    def locate(self, frame, what):
        return place_port(self.port, frame, what)

    def injections(self, place, setup):
        frequency = self.pulse.frequency if self.frequency is None else self.frequency
        if isinstance(place, PlanePlace) or setup.components.m is not None:
            mode, fields = self._on_section(place, setup, frequency)
        else:
            mode = port_mode(self.port, place.box, setup, frequency)
            fields = mode_fields(self.port, mode, setup)
        cell, index = place.face.outside, mode.effective_index
        turn = phase_per_cell(self.port, index, cell, setup, frequency)
        # E and H of a mode are half a cell apart: the flux, which averages H to the
        # plane of E, is their product times the cosine.
        scale = jnp.sqrt(self.power / jnp.cos(turn / 2))
        box = place.box
        scale = scale + 0 * check_loss(
            port_medium(setup.medium, box, place.face.axis, setup.grid.shape, setup.dt),
            setup.components.electric,
            frequency,
            "the port of a mode source",
        )
        fields = {name: scale * values for name, values in fields.items()}
        # H sits half a cell upstream of the plane of E: the wave is there earlier.
        early = -turn / 2 / (2 * jnp.pi * frequency)
        delays = {n: early if n[0] == "H" else jnp.zeros_like(early) for n in fields}
        return launch(place, setup, fields, delays, self.pulse)

    def _on_section(self, place, setup, frequency):
        """Returns the mode of a plane or a disc, and its fields along the port."""
        disc = not isinstance(place, PlanePlace)
        plane = disc_of(place.box) if disc else place.plane
        mode = plane_modes(self.port, plane, setup, frequency)
        # E is the same both ways, H turns round.
        fields = {
            name: values * (self.port.sign if name[0] == "H" else 1)
            for name, values in mode.fields.items()
        }
        if disc:
            rows = {
                term.source: term.box[0] for half in place.corrections for term in half
            }
            fields = {name: fields[name][slice(*span)] for name, span in rows.items()}
        return mode, fields
