"""Numbers that shapes have in common: checked, and as boxes around them."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, at_once, check, real, single, traced
from ..grid import AXES
from ._outlines import across_of


def as_floats(x: ArrayLike | Sequence, name: str) -> Float[Array, "..."]:
    """Returns real numbers as one array, those of NumPy in JAX's own precision."""
    found = real(x, name)
    if isinstance(x, jax.Array):
        return found
    with at_once(found):
        return found.astype(float)


def as_point(x: ArrayLike | Sequence[ArrayLike], name: str, missing: float) -> Array:
    """Returns the three entries of a point; the last ones may be left out."""
    x = as_floats(x, name)
    # What is known stays known under `jit`, and has the smallest box.
    with at_once(x):
        x = jnp.atleast_1d(x)
        if x.ndim != 1 or x.size > 3:
            raise ArgumentError(
                f"`{name}` must have 1 to 3 entries (x, y, z), but has shape {x.shape}."
            )
        return jnp.pad(x, (0, 3 - x.size), constant_values=missing)


def as_centre(x: ArrayLike | Sequence[ArrayLike]) -> Float[Array, "3"]:
    """Returns a finite point."""
    x = as_point(x, "centre", 0.0)
    with at_once(x):
        return check(x, jnp.isfinite(x), "`centre` must be finite")


def one_length(name: str) -> Callable[[ArrayLike | Sequence], Float[Array, ""]]:
    """Makes a field converter that checks for one positive, finite number."""

    def convert(x):
        x = as_number(x, name)
        with at_once(x):
            good = (x > 0) & jnp.isfinite(x)
            return check(x, good, f"`{name}` must be positive and finite")

    return convert


def as_number(x: ArrayLike | Sequence, name: str) -> Float[Array, ""]:
    """Returns one number, traced or not."""
    return single(as_floats(x, name), name)


def as_length(x: ArrayLike) -> Float[Array, ""]:
    """Returns a positive length, which may be infinite."""
    x = as_floats(x, "length")
    with at_once(x):
        return check(x, x > 0, "`length` must be positive")


def as_vertices(x: ArrayLike | Sequence) -> Float[Array, "vertices 2"]:
    """Returns the finite corners of a polygon."""
    if x is None or isinstance(x, str):
        raise ArgumentError(
            f"`vertices` must be corners, of the shape (n, 2), but are {x!r}."
        )
    x = as_floats(x, "vertices")
    if x.ndim != 2 or x.shape[1] != 2 or x.shape[0] < 3:
        raise ArgumentError(
            "`vertices` must have shape (n, 2) with n at least 3, but has shape "
            f"{x.shape}."
        )
    with at_once(x):
        return check(x, jnp.isfinite(x), "`vertices` must be finite")


def check_axis(axis: str):
    """Refuses what is not the name of an axis."""
    if axis not in AXES:
        raise ArgumentError(f"`axis` must be one of {AXES}, but is {axis!r}.")


def check_outline_counts(outlines: tuple[int, ...] | None, count: int):
    """Refuses numbers of vertices of outlines that do not add up."""
    if outlines is not None and (sum(outlines) != count or min(outlines) < 3):
        raise ArgumentError(
            f"`outlines` must add up to the {count} vertices with at least 3 each, "
            f"but adds up to {sum(outlines)} with {min(outlines)} at least."
        )


def upper_end(low: Float[Array, ""], high: Float[Array, ""]) -> Float[Array, ""]:
    """Returns an upper end after checking that it is above the lower one."""
    below = "" if traced(low) else f" ({float(low):g})"
    with at_once((low, high)):
        return check(high, high > low, f"`high` must be above `low`{below}")


def around(
    centre: Float[Array, "3"],
    axis: str,
    across: Float[Array, ""],
    along: Float[Array, ""],
) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Returns the corners of a box, from its half size along and across an axis."""
    half = jnp.stack([along if name == axis else across for name in AXES])
    return centre - half, centre + half


def around_prism(
    vertices: Float[Array, "vertices 2"],
    axis: str,
    low: Float[Array, ""],
    high: Float[Array, ""],
) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Returns the corners of a box around a prism."""
    along = AXES.index(axis)
    first, second = across_of(along)
    ends: list = [None] * 3
    ends[along] = (low, high)
    for k, values in ((first, vertices[:, 0]), (second, vertices[:, 1])):
        ends[k] = (jnp.min(values), jnp.max(values))
    low, high = (jnp.stack([pair[side] for pair in ends]) for side in (0, 1))
    return low, high
