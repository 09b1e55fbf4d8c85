"""Optical forces: the momentum of light that a closed box takes."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..grid import Box
from ..units import ETA_0, FEMTO
from ._boundaries import PEC, PMC, Bloch, Periodic
from ._components import Components
from ._cylindrical import around
from ._faces import Correction
from ._flux import poynting_pairs
from ._frame import Frame, Point, as_point, check_size
from ._monitors import AbstractMonitor, AbstractSpectralMonitor, Read, as_frequencies
from ._near_field_monitor import NearFieldMonitor, face_widths
from ._plane_wave import PlaneWave
from ._setup import Setup
from ._sources import AbstractSource, Dipole
from ._surroundings import one_medium


# Samples beside each one that its derivative reads.
_REACH = 2


class SpectralForce(eqx.Module):
    """Force on what a box encloses.

    Attributes:
        frequencies: In Hz.
        force: By axis, in N fs^2 (3-D), N fs^2/m (2-D), N fs^2/m^2 (1-D). Over a flux
            of the same run it is a force per power, in s/m. NaN where the faces lie in
            different or lossy materials.
    """

    frequencies: Float[Array, " freqs"]
    force: dict[str, Float[Array, " freqs"]]


class ForceMonitor(AbstractSpectralMonitor):
    r"""Time-averaged force of light on what a closed box encloses.

    The integral of Maxwell's stress tensor over the box. In the homogeneous medium
    around the box the flow of the canonical momentum has the same integral, with the
    derivative $\partial_a$ along the axis of the force:

    $F_a = -\oint \frac{1}{4 \omega} \mathrm{Re}\, i\, (E \times \partial_a H^* +
    \partial_a E^* \times H) \cdot dA$.

    As shifted fields solve the equations of the grid, too, this flow is conserved on
    uniform grids to rounding, as power is: all boxes around a body give one force, and
    an empty box gives none, however strong the light is that passes through. In a
    medium of index n the momentum is that of Minkowski, n / c per energy.

    A box that a `PEC` or `PMC` face closes has no force normal to it; that along it
    acts on the part inside the grid. Along a periodic axis give the size `inf`. In
    cylindrical coordinates the force is along z.

    Reference: Jackson, *Classical Electrodynamics*, 3rd edition (1998), 6.7 and 12.10.

    Attributes:
        centre: Middle of the box in metres.
        size: Its lengths in metres. The faces must lie in one linear medium that is
            lossless at the frequencies, three cells or more from all bodies and
            sources, and within the box of a plane wave. Sources in the box contribute
            their recoil.
        frequencies: In Hz.
    """

    centre: Point = eqx.field(static=True, converter=partial(as_point, name="centre"))
    size: Point = eqx.field(static=True, converter=partial(as_point, name="size"))
    frequencies: Float[Array, " freqs"] = eqx.field(converter=as_frequencies)

    def locate(self, frame, what):
        for axis, size in enumerate(check_size(self.size, frame, what)):
            closing = (PEC, PMC, Periodic, Bloch, type(None))
            closed = all(issubclass(kind, closing) for kind in frame.faces[axis])
            if size == 0 or (np.isinf(size) and not closed):
                raise ArgumentError(
                    f"`size` of {what} must enclose a box, but is {size:g} m along "
                    f"{frame.components.axes[axis]}. Use at least one cell, and `inf` "
                    "only between walls or periodic faces."
                )
        near = NearFieldMonitor(self.centre, self.size, self.frequencies)
        reads = near.locate(frame, what)
        double = _double(reads, frame.components)
        faces = sorted({read.key.split()[1] for read in reads})
        repeated = any(low in (Periodic, Bloch) for low, _ in frame.faces)
        if not double and not repeated:
            raise ArgumentError(
                f"{what} must have two faces along the axis of a force, but has only "
                f"{faces}. End it one cell or more before a wall there."
            )
        return tuple(_thick(read, double, frame, what) for read in reads)

    def finish(self, total, reads, setup):
        what = "a force monitor"
        sound = _sound(reads, setup, self.frequencies, what)
        omega = 2 * jnp.sin(jnp.pi * self.frequencies * setup.dt) / setup.dt
        parts = setup.components
        double = _double(reads, parts)
        thin = {r.key: r._replace(box=_thin(r.box, double)) for r in reads}
        force = {}
        for axis in range(setup.grid.ndim):
            whole = isinstance(setup.boundaries.axis(axis)[0], Periodic | Bloch)
            if axis not in double and not whole:
                continue
            outflow: Array | float = 0.0
            for key in dict.fromkeys(read.key.split()[1] for read in reads):
                outward = 1 if key[0] == "+" else -1
                for electric, magnetic, sign in poynting_pairs(key[1], parts.names):
                    pair = [r for r in reads if r.key.split()[1] == key]
                    pair = [r for r in pair if r.component in (electric, magnetic)]
                    e, h = (_cut(total[r.key] / FEMTO, double) for r in pair)
                    de, dh = (
                        _slope(total[r.key] / FEMTO, r, axis, double, setup)
                        for r in pair
                    )
                    flow = -jnp.imag(e * jnp.conj(dh) + jnp.conj(de) * h)
                    widths = face_widths(thin[f"{electric} {key}"], setup)
                    for other, width in enumerate(widths):
                        shape = [-1 if a == other else 1 for a in range(len(widths))]
                        flow = flow * width.reshape(shape)
                    flow = jnp.sum(flow, axis=range(1, flow.ndim))
                    outflow = outflow + outward * sign * flow
            outflow = around(parts.m) * jnp.asarray(outflow)
            force[parts.axes[axis]] = -sound * outflow / (4 * ETA_0 * omega)
        return SpectralForce(self.frequencies, force)


def _double(reads: Iterable[Read], parts: Components) -> tuple[int, ...]:
    """Returns the axes along which the box has two faces, but for r."""
    faces = {read.key.split()[1] for read in reads}
    axes = enumerate(parts.axes)
    # A shift along r is no symmetry of rings, whose force along it is none.
    return tuple(a for a, n in axes if n != "r" and {"-" + n, "+" + n} <= faces)


def _thick(read: Read, double: tuple[int, ...], frame: Frame, what: str) -> Read:
    """Adds the samples around those on a face."""
    box = list(read.box)
    for axis in double:
        low, high = box[axis][0] - _REACH, box[axis][1] + _REACH
        half = frame.components.stagger(read.component)[axis]
        if low < 0 or high > len(frame.positions(axis, half)):
            raise ArgumentError(
                f"{what} must have its faces {_REACH + 1} cells or more inside the "
                f"grid, but those along {frame.components.axes[axis]} are closer to "
                "its ends. Make the box smaller, or the grid larger."
            )
        box[axis] = low, high
    return read._replace(box=tuple(box))


def _thin(box, double: tuple[int, ...]):
    return tuple(
        (low + _REACH, high - _REACH) if axis in double else (low, high)
        for axis, (low, high) in enumerate(box)
    )


def _cut(values: Array, double: Iterable[int]) -> Array:
    """Leaves out the samples around those on a face; axis 0 is the frequency."""
    inner = slice(_REACH, -_REACH)
    return values[
        (
            slice(None),
            *(inner if a in double else slice(None) for a in range(values.ndim - 1)),
        )
    ]


def _slope(
    values: Array, read: Read, axis: int, double: tuple[int, ...], setup: Setup
) -> Array:
    """Differentiates the samples on a face along an axis."""
    values = _cut(values, [a for a in double if a != axis])
    first = read.box[axis][0]
    along = 1 + axis
    if axis not in double:
        first -= _REACH
        phase = setup.phases[axis]
        phase = jnp.ones(()) if phase is None else phase
        head, tail = jnp.split(values, [_REACH], along)[0], values
        tail = jnp.split(values, [values.shape[along] - _REACH], along)[1]
        ends = tail / phase, values, head * phase
        values = jnp.concatenate([x.astype(values.dtype) for x in ends], along)
    count = values.shape[along] - 2 * _REACH
    if setup.grid.is_uniform(axis):
        weights = _weights(jnp.broadcast_to(setup.grid.widths[axis], (4,)))
    else:
        weights = _weights(_gaps(read, axis, first, count, setup))
    total: Array | float = 0.0
    for shift in range(2 * _REACH + 1):
        shape = [-1 if a == along else 1 for a in range(values.ndim)]
        part = lax.slice_in_dim(values, shift, shift + count, axis=along)
        total = total + weights[..., shift].reshape(shape) * part
    return jnp.asarray(total)


def _gaps(
    read: Read, axis: int, first: int, count: int, setup: Setup
) -> Float[Array, "samples 4"]:
    """Returns the distances between the neighbours of each sample, in metres."""
    widths = setup.grid.cell_widths(axis)
    if setup.components.stagger(read.component)[axis]:
        widths = (widths + jnp.roll(widths, -1)) / 2
    at = first + np.arange(count)[:, None] + np.arange(2 * _REACH)
    return widths[at % setup.grid.shape[axis]]


def _weights(gaps: Float[Array, "*samples 4"]) -> Float[Array, "*samples 5"]:
    r"""Returns what turns five samples into a derivative.

    It is that of the grid's equations, $\frac{2}{\Delta} \sin \frac{k \Delta}{2}$ for a
    wave, to fifth order on uniform cells: with it the momentum of a wave is n / c times
    its energy in spite of the dispersion of the grid.
    """
    if gaps.ndim == 1:
        return jnp.asarray([1.0, -10.0, 0.0, 10.0, -1.0], gaps.dtype) / (16 * gaps[0])
    unit = jnp.mean(gaps, axis=-1, keepdims=True)
    before, last, next_, behind = jnp.moveaxis(gaps / unit, -1, 0)
    zero = jnp.zeros_like(last)
    at = jnp.stack([-before - last, -last, zero, next_, next_ + behind], axis=-1)
    powers = at[:, None, :] ** np.arange(5)[:, None]
    wanted = jnp.asarray([0.0, 1.0, 0.0, 0.25, 0.0], gaps.dtype)
    wanted = jnp.broadcast_to(wanted[:, None], (*unit.shape[:-1], 5, 1))
    return jnp.linalg.solve(powers, wanted)[..., 0] / unit


def _sound(
    reads: tuple[Read, ...],
    setup: Setup,
    frequencies: Float[Array, " freqs"],
    what: str,
) -> Array:
    """Returns 1 if all faces lie in one plain material, else raises, or NaN."""
    where = f"The material within three cells of all faces of {what} must be"
    return one_medium(
        reads,
        setup,
        frequencies,
        f"{where} the same: make the box larger or smaller",
        f"{where} lossless and linear: put the box in a medium without conductivity, "
        "nonlinear susceptibilities and poles that absorb or make a metal, which count "
        "as infinite, and further from bodies that have them",
    )


def check_forces(
    monitors: Mapping[str, AbstractMonitor],
    sources: Mapping[str, AbstractSource],
    places: Iterable[tuple[str, Any]],
    setup: Setup,
) -> None:
    """Refuses force monitors whose faces do not lie in one lossless empty medium.

    Args:
        monitors: By name.
        sources: By name.
        places: Names of sources and monitors, and where they are.
        setup: The simulation.

    Raises:
        ArgumentError: If the material on the faces is known not to be one, or to have
            losses; if a source is too close to a face; if a face of a plane wave
            lies in the box.
    """
    found, parts = dict(places), setup.components
    for name, monitor in monitors.items():
        if not isinstance(monitor, ForceMonitor):
            continue
        slabs = [_span(read.component, read.box, parts) for read in found[name]]
        whole = [
            (min(low for low, _ in spans), max(high for _, high in spans))
            for spans in zip(*slabs, strict=True)
        ]
        for source, one in sources.items():
            wave = isinstance(one, PlaneWave)
            for current in _currents(one, found[source], parts):
                if any(_touch(current, slab) for slab in ([whole] if wave else slabs)):
                    raise ArgumentError(
                        f"The faces of monitor {name!r} must lie three cells or more "
                        f"from the currents of source {source!r}"
                        + (", and within its box" if wave else "")
                        + ", but do not. Make the box smaller or larger."
                    )
        _sound(found[name], setup, monitor.frequencies, f"monitor {name!r}")


Span = Sequence[tuple[float, float]]


def _span(component: str, box: Box, parts: Components) -> Span:
    """Returns the first and the last position of samples, in cells."""
    halves = parts.stagger(component)
    return [
        (low + half, high - 1 + half)
        for (low, high), half in zip(box, halves, strict=True)
    ]


def _touch(one: Span, other: Span) -> bool:
    pairs = zip(one, other, strict=True)
    return all(a[0] <= b[1] and b[0] <= a[1] for a, b in pairs)


def _currents(source: AbstractSource, place: Any, parts: Components) -> list[Span]:
    """Returns where a source drives fields."""
    if isinstance(source, Dipole):
        return [_span(source.component, one.box, parts) for one in place]
    leaf = lambda x: isinstance(x, Correction)  # noqa: E731
    found = filter(leaf, jax.tree.leaves(place, is_leaf=leaf))
    return [_span(one.target, one.box, parts) for one in found]
