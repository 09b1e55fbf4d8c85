"""Rasterisation: from shapes and materials to the medium that a simulation steps."""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add, mul
from typing import Literal, NamedTuple, get_args

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, check, instance, traced
from ..grid import AXES, Box, Grid
from ._boundaries import PEC
from ._boxes import cells_of
from ._combinations import covered_by_each
from ._components import (
    CYLINDRICAL_AXES,
    CYLINDRICAL_NAMES,
    components as components_of,
    staggered,
)
from ._dispersion import Dispersion
from ._materials import Material
from ._medium import Medium, Property
from ._metal import Metal, outside
from ._nonlinear import COEFFICIENTS, Nonlinearity
from ._overlap import control_volumes
from ._poles import AbstractPole
from ._shapes import AbstractShape, Structure, painted
from ._subpixel import polarised
from ._visible import visible


Averaging = Literal["volume", "polarised"]


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
    instance(grid, "grid", Grid, "Write `Grid.centred(shape, spacing)`.")
    if len(stagger) != grid.ndim:
        raise ArgumentError(
            f"`stagger` must have one entry per axis ({grid.ndim}), but has "
            f"{len(stagger)}."
        )
    [covered] = covered_by_each(
        [shape], control_volumes(grid, tuple(map(float, stagger)))
    )
    return jnp.broadcast_to(covered, grid.shape)


_COMPONENTS = ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz")
_COMPONENTS_BY_NDIM = {1: ("Ez", "Hy"), 3: _COMPONENTS}


def _checked_components(components: Sequence[str] | None, ndim: int) -> Sequence[str]:
    if components is None:
        if ndim not in _COMPONENTS_BY_NDIM:
            raise ArgumentError(
                "`components` must be given on a 2-D grid: ('Ez', 'Hx', 'Hy') or "
                "('Hz', 'Ex', 'Ey'), on one of r and z `Cylindrical.components`."
            )
        return _COMPONENTS_BY_NDIM[ndim]
    if ndim == 2 and set(components) == set(CYLINDRICAL_NAMES):
        return CYLINDRICAL_NAMES
    for component in components:
        if component not in _COMPONENTS:
            raise ArgumentError(
                f"`components` must be of {_COMPONENTS}, but has {component!r}."
            )
    return components


def rasterise(
    structures: Iterable[Structure],
    grid: Grid,
    background: Material | PEC | None = None,
    components: Sequence[str] | None = None,
    averaging: Averaging = "volume",
    askew: Box | None = None,
) -> Medium:
    r"""Paints structures onto a grid.

    Each structure covers a part f of the cell around a sample of a field component and
    replaces that part: $p \gets (1 - f)\,p + f\,p_i$ for permittivity, permeability
    and the conductivities. Later structures overwrite earlier ones; those that touch
    inside a cell leave nothing of what is beneath them there, but for cells next to
    where both end. Structures that end at the border of the grid leave the cells there
    half filled: let them reach beyond it. Differentiable in shapes, materials and grid.

    Perfect metal, `PEC()` in place of a material, is no average: its surface cuts edges
    and faces of the cells where it is (see `Metal`), and what else is in a cell is
    averaged over the rest.

    Args:
        structures: What to paint, in order.
        grid: The grid.
        background: What is where no structure is; vacuum if not given.
        components: Names of the field components that exist, such as "Ez". Needed on
            a 2-D grid, `Cylindrical.components` on one of r and z; else ("Ez", "Hy") in
            1-D and all six in 3-D.
        averaging: How the permittivity of cells that an interface cuts is found:
            `"volume"`, the mean over the cell, or `"polarised"`, where the mean of its
            inverse acts along the normal: of second order for any field, at the price
            of a full tensor where interfaces lie askew. With a tensor among the
            materials it is `"polarised"` anyway.
        askew: For each axis the first cell and one past the last of a box that holds
            all entries of a full tensor beside the diagonal, on its first nodes none.
            Needed where shapes are traced and design regions lie beside them; else the
            smallest one is found, or, of traced shapes, the whole grid taken.

    Returns:
        The medium. A property that is the same everywhere is a scalar (a conductivity
        of 0: None), any other a dictionary with a scalar or an array of the grid's
        shape for each component. The poles of each dispersive material fill the
        smallest box around it, or the whole grid where its shape is traced.

    Raises:
        ArgumentError: If a component does not exist, a shape needs an axis that the
            grid lacks, `averaging` is unknown, a tensor couples components that are
            not stepped together, or has entries outside of `askew` (where that is not
            known, they are NaN), or where perfect metal meets tensors, powers of the
            field or a grid of r and z.
    """
    instance(grid, "grid", Grid, "Write `Grid.centred(shape, spacing)`.")
    if averaging not in get_args(Averaging):
        raise ArgumentError(
            f"`averaging` must be one of {get_args(Averaging)}, but is {averaging!r}."
        )
    components = _checked_components(components, grid.ndim)
    axes = CYLINDRICAL_AXES if components is CYLINDRICAL_NAMES else grid.axes
    structures, ground = painted(structures, background)
    given = [ground, *(s.material for s in structures)]
    metallic = [isinstance(one, PEC) for one in given]
    materials = [Material() if isinstance(one, PEC) else one for one in given]
    electric = [name for name in components if name[0] == "E"]
    magnetic = [name for name in components if name[0] == "H"]
    shapes = [s.shape for s in structures]
    canvas = _Canvas(grid, axes, shapes, materials, metallic, {})
    values = [material.permittivity for material in materials]
    tensors = any(value.ndim == 2 for value in values)
    if any(metallic):
        _check_around_metal(materials, axes, averaging, tensors=tensors)
    epsilon, beside = {}, ()
    if not tensors:
        epsilon = canvas.everywhere("permittivity", electric)
    if tensors or (averaging == "polarised" and isinstance(epsilon, dict)):
        if axes == CYLINDRICAL_AXES:
            raise ArgumentError(
                "`averaging` must be 'volume', and `permittivity` one number or three, "
                "on a grid of r and z, but a full tensor is asked for."
            )
        values = [_uncoupled(value, electric) for value in values]
        epsilon, beside = polarised(shapes, values, grid, electric, askew)
    return Medium(
        permittivity=epsilon,
        permeability=canvas.everywhere("permeability", magnetic),
        conductivity=canvas.losses("conductivity", electric),
        magnetic_conductivity=canvas.losses("magnetic_conductivity", magnetic),
        dispersions=canvas.dispersions(electric),
        off_diagonals=beside,
        nonlinearities=canvas.powers(electric),
        metal=canvas.metal(components) if any(metallic) else None,
    )


