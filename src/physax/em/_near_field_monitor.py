"""Monitors of near fields, for power and for projection."""

import itertools
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..grid import Box
from ..units import ETA_0, FEMTO
from ._boundaries import PEC, PMC, Bloch, Periodic
from ._components import AXES, in_space
from ._cylindrical import around
from ._faces import Face
from ._flux import poynting_pairs
from ._frame import Frame, Point, as_point, check_point, check_size
from ._monitors import AbstractSpectralMonitor, Read, as_frequencies, sample_coordinates
from ._near_field import NearField
from ._setup import Setup
from ._surroundings import across, at_frequencies


_WALLS = (PEC, PMC)
# Where a box may end without a face: also on the axis of cylindrical coordinates.
_ENDS = (*_WALLS, type(None))
_REPEATED = (Periodic, Bloch)


def _as_faces(value) -> tuple[str, ...] | None:
    if value is None:
        return None
    faces = (value,) if isinstance(value, str) else tuple(value)
    known = [sign + axis for axis in (*AXES, "r") for sign in "-+"]
    for face in faces:
        if face not in known or faces.count(face) > 1:
            raise ArgumentError(
                f"`faces` must be different ones of {known}, but are {faces}."
            )
    return faces


class NearFieldMonitor(AbstractSpectralMonitor):
    r"""Tangential fields on the faces of a box, for power balances and far fields.

    E is recorded on the nodes of each face, H half a cell outside, so that by
    Poynting's theorem of the discrete fields the power through the faces of a closed
    box is, to rounding, that of its sources less that of its losses. In a crystal whose
    axes are not along the grid the error was 6e-5 at 14 cells per wavelength, and falls
    with the cube of the cells.

    A box that reaches a `PEC` or `PMC` face ends there and has no face there: the wall
    closes it. Along an axis of size `inf` it has no faces either; it then extends over
    the period, or to the absorbing layers. In cylindrical coordinates it is a cylinder
    if it reaches the axis, else a ring.

    Attributes:
        centre: Middle of the box in metres.
        size: Its lengths in metres. 0 for a plane, with one of the two faces there
            named in `faces`. About the axis, where r is 0 in the middle, its diameter.
        frequencies: In Hz.
        faces: Which, as in `("-x", "+x")`; all that the box has if `None`. The sign is
            that of the outward normal.

    Raises:
        ArgumentError: If a face is unknown.
    """

    centre: Point = eqx.field(static=True, converter=partial(as_point, name="centre"))
    size: Point = eqx.field(static=True, converter=partial(as_point, name="size"))
    frequencies: Float[Array, " freqs"] = eqx.field(converter=as_frequencies)
    faces: tuple[str, ...] | None = eqx.field(
        static=True, converter=_as_faces, default=None
    )

    def locate(self, frame, what):
        centre = check_point(self.centre, frame.ndim, "centre", what)
        size, axes = check_size(self.size, frame, what), frame.components.axes
        spans, sides = [], []
        for axis in range(frame.ndim):
            span, ends = _extent(frame, axis, centre[axis], size[axis], what)
            spans.append(span)
            sides += ends
        faces = sides if self.faces is None else self.faces
        if self.faces is None and len({*faces}) < len(faces):
            raise ArgumentError(f"`faces` of {what} must not repeat, but are {faces}.")
        for face in faces:
            if face not in sides:
                raise ArgumentError(
                    f"`faces` of {what} must be among those that its box has, "
                    f"{tuple(sides)}, but contain {face!r}. Along an axis of size "
                    "`inf`, at a wall and at r = 0 there is none."
                )
        if not faces:
            raise ArgumentError(
                f"The box of {what} must have a face inside the grid, but walls, "
                "periods or `inf` end it everywhere. Make it smaller."
            )
        planes = [axis for axis in range(frame.ndim) if size[axis] == 0]
        for axis in planes:
            if len(set(faces) & {"-" + axes[axis], "+" + axes[axis]}) > 1:
                raise ArgumentError(
                    f"`faces` of {what} must name one side of a box of size 0, such as "
                    f"'+{axes[axis]}', but are {tuple(faces)}."
                )
        reads = []
        for face in faces:
            normal, high = axes.index(face[1]), face[0] == "+"
            end = Face(normal, high, spans[normal][1 if high else 0])
            pairs = poynting_pairs(face[1], frame.components.names)
            for electric, magnetic, _ in pairs:
                for name in (electric, magnetic):
                    at = end.node if name[0] == "E" else end.outside
                    box = _face_box(frame, name, spans, normal, at)
                    reads.append(Read(f"{name} {face}", name, box))
            frame.warn_in_layer(reads[-1].box, f"Face {face} of {what}", (normal,))
        return tuple(reads)

    def finish(self, total, reads, setup):
        boxes = {read.key: read.box for read in reads}
        widths = {read.key: face_widths(read, setup) for read in reads}
        flux = {}
        for key in dict.fromkeys(read.key.split()[1] for read in reads):
            flux[key] = _outward(key, total, widths, setup)
        grid, parts = setup.grid, setup.components
        seen = (*reads, *across(reads, parts))
        at = self.frequencies, setup.dt
        eps, mu, spread, loss = at_frequencies(seen, setup.medium, grid, *at)
        walls, planes, repeated, waves = [], [], [], []
        for axis, name in enumerate(parts.axes):
            pair = setup.boundaries.axis(axis)
            ends = grid.origin[axis], grid.origin[axis] + grid.size(axis)
            for face, position in zip(pair, ends, strict=True):
                if isinstance(face, _WALLS):
                    walls.append((in_space(name), type(face).__name__))
                    planes.append(position)
            if isinstance(pair[0], _REPEATED):
                repeated.append(in_space(name))
            low = pair[0]
            waves.append(low.wavevector if isinstance(low, Bloch) else jnp.zeros(()))
        return NearField(
            self.frequencies,
            total,
            {read.key: sample_coordinates(read, setup) for read in reads},
            widths,
            flux,
            eps,
            mu,
            spread,
            loss,
            tuple(planes),
            grid.widths,
            setup.dt,
            tuple(map(grid.size, range(grid.ndim))),
            tuple(waves),
            tuple(walls),
            tuple(repeated),
            _closed(boxes, setup),
            _cells(boxes, setup),
            grid.shape,
            parts.m,
        )


