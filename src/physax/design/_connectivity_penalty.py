"""A differentiable measure of unconnected parts: heat that cannot escape."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, between, single
from .._known_number import known_number
from ._argument_checks import as_density
from ._connectivity import as_mask


def island_penalty(
    density: Float[Array, "*cells"],
    anchors: ArrayLike | None = None,
    *,
    insulation: Float[ArrayLike, ""] = 1e-3,
    tolerance: float | None = None,
) -> Float[Array, ""]:
    r"""Measures floating solid by the temperature it would reach.

    Solid cells are heated and conduct, void ones conduct $\kappa$ times less, and heat
    leaves at the anchors: $-\nabla \cdot (k(\rho) \nabla T) = \rho$ with
    $k = \kappa + (1 - \kappa) \rho^3$. Parts attached to an anchor stay cool, islands
    get hot. The result is $\langle \rho T \rangle$ with lengths in units of the longest
    side of the design: 0.035 for a solid square; an island of half its width has about
    $0.01 / \kappa$. Solved by conjugate gradients, so one more solution
    gives the gradient. Reference: Liu, Li, Chen and Tong, *Virtual temperature method*,
    in *An identification method for enclosed voids restriction in manufacturability
    design for additive manufacturing structures*, Frontiers of Mechanical Engineering
    10, 126 (2015).

    Args:
        density: The density, projected or nearly so.
        anchors: Cells to which solid is attached; by default all at the border.
        insulation: $\kappa$, in (0, 1). Smaller values make islands hotter and the
            solution slower.
        tolerance: Residual at which the solution is accepted, relative to the heating;
            by default 1e-5 in float32 and 1e-10 in float64.

    Returns:
        The measure.

    Raises:
        ArgumentError: If a number is out of its range or the mask does not fit.
    """
    density = as_density(density)
    least = between("insulation", 0.0, 1.0)(insulation).astype(density.dtype)
    least = single(least, "insulation")
    held = jnp.asarray(as_mask(anchors, "anchors", density.shape))
    if tolerance is None:
        tolerance = 1e-10 if density.dtype == jnp.float64 else 1e-5
    tolerance = known_number(tolerance, "tolerance")
    if not tolerance > 0:
        raise ArgumentError(f"`tolerance` must be positive, but is {tolerance:g}.")
    # Rounding must not make a density that is slightly negative conduct less than none.
    solid = jnp.clip(density, 0, 1)
    cells = least + (1 - least) * solid**3
    faces = [_faces(cells, axis) for axis in range(density.ndim)]
    drain = jnp.where(held, 1, 0).astype(density.dtype)
    heat = solid / max(density.shape) ** 2
    temperature = _temperature(faces, drain, heat, tolerance)
    return jnp.mean(solid * temperature)


def hole_penalty(
    density: Float[Array, "*cells"],
    outlets: ArrayLike | None = None,
    *,
    insulation: Float[ArrayLike, ""] = 1e-3,
    tolerance: float | None = None,
) -> Float[Array, ""]:
    """Measures enclosed voids: `island_penalty` with solid and void exchanged.

    Args:
        density: The density, projected or nearly so.
        outlets: Cells through which a void opens; by default all at the border.
        insulation: As for `island_penalty`.
        tolerance: As for `island_penalty`.

    Returns:
        The measure.

    Raises:
        ArgumentError: As for `island_penalty`.
    """
    return island_penalty(
        1 - as_density(density), outlets, insulation=insulation, tolerance=tolerance
    )


def _faces(cells: Array, axis: int) -> Array:
    """Conductance between neighbours: two halves of a cell in series."""
    count = cells.shape[axis]
    one = jax.lax.slice_in_dim(cells, 0, count - 1, axis=axis)
    other = jax.lax.slice_in_dim(cells, 1, count, axis=axis)
    return 2 * one * other / (one + other)


def _pads(ndim: int, axis: int, low: int, high: int):
    return [(low, high) if i == axis else (0, 0) for i in range(ndim)]


def _temperature(faces, drain: Array, heat: Array, tolerance: float) -> Array:
    ndim = drain.ndim

    def leaving(temperature):
        total = drain * temperature
        for axis, conductance in enumerate(faces):
            flow = -conductance * jnp.diff(temperature, axis=axis)
            total = total + jnp.pad(flow, _pads(ndim, axis, 0, 1))
            total = total - jnp.pad(flow, _pads(ndim, axis, 1, 0))
        return total

    diagonal = drain
    for axis, conductance in enumerate(faces):
        diagonal = diagonal + jnp.pad(conductance, _pads(ndim, axis, 0, 1))
        diagonal = diagonal + jnp.pad(conductance, _pads(ndim, axis, 1, 0))
    # Not differentiated: any preconditioner leads to the same solution.
    inverse = 1 / jax.lax.stop_gradient(diagonal)
    solution, _ = jax.scipy.sparse.linalg.cg(
        leaving,
        heat,
        tol=tolerance,
        maxiter=20 * int(np.sum(drain.shape)),
        M=lambda residual: inverse * residual,
    )
    return solution
