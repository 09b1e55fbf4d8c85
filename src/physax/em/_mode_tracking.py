"""Modes compared: their overlap, the group index, one mode over frequency."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Num
from scipy.optimize import linear_sum_assignment

from .._checks import (
    ArgumentError,
    instance,
    kind_of,
    positive,
    refuse_traced,
    traced,
)
from .._products import einsum
from .._written_for_jax import written_for_jax
from ..units import ETA_0
from ._cross_section import CrossSectionModes


def mode_overlap(
    one: CrossSectionModes, other: CrossSectionModes
) -> Num[Array, "modes_of_one modes_of_other"]:
    r"""Computes the overlap of modes on the same grid.

    $o_{ij} = \frac14 \sum (E_i \times H_j + E_j \times H_i) \cdot A$ over the
    root of the same for each mode with itself. Modes of one lossless section have the
    unit matrix. Between sections $|o|^2$ is the power that passes from one mode to the
    other where they are joined, apart from reflection. There is no conjugation: this is
    the product in which the modes of a lossy section are orthogonal.

    Args:
        one: Modes.
        other: Modes on the same points.

    Returns:
        The overlaps.

    Raises:
        ArgumentError: If the points differ in number or, when they are concrete, in
            position.
    """
    for modes, name in ((one, "one"), (other, "other")):
        instance(modes, name, CrossSectionModes, "`cross_section_modes` finds them.")
    shapes = tuple(x.fields["Ex"].shape[1:] for x in (one, other))
    if shapes[0] != shapes[1]:
        raise ArgumentError(
            "`other` must be on the grid of `one`, but their fields Ex have the shapes "
            f"{shapes[0]} and {shapes[1]}."
        )
    _check_places(one, other)

    def flow(a: CrossSectionModes, b: CrossSectionModes) -> Array:
        first = einsum("axy,bxy,xy->ab", a.fields["Ex"], b.fields["Hy"], one.areas[0])
        second = einsum("axy,bxy,xy->ab", a.fields["Ey"], b.fields["Hx"], one.areas[1])
        return (first - second) / (2 * ETA_0)

    both = (flow(one, other) + flow(other, one).T) / 2
    sizes = [jnp.sqrt(jnp.diagonal(flow(x, x))) for x in (one, other)]
    return both / sizes[0][:, None] / sizes[1]


def _check_places(one: CrossSectionModes, other: CrossSectionModes) -> None:
    """Refuses modes whose samples lie at different places, where they are known."""
    both = one.coordinates["Hz"], other.coordinates["Hz"]
    if traced(both):
        return
    for axis, here, there in zip("xy", *both, strict=True):
        apart = np.abs(np.asarray(here) - np.asarray(there))
        reach = max(float(np.ptp(here)), float(np.max(np.abs(here))))
        # Rounding of positions in float32, summed over cells.
        if np.max(apart) > 1e-5 * reach:
            raise ArgumentError(
                f"`other` must be on the grid of `one`, but its samples along {axis} "
                f"are up to {np.max(apart):.3g} m away. Solve both on one `grid`."
            )


def group_index(
    index: Callable[[Float[Array, ""]], Num[Array, "*modes"]],
    frequency: Num[ArrayLike, ""],
) -> Num[Array, "*modes"]:
    r"""Computes the group index $n_g = n + f\, dn/df$ by forward-mode derivatives.

    Args:
        index: From a frequency in Hz to effective indices, for example
            `lambda f: cross_section_modes(grid, medium, f).effective_index`. Where the
            material is dispersive, the function builds the medium from the frequency.
        frequency: In Hz.

    Returns:
        The group index of each mode.

    Raises:
        ArgumentError: If `index` is not a function that JAX can trace, or `frequency`
            is not positive.
    """
    frequency = positive(frequency, "frequency")
    if not callable(index):
        raise ArgumentError(
            "`index` must be a function from a frequency in Hz to effective indices, "
            f"but is {kind_of(index)} Write `lambda f: ...`, which solves at f."
        )
    with written_for_jax("index"):
        value, slope = jax.jvp(index, (frequency,), (jnp.ones_like(frequency),))
    return value + frequency * slope


def track_modes(
    solve: Callable[[float], CrossSectionModes],
    frequencies: Float[ArrayLike, "..."] | Sequence[float],
    *,
    least: float = 0.5,
) -> list[CrossSectionModes]:
    """Solves at several frequencies and keeps the modes in the order of the first.

    The order by index changes where two modes cross. Each mode is followed to the one
    at the next frequency that it overlaps with most. Runs on the host.

    Args:
        solve: From a frequency in Hz to modes on one grid, always the same number. Ask
            for one or two more than you need, which may come and go.
        frequencies: In Hz, in the order in which to go.
        least: Smallest modulus of an overlap that counts as the same mode.

    Returns:
        The modes at each frequency, with the signs of the first. What comes after a
        mode has been lost has the effective index NaN.

    Raises:
        ArgumentError: If `frequencies` are traced or empty, `least` is not in (0, 1),
            or `solve` returns modes of another number or on another grid.
    """
    refuse_traced(
        frequencies,
        "frequencies",
        "Which mode is which is decided on the host: track first, then "
        "differentiate at one frequency.",
    )
    if not 0 < least < 1:
        raise ArgumentError(f"`least` must lie in (0, 1), but is {least:g}.")
    steps = np.atleast_1d(np.asarray(frequencies, float))
    if steps.ndim != 1 or not steps.size:
        raise ArgumentError(
            "`frequencies` must be a list of at least one, but has shape "
            f"{steps.shape}."
        )

    def solved(frequency) -> CrossSectionModes:
        told = "Return the modes, not their index."
        found = solve(float(frequency))
        return instance(found, "solve(frequency)", CrossSectionModes, told)

    out = [solved(steps[0])]
    lost = np.zeros(len(out[0].effective_index), bool)
    for frequency in steps[1:]:
        found = solved(frequency)
        counts = len(lost), len(found.effective_index)
        if counts[0] != counts[1]:
            raise ArgumentError(
                f"`solve` must always return as many modes, but returned {counts[0]} "
                f"at {steps[0]:g} Hz and {counts[1]} at {frequency:g} Hz. Ask for a "
                "`count` that travels at all `frequencies`."
            )
        overlap = np.asarray(mode_overlap(out[-1], found))
        row, column = linear_sum_assignment(-np.abs(overlap))
        same = overlap[row, column]
        lost = lost | (np.abs(same) < least)
        out.append(_ordered(found, column, np.where(np.real(same) < 0, -1, 1), lost))
    return out


def _ordered(modes: CrossSectionModes, order, signs, lost) -> CrossSectionModes:
    """Returns modes in another order and with other signs, some without an index."""
    modes = modes[order]
    index = jnp.where(jnp.asarray(lost), jnp.nan, modes.effective_index)
    turn = jnp.asarray(signs)[:, None, None]
    fields = {name: turn * values for name, values in modes.fields.items()}
    return eqx.tree_at(lambda m: (m.effective_index, m.fields), modes, (index, fields))
