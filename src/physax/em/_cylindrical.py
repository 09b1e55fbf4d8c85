"""Cylindrical coordinates: what rings and bodies of revolution add to a grid."""

from numbers import Integral
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import eigvalsh_tridiagonal

from .._checks import ArgumentError
from ..grid import Grid
from ._boundaries import PEC, PMC, Boundaries
from ._components import CYLINDRICAL_NAMES


class Cylindrical(eqx.Module):
    r"""Cylindrical coordinates for fields of one angular number.

    The grid is 2-D, its axes are r and z. Er, Ez and Hp (the azimuthal component) are
    the factors of $\cos m \phi$, Ep, Hr and Hz those of $\sin m \phi$; for $m = 0$ all
    are constant along $\phi$. In a medium that does not depend on $\phi$ the other
    choice is the same field rotated by $\pi / 2 m$, so that real fields hold all that
    $e^{\pm i m \phi}$ does.

    Each curl is an integral over a ring of cells. On the axis Ez of $m = 0$ follows
    from the circulation of Hp around it. The other samples there are zero by symmetry,
    except Ep and Hr of $m = 1$, which nothing off the axis depends on: they are kept at
    zero and not returned. Second order. Reference: Taflove and Hagness, *Computational
    Electrodynamics*, 3rd edition (2005), section 12.3.

    Attributes:
        m: The angular number, at least 0.
        components: The names of all components, as `rasterise` takes them.

    Raises:
        ArgumentError: If `m` is not such a number.
    """

    components: ClassVar[tuple[str, ...]] = CYLINDRICAL_NAMES

    m: int = eqx.field(static=True)

    def __check_init__(self):
        whole = isinstance(self.m, Integral) and not isinstance(self.m, bool)
        if not whole or self.m < 0:
            raise ArgumentError(
                f"`m` must be an integer and at least 0, but is {self.m!r}. Fields of "
                "-m are those of m, rotated."
            )


# Of a cell: what a computed origin may be off the axis.
_ON_AXIS = 1e-6


def reaches_axis(grid: Grid) -> bool:
    """Whether a grid of r and z, whose numbers are known, begins at r = 0."""
    first = float(np.ravel(np.asarray(grid.widths[0]))[0])
    return abs(float(grid.origin[0])) <= _ON_AXIS * first


def check_cylindrical(grid: Grid, boundaries: Boundaries) -> None:
    """Refuses a grid or faces that cylindrical coordinates do not allow.

    Args:
        grid: The grid, with known numbers.
        boundaries: Its faces.

    Raises:
        ArgumentError: If the grid is not of r and z, or has no or too many faces.
    """
    if grid.ndim != 2:
        raise ArgumentError(
            "`grid` must be 2-D, of r and z, in cylindrical coordinates, but is "
            f"{grid.ndim}-D."
        )
    if boundaries.r is None:
        raise ArgumentError(
            "`boundaries` must have `r` in cylindrical coordinates, but do not. Write "
            "`Boundaries(r=CPML(10), z=CPML(10))`; `x` and `y` do not exist there."
        )
    low, on_axis = float(grid.origin[0]), reaches_axis(grid)
    if low < 0 and not on_axis:
        raise ArgumentError(
            "`origin` along r must be at least 0 in cylindrical coordinates, but is "
            f"{low:g} m. `Grid.uniform` with `origin=(0, z)` begins on the axis."
        )
    if on_axis and boundaries.r[0] is not None:
        raise ArgumentError(
            "`r` must be only the outer face where the grid begins on the axis, which "
            f"is not a face, but is {boundaries.r!r}."
        )
    if not on_axis and not isinstance(boundaries.r[0], PEC | PMC):
        raise ArgumentError(
            "`r` must be a pair of an inner wall and an outer face, such as `(PEC(), "
            f"CPML(10))`, where the grid begins off the axis, at {low:g} m, but is "
            f"{boundaries.r!r}."
        )


SAMPLES = {"Er": 0.5, "Ep": 0.0, "Ez": 0.0, "Hr": 0.0, "Hp": 0.5, "Hz": 0.5}
"""Where each component sits along r, in cells."""


class Radial(eqx.Module):
    """What the radial axis adds to a step: rows along r, by component.

    The ring terms of the curls are `ring * difference(radius * source)`. In the layer
    each whole curl is stretched once more; there Ep and Hp are stored as they are times
    the stretched radius over r, so that all curls are differences of one complex.

    Attributes:
        rings: Of Ez and Hz: `c dt` over the area between two circles, for one radian.
        radii: Of Ep and Hp: where they sit, in metres.
        turns: Of the targets of turn terms: `c dt / r`, zero where they are held at
            zero.
        layer: Rows of the recursion of each whole curl; none without a layer.
    """

    rings: dict[str, Float[Array, " cells"]]
    radii: dict[str, Float[Array, " cells"]]
    turns: dict[str, Float[Array, " cells"]]
    layer: dict[str, Any]


