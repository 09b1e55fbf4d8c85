"""Plane waves by the total-field, scattered-field technique."""

from functools import partial
from math import isinf

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, finite, positive
from ..grid import Block, Box, Grid
from ..units import SPEED_OF_LIGHT
from ._boundaries import PEC, PMC, Boundaries
from ._clock import stepped
from ._components import AXES, CYLINDRICAL_AXES, stagger
from ._cpml import CPML
from ._dispersion import Dispersion, build_response
from ._faces import corrections, faces_along
from ._frame import Frame, Point, as_point, check_point, check_size
from ._incident_line import ALONG_AXIS, IncidentLine, WavePlace
from ._injection import Injection
from ._layers import Axis, build_axis
from ._medium import Medium
from ._plain import plain
from ._poles import AbstractPole, as_poles, check_poles, susceptibility
from ._port_medium import share_in
from ._pulses import AbstractPulse
from ._row import Row, build_row
from ._setup import Setup
from ._sources import AbstractSource
from ._stepper import Stepper
from ._tilted_wave import travels, turns


# Cells that the line of the incident wave has beyond the region at either end: a layer,
# and room for the source.
_LAYER, _MARGIN = 40, 44

# Of the permittivity or permeability. A face so far off sends back a quarter of that
# share of the amplitude.
SLACK = 1e-3


