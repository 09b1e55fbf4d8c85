"""The coefficient rows of a step that vary along one axis: metrics and layers."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..grid import Grid
from ..units import SPEED_OF_LIGHT
from ._boundaries import PEC, PMC, Bloch, Boundaries, Periodic
from ._components import CurlTerm
from ._cpml import CPML, cpml_coefficients, radial_coefficients
from ._cylindrical import SAMPLES, Radial, build_radial


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
        radial: What the axis r of cylindrical coordinates adds, else `None`.
    """

    electric: Float[Array, "..."]
    magnetic: Float[Array, "..."]
    low: Slab | None
    high: Slab | None
    radial: Radial | None = None

    def metric(self, term: CurlTerm, *, electric: bool) -> Float[Array, "..."]:
        """Returns the metric of a curl term."""
        if term.ring and self.radial is not None:
            return self.radial.rings[term.target]
        return self.electric if electric else self.magnetic

    def radius(self, term: CurlTerm) -> Float[Array, " cells"] | None:
        """Returns what the source of a curl term is multiplied by, `None` for 1."""
        if term.ring and self.radial is not None:
            return self.radial.radii[term.source]
        return None


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
    m: int | None = None,
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
        m: The angular number in cylindrical coordinates, whose first axis is r.

    Returns:
        The rows for the whole axis, slabs arranged block after block.
    """
    low, high = boundaries.axis(axis)
    cells = grid.shape[axis]
    step = SPEED_OF_LIGHT * dt
    plain = not isinstance(low, PEC | PMC) and not isinstance(high, PMC)
    radial = None
    curved = m is not None and axis == 0
    if grid.is_uniform(axis) and plain and size == cells and not curved:
        magnetic = electric = step / grid.widths[axis]
    else:
        width, dual = grid.cell_widths(axis), grid.dual_widths(axis)
        walls = {PEC: 0.0, type(None): 0.0, PMC: 2.0}
        first = walls.get(type(low), 1.0) / dual[0]
        if isinstance(low, Periodic | Bloch):
            first = 2 / (width[0] + width[-1])
        last = 2 / width[-1] if isinstance(high, PMC) else 0.0
        extra = size - cells
        tail = jnp.zeros(max(extra - 1, 0), width.dtype)
        ends = [] if not extra else [jnp.full(1, last, width.dtype), tail]
        rows = jnp.concatenate([jnp.reshape(first, 1), 1 / dual[1:], *ends])
        electric = step * rows
        magnetic = step * jnp.pad(1 / width, (0, extra))
    if m is not None and curved:
        radial = build_radial(grid, boundaries, m, step, electric, magnetic)
    slabs = []
    for high_end, face in enumerate((low, high)):
        if not isinstance(face, CPML):
            slabs.append(None)
            continue
        reach = face.cells + (size - cells if high_end else 0)
        thick = min(reach, size // parts)
        kind = partial(_rows, face, grid, axis, dt, size, parts, thick, bool(high_end))
        rows = [kind(half, curved=curved) for half in (0.0, 0.5)]
        slabs.append(Slab(thick, face.cells, *rows))
        if radial is not None:
            layer = {
                name: kind(half, curved=True, way=1 if name[1] == "p" else -1)
                for name, half in SAMPLES.items()
            }
            radial = Radial(radial.rings, radial.radii, radial.turns, layer)
    return Axis(electric, magnetic, *slabs, radial=radial)


def _rows(
    face, grid, axis, dt, size, parts, thick, high_end, half, *, curved, way=0
) -> Rows:
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
    depth = jnp.asarray(depth, width.dtype)
    if curved:
        radius = grid.origin[axis] + grid.size(axis) + (x - cells) * width
        radius = jnp.maximum(radius, width / 2).astype(width.dtype)
        factors = radial_coefficients(face, depth, width, dt, radius, way)
    else:
        factors = cpml_coefficients(face, depth, width, dt)
    g = None
    if face.kappa_max is not None:
        g = jnp.where(inside, factors.inv_kappa - 1, 0)
    return Rows(jnp.where(inside, factors.b, 0), jnp.where(inside, factors.c, 0), g)