def _check_around_metal(
    materials: Sequence[Material],
    axes: tuple[str, ...],
    averaging: Averaging,
    *,
    tensors: bool,
) -> None:
    why = None
    if axes == CYLINDRICAL_AXES:
        why = "a grid of r and z"
    elif tensors:
        why = "a tensor among the materials"
    elif averaging != "volume":
        why = f"`averaging={averaging!r}`"
    elif not all(
        _is_zero(getattr(m, prop)) for m in materials for prop in COEFFICIENTS
    ):
        why = "a nonlinear material"
    if why is not None:
        raise ArgumentError(
            f"`structures` must not hold perfect metal with {why}. Leave one of them "
            "out, or take a material with a `Drude` pole for the metal."
        )


class _Canvas(NamedTuple):
    """What is painted, and the fractions of each set of sample points once computed."""

    grid: Grid
    axes: tuple[str, ...]
    shapes: Sequence[AbstractShape]
    materials: Sequence[Material]
    metallic: Sequence[bool]
    known: dict[str, list[Array]]

    def parts(self, component: str) -> list[Array]:
        """Returns what is seen of the ground and of each shape around a component."""
        # The shapes once for each set of sample points, and only where needed.
        if component not in self.known:
            stagger = staggered(component, self.axes)
            cells = control_volumes(self.grid, stagger)
            ground, seen = visible(covered_by_each(self.shapes, cells))
            self.known[component] = [ground, *seen]
        return self.known[component]

    def painted(self, name: str, component: str) -> Array:
        """Returns a property at the samples of a component, a number where it can."""
        values = [_along(getattr(m, name), component) for m in self.materials]
        pairs = zip(values, self.metallic, strict=True)
        others = [value for value, metal in pairs if not metal] or values[:1]
        if _all_equal(others):
            return others[0]
        parts = self.parts(component)
        if any(self.metallic):
            mean = _around(parts, values, self.metallic, others[0])
            return jnp.broadcast_to(mean, self.grid.shape)
        return jnp.broadcast_to(reduce(add, map(mul, parts, values)), self.grid.shape)

    def metal(self, names: Sequence[str]) -> Metal:
        """Returns what perfect metal leaves open."""
        out_of_plane = "Hz" if "Hz" in names else "Ez"
        parts = components_of(
            self.grid.ndim, out_of_plane if self.grid.ndim == 2 else None
        )
        return outside(self.shapes, self.metallic, self.grid, parts)

    def everywhere(self, name: str, names: Sequence[str]) -> Property:
        """Returns a property of several components, a number if it is the same."""
        values = {c: self.painted(name, c) for c in names}
        # Without a component of its kind, a property does not matter.
        one = list(values.values()) or [_along(getattr(self.materials[0], name), "Ex")]
        return one[0] if _all_equal(one) else values

    def losses(self, name: str, names: Sequence[str]) -> Property | None:
        """Returns the same of a conductivity, `None` where there is none."""
        value = self.everywhere(name, names)
        return None if not isinstance(value, dict) and _is_zero(value) else value

    def dispersions(self, names: Sequence[str]) -> tuple[Dispersion, ...]:
        """Returns the poles of each dispersive material."""
        distinct = {id(m.poles): m.poles for m in self.materials if m.poles and names}
        found = (
            _boxed(
                poles,
                {c: self.filled(poles, c) for c in names},
                self.grid.shape,
            )
            for poles in distinct.values()
        )
        return tuple(one for one in found if one is not None)

    def filled(self, poles: tuple[AbstractPole, ...], component: str) -> Array:
        """Returns the part of each cell that holds a material with these poles."""
        own = [jnp.asarray(float(m.poles is poles)) for m in self.materials]
        parts = self.parts(component)
        if any(self.metallic):
            return _around(parts, own, self.metallic, jnp.zeros(()))
        return reduce(add, map(mul, parts, own))

    def powers(self, names: Sequence[str]) -> tuple[Nonlinearity, ...]:
        """Returns nonlinear answers in the smallest box that holds them."""
        shape, whole = self.grid.shape, {}
        for prop in COEFFICIENTS:
            if not all(_is_zero(getattr(m, prop)) for m in self.materials):
                whole[prop] = {
                    c: jnp.broadcast_to(self.painted(prop, c), shape) for c in names
                }
        box = _smallest_box(jax.tree.leaves(whole), shape) if whole else None
        if box is None:
            return ()
        return (Nonlinearity(box, **jax.tree.map(lambda x: x[cells_of(box)], whole)),)


