"""Ports: a plane, a span, a direction and a mode number, and the mode solved there."""

from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, instance, whole
from ..grid import Box
from ..units import SPEED_OF_LIGHT
from ._boundaries import PEC, PMC, Bloch, Periodic
from ._components import AXES, Components
from ._frame import Frame, Point, as_point, check_point
from ._modes import SlabMode, slab_mode
from ._port_medium import port_medium
from ._setup import Setup


def _as_width(value) -> float | Point:
    point = as_point(value, "width")
    return point if np.ndim(value) else point[0]


class Port(eqx.Module):
    """Where a mode enters or leaves a simulation in 2-D, 3-D or around an axis.

    Attributes:
        centre: Middle of the port in metres.
        width: Length of its line in metres; it takes the samples in
            `[centre - width / 2, centre + width / 2)`. In 3-D the lengths of its plane
            along the two other axes, in the order x, y, z, or one for both. In
            cylindrical coordinates the diameter of a disc, whose centre is on the axis.
        direction: `"+x"`, `"-x"`, `"+y"`, ...: the way into the device.
        mode: 1 for the fundamental mode, 2 for the next.
        offset: Distance in metres, along the direction, from the plane where the mode
            is launched to the plane where it is measured: half a cell below the node
            nearest to that place, on the axis, whatever the direction, is the phase
            reference.
        compensate: Whether to divide the electric field, which is averaged over two
            nodes to the plane of H, by the cosine that the average costs a mode.
            `False` is for comparison with codes that do not: an ideal line then shows
            a reflection of `(beta dx)^2 / 16` in amplitude.
    """

    centre: Point = eqx.field(static=True, converter=partial(as_point, name="centre"))
    width: float | Point = eqx.field(static=True, converter=_as_width)
    direction: str = eqx.field(static=True)
    mode: int = eqx.field(static=True, converter=lambda n: whole(n, "mode"), default=1)
    offset: float = eqx.field(static=True, default=0.0)
    compensate: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if self.direction not in [sign + axis for axis in AXES for sign in "+-"]:
            raise ArgumentError(
                "`direction` must be '+x', '-x', '+y', '-y', '+z' or '-z', but is "
                f"{self.direction!r}."
            )
        if not isfinite(self.offset):
            raise ArgumentError(
                f"`offset` must be finite, but is {self.offset:g} m. Give a few cells."
            )
        for width in as_point(self.width, "width"):
            if not width > 0:
                raise ArgumentError(f"`width` must be positive, but is {width:g}.")

    @property
    def axis(self) -> int:
        """Number of the axis along which the mode travels."""
        return AXES.index(self.direction[1])

    @property
    def sign(self) -> int:
        """1 if the way into the device is up the axis, else -1."""
        return 1 if self.direction[0] == "+" else -1

    def widths(self, count: int) -> Point:
        """Returns the lengths along the other axes, of which there are `count`."""
        widths = as_point(self.width, "width")
        if len(widths) == 1:
            return widths * count
        if len(widths) != count:
            raise ArgumentError(
                f"`width` of a port in {count + 1}-D must be one number or have "
                f"{count} entries, but has {len(widths)}."
            )
        return widths


def normal_of(port: Port, components: Components) -> int:
    """Returns the number of the axis of the grid along which a mode travels."""
    return components.axes.index(port.direction[1])


def as_port(port: Any) -> Port:
    """Returns a port, refusing its name and anything else."""
    return instance(port, "port", Port, "Write `Port(centre, width, direction)`.")


def node_of(port: Port, centre: Point, frame: Frame, what: str, along: float) -> int:
    """Returns the node `along` metres from the plane of a port.

    It is node 1 at least, as modes are measured with the samples before it, too.

    Args:
        port: The port.
        centre: Its centre, one entry for each axis.
        frame: The frame of the simulation.
        what: How messages name it.
        along: Distance in metres from the port plane, along its direction.

    Raises:
        ArgumentError: If it lies outside the grid.
    """
    axis = normal_of(port, frame.components)
    nearest = partial(frame.nearest, axis, centre[axis] + port.sign * along)
    if not along:
        return max(nearest(0.0, what), 1)
    what = f"{what}, at the `offset` of {along:g} m from its port,"
    remedy = "Make the `offset` smaller, move the port, or take a larger grid."
    return max(nearest(0.0, what, remedy), 1)


