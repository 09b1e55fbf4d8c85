"""Rasterisation: from shapes and materials to the medium that a simulation steps."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import (
    ArgumentError,
    at_once,
    check,
    instance,
    positive,
    single,
    traced,
    warn,
)
from ..grid import AXES, Box, Grid
from ._boundaries import PEC
from ._boxes import cells_of
from ._canvas import Canvas, all_equal, is_zero
from ._combinations import covered_by_each
from ._components import CYLINDRICAL_AXES, CYLINDRICAL_NAMES
from ._dispersion import Dispersion, metallic as is_metallic
from ._materials import Material
from ._medium import Medium
from ._nonlinear import COEFFICIENTS
from ._overlap import control_volumes
from ._shapes import AbstractShape, Structure, painted
from ._staircase import MOSTLY, goes_on, is_metal, shared
from ._subpixel import polarised


Averaging = Literal["volume", "polarised", "staircase"]


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
                "('Hz', 'Ex', 'Ey'), on a grid of r and z `Cylindrical.components`."
            )
        return _COMPONENTS_BY_NDIM[ndim]
    if isinstance(components, str):
        raise ArgumentError(
            f"`components` must be a list of names, but is the text {components!r}. "
            f"Write `({components!r},)`."
        )
    if ndim == 2 and set(components) == set(CYLINDRICAL_NAMES):
        return CYLINDRICAL_NAMES
    for component in components:
        if component not in _COMPONENTS:
            raise ArgumentError(
                f"`components` must be among {_COMPONENTS}, but has {component!r}."
            )
    return components


def rasterise(
    structures: Iterable[Structure],
    grid: Grid,
    background: Material | PEC | None = None,
    components: Sequence[str] | None = None,
    averaging: Averaging = "volume",
    off_diagonal_box: Box | None = None,
    frequency: Num[ArrayLike, ""] | None = None,
) -> Medium:
    r"""Paints structures onto a grid.

    Each structure covers a part f of the cell around a sample of a field component and
    replaces that part: $p \gets (1 - f)\,p + f\,p_i$ for permittivity, permeability
    and the conductivities. Later structures overwrite earlier ones; those that touch
    inside a cell leave nothing of what is beneath them there, except in cells next to
    where both end. Structures that end at the border of the grid leave the cells there
    half filled: let them reach beyond it. Differentiable in shapes, materials and grid.

    Perfect metal, `PEC()` in place of a material, is not averaged: its surface cuts
    edges and faces of the cells where it is (see `Metal`), and what else is in a cell
    is averaged over the rest.

    Args:
        structures: What to paint, in order.
        grid: The grid.
        background: What is where no structure is; vacuum if not given.
        components: Names of the field components that exist, such as "Ez". Needed on a
            2-D grid; on a grid of r and z `Cylindrical.components`; else ("Ez", "Hy")
            in 1-D and all six in 3-D.
        averaging: How the permittivity of cells that an interface cuts is found:
            `"volume"`, the mean over the cell, or `"polarised"`, where the mean of its
            inverse acts along the normal: of second order for any field at interfaces
            along the grid, and far better at bodies of any shape, but hardly at holes
            in dense media; a full tensor where interfaces are oblique. With a tensor
            among the materials it is `"polarised"` instead of `"volume"`. Or
            `"staircase"`: a cell takes all properties of the material that fills most
            of it; where a flat face halves those of a field along it, those of both.
            Metals, which have a `Drude` pole or are known to be negative around most of
            their poles, fill cells of the grid with all their edges. Pieces of equal
            materials count as one; of traced ones, if they are one object. Metals and
            gaps thinner than a cell may vanish. This suits dispersive metals best, and
            has no derivatives by shapes.
        off_diagonal_box: For each axis the first cell and one past the last of a box
            that holds all off-diagonal entries of a full tensor, and none on its first
            nodes. Needed where shapes are traced and design regions lie near them; by
            default the smallest one, or for traced shapes the whole grid.
        frequency: In Hz, one at which `"polarised"` cells have the average of the whole
            permittivity, poles included, in materials where that is positive and the
            loss is below 1 %. Otherwise poles are averaged by volume.

    Returns:
        The medium. A property that is the same everywhere is a scalar (a conductivity
        of 0: None), any other a dictionary with a scalar or an array of the grid's
        shape for each component. The poles of each dispersive material fill the
        smallest box around it, or the whole grid where its shape is traced.

    Raises:
        ArgumentError: If a component does not exist, a shape needs an axis that the
            grid lacks, `averaging` is unknown, a tensor couples components that are
            not stepped together, or has entries outside `off_diagonal_box` (where that
            is not known, they are NaN), or where perfect metal meets tensors, powers of
            the field or a grid of r and z, or `"staircase"` tensors; or if `frequency`
            is not positive, or given with another `averaging` or with anisotropic
            permittivities.
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
    kinds, stepped = materials, None
    if averaging == "staircase":
        kinds = shared(materials)
        metals = {id(one): is_metal(one) for one in {id(k): k for k in kinds}.values()}
        stepped = [metals[id(one)] for one in kinds]
    canvas = Canvas(grid, axes, shapes, materials, metallic, kinds, stepped, {})
    values = [material.permittivity for material in materials]
    tensors = any(value.ndim == 2 for value in values)
    if tensors and averaging == "staircase":
        raise ArgumentError(
            "`averaging` must be 'volume' or 'polarised' with a tensor among the "
            "materials, but is 'staircase'."
        )
    excess = None
    if frequency is not None:
        excess = _excess(materials, averaging, frequency)
    if any(metallic):
        _check_around_metal(materials, axes, averaging, tensors=tensors)
    epsilon, off_diagonals = {}, ()
    if not tensors:
        epsilon = canvas.everywhere("permittivity", electric)
    even = not isinstance(epsilon, dict) and (excess is None or all_equal(excess))
    if tensors or (averaging == "polarised" and not even):
        if axes == CYLINDRICAL_AXES:
            raise ArgumentError(
                "`permittivity` must be one number or three on a grid of r and z, but "
                "one material has a tensor."
                if tensors
                else "`averaging` must be 'volume' or 'staircase' on a grid of r and "
                "z, but is 'polarised', which makes a full tensor."
            )
        with at_once(values):
            values = [_uncoupled(value, electric) for value in values]
        with at_once((shapes, values, grid, excess)):
            epsilon, off_diagonals, shares = polarised(
                shapes, values, grid, electric, off_diagonal_box, excess
            )
        if excess is not None:
            canvas = canvas._replace(excess=excess, shares=shares)
    dispersions = canvas.dispersions(electric)
    if averaging != "staircase":
        _review_metals(dispersions, grid.shape, axes)
    return Medium(
        permittivity=epsilon,
        permeability=canvas.everywhere("permeability", magnetic),
        conductivity=canvas.losses("conductivity", electric),
        magnetic_conductivity=canvas.losses("magnetic_conductivity", magnetic),
        dispersions=dispersions,
        off_diagonals=off_diagonals,
        nonlinearities=canvas.powers(electric),
        metal=canvas.metal(components) if any(metallic) else None,
    )


