"""The material properties that a simulation steps with, at the points of each field."""

import warnings
from collections.abc import Mapping
from typing import Any, overload

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, PhysaxWarning, as_array


Property = Float[Array, "..."] | dict[str, Float[Array, "..."]]


def _checked(name: str, *, positive: bool):
    """Makes a converter that refuses bad values with the index of the first."""

    def convert_one(value, where):
        value = as_array(value)
        if not jnp.issubdtype(value.dtype, jnp.inexact):
            value = value.astype(float)
        if isinstance(value, jax.core.Tracer):
            return jnp.where(value > 0, value, jnp.nan) if positive else value
        if jnp.iscomplexobj(value):
            raise ArgumentError(
                f"`{name}`{where} must be real, but has dtype {value.dtype}. Give loss "
                "as `conductivity`."
            )
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
            return {key: convert_one(v, f"[{key!r}]") for key, v in value.items()}
        return convert_one(value, "")

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
            of which a `PhysaxWarning` tells.
        magnetic_conductivity: Magnetic conductivity in ohm/m, likewise.

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
        ArgumentError: Names the property, the shape found and the shape required.
    """
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