def port_line(port: Port, frame: Frame, what: str, along: float = 0.0) -> Box:
    """Returns the nodes of the plane of a port and the samples of its line.

    Args:
        port: The port.
        frame: The frame of the simulation.
        what: How messages name it.
        along: Distance in metres from the port plane, along its direction.

    Returns:
        A box for the component out of the plane, one node thick.

    Raises:
        ArgumentError: If the simulation is not 2-D, or the port leaves the grid or
            reaches a `Bloch` face.
    """
    if frame.ndim != 2:
        raise ArgumentError(
            f"{what} must be in a 2-D or 3-D simulation, but this is {frame.ndim}-D."
        )
    if port.axis > 1:
        raise ArgumentError(
            f"`direction` of {what} must lie in the xy plane of the simulation, but is "
            f"{port.direction!r}."
        )
    centre = check_point(port.centre, 2, "centre", what)
    half = 0.5 if "Hz" in frame.components.names else 0.0
    other = 1 - port.axis
    spans = [(0, 0), (0, 0)]
    node = node_of(port, centre, frame, what, along)
    spans[port.axis] = (node, node + 1)
    low, high = frame.span(other, centre[other], port.widths(1)[0], half, what)
    if not half and frame.faces[other][0] is PEC:
        low = max(low, 1)  # on the wall itself E is zero
    spans[other] = (low, high)
    refuse_bloch(frame, other, (low, high), what)
    return tuple(spans)


def refuse_bloch(frame: Frame, axis: int, cells: tuple[int, int], what: str) -> None:
    """Refuses a port that reaches `Bloch` faces, whose phase a mode does not know.

    Args:
        frame: The frame of the simulation.
        axis: One across the port.
        cells: Of the port along it, the first and one past the last.
        what: How messages name the port.
    """
    reached = cells[0] == 0, cells[1] >= len(frame.nodes[axis]) - 1
    if any(reached) and Bloch in frame.faces[axis]:
        raise ArgumentError(
            f"`width` of {what} must end before the `Bloch` faces along {AXES[axis]}. "
            "Make it smaller, or use `Periodic` faces."
        )


def _walls(box: Box, other: int, setup: Setup, electric: bool) -> list[float | None]:
    """Returns how the field continues beyond the walls at the ends of a line."""
    low_face, high_face = setup.boundaries.axis(other)
    low, high = box[other]
    stored = setup.grid.shape[other] + (electric and isinstance(high_face, PMC))
    zero, even, odd = 1.0, 0.0, 2.0
    # Out of the plane, E is zero on a PEC and even about a PMC; H the other way round,
    # its samples half a cell off the wall.
    meets = {PEC: zero, PMC: even} if electric else {PEC: even, PMC: odd}
    first = 1 if electric and isinstance(low_face, PEC) else 0
    return [
        meets.get(type(low_face)) if low <= first else None,
        meets.get(type(high_face)) if high >= stored else None,
    ]


def _ends(box: Box, other: int, setup: Setup, electric: bool):
    """Returns how the field continues beyond the ends of a line, for `slab_mode`.

    Where the line reaches a wall the mode is that of the walled guide. If it reaches
    none its ends are joined, far out where there is nothing.
    """
    ends = _walls(box, other, setup, electric)
    if ends == [None, None]:
        return Periodic()
    first_end, last_end = (1.0 if end is None else end for end in ends)
    return first_end, last_end


def open_ends(port: Port, box: Box, setup: Setup) -> tuple[bool, bool]:
    """Returns at which ends of a line what fills it goes on, up to another period."""
    other = 1 - port.axis
    if box[other] == (0, setup.grid.shape[other]) and isinstance(
        setup.boundaries.axis(other)[0], Periodic
    ):
        return False, False
    low, high = _walls(box, other, setup, "Ez" in setup.components.names)
    return low is None, high is None


