"""Whether a medium fits the grid and the components of a simulation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import ArgumentError, check, traced, warn
from ..grid import Grid
from ..runtime import Precision
from ._boundaries import Boundaries, reaches_layer
from ._boxes import check_inside, meet
from ._cpml import CPML
from ._dispersion import metallic
from ._medium import PROPERTIES, REGIONAL, Medium, at_component
from ._off_diagonal import NOISE, largest_of_crystals


def check_medium(medium: Medium, names: tuple[str, ...], shape: tuple[int, ...]):
    """Refuses a medium whose arrays do not fit the grid or the components.

    Args:
        medium: The medium.
        names: Components of the simulation.
        shape: Cells of the grid.

    Raises:
        ArgumentError: Names the property, the shape found and the shape required, or
            the design region that does not fit.
    """
    _check_regions(medium.regions, names, shape)
    _check_off_diagonals(medium, names, shape)
    _check_nonlinearities(medium, names, shape)
    _check_metal(medium, names, shape)
    for number, one in enumerate(medium.dispersions):
        check_inside(one.box, shape, f"dispersion {number}")
        electric = [n for n in names if n[0] == "E"]
        if not any(one.covers(n) for n in electric):
            raise ArgumentError(
                f"`fraction` of dispersion {number} must have an entry for one of "
                f"{electric} at least, but has those for {sorted(one.fraction)}."
            )
    for prop, letter in PROPERTIES.items():
        value = getattr(medium, prop)
        wanted = tuple(name for name in names if name[0] == letter)
        if isinstance(value, dict):
            missing = [name for name in wanted if name not in value]
            if missing:
                raise ArgumentError(
                    f"`{prop}` must have an entry for each of {wanted}, but lacks "
                    f"{missing}."
                )
        for name in wanted:
            entry = at_component(value, name)
            if entry is not None and jnp.ndim(entry) and jnp.shape(entry) != shape:
                raise ArgumentError(
                    f"`{prop}` must be a number or have the shape {shape} of the grid, "
                    f"but has shape {jnp.shape(entry)}."
                )


def check_section_medium(
    medium: Medium, shape: tuple[int, ...], frequency: Float[Array, ""]
) -> Float[Array, ""]:
    """Refuses a medium that the solver for cross-sections does not know.

    Args:
        medium: The medium.
        shape: Cells of the section.
        frequency: In Hz.

    Returns:
        The frequency; NaN with off-diagonal entries that are not known.

    Raises:
        ArgumentError: As `check_medium`, or if the medium has perfect metal or
            off-diagonal entries of the permittivity.
    """
    if medium.metal is not None:
        raise ArgumentError(
            "`medium` of a cross-section must not hold perfect metal, but does. End "
            "the grid with `PEC` faces, or take a `Drude` metal."
        )
    check_medium(medium, ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz"), shape)
    values = [jnp.max(value) for value in jax.tree.leaves(medium.permittivity)]
    for one in medium.off_diagonals:
        part = largest_of_crystals(one.cut(one.box)) * jnp.max(jnp.stack(values))
        part = check(
            part,
            part <= NOISE,
            "`medium` of a cross-section must have no `off_diagonals` but in cells of "
            "borders: its modes lack them. Give the permittivity of a crystal "
            "along x, y and z as three numbers, and rasterise it with "
            "`averaging='volume'`. The largest entry times the permittivity must be 0",
        )
        frequency = frequency + 0 * part
    return frequency


def beyond_scalars(medium: Medium) -> str:
    """Returns what a medium has besides properties along the axes, or nothing."""
    parts = {
        "poles": medium.dispersions,
        "nonlinear susceptibilities": medium.nonlinearities,
        "off-diagonal entries": medium.off_diagonals,
    }
    return " and ".join(name for name, given in parts.items() if given)


def check_storage(precision: Precision, kind: str) -> None:
    """Raises if fields are stored too coarsely for a medium of some kind."""
    if jnp.finfo(precision.storage).bits < 32:
        raise ArgumentError(
            f"`storage` of the precision must be float32 or float64 in a {kind} "
            f"medium, but is {precision.storage}."
        )


def warn_of_metal_in_layers(medium: Medium, boundaries: Boundaries, grid: Grid) -> None:
    """Warns of metals that reach into a layer, which amplifies their backward waves.

    These run along surfaces that the electric field pierces: where it has a single
    component it does not, and nothing grows.
    """
    for number, one in enumerate(medium.dispersions):
        # A traced shape has the box of the whole grid, wherever it lies.
        if traced(one.fraction):
            continue
        if reaches_layer(boundaries, one.box, grid.shape, CPML) and metallic(one.poles):
            warn(
                f"Dispersion {number} should end before the absorbing layers, because "
                "its permittivity is negative at some frequency: a `CPML` amplifies "
                "waves whose power flows against their phase, such as some surface "
                "plasmons, and the fields may grow. Leave a gap, or take an "
                "`Absorber`. A glass may be given by its index in the band alone.",
            )


def _check_metal(medium: Medium, names: tuple[str, ...], shape) -> None:
    if medium.metal is None:
        return
    if medium.off_diagonals or medium.nonlinearities:
        what = "off_diagonals" if medium.off_diagonals else "nonlinearities"
        raise ArgumentError(
            f"`{what}` of a medium with perfect metal must be empty, but has "
            f"{len(getattr(medium, what))}. Take `averaging='volume'` and materials "
            "without tensors and powers, or a `Drude` metal."
        )
    for name in names:
        part = medium.metal.open.get(name)
        if part is None or part.shape != shape:
            raise ArgumentError(
                f"`open` of the metal must have an entry of shape {shape} for each of "
                f"{names}, but that of {name!r} "
                + ("is missing." if part is None else f"has shape {part.shape}.")
            )


def _check_nonlinearities(medium: Medium, names: tuple[str, ...], shape) -> None:
    many = medium.nonlinearities
    for number, one in enumerate(many):
        what = f"nonlinearity {number}"
        check_inside(one.box, shape, what)
        for name in (n for n in names if n[0] == "E"):
            for prop in one.given():
                one.at(prop, name)
        for other in many[:number]:
            if meet(other.box, one.box):
                raise ArgumentError(
                    f"`box` of {what} must not overlap that of another nonlinearity, "
                    f"but they are {one.box} and {other.box}."
                )


def _check_off_diagonals(medium: Medium, names: tuple[str, ...], shape) -> None:
    many = medium.off_diagonals
    for number, one in enumerate(many):
        what = f"off-diagonal entries {number}"
        check_inside(one.box, shape, what)
        for pair in one.inverse:
            missing = [f"E{axis}" for axis in pair if f"E{axis}" not in names]
            if missing:
                raise ArgumentError(
                    f"`inverse` of {what} must have pairs of components that are "
                    f"stepped, but {pair!r} needs {missing} and there are {names}."
                )
        others = [("off-diagonal entries", o.box) for o in many[:number]]
        others += [("a design region", o.box) for o in medium.regions]
        for other, box in others:
            if meet(box, one.box):
                raise ArgumentError(
                    f"`box` of {what} must not overlap {other}, but they have the "
                    f"boxes {one.box} and {box}. For traced shapes, "
                    "`off_diagonal_box` of `rasterise` gives the box."
                )


def _check_regions(regions, names: tuple[str, ...], shape: tuple[int, ...]) -> None:
    for number, region in enumerate(regions):
        box = region.box
        check_inside(box, shape, f"design region {number}")
        for other in regions[:number]:
            if meet(box, other.box):
                raise ArgumentError(
                    "`regions` must not overlap, but two of them have the boxes "
                    f"{other.box} and {box}."
                )
        for prop in REGIONAL:
            value = getattr(region, prop)
            if isinstance(value, dict):
                missing = [n for n in names if n[0] == "E" and n not in value]
                if missing:
                    raise ArgumentError(
                        f"`{prop}` of design region {number} must have an entry for "
                        f"each electric component, but lacks {missing}."
                    )