def build_radial(
    grid: Grid,
    boundaries: Boundaries,
    m: int,
    step: Float[Array, ""],
    electric: Float[Array, " size"],
    magnetic: Float[Array, " size"],
) -> Radial:
    """Builds what the radial axis adds, without the layer.

    Args:
        grid: The grid.
        boundaries: Its faces.
        m: The angular number.
        step: `c dt` in metres.
        electric: `c dt` over the dual width, zero where Ep is held at zero.
        magnetic: `c dt` over the width.

    Returns:
        The rows, as long as those given.
    """
    low, high = boundaries.axis(0)
    size, stored = electric.shape[0], grid.shape[0] + isinstance(high, PMC)
    edges, centres = grid.edges(0), grid.centres(0)
    mean, nodes = ring_radii(edges, centres), edges
    over_nodes, metric = step / nodes, electric
    if low is None:
        # The ring around the axis is a disk: Ez follows from Hp on its rim, if m = 0.
        disk = 2 * step / grid.cell_widths(0)[0] if m == 0 else 0.0
        metric = electric.at[0].set(disk)
        over_nodes = jnp.concatenate([jnp.zeros(1, nodes.dtype), step / nodes[1:]])

    def padded(row, fill=0.0):
        row = row[:stored]
        return jnp.pad(row, (0, size - row.shape[0]), constant_values=fill)

    return Radial(
        {"Ez": metric / padded(mean, 1.0), "Hz": magnetic / padded(centres, 1.0)},
        {"Ep": padded(nodes), "Hp": padded(centres)},
        {
            "Er": padded(step / centres),
            "Ez": jnp.where(metric > 0, padded(step / mean), 0),
            "Hr": padded(over_nodes),
            "Hz": padded(step / centres),
        },
        {},
    )


def ring_radii(
    edges: Float[Array, "nodes *one"], centres: Float[Array, "cells *one"]
) -> Float[Array, "nodes *one"]:
    """Returns the mean radii of the rings around nodes, which end at walls and axis."""
    ends = jnp.concatenate([edges[:1], centres, edges[-1:]])
    return (ends[:-1] + ends[1:]) / 2


def around(m: int | None) -> float:
    r"""Returns the integral of $\cos^2 m \phi$ over a turn, that of 1 for m = 0.

    Without m, in Cartesian coordinates, it is 1.
    """
    if m is None:
        return 1.0
    return np.pi if m else 2 * np.pi


def ring_widths(
    axis: Any, component: str, half: float, length: Float[Array, ""], m: int
) -> Float[Array, " samples"]:
    """Returns the areas of the rings around samples over their width along z.

    Args:
        axis: Rows of the radial axis.
        component: Which component.
        half: Its stagger along r.
        length: `c dt` in metres.
        m: The angular number; as energies need it, each area counts as `around` says.

    Returns:
        The areas in m^2; zero where the field is held at zero.
    """
    radial, weight = axis.radial, 1
    metric = radial.rings["Hz" if half else "Ez"]
    if component in ("Ep", "Hr"):
        metric, weight = axis.electric, radial.radii["Ep"]
    safe = jnp.where(metric > 0, metric, 1)
    return jnp.where(metric > 0, around(m) * length * weight / safe, 0)


def largest_eigenvalue(grid: Grid, m: int) -> float:
    r"""Returns the largest eigenvalue of the discrete transverse Laplacian, in 1/m^2.

    The curl of the curl has the eigenvalues of the Laplacian of r and $\phi$, once at
    the nodes, as of Ez, and once at the centres, as of Hz, each plus one of z. Near
    the axis it is about $(4 m^2 + 2) / \Delta r^2$.

    Args:
        grid: The grid of r and z, with known numbers.
        m: The angular number.

    Returns:
        The eigenvalue, with an outer wall that allows the most.
    """
    widths = np.broadcast_to(np.asarray(grid.widths[0], float), grid.shape[:1])
    start = 0.0 if reaches_axis(grid) else float(grid.origin[0])
    nodes = start + np.concatenate([[0.0], np.cumsum(widths)])
    centres = (nodes[:-1] + nodes[1:]) / 2
    bounds = np.concatenate([nodes[:1], centres, nodes[-1:]])
    dual = np.diff(bounds)
    mean = (bounds[:-1] + bounds[1:]) / 2
    flow = centres / widths
    turn = m**2 / (mean * np.where(nodes > 0, nodes, np.inf))
    first = 1 if start == 0 and m else 0
    at_nodes = _largest(flow, dual * mean, turn, first)
    flow = (nodes / dual)[1:-1]
    padded = np.concatenate([[0.0], flow, [0.0]])
    area = widths * centres
    diagonal = (padded[:-1] + padded[1:]) / area + (m / centres) ** 2
    off = flow / np.sqrt(area[:-1] * area[1:])
    return max(at_nodes, _of_tridiagonal(diagonal, off))


def _largest(flow: np.ndarray, area: np.ndarray, turn: np.ndarray, first: int) -> float:
    padded = np.concatenate([[0.0], flow, [0.0]])
    diagonal = (padded[:-1] + padded[1:]) / area + turn
    off = flow / np.sqrt(area[:-1] * area[1:])
    return _of_tridiagonal(diagonal[first:], off[first:])


def _of_tridiagonal(diagonal: np.ndarray, off: np.ndarray) -> float:
    last = (len(diagonal) - 1,) * 2
    return float(eigvalsh_tridiagonal(diagonal, off, select="i", select_range=last)[0])
