"""Modes of a slab on the same Yee points as the simulation that uses them."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from .._checks import ArgumentError, check, real, traced, whole
from ..units import ETA_0, SPEED_OF_LIGHT
from ._boundaries import PEC, Periodic
from ._eigenpair import eigenpair
from ._resolution import check_span, judge_cells, one_frequency


class SlabMode(eqx.Module):
    r"""One guided mode on the points of a line, travelling in the positive direction.

    Fields are real: E in V/m and $\eta_0 H$, scaled to carry 1 W/m (time average). The
    sign makes the first lobe of the field out of the plane positive: the one at the
    lowest point whose modulus passes half the maximum.

    Attributes:
        effective_index: $\tilde\beta / k_0$.
        electric: The transverse electric field in V/m.
        magnetic: $\eta_0$ times the transverse magnetic field in V/m.
        guided: Whether the index exceeds that of the medium at the ends of the line;
            between walls, whether the mode propagates at all.
    """

    effective_index: Float[Array, ""]
    electric: Float[Array, " points"]
    magnetic: Float[Array, " points"]
    guided: Bool[Array, ""]


def slab_mode(
    own: Float[Array, " points"],
    along: Float[Array, " points"],
    across: Float[Array, " points"],
    widths: Float[Array, " points"],
    gaps: Float[Array, " points"],
    frequency: Num[ArrayLike, ""],
    *,
    polarisation: str,
    order: int = 1,
    ends: Periodic | PEC | tuple[float, float] | None = None,
) -> SlabMode:
    r"""Solves for one mode of a slab, on a line across it.

    With $u$ the field out of the plane (E or H) the equation is
    $k_0^2 o u + \partial (\partial u / a) = \tilde\beta^2 u / c$ with the differences
    of the Yee grid, `own` $o$, `along` $a$ and `across` $c$. For `"Ez"` these are the
    permittivity of Ez and the permeabilities of H along and across the direction of
    travel; for `"Hz"` the permeability of Hz and the two permittivities. On a grid that
    continues along that direction with cells $\Delta$ the phase advances by
    $\beta \Delta$ a cell, $\tilde\beta = (2 / \Delta) \sin(\beta \Delta / 2)$.
    Differentiable.

    Reference: Taflove and Hagness, *Computational Electrodynamics*, 3rd edition (2005),
    chapter 5; the derivative of an eigenpair is textbook perturbation theory.

    Args:
        own: At the points of `u`.
        along: At the points half a cell on for `"Ez"`, half a cell before for `"Hz"`.
        across: At the points of `u`.
        widths: Widths of the intervals around the points of `u`, in metres.
        gaps: Distances between neighbours of `u`, entry `i` from `i` to `i + 1` for
            `"Ez"` and from `i - 1` to `i` for `"Hz"`, in metres.
        frequency: In Hz. In a time-domain run pass
            `sin(pi f dt) / (pi dt)`, the frequency that its discrete equations see.
        polarisation: `"Ez"` or `"Hz"`.
        order: 1 for the fundamental mode, 2 for the next.
        ends: `Periodic()` (the default), `PEC()`, where the field is zero one gap
            beyond the line, or for each end how much of the gap beyond counts: 1 for a
            field that is zero one gap beyond, 2 for half a gap, 0 for an even field.

    Returns:
        The mode.

    Raises:
        ArgumentError: If the arrays are not of one length of at least 4, `polarisation`
            is another one, `order` is not an integer between 1 and the number of
            points, or `frequency` is not one positive number; when they are concrete,
            if there are fewer than 4 cells per wavelength, or the line spans less than
            a thousandth of a wavelength.
    """
    line = {"own": own, "along": along, "across": across}
    n = check_line({**line, "widths": widths, "gaps": gaps})
    if polarisation not in ("Ez", "Hz"):
        raise ArgumentError(
            f"`polarisation` must be 'Ez' or 'Hz', but is {polarisation!r}."
        )
    if not 1 <= (order := whole(order, "order")) <= n:
        raise ArgumentError(f"`order` must lie between 1 and {n}, but is {order}.")
    frequency = one_frequency(frequency)
    _check_scale(line, widths, frequency)
    # A unit of length of the size of a cell keeps float32 away from its limits.
    unit = widths[0]
    k0 = 2 * jnp.pi * frequency / SPEED_OF_LIGHT * unit
    flux = unit / (gaps * along)
    # Conductances to the neighbour before and after each point. The gaps beyond the
    # ends, of which the line knows one less, are as wide as their neighbours.
    wall = (1.0, 1.0) if isinstance(ends, PEC) else ends
    shifted = jnp.roll(flux, 1 if polarisation == "Ez" else -1)
    before, after = (shifted, flux) if polarisation == "Ez" else (flux, shifted)
    if isinstance(wall, tuple):
        before = before.at[0].set(wall[0] * flux[0])
        after = after.at[-1].set(wall[1] * flux[-1])
    weight = jnp.sqrt(across * unit / widths)
    diagonal = k0**2 * own * across - (before + after) * weight**2
    coupling = after * weight * jnp.roll(weight, -1)
    if isinstance(wall, tuple):
        coupling = coupling.at[-1].set(0)
    value, vector = eigenpair(diagonal, coupling, order)
    beta = jnp.sqrt(value) / k0
    u = vector * weight
    lobe = jnp.argmax(jnp.abs(u) > 0.5 * jnp.max(jnp.abs(u)))
    u = u * jnp.sign(u[lobe])
    other = beta * u / across
    power = jnp.sum(u * other * widths) / (2 * ETA_0)
    u, other = u / jnp.sqrt(power), other / jnp.sqrt(power)
    electric, magnetic = (u, other) if polarisation == "Ez" else (other, u)
    outside = jnp.maximum(own[0] * across[0], own[-1] * across[-1])
    if isinstance(ends, tuple):
        outside = jnp.zeros_like(outside)  # between walls all that travels is guided
    return SlabMode(beta, electric, magnetic, beta**2 > outside)


def check_line(arrays: dict[str, ArrayLike]) -> int:
    """Refuses arrays that do not have one number at each point of a line.

    Args:
        arrays: By name, among them `own`.

    Returns:
        The number of points.

    Raises:
        ArgumentError: If there are fewer than 4, the shapes differ, or one is not real
            or, when it is concrete, not finite.
    """
    shape = jnp.shape(arrays["own"])
    if len(shape) != 1 or shape[0] < 4:
        raise ArgumentError(
            f"`own` must be an array of at least 4 points, but has shape {shape}. Give "
            "a number at each point of the line."
        )
    for name, value in arrays.items():
        if jnp.shape(value) != shape:
            raise ArgumentError(
                f"`{name}` must have the shape {shape} of `own`, but has shape "
                f"{jnp.shape(value)}. Give a number at each point of the line."
            )
        x = real(value, name, "Leave losses out: the modes are lossless.")
        check(x, jnp.isfinite(x), f"`{name}` must be finite")
    return shape[0]


def _check_scale(line: dict[str, Array], widths: Array, frequency: Array) -> None:
    """Refuses, where it is known, a frequency that does not fit the line."""
    values = (*line.values(), widths, frequency)
    if traced(values):
        return
    own, along, across = map(np.asarray, line.values())
    cells = np.asarray(widths)
    check_span("widths", float(np.sum(cells)), float(frequency))
    # Waves do not run where the permittivity is negative.
    index = np.sqrt(np.maximum(own * np.maximum(along, across), 0))
    worst = np.argmax(index * cells)
    judge_cells(
        "widths",
        float(index[worst]),
        float(cells[worst]),
        float(frequency),
        "`frequency`",
    )