def rim_share(
    power: Float[Array, "..."], open_: Sequence[tuple[bool, bool]]
) -> Float[Array, ""]:
    """Computes how much of a mode's power lies at the open ends of its port.

    Args:
        power: Of each sample or cell of the port, one axis or two.
        open_: For each axis which ends are open.

    Returns:
        The share of the outer twentieth of the samples, at least one, at each end.
    """
    rim = np.zeros(power.shape, bool)
    for axis, (low, high) in enumerate(open_):
        size = power.shape[axis]
        depth = -(-size // 20)
        place = np.arange(size).reshape(
            [-1 if a == axis else 1 for a in range(rim.ndim)]
        )
        rim |= (low & (place < depth)) | (high & (place >= size - depth))
    power = jnp.abs(power)
    return jnp.sum(jnp.where(rim, power, 0)) / jnp.sum(power)


def seen_frequency(frequency: Float[Array, "*shape"], setup: Setup) -> Array:
    """Returns the frequency in Hz that the discrete time derivative of a run sees."""
    return jnp.sin(jnp.pi * frequency * setup.dt) / (jnp.pi * setup.dt)


def port_mode(
    port: Port, box: Box, setup: Setup, frequency: Float[Array, ""]
) -> SlabMode:
    """Solves for the mode of a port on the points and in the medium of a run.

    Args:
        port: The port.
        box: From `port_line`.
        setup: The run.
        frequency: In Hz, as the source or the monitor uses it.

    Returns:
        The mode, travelling up the axis.
    """
    axis, other = port.axis, 1 - port.axis
    low, high = box[other]
    size = high - low
    grid = setup.grid
    medium = port_medium(setup.medium, box, axis, grid.shape, setup.dt)
    own_name = "Ez" if "Ez" in setup.components.names else "Hz"
    electric = own_name == "Ez"
    letter = "H" if electric else "E"

    def line(component: str) -> Array:
        if component[0] == "H":
            value = medium.permeability(component)
        else:
            value = jnp.real(medium.permittivity(component, frequency))
        return jnp.broadcast_to(value.reshape(-1), (size,))

    # Of the field out of the plane, along the direction of travel and across it.
    names = own_name, letter + AXES[axis], letter + AXES[other]
    own, along, across = map(line, names)
    widths = setup.sample_widths(other, 0.0 if electric else 0.5)
    gaps = grid.cell_widths(other) if electric else setup.node_gaps(other)
    gaps = jnp.pad(gaps, (0, 1), mode="edge")
    seen = seen_frequency(frequency, setup)
    dtype = jnp.result_type(own, widths)
    return slab_mode(
        own.astype(dtype),
        along.astype(dtype),
        across.astype(dtype),
        widths[low:high].astype(dtype),
        gaps[low:high].astype(dtype),
        jnp.asarray(seen, dtype),
        polarisation=own_name,
        order=port.mode,
        ends=_ends(box, other, setup, electric),
    )


def port_modes(
    port: Port, box: Box, setup: Setup, frequencies: Float[Array, " freqs"]
) -> SlabMode:
    """Solves for the mode of a port at each frequency; leaves gain a first axis."""
    return jax.vmap(lambda f: port_mode(port, box, setup, f))(frequencies)


def mode_fields(port: Port, mode: SlabMode, setup: Setup) -> dict[str, Array]:
    """Returns the transverse fields of a mode travelling along the port's direction.

    Args:
        port: The port.
        mode: From `port_mode`.
        setup: The run.

    Returns:
        E in V/m and `eta0 H`, by component, each of one entry per point of the line.
    """
    parts = setup.components
    # From mu dH/dt = s dE/dx with exp(i (beta x - w t)): H = -s beta E / (w mu).
    out = "Ez" if "Ez" in parts.names else "Hz"
    terms = parts.magnetic_terms if out == "Ez" else parts.electric_terms
    term = next(t for t in terms if t.axis == port.axis and t.source == out)
    # E is the same both ways, H turns round.
    e, h = sorted((out, term.target))
    return {e: mode.electric, h: -term.sign * port.sign * mode.magnetic}


def phase_per_cell(
    port: Port,
    index: Float[Array, "*freqs"],
    cell: int,
    setup: Setup,
    frequency: Float[Array, "*freqs"],
) -> Float[Array, "*freqs"]:
    r"""Returns $\beta \Delta$, the phase in radians over one cell along the port.

    Args:
        port: The port.
        index: Of the mode, as the equations of the grid have it.
        cell: Number of the cell along the port.
        setup: The run.
        frequency: In Hz.
    """
    width = setup.grid.cell_widths(normal_of(port, setup.components))[cell]
    seen = seen_frequency(frequency, setup)
    k0 = 2 * jnp.pi * seen / SPEED_OF_LIGHT
    return 2 * jnp.arcsin(jnp.clip(index * k0 * width / 2, -1.0, 1.0))