class PlaneWave(AbstractSource):
    r"""A plane wave inside a box; outside there is only what is scattered.

    The incident wave is stepped along a line of its own, with the same cells and time
    step, so that it fits the grid to rounding: an empty box leaks nothing. It travels
    along one axis, or, where a transverse axis has a `Bloch` face, obliquely with that
    transverse wavevector. Its faces must lie in its own medium.

    Attributes:
        direction: `"+x"`, `"-x"`, `"+y"`, ...: the way it travels along the grid.
        component: The electric component it carries, for example `"Ez"`. H along it is
            zero; under Bloch faces E gains the others that this takes. For s or p at
            an azimuth see the docs. In cylindrical coordinates of m = 1 it is `"Er"`,
            along z: E lies along the direction of phi = 0.
        centre: Middle of the box in metres.
        size: Lengths of the box in metres, finite along `direction`; `inf` has no
            faces: along a periodic axis, or between `PEC` faces normal to E or `PMC`
            faces normal to H. At one such face a finite box may end, too, as half of a
            mirrored one.
        pulse: The time dependence of the electric field at the entry face, apart from
            a delay; of a tilted wave where the coordinates across are 0.
        amplitude: Peak of `component` in V/m, exact at the frequency of the pulse,
            which has the phase.
        permittivity: Relative permittivity of the uniform background of the box,
            without its poles.
        exit: Whether the wave leaves at the far face. `False` lets the total field
            reach the end of the grid: a one-way sheet.
        poles: Those of the background. Where they absorb, `amplitude` is that at the
            entry face.
    """

    direction: str = eqx.field(static=True)
    component: str = eqx.field(static=True)
    centre: Point = eqx.field(static=True, converter=partial(as_point, name="centre"))
    size: Point = eqx.field(static=True, converter=partial(as_point, name="size"))
    pulse: AbstractPulse
    amplitude: Float[Array, ""] = eqx.field(
        converter=finite("amplitude", "Give its phase as `phase` of the pulse."),
        default=1.0,
    )
    permittivity: Float[Array, ""] = eqx.field(
        converter=lambda x: positive(x, "permittivity"), default=1.0
    )
    exit: bool = eqx.field(static=True, default=True)
    poles: tuple[AbstractPole, ...] = eqx.field(converter=as_poles, default=())

    def __check_init__(self):
        axes = "z" if self.component == "Er" else AXES
        allowed = [sign + axis for axis in axes for sign in "+-"]
        if self.direction not in allowed:
            raise ArgumentError(
                f"`direction` must be one of {allowed}, but is {self.direction!r}."
            )
        known = [f"E{axis}" for axis in (*AXES, "r") if axis != self.direction[1]]
        if self.component not in known:
            raise ArgumentError(
                "`component` must be an electric component across the direction "
                f"{self.direction!r}, but is {self.component!r}."
            )
        check_poles(self.poles)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of its grid."""
        return CYLINDRICAL_AXES if self.component == "Er" else AXES

    @property
    def axis(self) -> int:
        """Number of the axis along which the wave travels."""
        return self.axes.index(self.direction[1])

    def background(self, frequency: Float[ArrayLike, "*shape"]) -> Num[Array, "*shape"]:
        """Returns the relative permittivity with the poles, at a frequency in Hz."""
        if not self.poles:
            return jnp.broadcast_to(self.permittivity, jnp.shape(frequency))
        return self.permittivity + susceptibility(self.poles, frequency)

    def locate(self, frame, what):
        axis, ndim = self._axis_in(frame, what), frame.ndim
        centre = check_point(self.centre, ndim, "centre", what)
        size = check_size(self.size, frame, what)
        if isinf(size[axis]):
            raise ArgumentError(
                f"`size` of {what} must be finite along {self.axes[axis]}, along which "
                "the wave travels, but is inf m. Give the length between its ends, "
                "even with `exit=False`, where light continues to the end of the grid."
            )
        region, faces, far = [], [], int(self.direction[0] == "+")
        for a in range(ndim):
            if isinf(size[a]):
                region.append((0, frame.stored[a]))
                continue
            ends = centre[a] - size[a] / 2, centre[a] + size[a] / 2
            # About a mirror E is even, along its normal odd.
            mirror = PEC if self.component[1] == self.axes[a] else PMC
            open_end = None
            if a == axis:
                mirror, open_end = None, None if self.exit else far
            elif frame.on_axis:
                ends, mirror, open_end = (0.0, ends[1]), None, 0
            low, high = (frame.node(a, x, what, mirrored=a != axis) for x in ends)
            region.append((low, high))
            faces += faces_along(frame, a, (low, high), mirror, open_end, what)
        if not self.exit:
            if any(face.axis != axis for face in faces):
                raise ArgumentError(
                    f"`exit` of {what} must be True where its box has sides: they "
                    "would leak in the absorbing layer behind, and a wall there would "
                    "reflect what is inside alone. End the box before it, or give it "
                    "the size `inf` across."
                )
            low, high = region[axis]
            region[axis] = (low, frame.stored[axis]) if far else (0, high)
        for face in faces:
            # A high face on the border of the layer is still outside it.
            low = face.node - face.high
            span = tuple((low, low + 1) for _ in range(ndim))
            frame.warn_in_layer(span, f"A face of {what}", axes=(face.axis,))
        both = tuple(
            tuple(
                one
                for one in corrections(frame, tuple(region), faces, electric=electric)
                if frame.components.m is None or one.source[1] != "z"
            )
            for electric in (True, False)
        )
        low, high = region[axis]
        start, cells = low - _MARGIN, high - low + 2 * _MARGIN
        source = _MARGIN - 2 if far else cells - _MARGIN + 2
        return WavePlace(both, start, cells, source)

    def _axis_in(self, frame: Frame, what: str) -> int:
        """Returns the number of the axis of the wave, if the grid has such waves."""
        parts = frame.components
        if self.direction[1] not in parts.axes or self.component not in parts.names:
            raise ArgumentError(
                f"`direction` and `component` of {what} must be among the axes "
                f"{parts.axes} and the components {parts.names}, but are "
                f"{self.direction!r} and {self.component!r}."
            )
        if parts.m is None:
            return self.axis
        if parts.m != 1 or not frame.on_axis:
            raise ArgumentError(
                f"`cylindrical` must be `Cylindrical(1)` on a grid that begins at r = "
                f"0 for {what}: a plane wave along z has the angular number 1."
            )
        if float(self.centre[0]) != 0 or isinf(self.size[0]):
            raise ArgumentError(
                f"`centre` and `size` of {what} must be 0 and finite along r: twice "
                f"the radius of its box, but are {self.centre[0]:g} and "
                f"{self.size[0]:g} m."
            )
        return self.axis

    def injections(self, place, setup):
        return []

    def face_boxes(self, place: WavePlace) -> list[Box]:
        """Returns the cells whose nodes lie on the faces."""
        return [
            tuple(
                (low, high + (axis != term.axis))
                for axis, (low, high) in enumerate(term.box)
            )
            for term in place.corrections[0]
        ]

    def boxes_of(self, place: WavePlace, component: str) -> list[Box]:
        """Returns samples of an electric component on the faces, or beside them."""
        # It lies on the faces along it, and beside those across it.
        return [
            term.box
            for term in place.corrections[0]
            if term.target == component or self.axes[term.axis] == component[1]
        ]

    def carried(self, setup: Setup) -> tuple[str, ...]:
        """Returns the components that the wave may have."""
        names = setup.components.names
        if setup.components.m is not None:
            return tuple(name for name in names if name[1] != "z")
        own, k = self.component[1], {self.direction[1]}
        tilts = zip(AXES, turns(setup, self.axis), strict=False)
        k |= {axis for axis, turn in tilts if turn is not None}
        # E stays along the component unless the wavevector turns there, too.
        electric = k | {own} if own in k else {own}
        magnetic = {
            axis for axis in AXES for a in k for b in electric if len({axis, a, b}) == 3
        }
        found = {"E": electric, "H": magnetic}
        return tuple(name for name in names if name[1] in found[name[0]])

    def foreign_poles(
        self, place: WavePlace, medium: Medium, setup: Setup
    ) -> Float[Array, ""]:
        """Returns by how much the poles at the faces are not those of the wave.

        Args:
            place: The faces.
            medium: The medium.
            setup: The run; metrics and phases are not asked for.

        Returns:
            The largest difference of permittivities over that of the wave, at some
            frequencies around that of the pulse.
        """
        if not self.poles and not medium.dispersions:
            return jnp.zeros(())
        several = (self.poles, *(one.poles for one in medium.dispersions))
        # Beside narrow lines: on them the poles may be infinite.
        lines = [1.001 * pole.scale() for poles in several for pole in poles]
        near = [x * self.pulse.frequency for x in (0.8, 1.0, 1.25)]
        frequency = jnp.clip(jnp.stack([*near, *lines]), near[0], near[-1])
        own = susceptibility(self.poles, frequency)
        unit = jnp.abs(self.permittivity + own)
        worst = [jnp.zeros(())]
        for name in self.carried(setup):
            for box in self.boxes_of(place, name) if name[0] == "E" else ():
                rest = -own
                for one in medium.dispersions:
                    share = share_in(one, name, box, setup.grid.shape)
                    if share is not None:
                        chi = susceptibility(one.poles, frequency)
                        rest = rest + share[..., None] * chi
                worst.append(jnp.max(jnp.abs(rest) / unit, initial=0))
        return jnp.max(jnp.stack(worst))

    def lead_time(self, grid: Grid) -> Float[Array, ""]:
        """Returns how long the wave takes from its sheet to the box, in seconds."""
        width = jnp.max(grid.widths[self.axis])
        frequency = self.pulse.frequency

        def turns(f):
            square = jnp.real(self.background(f))
            return f * jnp.sqrt(_at_least(square, 1e-3 * self.permittivity))

        # The derivative of frequency times index: the index of a group. That of the
        # front of a pulse is the least.
        _, index = jax.jvp(turns, (frequency,), (jnp.ones_like(frequency),))
        index = jnp.maximum(index, jnp.sqrt(self.permittivity))
        return _MARGIN * width * index / SPEED_OF_LIGHT

    def companion(self, place: WavePlace, setup: Setup) -> "IncidentLine":
        """Builds the line along which the incident wave is stepped."""
        axis, ndim = self.axis, setup.grid.ndim
        widths = jnp.broadcast_to(
            setup.grid.cell_widths(axis), (setup.grid.shape[axis],)
        )
        index = jnp.arange(place.start, place.start + place.cells)
        line = widths[jnp.clip(index, 0, widths.shape[0] - 1)]
        if setup.grid.is_uniform(axis):
            line = setup.grid.widths[axis]
        shape = tuple(place.cells if a == axis else 1 for a in range(ndim))
        across = tuple(
            line if a == axis else setup.grid.cell_widths(a)[0] for a in range(ndim)
        )
        grid = Grid(across, setup.grid.origin, shape)
        # Only propagating waves meet it, and alpha would let them back on fine grids.
        layer = CPML(_LAYER, reflection=1e-12, alpha_max=0.0)
        faces = Boundaries.all(layer)
        axes = []
        for a in range(ndim):
            if a == axis:
                axes.append(build_axis(grid, faces, a, setup.dt, place.cells))
            else:
                metric = SPEED_OF_LIGHT * setup.dt / across[a]
                axes.append(Axis(metric, metric, None, None))
        phases = tuple(
            None
            if turn is None or phase is None
            else jnp.exp(1j * turn).astype(phase.dtype)
            for turn, phase in zip(turns(setup, axis), setup.phases, strict=True)
        )
        block = Block(
            shape,
            (None,) * ndim,
            (1,) * ndim,
            tuple(a != axis for a in range(ndim)),
            phases,
        )
        sound = plain(setup.medium, self.face_boxes(place))
        seen = self.background(stepped(self.pulse.frequency, setup.dt))
        sound *= travels(setup, axis, self.pulse.frequency, jnp.real(seen))
        apart = self.foreign_poles(place, setup.medium, setup)
        sound *= jnp.where((apart <= SLACK) & (jnp.real(seen) > 0), 1, jnp.nan)
        medium = Medium(permittivity=self.permittivity * sound)
        parts, length, responses = setup.components, SPEED_OF_LIGHT * setup.dt, {}
        if parts.m is not None:
            parts = ALONG_AXIS
        rows = {n: build_row(medium, n, length) for n in parts.names}
        for name in parts.electric if self.poles else ():
            whole = Dispersion(tuple((0, n) for n in shape), self.poles)
            own = build_response(whole, name, setup.dt, shape, shape, block)
            rows[name] = Row(rows[name].inertia + own.inertia(), None)
            responses[name] = (own,)
        rows = {name: row.quotients() for name, row in rows.items()}
        stepper = Stepper(parts, block, tuple(axes), rows)
        sheet = self._sheet(place, setup, axes[axis], seen)
        return IncidentLine(stepper, responses, sheet, axis, place)

    def _sheet(
        self, place: WavePlace, setup: Setup, axis: Axis, permittivity: Num[Array, ""]
    ) -> Injection:
        """Returns the current sheet that makes the wave on the line.

        Args:
            place: Where the line is.
            setup: The run.
            axis: Metrics along the line.
            permittivity: That of the grid at the frequency of the pulse.
        """
        metric = axis.electric[place.source] if axis.electric.ndim else axis.electric
        # On the grid a sheet makes exp(i b |j|) / sin b per unit of current, not 1 / b.
        omega = 2 * jnp.pi * self.pulse.frequency
        index = jnp.sqrt(permittivity)
        seen = jnp.sin(omega * setup.dt / 2) * 2 / setup.dt
        width = SPEED_OF_LIGHT * setup.dt / metric
        total = index * seen / SPEED_OF_LIGHT
        across, along = jnp.zeros_like(total), jnp.zeros_like(total)
        # Of the sample that the sheet drives; the line counts turns from it.
        phase = 1.0
        halves = stagger(self.component, setup.grid.ndim)
        for a, turn in enumerate(turns(setup, self.axis)):
            if turn is not None:
                cell = setup.grid.cell_widths(a)[0]
                first = setup.grid.coordinates(a, halves[a])[0]
                phase = phase * jnp.exp(1j * turn * (first / cell))
                square = (2 * jnp.sin(turn / 2) / cell) ** 2
                across = across + square
                along = along + square * (AXES[a] == self.component[1])
        # No smaller: near grazing incidence the sheet would need a huge current.
        floor = 1e-6 * jnp.abs(total) ** 2
        normal = jnp.sqrt(_at_least(total**2 - across, floor))
        half = jnp.arcsin(-_at_least(-normal * width / 2, -1.0))
        # A sheet of current along c makes E_c in proportion to (k^2 - k_c^2) / k k_n.
        tilt = total * normal / _at_least(total**2 - along, floor)
        drive = jnp.abs(2 * metric * tilt * index * jnp.cos(half)) * self.amplitude
        # What poles absorb on the two cells between the sheet and the box.
        drive = drive * jnp.exp(4 * jnp.imag(half))
        box = tuple(
            (place.source, place.source + 1) if a == self.axis else (0, 1)
            for a in range(setup.grid.ndim)
        )
        zero = jnp.zeros((), drive.dtype)
        return Injection(self.component, box, drive * phase, zero, self.pulse)


def _at_least(value: Num[Array, ""], floor: Float[ArrayLike, ""]) -> Num[Array, ""]:
    """Returns a value, or a floor where its real part is lower."""
    return jnp.where(jnp.real(value) > floor, value, floor)
