"""Least widths and gaps as differentiable constraints."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, between, positive, single, traced
from ._argument_checks import as_density, check_reach
from ._filters import each_axis, known_spacing
from ._projections import slope


def narrow_solid(
    density: Float[Array, "*cells"],
    projected: Float[Array, "*cells"],
    radius: Float[ArrayLike, ""],
    spacing: ArrayLike | tuple[float, ...],
    *,
    eroded: float = 0.75,
    decay: float | int = 64.0,
) -> Float[Array, ""]:
    r"""Measures how much of a design is thinner than the filter allows.

    $$g = \langle \hat\rho\, e^{-c |R \nabla\tilde\rho|^2}
    \min(\tilde\rho - \eta_e, 0)^2 \rangle$$

    In the middle of a part, where the filtered density $\tilde\rho$ has no slope, it
    must come above the threshold $\eta_e$ of an eroded design. It does so where the
    part is as wide as `erosion_threshold` says: at 0.75, the radius $R$. The mean is
    over all cells. Reference: Zhou, Lazarov, Wang and Sigmund, *Minimum length scale in
    topology optimization by geometric constraints*, Computer Methods in Applied
    Mechanics and Engineering 293, 266 (2015).

    Args:
        density: The filtered density $\tilde\rho$.
        projected: The projected density $\hat\rho$.
        radius: The radius $R$ of the conic filter, in metres.
        spacing: Width of a cell in metres, one for all axes or one for each.
        eroded: The threshold $\eta_e$, in (0.5, 1).
        decay: $c$: how soon a slope ends the middle of a part.

    Returns:
        The measure, 0 if nothing is too thin. See `length_constraints` for limits.

    Raises:
        ArgumentError: If a number is out of its range.
    """
    return _narrow(density, projected, radius, spacing, eroded, decay)


def narrow_void(
    density: Float[Array, "*cells"],
    projected: Float[Array, "*cells"],
    radius: Float[ArrayLike, ""],
    spacing: ArrayLike | tuple[float, ...],
    *,
    eroded: float = 0.75,
    decay: float | int = 64.0,
) -> Float[Array, ""]:
    """Measures how much of the gaps is narrower than the filter allows.

    It is `narrow_solid` with solid and void exchanged.

    Args:
        density: The filtered density.
        projected: The projected density.
        radius: The radius of the conic filter, in metres.
        spacing: Width of a cell in metres, one for all axes or one for each.
        eroded: The threshold for solid parts; gaps have one minus it.
        decay: How soon a slope ends the middle of a gap.

    Returns:
        The measure.

    Raises:
        ArgumentError: If a number is out of its range.
    """
    density, projected = as_density(density), as_density(projected, "projected")
    return _narrow(1 - density, 1 - projected, radius, spacing, eroded, decay)


def length_constraints(
    density: Float[Array, "*cells"],
    projected: Float[Array, "*cells"],
    radius: Float[ArrayLike, ""],
    spacing: ArrayLike | tuple[float, ...],
    *,
    eroded: float = 0.75,
    decay: float | int = 64.0,
    limit: Float[ArrayLike, ""] = 1e-6,
) -> Float[Array, "2"]:
    """Returns least width and least gap as constraints for `optimise`.

    Both are `measure / limit - 1`, which must not be positive. Use them once the design
    is nearly binary: a grey start violates both.

    Args:
        density: The filtered density.
        projected: The projected density.
        radius: The radius of the conic filter that made `density`, in metres, not a
            length to ask for: with a larger one each slope ends the middle of all
            parts, and whatever the design both constraints hold.
        spacing: Width of a cell in metres, one for all axes or one for each.
        eroded: Threshold of the eroded design.
        decay: How soon a slope ends the middle of a part.
        limit: The largest measure that is allowed.

    Returns:
        Solid, then void.

    Raises:
        ArgumentError: If a number is out of its range.
    """
    density, projected = as_density(density), as_density(projected, "projected")
    solid = _narrow(density, projected, radius, spacing, eroded, decay)
    void = _narrow(1 - density, 1 - projected, radius, spacing, eroded, decay)
    allowed = single(positive(limit, "limit"), "limit").astype(density.dtype)
    return jnp.stack([solid, void]) / allowed - 1


def _narrow(density, projected, radius, spacing, eroded, decay):
    density, projected = as_density(density), as_density(projected, "projected")
    if projected.shape != density.shape:
        raise ArgumentError(
            f"`projected` must have the shape of `density`, {density.shape}, but has "
            f"{projected.shape}."
        )
    threshold = single(between("eroded", 0.5, 1.0)(eroded), "eroded")
    reach = single(positive(radius, "radius"), "radius")
    rate = single(positive(decay, "decay"), "decay").astype(density.dtype)
    squares = jnp.zeros_like(density)
    widths = each_axis(known_spacing(spacing), density.ndim)
    if not traced(reach):
        check_reach(float(reach), "radius", density.shape, widths)
    for axis, width in enumerate(widths):
        if density.shape[axis] > 1:
            # The ratio first: squares of metres underflow in float32.
            per_cell = (reach / width).astype(density.dtype)
            squares = squares + (per_cell * slope(density, axis)) ** 2
    threshold = threshold.astype(density.dtype)
    middle = projected * jnp.exp(-rate * squares)
    return jnp.mean(middle * jnp.minimum(density - threshold, 0) ** 2)
