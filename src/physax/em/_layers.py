"""The coefficient rows of a step that vary along one axis: metrics and layers."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..grid import Grid
from ..units import SPEED_OF_LIGHT
from ._boundaries import PEC, PMC, Bloch, Boundaries, Periodic
from ._cpml import CPML, cpml_coefficients


class Rows(eqx.Module):
    """Factors of the recursion of one slab, for fields at one stagger.

    The recursion is `psi <- b psi + c d` with the plain difference `d` of neighbours,
    which becomes `d + psi + g d` in the layer. All are zero outside it.
    """

    b: Float[Array, " cells"]
    c: Float[Array, " cells"]
    g: Float[Array, " cells"] | None


class Slab(eqx.Module):
    """The cells at one end of each block that an absorbing layer may reach.

    Attributes:
        cells: Thickness in each block.
        layer: Thickness of the layer itself.
        electric: Rows for the electric fields (differences of H, at the nodes).
        magnetic: Rows for the magnetic fields (differences of E, half a cell on).
    """

    cells: int = eqx.field(static=True)
    layer: int = eqx.field(static=True)
    electric: Rows
    magnetic: Rows


class Axis(eqx.Module):
    """All that a step needs to know of one axis.

    Attributes:
        electric: `c dt` over the dual width, for differences of H: a number, or one
            entry for each cell.
        magnetic: `c dt` over the width, for differences of E.
        low: The slab at the low end of each block, `None` without a layer.
        high: The slab at the high end.
    """

    electric: Float[Array, "..."]
    magnetic: Float[Array, "..."]
    low: Slab | None
    high: Slab | None


def stored_cells(grid: Grid, boundaries: Boundaries) -> tuple[int, ...]:
    """Returns the array sizes: one more than cells where the high face is a PMC.

    Electric samples sit on the nodes 0 to n - 1. On the node n of a magnetic wall the
    tangential electric field is not zero and must be stored.
    """
    faces = (boundaries.axis(axis)[1] for axis in range(grid.ndim))
    return tuple(
        cells + isinstance(face, PMC)
        for cells, face in zip(grid.shape, faces, strict=True)
    )


def build_axis(
    grid: Grid,
    boundaries: Boundaries,
    axis: int,
    dt: Float[Array, ""],
    size: int,
    parts: int = 1,
) -> Axis:
    r"""Builds the rows of one axis.

    Walls are metric too. The difference of H at node 0 is $2 H_{1/2} / w_0$ on a
    magnetic wall, where H is odd, and zero on an electric wall, where E stays zero.

    Args:
        grid: The grid.
        boundaries: Its faces.
        axis: Which axis.
        dt: Time step in seconds.
        size: Length of the stored arrays along the axis, padding included.
        parts: Number of blocks along the axis; divides `size`.

    Returns:
        The rows for the whole axis, slabs arranged block after block.
    """
    low, high = boundaries.axis(axis)
    cells = grid.shape[axis]
    step = SPEED_OF_LIGHT * dt
    plain = not isinstance(low, PEC | PMC) and not isinstance(high, PMC)
    if grid.is_uniform(axis) and plain and size == cells:
        magnetic = electric = step / grid.widths[axis]
    else:
        width, dual = grid.cell_widths(axis), grid.dual_widths(axis)
        first = {PEC: 0.0, PMC: 2.0}.get(type(low), 1.0) / dual[0]
        if isinstance(low, Periodic | Bloch):
            first = 2 / (width[0] + width[-1])
        last = 2 / width[-1] if isinstance(high, PMC) else 0.0
        extra = size - cells
        tail = jnp.zeros(max(extra - 1, 0), width.dtype)
        ends = [] if not extra else [jnp.full(1, last, width.dtype), tail]
        rows = jnp.concatenate([jnp.reshape(first, 1), 1 / dual[1:], *ends])
        electric = step * rows
        magnetic = step * jnp.pad(1 / width, (0, extra))
    slabs = []
    for high_end, face in enumerate((low, high)):
        if not isinstance(face, CPML):
            slabs.append(None)
            continue
        reach = face.cells + (size - cells if high_end else 0)
        thick = min(reach, size // parts)
        rows = [
            _rows(face, grid, axis, dt, size, parts, thick, bool(high_end), half)
            for half in (0.0, 0.5)
        ]
        slabs.append(Slab(thick, face.cells, *rows))
    return Axis(electric, magnetic, *slabs)


def _rows(face, grid, axis, dt, size, parts, thick, high_end, half) -> Rows:
    """Evaluates the layer at the slab cells of every block."""
    cells = grid.shape[axis]
    ends = np.arange(1, parts + 1)[:, None] * (size // parts)
    starts = ends - size // parts
    offset = np.arange(thick)
    index = (ends - thick + offset if high_end else starts + offset).ravel()
    # The layers mirror each other: the low one ends half a cell before node 0, where
    # the zero halo of H is a magnetic wall, the high one at node n, where E is zero.
    x = index + half
    depth = x - (cells - face.cells) if high_end else face.cells - 0.5 - x
    inside = (depth > 0) & (x <= cells)
    depth = np.clip(depth / face.cells, 0.0, 1.0)
    width = grid.cell_widths(axis)[-1 if high_end else 0]
    factors = cpml_coefficients(face, jnp.asarray(depth, width.dtype), width, dt)
    g = None
    if face.kappa_max is not None:
        g = jnp.where(inside, factors.inv_kappa - 1, 0)
    return Rows(jnp.where(inside, factors.b, 0), jnp.where(inside, factors.c, 0), g)