def _excess(
    materials: Sequence[Material], averaging: Averaging, frequency: Any
) -> list[Array] | None:
    """Returns what poles add to each permittivity, `None` where there are none."""
    if averaging != "polarised":
        raise ArgumentError(
            "`frequency` must be given only with `averaging='polarised'`, but is "
            f"given with {averaging!r}. Leave it out."
        )
    f = single(positive(frequency, "frequency"), "frequency")
    if not any(one.poles for one in materials):
        return None
    if not all(one.is_isotropic() for one in materials):
        raise ArgumentError(
            "`frequency` must not be given with an anisotropic permittivity, but one "
            "material has one, or poles that differ along the axes. Leave it out: "
            "poles are then averaged by volume."
        )
    with at_once((f, materials)):
        added = [_gained(one, f) for one in materials]
    if not traced(added) and not np.any(np.asarray(added)):
        return None
    return added


# Loss over permittivity up to which poles may be left out of single cells.
_CLEAR = 1e-2


def _gained(material: Material, frequency: Array) -> Array:
    """Returns what poles add to a permittivity, 0 if that is negative or lossy."""
    chi = material.susceptibility(frequency)
    clear = jnp.imag(chi) <= _CLEAR * (material.permittivity + jnp.real(chi))
    return jnp.where(clear, jnp.maximum(jnp.real(chi), 0), 0)


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
    elif not all(is_zero(getattr(m, prop)) for m in materials for prop in COEFFICIENTS):
        why = "a nonlinear material"
    if why is not None:
        raise ArgumentError(
            f"`structures` must not hold perfect metal with {why}. Leave one of them "
            "out, or take a material with a `Drude` pole for the metal."
        )


# Parts of cells that are taken for none or all, and for alike.
_SLIGHT = 0.02


def _review_metals(
    dispersions: Sequence[Dispersion], shape: tuple[int, ...], axes: Sequence[str]
) -> None:
    """Warns of metals averaged across their surface, when they are concrete."""
    filled: dict[str, np.ndarray] = {}
    for one in dispersions:
        parts = one.fraction
        known = not traced(parts) and is_metallic(one.poles, MOSTLY)
        if known and isinstance(parts, dict):
            for name, part in parts.items():
                whole = filled.setdefault(name, np.zeros(shape))
                whole[cells_of(one.box)] += np.asarray(part)
    count = 0
    for name, part in filled.items():
        if name[1] in axes:
            cut = np.abs(part - 0.5) < 0.5 - _SLIGHT
            with jax.ensure_compile_time_eval():
                row = goes_on(jnp.asarray(part)[None], axes.index(name[1]), _SLIGHT)
            count += np.sum(cut & ~np.asarray(row))
    if count:
        warn(
            f"{count} samples at the surface of a dispersive metal, of the field "
            "normal to it, are averaged by volume: their permittivity is near 0 at "
            "some frequency, so that they absorb too much. Use "
            "`averaging='staircase'`, unless you differentiate with respect to its "
            "shape, or put flat faces on nodes."
        )


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