def _around(
    parts: Sequence[Array],
    values: Sequence[Array],
    metallic: Sequence[bool],
    inside: Array,
) -> Array:
    """Paints values and averages them over what metal leaves; `inside` in the metal."""
    each = zip(parts, values, metallic, strict=True)
    rest = [(part, part * value) for part, value, metal in each if not metal]
    room, total = (reduce(add, both) for both in zip(*rest, strict=True))
    return jnp.where(room > 0, total / jnp.where(room > 0, room, 1), inside)


def _uncoupled(value: Array, electric: Sequence[str]) -> Array:
    """Refuses a tensor that couples components which are stepped to others."""
    if value.ndim < 2:
        return value
    for i, j in zip(*np.triu_indices(3, 1), strict=True):
        names = {"E" + AXES[i], "E" + AXES[j]}
        if not names & set(electric) or names <= set(electric):
            continue
        entry = check(
            value[i, j],
            value[i, j] == 0,
            f"`permittivity` must not couple {min(names)} and {max(names)} where only "
            f"{tuple(electric)} are stepped (take a grid with three axes)",
        )
        value = value.at[i, j].set(entry)
    return value


def _smallest_box(values: Sequence[Array], shape: tuple[int, ...]) -> Box | None:
    """Returns the box around what is not zero, or the whole grid if that is traced."""
    if traced(values):
        return tuple((0, cells) for cells in shape)
    here = np.any([np.asarray(value) != 0 for value in values], axis=0)
    if not here.any():
        return None
    where = np.argwhere(here)
    ends = zip(where.min(axis=0), where.max(axis=0), strict=True)
    return tuple((int(low), int(high) + 1) for low, high in ends)


def _boxed(
    poles: tuple[AbstractPole, ...],
    fractions: dict[str, Array],
    shape: tuple[int, ...],
) -> Dispersion | None:
    """Returns poles in the smallest box that holds them, `None` without any."""
    fractions = {name: jnp.broadcast_to(f, shape) for name, f in fractions.items()}
    box = _smallest_box(list(fractions.values()), shape)
    if box is None:
        return None
    cut = {name: part[cells_of(box)] for name, part in fractions.items()}
    return Dispersion(box, poles, cut)


# Of a diagonal property: along x, y, z, or along r, phi, z.
_ENTRIES = {"x": 0, "y": 1, "z": 2, "r": 0, "p": 1}


def _along(value: Float[Array, "..."], component: str) -> Float[Array, ""]:
    """The entry of a diagonal property that acts on a field component."""
    # What is known stays known under `jit`.
    with jax.ensure_compile_time_eval():
        return value[_ENTRIES[component[1]]] if value.ndim else value


def _is_zero(value: Float[Array, ""]) -> bool:
    return not isinstance(value, jax.core.Tracer) and float(value) == 0


def _all_equal(values: Sequence[Array]) -> bool:
    """Whether the values are scalars known now, and all the same."""
    first = values[0]
    if all(value is first for value in values) and first.ndim == 0:
        return True
    if traced(values) or any(value.ndim for value in values):
        return False
    return all(np.asarray(value) == np.asarray(first) for value in values)
