"""Near fields: what passes through the faces of a box, for power and for projection."""

import itertools
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from .._checks import ArgumentError, kind_of
from ..grid import Box
from ..units import ETA_0, FEMTO
from ._boundaries import PEC, PMC, Bloch, Periodic
from ._components import AXES, stagger
from ._faces import Face
from ._flux import poynting_pairs
from ._frame import Frame, Point, as_point, check_point, check_size
from ._monitors import AbstractSpectralMonitor, Read, as_frequencies, sample_coordinates
from ._setup import Setup
from ._surroundings import across, at_frequencies


_WALLS = (PEC, PMC)
_REPEATED = (Periodic, Bloch)


def _as_faces(value) -> tuple[str, ...] | None:
    if value is None:
        return None
    faces = (value,) if isinstance(value, str) else tuple(value)
    known = [sign + axis for axis in AXES for sign in "-+"]
    for face in faces:
        if face not in known or faces.count(face) > 1:
            raise ArgumentError(
                f"`faces` must be different ones of {known}, but are {faces}."
            )
    return faces


class NearField(eqx.Module):
    """Tangential fields on the faces of a box.

    Keys are a component and a face, as in `"Ey +x"`. E lies on the nodes of the face, H
    half a cell outside of it.

    Attributes:
        frequencies: In Hz.
        values: Shape (frequency, x, y, z); E in V s/m, H as `eta0 H`.
        coordinates: Positions along each axis, in metres.
        widths: Widths of the cells around the samples along each axis, in metres; 1
            along the normal.
        flux: By face, the power out of the box: W fs^2 (3-D), W fs^2/m (2-D),
            W fs^2/m^2 (1-D).
        permittivity: Relative permittivity of the faces, their mean; among poles one
            for each frequency.
        permeability: Relative permeability of the faces, their mean.
        spread: How far both differ on the faces and between components, those normal to
            the faces included, relative to their mean.
        loss: Largest electric (S/m) or magnetic (ohm/m) conductivity on the faces;
            infinite in a nonlinear medium or a metal, and where poles absorb.
        planes: Where the walls lie, in metres.
        spacing: For each axis the width of the cells, in metres.
        dt: Time step in seconds.
        periods: For each axis the length of the grid, in metres.
        wavevectors: For each axis the Bloch wavevector in rad/m, 0 without.
        walls: Axis and kind of each PEC and PMC face of the simulation.
        repeated: Axes along which the simulation is periodic.
        closed: Whether the faces, with walls and periods, enclose a region.
        cells: For each axis the cells that the box spans, with its image behind a wall.
        shape: Cells of the grid.
    """

    frequencies: Float[Array, " freqs"]
    values: dict[str, Complex[Array, "..."]]
    coordinates: dict[str, tuple[Float[Array, "..."], ...]]
    widths: dict[str, tuple[Float[Array, "..."], ...]]
    flux: dict[str, Float[Array, " freqs"]]
    permittivity: Float[Array, "..."]
    permeability: Float[Array, ""]
    spread: Float[Array, ""]
    loss: Float[Array, ""]
    planes: tuple[Float[Array, ""], ...]
    spacing: tuple[Float[Array, "..."], ...]
    dt: Float[Array, ""]
    periods: tuple[Float[Array, ""], ...]
    wavevectors: tuple[Float[Array, ""], ...]
    walls: tuple[tuple[int, str], ...] = eqx.field(static=True)
    repeated: tuple[int, ...] = eqx.field(static=True)
    closed: bool = eqx.field(static=True)
    cells: tuple[int, ...] = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def faces(self) -> tuple[str, ...]:
        """Names of the faces."""
        return tuple(self.flux)

    @property
    def ndim(self) -> int:
        """Dimension of the grid."""
        return len(self.spacing)

    @property
    def outflow(self) -> Float[Array, " freqs"]:
        """Power out of the box through all faces, in the unit of `flux`."""
        return jnp.sum(jnp.stack(list(self.flux.values())), axis=0)


