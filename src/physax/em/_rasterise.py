"""Rasterisation: from shapes and materials to the medium that a simulation steps."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..grid import AXES, Grid
from ._materials import Material
from ._medium import Medium
from ._overlap import Intervals
from ._shapes import AbstractShape, Structure


def _control_volumes(grid: Grid, stagger: Sequence[float]):
    """Cells around the samples along x, y and z; None for an axis the grid lacks."""
    cells: list[Intervals | None] = [None] * 3
    for axis in range(grid.ndim):
        half = grid.cell_widths(axis) / 2
        # The cell of a node reaches from the centre before it to the centre after it.
        before = half if stagger[axis] else jnp.concatenate([half[:1], half[:-1]])
        shape = [1] * grid.ndim
        shape[axis] = grid.shape[axis]
        parts = (grid.coordinates(axis, stagger[axis]), before, half)
        cells[axis] = Intervals(*(part.reshape(shape) for part in parts))
    return cells


@eqx.filter_jit
def _covered(shape: AbstractShape, cells: list[Intervals | None]) -> Array:
    return shape.covered(cells)


def fill_fraction(
    shape: AbstractShape, grid: Grid, stagger: Sequence[float]
) -> Float[Array, "*cells"]:
    r"""Computes the part of the cell around each sample that a shape covers.

    The cell of a sample reaches half way to its neighbours: along an axis with stagger
    0.5 it is the grid's cell, with stagger 0 it lies around the node. The fraction is
    exact for boxes, polygons, circles and cylinders to rounding. For a sphere the
    volume in total is exact, that in one cell to some 1e-3. Differentiable in the
    shape and in the grid.

    Args:
        shape: The shape.
        grid: The grid.
        stagger: For each axis 0 for samples at nodes, 0.5 for samples at centres.

    Returns:
        Fractions from 0 to 1, one per cell of the grid.

    Raises:
        ArgumentError: If `stagger` has another length than the grid has axes or an
            entry other than 0 and 0.5, or the shape needs an axis the grid lacks.
    """
    if len(stagger) != grid.ndim:
        raise ArgumentError(
            f"`stagger` must have one entry per axis ({grid.ndim}), but has "
            f"{len(stagger)}."
        )
    covered = _covered(shape, _control_volumes(grid, stagger))
    return jnp.broadcast_to(covered, grid.shape)


def _stagger_of(component: str, ndim: int) -> tuple[float, ...]:
    """Yee's staggering: E_c half a cell along c, H_c half a cell along the others."""
    along, across = (0.5, 0.0) if component[0] == "E" else (0.0, 0.5)
    return tuple(along if AXES[k] == component[1] else across for k in range(ndim))


_COMPONENTS = ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz")
_COMPONENTS_BY_NDIM = {1: ("Ez", "Hy"), 3: _COMPONENTS}


def _checked_components(components: Sequence[str] | None, ndim: int) -> Sequence[str]:
    if components is None:
        if ndim not in _COMPONENTS_BY_NDIM:
            raise ArgumentError(
                "`components` must be given on a 2-D grid: ('Ez', 'Hx', 'Hy') or "
                "('Hz', 'Ex', 'Ey')."
            )
        return _COMPONENTS_BY_NDIM[ndim]
    for component in components:
        if component not in _COMPONENTS:
            raise ArgumentError(
                f"`components` must be of {_COMPONENTS}, but has {component!r}."
            )
    return components


def rasterise(
    structures: Sequence[Structure],
    grid: Grid,
    background: Material | None = None,
    components: Sequence[str] | None = None,
) -> Medium:
    r"""Paints structures onto a grid by volume average.

    Each structure covers a part f of the cell around a sample of a field component and
    replaces that part: $p \gets (1 - f)\,p + f\,p_i$ for permittivity, permeability
    and the conductivities. Later structures overwrite earlier ones. Structures that end
    at the border of the grid leave the cells there half filled: let them reach beyond
    it. Differentiable in shapes, materials and grid.

    Args:
        structures: What to paint, in order.
        grid: The grid.
        background: What is where no structure is; vacuum if not given.
        components: Names of the field components that exist, such as "Ez". Needed on
            a 2-D grid; else ("Ez", "Hy") in 1-D and all six in 3-D.

    Returns:
        The medium. A property that is the same everywhere is a scalar (a conductivity
        of 0: None), any other a dictionary with a scalar or an array of the grid's
        shape for each component.

    Raises:
        ArgumentError: If a component does not exist, or a shape needs an axis that the
            grid lacks.
    """
    components = _checked_components(components, grid.ndim)
    materials = [background or Material(), *(s.material for s in structures)]
    electric = [name for name in components if name[0] == "E"]
    magnetic = [name for name in components if name[0] == "H"]
    fractions: dict[str, list[Array]] = {}

    def fractions_of(component):
        # The shapes once for each set of sample points, and only where needed.
        if component not in fractions:
            stagger = _stagger_of(component, grid.ndim)
            fractions[component] = [
                fill_fraction(s.shape, grid, stagger) for s in structures
            ]
        return fractions[component]

    def painted(name, component):
        values = [_along(getattr(m, name), component) for m in materials]
        if _all_equal(values):
            return values[0]
        painted = jnp.broadcast_to(values[0], grid.shape)
        for fraction, value in zip(fractions_of(component), values[1:], strict=True):
            painted = painted + fraction * (value - painted)
        return painted

    def everywhere(name, names):
        values = {c: painted(name, c) for c in names}
        # Without a component of its kind, a property does not matter.
        one = list(values.values()) or [_along(getattr(materials[0], name), "Ex")]
        return one[0] if _all_equal(one) else values

    def losses(name, names):
        value = everywhere(name, names)
        return None if not isinstance(value, dict) and _is_zero(value) else value

    return Medium(
        permittivity=everywhere("permittivity", electric),
        permeability=everywhere("permeability", magnetic),
        conductivity=losses("conductivity", electric),
        magnetic_conductivity=losses("magnetic_conductivity", magnetic),
    )


def _along(value: Float[Array, "..."], component: str) -> Float[Array, ""]:
    """The entry of a diagonal property that acts on a field component."""
    # What is known stays known under `jit`.
    with jax.ensure_compile_time_eval():
        return value[AXES.index(component[1])] if value.ndim else value


def _is_zero(value: Float[Array, ""]) -> bool:
    return not isinstance(value, jax.core.Tracer) and float(value) == 0


def _all_equal(values: Sequence[Array]) -> bool:
    """Whether the values are scalars known now, and all the same."""
    first = values[0]
    if all(value is first for value in values) and first.ndim == 0:
        return True
    if any(isinstance(value, jax.core.Tracer) or value.ndim for value in values):
        return False
    return all(np.asarray(value) == np.asarray(first) for value in values)
