"""Mirror symmetry: the whole of a scene of which half or a quarter was simulated."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import ArgumentError, at_once, check, kind_of
from ._boundaries import PEC, PMC
from ._boxes import cells_of
from ._components import AXES, stagger
from ._medium import at_component
from ._monitors import SpectralFields
from ._off_diagonal import largest_of_patches
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


# Off-diagonal entries below this part of the diagonal leave the images as they are to
# this accuracy, and borders that slope as little can look like crystals.
_SLIGHT = 1e-3


def _without_other_images(
    sim: Simulation, axis: int, wall: PEC | PMC
) -> Float[Array, ""]:
    """Returns 0 if the image of the medium is like it, and otherwise raises.

    Entries that couple the normal of the wall with another axis change sign in the
    image. At an oblique border they belong to the mirrored shape; those of a crystal
    make it another one. So does chi2, which changes sign where the component is odd.
    """
    kind, normal = type(wall).__name__, AXES[axis]
    medium, doubt = sim.medium, jnp.zeros(())
    for number, one in enumerate(medium.off_diagonals):
        for pair, entry in one.inverse.items():
            if normal not in pair:
                continue
            with at_once((entry, medium.permittivity)):
                epsilon = at_component(medium.permittivity, "E" + pair[0])
                epsilon = jnp.broadcast_to(epsilon, sim.grid.shape)[cells_of(one.box)]
                axes = tuple(AXES.index(letter) for letter in pair)
                part = largest_of_patches(entry * epsilon, axes)
                good = part <= _SLIGHT
            part = check(
                part,
                good,
                f"`sim` must hold no crystal whose permittivity couples E along "
                f"{normal} with another axis, to be unfolded at the {kind} along "
                f"{normal}: behind the wall that coupling has the other sign. Simulate "
                f"the whole scene. In the cells {one.box} of off-diagonal entries "
                f"{number} the inverse permittivity {pair!r} times the permittivity "
                f"must be at most {_SLIGHT:g} where neighbours have the same",
            )
            doubt = doubt + 0 * part
    odd = [
        name
        for name in sim.component_names
        if name[0] == "E" and mirror_sign(name, axis, wall) < 0
    ]
    for number, one in enumerate(medium.nonlinearities):
        for name in odd:
            with at_once(one.chi2):
                part = jnp.max(jnp.abs(one.at("chi2", name)))
                good = part == 0
            part = check(
                part,
                good,
                f"`chi2` of nonlinearity {number}, in the cells {one.box}, must be 0 "
                f"for {name} to unfold `sim` at the {kind} along {normal}: {name} is "
                f"odd there and its square even, so that behind the wall chi2 has the "
                "other sign. Simulate the whole scene, or give a `Nonlinearity` the "
                "`chi2` of each component. The largest must be 0",
            )
            doubt = doubt + 0 * part
    return doubt


def unfold(
    fields: SpectralFields | TimeSeries, sim: Simulation
) -> SpectralFields | TimeSeries:
    """Returns fields with their mirror images behind the walls at the low faces.

    They are those of the whole scene if the medium behind a wall is that before it.
    Shapes are mirrored. A crystal whose tensor couples the normal of the wall with
    another axis is another one behind it, and so is a medium with chi2 for a component
    of E that is odd about the wall: along a `PEC`, or normal to a `PMC`. Both are
    refused; as one with a physical wall the run is right. Entries of a tensor that
    change from cell to cell are taken for those of borders.

    Args:
        fields: From a `FieldMonitor` or a `TimeMonitor` that reaches the low faces.
        sim: The simulation; each low face that is a `PEC` or `PMC` is a mirror.

    Returns:
        The fields of the whole scene, about twice as large along each mirrored axis.

    Raises:
        ArgumentError: If no low face is a mirror, or the fields do not reach it or are
            of another monitor, or the medium behind it is another one; where a traced
            medium is, the fields are NaN.
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
    doubt = sum(_without_other_images(sim, axis, walls[axis]) for axis in walls)
    values, where = dict(fields.values), dict(fields.coordinates)
    for name in values:
        halves = stagger(name, sim.grid.ndim)
        for axis, wall in walls.items():
            half = halves[axis]
            points = where[name][axis]
            with at_once((points, sim.grid)):
                off = jnp.abs(points[0] - sim.grid.coordinates(axis, half)[0])
                off = check(
                    off,
                    off <= 1e-3 * sim.grid.smallest_width,
                    f"`fields` must reach the low face along {AXES[axis]} to be "
                    f"unfolded: the distance of their first sample of {name} from the "
                    "first of the grid must be 0 m",
                )
            doubt = doubt + 0 * off
            sign = mirror_sign(name, axis, wall)
            # Axis 0 of the values is the frequency or the time.
            values[name] = _unfold_axis(values[name], 1 + axis, sign, half)
            origin = sim.grid.origin[axis]
            mirrored = _unfold_axis(points - origin, 0, -1, half) + origin
            where[name] = tuple(
                mirrored if a == axis else p for a, p in enumerate(where[name])
            )
        values[name] = values[name] + jnp.asarray(doubt, values[name].dtype)
    return eqx.tree_at(lambda f: (f.values, f.coordinates), fields, (values, where))