class NearFieldMonitor(AbstractSpectralMonitor):
    r"""Tangential fields on the faces of a box, for power balances and far fields.

    E is recorded on the nodes of each face, H half a cell outside, so that by
    Poynting's theorem of the discrete fields the power through the faces of a closed
    box is, to rounding, that of its sources less that of its losses. In a crystal whose
    axes are not along the grid the error was 6e-5 at 14 cells per wavelength, and falls
    with the cube of the cells.

    A box that reaches a `PEC` or `PMC` face ends there and has no face there: the wall
    closes it. Along an axis of size `inf` it has no faces either; it then extends over
    the period, or to the absorbing layers.

    Attributes:
        centre: Middle of the box in metres.
        size: Its lengths in metres. 0 for a plane, with one of the two faces there
            named in `faces`.
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
        size = check_size(self.size, frame, what)
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
                    "`inf`, and at a wall, there is none."
                )
        if not faces:
            raise ArgumentError(
                f"The box of {what} must have a face inside the grid, but walls, "
                "periods or `inf` end it everywhere. Make it smaller."
            )
        planes = [axis for axis in range(frame.ndim) if size[axis] == 0]
        for axis in planes:
            if len(set(faces) & {"-" + AXES[axis], "+" + AXES[axis]}) > 1:
                raise ArgumentError(
                    f"`faces` of {what} must name one side of a box of size 0, such as "
                    f"'+{AXES[axis]}', but are {tuple(faces)}."
                )
        reads = []
        for face in faces:
            normal, high = AXES.index(face[1]), face[0] == "+"
            end = Face(normal, high, spans[normal][1 if high else 0])
            for electric, magnetic, _ in poynting_pairs(normal, frame.components.names):
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
        grid, faces = setup.grid, map(setup.boundaries.axis, range(setup.grid.ndim))
        seen = (*reads, *across(reads, setup.components, grid.ndim))
        at = self.frequencies, setup.dt
        eps, mu, spread, loss = at_frequencies(seen, setup.medium, grid, *at)
        walls, planes, repeated, waves = [], [], [], []
        for axis, pair in enumerate(faces):
            ends = grid.origin[axis], grid.origin[axis] + grid.size(axis)
            for face, position in zip(pair, ends, strict=True):
                if isinstance(face, _WALLS):
                    walls.append((axis, type(face).__name__))
                    planes.append(position)
            if isinstance(pair[0], _REPEATED):
                repeated.append(axis)
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
        )


def _extent(
    frame: Frame, axis: int, centre: float, size: float, what: str
) -> tuple[tuple[int, int], list[str]]:
    """Returns first and last node of the box along an axis, and the faces it has."""
    nodes, kinds = frame.nodes[axis], frame.faces[axis]
    last = len(nodes) - 1
    if np.isinf(size):
        low, high = frame.layers[axis]
        return (low, last - high), []
    ends, sides = [], []
    for number, sign in enumerate("-+"):
        x = centre + (number - 0.5) * size
        wall = issubclass(kinds[number], _WALLS)
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
                    f"'{sign}{AXES[axis]}' lies at its end, {nodes[node]:g} m. Use a "
                    "smaller box, or the size `inf` for no faces along this axis."
                )
            sides.append(sign + AXES[axis])
        ends.append(node)
    if size != 0 and ends[0] >= ends[1]:
        raise ArgumentError(
            f"`size` of {what} must be at least one cell along {AXES[axis]}, but is "
            f"{size:g} m. Use 0 and one of `faces` for a plane."
        )
    return (ends[0], ends[1]), sides


def _face_box(frame: Frame, name: str, spans, normal: int, at: int) -> Box:
    """Returns the samples of a component on a face, its edges included."""
    box = []
    for axis, half in enumerate(stagger(name, frame.ndim)):
        low, high = spans[axis]
        if axis == normal:
            box.append((at, at + 1))
        else:
            box.append((low, high if half else min(high + 1, frame.stored[axis])))
    return tuple(box)


def face_widths(read: Read, setup: Setup) -> tuple[Array, ...]:
    """Returns the widths around samples on a face in metres, 1 along its normal."""
    normal = AXES.index(read.key[-1])
    out = []
    for axis, half in enumerate(stagger(read.component, setup.grid.ndim)):
        if axis == normal:
            out.append(jnp.ones(1, setup.dt.dtype))
        else:
            out.append(setup.sample_widths(axis, half)[slice(*read.box[axis])])
    return tuple(out)


def _outward(face: str, total: dict, widths: dict, setup: Setup) -> Array:
    """Returns the power out through a face."""
    normal, outward = AXES.index(face[1]), 1 if face[0] == "+" else -1
    flux: Array | float = 0.0
    for electric, magnetic, sign in poynting_pairs(normal, setup.components.names):
        e, h = (total[f"{name} {face}"] / FEMTO for name in (electric, magnetic))
        product = jnp.real(e * jnp.conj(h))
        for axis, width in enumerate(widths[f"{electric} {face}"]):
            shape = [-1 if a == axis else 1 for a in range(setup.grid.ndim)]
            product = product * width.reshape(shape)
        flux = flux + outward * sign * jnp.sum(product, axis=range(1, product.ndim))
    return jnp.asarray(flux) / (2 * ETA_0)


def _closed(boxes: dict[str, Box], setup: Setup) -> bool:
    """Whether the faces, with the walls and periods that they reach, close a region."""
    faces = {key.split()[1] for key in boxes}
    for axis, number in itertools.product(range(setup.grid.ndim), range(2)):
        if "-+"[number] + AXES[axis] in faces:
            continue
        if not isinstance(setup.boundaries.axis(axis)[number], _WALLS + _REPEATED):
            return False
        along = [box[axis] for key, box in boxes.items() if key[-1] != AXES[axis]]
        whole = setup.grid.shape[axis]
        if number == 0 and any(low > 0 for low, _ in along):
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
        far += [2 * high] if isinstance(before, _WALLS) else []
        far += [2 * (whole - low)] if isinstance(behind, _WALLS) else []
        out.append(max(far))
    return tuple(out)


def recorded(near: Any) -> NearField:
    """Returns near fields, refusing what other monitors record."""
    if not isinstance(near, NearField):
        raise ArgumentError(
            f"`near` must be what a `NearFieldMonitor` recorded, but is {kind_of(near)}"
        )
    return near


def absorbed_power(near: NearField) -> Float[Array, " freqs"]:
    """Returns the power absorbed inside a box: minus the outflow.

    With the box of a plane wave around this one, it is what the inside absorbs. Sources
    inside count as negative absorption. What an `Apodised` monitor recorded does not
    balance: fields under a window do not solve Maxwell's equations.

    Args:
        near: From a `NearFieldMonitor` whose faces, with walls and periods, close.

    Returns:
        At each frequency, in the unit of a flux.

    Raises:
        ArgumentError: If the surface is open, or `near` of another monitor.
    """
    if not recorded(near).closed:
        raise ArgumentError(
            "`near` must be a closed surface for a balance of power, but has only the "
            f"faces {near.faces}. Record the others, too."
        )
    return -near.outflow
