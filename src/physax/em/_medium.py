"""The material properties that a simulation steps with, at the points of each field."""

from collections.abc import Mapping
from typing import Any, overload

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, as_array, warn
from ..grid import Box
from ._boxes import as_box, cells_of, meet, of_cells, size_of
from ._components import KNOWN
from ._dispersion import Dispersion
from ._metal import Metal
from ._nonlinear import Nonlinearity
from ._off_diagonal import OffDiagonal


Property = Float[Array, "..."] | dict[str, Float[Array, "..."]]


def _checked(name: str, *, positive: bool):
    """Makes a converter that refuses bad values with the index of the first."""

    def convert_one(value, where):
        value = as_array(value, name)
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
            warn(
                f"`{name}`{where} is negative ({host.min():g}): the medium amplifies, "
                "and the fields may grow without bound. Make it positive for a loss.",
            )
        return value

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping):
            if unknown := sorted(set(value) - set(KNOWN)):
                raise ArgumentError(
                    f"`{name}` must be keyed by components such as 'Ez', but has the "
                    f"keys {unknown}."
                )
            return {key: convert_one(v, f"[{key!r}]") for key, v in value.items()}
        return convert_one(value, "")

    return convert


class DesignRegion(eqx.Module):
    """A block of cells whose properties are leaves of their own.

    They replace what the medium has there. Differentiate a run with respect to them,
    and reverse mode records these cells alone, not the whole grid. Arrays have the
    shape of the box; a dictionary gives each component its own, at its own points. In
    2-D `Ez` is on the nodes: entry `[0, 0]` lies at the low corner of the first cell,
    so that a region symmetric about a node has an odd number of entries.

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
        shape = size_of(self.box)
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


def _all_of(name: str, kind: type):
    """Makes a converter to a tuple of modules of one kind, given one or several."""

    def convert(value: Any) -> tuple:
        many = (value,) if isinstance(value, kind) else value
        if not isinstance(many, tuple | list) or not all(
            isinstance(one, kind) for one in many
        ):
            raise ArgumentError(
                f"`{name}` must be a `{kind.__name__}` or a tuple of them, but is "
                f"{value!r}."
            )
        return tuple(many)

    return convert


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
            with a `PhysaxWarning`.
        magnetic_conductivity: Magnetic conductivity in ohm/m, likewise.
        regions: One `DesignRegion` or several that do not overlap.
        dispersions: One `Dispersion` or several: what poles add to the permittivity,
            which then is that at high frequencies.
        nonlinearities: One `Nonlinearity` or several whose boxes do not overlap.
        off_diagonals: One `OffDiagonal` or several whose boxes do not overlap: full
            tensors of permittivity.
        metal: Perfect metal, as `rasterise` finds it; `None` for none.

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
    regions: tuple[DesignRegion, ...] = eqx.field(
        converter=_all_of("regions", DesignRegion), default=()
    )
    dispersions: tuple[Dispersion, ...] = eqx.field(
        converter=_all_of("dispersions", Dispersion), default=()
    )
    off_diagonals: tuple[OffDiagonal, ...] = eqx.field(
        converter=_all_of("off_diagonals", OffDiagonal), default=()
    )
    nonlinearities: tuple[Nonlinearity, ...] = eqx.field(
        converter=_all_of("nonlinearities", Nonlinearity), default=()
    )
    metal: Metal | None = None

    def designed(self) -> list[tuple[int, str]]:
        """Returns which values design regions have: numbers of regions, properties."""
        return [
            (number, prop)
            for number, region in enumerate(self.regions)
            for prop in REGIONAL
            if getattr(region, prop) is not None
        ]

    def near(
        self,
        box: Box,
        shape: tuple[int, ...],
        *,
        normal: int | None = None,
    ) -> "Medium":
        """Returns the medium in a box, without derivatives by the rest.

        Args:
            box: Points; one behind the last cell is like its neighbour.
            shape: Cells of the grid.
            normal: As for `OffDiagonal.sound`.

        Returns:
            A medium without regions: those that do not meet the box are left out.
        """
        inside = of_cells(box, shape)
        regions = tuple(one for one in self.regions if meet(one.box, inside))
        near = eqx.tree_at(
            lambda m: (m.regions, m.off_diagonals, m.metal),
            self,
            (regions, (), None),
            is_leaf=lambda x: x is None,
        )
        near = near.merged(shape)
        # What is known `check_places` has refused.
        sound = [one.sound(inside, normal) for one in self.off_diagonals]
        if self.metal is not None:
            sound.append(self.metal.absent(inside))
        if sound:
            factor = jnp.where(jnp.all(jnp.stack(sound)), 1, jnp.nan)
            epsilon = jax.tree.map(lambda x: x * factor, near.permittivity)
            near = eqx.tree_at(lambda m: m.permittivity, near, epsilon)
        return near

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
            dispersions=self.dispersions,
            off_diagonals=self.off_diagonals,
            nonlinearities=self.nonlinearities,
            metal=self.metal,
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
