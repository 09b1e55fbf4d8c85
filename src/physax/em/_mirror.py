"""Mirror symmetry: the whole of a scene of which half or a quarter was simulated."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from .._checks import ArgumentError, kind_of
from ._boundaries import PEC, PMC
from ._components import AXES, stagger
from ._monitors import SpectralFields
from ._simulation import Simulation
from ._time_monitors import TimeSeries


def mirror_sign(component: str, axis: int, wall: PEC | PMC) -> int:
    """Returns 1 if a component is even about a wall normal to an axis, -1 if odd.

    On a PMC the tangential electric and the normal magnetic field are even, the others
    odd; on a PEC it is the other way round.
    """
    normal = component[1] == AXES[axis]
    electric = component[0] == "E"
    even = (electric != normal) == isinstance(wall, PMC)
    return 1 if even else -1


def _unfold_axis(values: Array, axis: int, sign: int, half: float) -> Array:
    """Puts the mirror image before the values; a sample on the wall appears once."""
    rest = values if half else jnp.take(values, jnp.arange(1, values.shape[axis]), axis)
    return jnp.concatenate([sign * jnp.flip(rest, axis), values], axis)


def unfold(
    fields: SpectralFields | TimeSeries, sim: Simulation
) -> SpectralFields | TimeSeries:
    """Returns fields with their mirror images behind the walls at the low faces.

    Args:
        fields: From a `FieldMonitor` or a `TimeMonitor` that reaches the low faces.
        sim: The simulation; each low face that is a `PEC` or `PMC` is a mirror.

    Returns:
        The fields of the whole scene, about twice as large along each mirrored axis.

    Raises:
        ArgumentError: If no low face is a mirror, or the fields do not reach it or are
            of another monitor.
    """
    if not isinstance(fields, SpectralFields | TimeSeries):
        raise ArgumentError(
            "`fields` must be what a `FieldMonitor` or a `TimeMonitor` recorded, but "
            f"is {kind_of(fields)} A flux through a plane that a mirror cuts counts "
            "twice; `far_field` adds the images behind mirrors by itself."
        )
    if sim.cylindrical is not None:
        raise ArgumentError(
            "`sim` must not be in cylindrical coordinates to be unfolded, but has "
            f"{sim.cylindrical}. Join the images along z yourself."
        )
    faces = (sim.boundaries.axis(axis)[0] for axis in range(sim.grid.ndim))
    walls = {a: face for a, face in enumerate(faces) if isinstance(face, PEC | PMC)}
    if not walls:
        raise ArgumentError(
            "`sim` must have a PEC or PMC at a low face to be unfolded, but has none."
        )
    values, where = dict(fields.values), dict(fields.coordinates)
    for name in values:
        halves = stagger(name, sim.grid.ndim)
        for axis, wall in walls.items():
            half = halves[axis]
            first = sim.grid.coordinates(axis, half)[0]
            points = where[name][axis]
            if abs(float(points[0] - first)) > 1e-3 * float(sim.grid.smallest_width):
                raise ArgumentError(
                    f"`fields` must reach the low face along {AXES[axis]} to be "
                    f"unfolded, but begin at {float(points[0]):g} m."
                )
            sign = mirror_sign(name, axis, wall)
            # Axis 0 of the values is the frequency or the time.
            values[name] = _unfold_axis(values[name], 1 + axis, sign, half)
            origin = sim.grid.origin[axis]
            mirrored = _unfold_axis(points - origin, 0, -1, half) + origin
            where[name] = tuple(
                mirrored if a == axis else p for a, p in enumerate(where[name])
            )
    return eqx.tree_at(lambda f: (f.values, f.coordinates), fields, (values, where))