def _extent(
    frame: Frame, axis: int, centre: float, size: float, what: str
) -> tuple[tuple[int, int], list[str]]:
    """Returns first and last node of the box along an axis, and the faces it has."""
    nodes, kinds = frame.nodes[axis], frame.faces[axis]
    last, name = len(nodes) - 1, frame.components.axes[axis]
    if np.isinf(size):
        low, high = frame.layers[axis]
        return (low, last - high), []
    ends, sides = [], []
    for number, sign in enumerate("-+"):
        x = centre + (number - 0.5) * size
        wall = issubclass(kinds[number], _ENDS)
        # What lies behind a wall is the image of what lies before it.
        if wall:
            x = min(max(x, nodes[0]), nodes[-1])
        node = frame.nearest(axis, x, 0.0, what)
        beyond = abs(nodes[-1] - x) < abs(nodes[node] - x)
        node = last if beyond else node
        if not (wall and node == (0, last)[number]):
            if not 1 <= node < last:
                raise ArgumentError(
                    f"{what} must have its faces inside the grid, but face "
                    f"'{sign}{name}' lies at its end, {nodes[node]:g} m. Use a "
                    "smaller box, or the size `inf` for no faces along this axis."
                )
            sides.append(sign + name)
        ends.append(node)
    if size != 0 and ends[0] >= ends[1]:
        raise ArgumentError(
            f"`size` of {what} must be at least one cell along {name}, but is "
            f"{size:g} m. Use 0 and one of `faces` for a plane."
        )
    return (ends[0], ends[1]), sides


