"""The material properties that a simulation steps with, at the points of each field."""

import operator
import warnings
from collections.abc import Mapping
from typing import Any, overload

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, PhysaxWarning, as_array
from ..grid import Box


Property = Float[Array, "..."] | dict[str, Float[Array, "..."]]


def _checked(name: str, *, positive: bool):
    """Makes a converter that refuses bad values with the index of the first."""

    def convert_one(value, where):
        value = as_array(value)
        if not jnp.issubdtype(value.dtype, jnp.inexact):
            value = value.astype(float)
        if jnp.iscomplexobj(value):
            raise ArgumentError(
                f"`{name}`{where} must be real, but has dtype {value.dtype}. Give loss "
                "as `conductivity`."
            )
        if isinstance(value, jax.core.Tracer):
            # A factor, so that the derivative is NaN, too.
            return value * jnp.where(value > 0, 1, jnp.nan) if positive else value
        host = np.asarray(value)
        bad = ~np.isfinite(host)
        if positive:
            bad |= host <= 0
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            limit = "positive and finite" if positive else "finite"
            raise ArgumentError(
                f"`{name}`{where} must be {limit}, but is {host[index]:g}"
                + (f" in cell {index}." if index else ".")
            )
        if not positive and host.size and host.min() < 0:
            warnings.warn(
                f"`{name}`{where} is negative ({host.min():g}): the medium amplifies, "
                "and the fields may grow without bound. Make it positive for a loss.",
                PhysaxWarning,
                stacklevel=5,
            )
        return value

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping):
            known = {letter + axis for letter in "EH" for axis in "xyz"}
            if unknown := sorted(set(value) - known):
                raise ArgumentError(
                    f"`{name}` must be keyed by components such as 'Ez', but has the "
                    f"keys {unknown}."
                )
            return {key: convert_one(v, f"[{key!r}]") for key, v in value.items()}
        return convert_one(value, "")

    return convert


def as_box(value: Any) -> Box:
    """Returns half-open ranges of cells as a tuple of pairs of integers."""
    try:
        box = tuple((operator.index(low), operator.index(high)) for low, high in value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            "`box` must hold a pair of integers (first cell, one past the last) for "
            f"each axis, but is {value!r}."
        ) from error
    if not box or any(not 0 <= low < high for low, high in box):
        raise ArgumentError(
            f"`box` must hold ranges of at least one cell, but is {box}."
        )
    return box


class DesignRegion(eqx.Module):
    """A block of cells whose properties are leaves of their own.

    They replace what the medium has there. Differentiate a run with respect to them,
    and reverse mode records these cells alone, not the whole grid. Arrays have the
    shape of the box; a dictionary gives each component its own, at its own points.

    Attributes:
        box: For each axis the first cell and one past the last.
        permittivity: Relative permittivity, positive; that of the medium if `None`.
        conductivity: Electric conductivity in S/m; that of the medium if `None`.

    Raises:
        ArgumentError: If a value is out of range or not of the shape of the box.
    """

    box: Box = eqx.field(static=True, converter=as_box)
    permittivity: Property | None = eqx.field(
        converter=_checked("permittivity", positive=True), default=None
    )
    conductivity: Property | None = eqx.field(
        converter=_checked("conductivity", positive=False), default=None
    )

    def __check_init__(self):
        shape = tuple(high - low for low, high in self.box)
        if self.permittivity is None and self.conductivity is None:
            raise ArgumentError(
                "`permittivity` or `conductivity` of a design region must be given."
            )
        for prop in REGIONAL:
            for entry in _entries(getattr(self, prop)):
                if jnp.shape(entry) != shape:
                    raise ArgumentError(
                        f"`{prop}` of a design region must have the shape {shape} of "
                        f"its box, but has shape {jnp.shape(entry)}."
                    )


REGIONAL = ("permittivity", "conductivity")
"""The properties that a design region may have."""


def _entries(value: Property | None) -> list[Array]:
    if value is None:
        return []
    return list(value.values()) if isinstance(value, dict) else [value]


def _as_regions(value: Any) -> tuple[DesignRegion, ...]:
    regions = (value,) if isinstance(value, DesignRegion) else value
    if not isinstance(regions, tuple | list) or not all(
        isinstance(one, DesignRegion) for one in regions
    ):
        raise ArgumentError(
            f"`regions` must be a `DesignRegion` or a tuple of them, but is {value!r}."
        )
    return tuple(regions)


