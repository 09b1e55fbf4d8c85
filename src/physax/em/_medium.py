"""The material properties that a simulation steps with, at the points of each field."""

from collections.abc import Mapping

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, as_array


Property = Float[Array, "..."] | dict[str, Float[Array, "..."]]


def _checked(name: str, low: float, *, strict: bool):
    """Makes a converter that refuses bad values with the index of the first."""

    def convert_one(value, where):
        value = as_array(value)
        if not jnp.issubdtype(value.dtype, jnp.inexact):
            value = value.astype(float)
        if isinstance(value, jax.core.Tracer):
            good = (value > low) if strict else (value >= low)
            return jnp.where(good, value, jnp.nan)
        if jnp.iscomplexobj(value):
            raise ArgumentError(
                f"`{name}`{where} must be real, but has dtype {value.dtype}. Give loss "
                "as `conductivity`."
            )
        host = np.asarray(value)
        bad = ~np.isfinite(host) | ((host <= low) if strict else (host < low))
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            limit = f"{'positive' if strict else f'at least {low:g}'} and finite"
            raise ArgumentError(
                f"`{name}`{where} must be {limit}, but is {host[index]:g}"
                + (f" in cell {index}." if index else ".")
            )
        return value

    def convert(value):
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
        conductivity: Electric conductivity in S/m, at least 0; `None` for none.
        magnetic_conductivity: Magnetic conductivity in ohm/m, at least 0; `None` for
            none.

    Raises:
        ArgumentError: If a value is out of range or not finite; names the first cell.
    """

    permittivity: Property = eqx.field(
        converter=_checked("permittivity", 0.0, strict=True), default=1.0
    )
    permeability: Property = eqx.field(
        converter=_checked("permeability", 0.0, strict=True), default=1.0
    )
    conductivity: Property | None = eqx.field(
        converter=_checked("conductivity", 0.0, strict=False), default=None
    )
    magnetic_conductivity: Property | None = eqx.field(
        converter=_checked("magnetic_conductivity", 0.0, strict=False), default=None
    )


PROPERTIES = {
    "permittivity": "E",
    "permeability": "H",
    "conductivity": "E",
    "magnetic_conductivity": "H",
}
"""For each property the letter of the components it belongs to."""


def at_component(value: Property | None, component: str) -> ArrayLike | None:
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