def _face_box(frame: Frame, name: str, spans, normal: int, at: int) -> Box:
    """Returns the samples of a component on a face, its edges included."""
    box = []
    for axis, half in enumerate(frame.components.stagger(name)):
        low, high = spans[axis]
        low = max(low, frame.first(name, axis))
        if axis == normal:
            box.append((at, at + 1))
        else:
            box.append((low, high if half else min(high + 1, frame.stored[axis])))
    return tuple(box)


def face_widths(read: Read, setup: Setup) -> tuple[Array, ...]:
    """Returns the widths around samples on a face, as a `NearField` has them."""
    parts, name, out = setup.components, read.component, []
    for axis, half in enumerate(parts.stagger(name)):
        if parts.axes[axis] != read.key[-1]:
            widths = setup.sample_widths(axis, half, name)[slice(*read.box[axis])]
            if parts.m is not None and axis == 0:
                widths = widths / around(parts.m)
            out.append(widths)
        elif parts.m is not None and axis == 0:
            out.append(_radius(read, setup))
        else:
            out.append(jnp.ones(1, setup.dt.dtype))
    return tuple(out)


def _radius(read: Read, setup: Setup) -> Float[Array, " 1"]:
    """Returns the radius with which a field counts on a face normal to r.

    It is that of the field along the azimuth in its flow, as curls have it.
    """
    high, at = read.key[-2] == "+", read.box[0][0]
    node = at if high or read.component[0] == "E" else at + 1
    if read.component in ("Ep", "Hz"):
        return setup.grid.edges(0)[node : node + 1]
    outside = Face(0, high, node).outside
    return setup.grid.centres(0)[outside : outside + 1]


def _outward(face: str, total: dict, widths: dict, setup: Setup) -> Array:
    """Returns the power out through a face."""
    outward, parts = 1 if face[0] == "+" else -1, setup.components
    flux: Array | float = 0.0
    for electric, magnetic, sign in poynting_pairs(face[1], parts.names):
        e, h = (total[f"{name} {face}"] / FEMTO for name in (electric, magnetic))
        product = jnp.real(e * jnp.conj(h))
        for axis, width in enumerate(widths[f"{electric} {face}"]):
            shape = [-1 if a == axis else 1 for a in range(setup.grid.ndim)]
            product = product * width.reshape(shape)
        flux = flux + outward * sign * jnp.sum(product, axis=range(1, product.ndim))
    return around(parts.m) * jnp.asarray(flux) / (2 * ETA_0)


def _closed(boxes: dict[str, Box], setup: Setup) -> bool:
    """Whether the faces, with the walls and periods that they reach, close a region."""
    faces = {key.split()[1] for key in boxes}
    names = setup.components.axes
    for axis, number in itertools.product(range(setup.grid.ndim), range(2)):
        if "-+"[number] + names[axis] in faces:
            continue
        if not isinstance(setup.boundaries.axis(axis)[number], _ENDS + _REPEATED):
            return False
        along = [box[axis] for key, box in boxes.items() if key[-1] != names[axis]]
        whole = setup.grid.shape[axis]
        if number == 0 and min((low for low, _ in along), default=0) > 0:
            return False
        if number == 1 and any(high < whole for _, high in along):
            return False
    return True


def _cells(boxes: dict[str, Box], setup: Setup) -> tuple[int, ...]:
    """Returns the cells that the box spans along each axis, with its image."""
    out = []
    for axis, whole in enumerate(setup.grid.shape):
        low = min(box[axis][0] for box in boxes.values())
        high = max(box[axis][1] for box in boxes.values())
        before, behind = setup.boundaries.axis(axis)
        far = [high - low]
        far += [2 * high] if isinstance(before, _ENDS) else []
        far += [2 * (whole - low)] if isinstance(behind, _WALLS) else []
        out.append(max(far))
    return tuple(out)