class Medium(eqx.Module):
    """What fills the grid: one number, one array, or one array for each component.

    A number fills the whole grid. An array of the grid's shape holds for every
    component, each taking the entries at its own points. A dictionary gives each
    component its own number or array, keyed `"Ex"`, `"Ey"`, `"Ez"` for the electric
    properties and `"Hx"`, `"Hy"`, `"Hz"` for the magnetic ones; this is how a diagonal
    tensor is given, and what `rasterise` returns. Differentiable in every entry.

    Attributes:
        permittivity: Relative permittivity, positive.
        permeability: Relative permeability, positive.
        conductivity: Electric conductivity in S/m; `None` for none. Negative: gain,
            of which a `PhysaxWarning` tells.
        magnetic_conductivity: Magnetic conductivity in ohm/m, likewise.
        regions: One `DesignRegion` or several that do not overlap.

    Raises:
        ArgumentError: If a value is out of range or not finite; names the first cell.
    """

    permittivity: Property = eqx.field(
        converter=_checked("permittivity", positive=True), default=1.0
    )
    permeability: Property = eqx.field(
        converter=_checked("permeability", positive=True), default=1.0
    )
    conductivity: Property | None = eqx.field(
        converter=_checked("conductivity", positive=False), default=None
    )
    magnetic_conductivity: Property | None = eqx.field(
        converter=_checked("magnetic_conductivity", positive=False), default=None
    )
    regions: tuple[DesignRegion, ...] = eqx.field(converter=_as_regions, default=())

    def near(self, box: Box, shape: tuple[int, ...]) -> "Medium":
        """Returns the medium as it is in a box, which has no derivatives by the rest.

        Args:
            box: Points; one behind the last cell is like its neighbour.
            shape: Cells of the grid.

        Returns:
            A medium without regions: those that do not meet the box are left out.
        """
        inside = tuple(
            (min(low, n - 1), min(high, n))
            for (low, high), n in zip(box, shape, strict=True)
        )
        regions = tuple(one for one in self.regions if _meet(one.box, inside))
        return eqx.tree_at(lambda m: m.regions, self, regions).merged(shape)

    def merged(self, shape: tuple[int, ...]) -> "Medium":
        """Returns the medium with its design regions painted in.

        Args:
            shape: Cells of the grid.

        Returns:
            A medium without regions.
        """
        if not self.regions:
            return self
        new = {}
        for prop in REGIONAL:
            base = getattr(self, prop)
            found = [(r.box, getattr(r, prop)) for r in self.regions]
            found = [(box, value) for box, value in found if value is not None]
            if found:
                base = _painted(0.0 if base is None else base, found, shape)
            new[prop] = base
        return Medium(
            new["permittivity"],
            self.permeability,
            new["conductivity"],
            self.magnetic_conductivity,
        )


def _painted(base, found: list[tuple[Box, Any]], shape) -> Any:
    """Paints the entries of regions over a property."""
    named = [v for v in (base, *(v for _, v in found)) if isinstance(v, dict)]
    if named:
        # What a simulation needs, all have: `check_medium` has seen to it.
        keys = sorted(set.intersection(*map(set, named)))
        return {
            key: _painted(
                at_component(base, key),
                [(box, at_component(v, key)) for box, v in found],
                shape,
            )
            for key in keys
        }
    whole = jnp.broadcast_to(base, shape)
    for box, value in found:
        whole = whole.at[cells_of(box)].set(value)
    return whole


def _meet(one: Box, other: Box) -> bool:
    """Whether two boxes have cells in common."""
    pairs = zip(one, other, strict=True)
    return all(a[0] < b[1] and b[0] < a[1] for a, b in pairs)


def cells_of(box: Box) -> tuple[slice, ...]:
    """Returns the index of the cells of a box."""
    return tuple(slice(low, high) for low, high in box)


PROPERTIES = {
    "permittivity": "E",
    "permeability": "H",
    "conductivity": "E",
    "magnetic_conductivity": "H",
}
"""For each property the letter of the components it belongs to."""


@overload
def at_component(value: Property, component: str) -> Array: ...
@overload
def at_component(value: None, component: str) -> None: ...
def at_component(value: Property | None, component: str) -> Array | None:
    """Returns the entry of a property that a component sees."""
    return value[component] if isinstance(value, dict) else value


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


def _check_regions(regions, names: tuple[str, ...], shape: tuple[int, ...]) -> None:
    for number, region in enumerate(regions):
        box = region.box
        fits = len(box) == len(shape)
        fits &= all(high <= cells for (_, high), cells in zip(box, shape, strict=False))
        if not fits:
            raise ArgumentError(
                f"`box` of design region {number} must lie in the grid of {shape} "
                f"cells, but is {box}."
            )
        for other in regions[:number]:
            if _meet(box, other.box):
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
