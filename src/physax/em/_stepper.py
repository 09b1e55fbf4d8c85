"""The coefficients of a step, and what its layers remember."""

from operator import mul
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Num

from ..grid import Block, Box
from ._components import Components, CurlTerm, TurnTerm
from ._layers import Axis, Rows, Slab
from ._row import Row


Arrays = dict[str, Num[Array, "..."]]


class Stepper(eqx.Module):
    r"""The coefficients of a step on one block of the grid.

    Fields are E in V/m and $\eta_0 H$, so that both are of one size. One step does

    $$\mu_r \partial_t (\eta_0 H) = -c \nabla \times E, \qquad
      \epsilon_r \partial_t E = c \nabla \times (\eta_0 H)$$

    with central differences; E is known at whole, H at half steps. Reference: Taflove
    and Hagness, *Computational Electrodynamics*, 3rd edition (2005), chapters 3 and 7.

    Attributes:
        components: Which components exist.
        block: How this block meets its neighbours.
        axes: Metrics and absorbing layers of each axis.
        rows: The material rows, by component.
    """

    components: Components = eqx.field(static=True)
    block: Block
    axes: tuple[Axis, ...]
    rows: dict[str, Row]


def along(row: Array, axis: int, ndim: int) -> Array:
    """Shapes a row to vary along one axis."""
    if row.ndim == 0:
        return row
    return row.reshape([-1 if a == axis else 1 for a in range(ndim)])


def in_whole(slab: Array, axis: int, start: int, cells: int) -> Array:
    """Returns a slab from cell `start` on among zeros, `cells` long along its axis."""
    pad = [(0, 0)] * slab.ndim
    pad[axis] = start, cells - start - slab.shape[axis]
    return jnp.pad(slab, pad)


def psi_name(term: CurlTerm, side: str) -> str:
    """Names the memory of one curl term in one slab."""
    return f"{term.target}_{'xyz'[term.axis]}_{side}"


def bend_name(component: str) -> str:
    """Names the memory of the whole curl of a component in the layer around an axis."""
    return f"{component}_bend"


def slabs_of(axis: Axis, *, electric: bool) -> list[tuple[str, Slab, Rows]]:
    """Lists the slabs of an axis with the rows of the fields that are updated."""
    slabs = (("low", axis.low), ("high", axis.high))
    return [
        (side, slab, slab.electric if electric else slab.magnetic)
        for side, slab in slabs
        if slab is not None
    ]


def turns_of(stepper: Stepper, *, electric: bool) -> list[tuple[TurnTerm, Array]]:
    """Lists the derivatives by the azimuth with their factors."""
    parts, radial = stepper.components, stepper.axes[0].radial
    if radial is None:
        return []
    return [
        (turn, turn.factor * along(radial.turns[turn.target], 0, parts.ndim))
        for turn in (parts.electric_turns if electric else parts.magnetic_turns)
    ]


class Bend(NamedTuple):
    """How the layer around the axis stretches the whole curl of one component.

    Attributes:
        target: The component.
        memory: Name of the memory.
        where: The cells of the slab in each block.
        b: Rows of the recursion.
        c: The same.
        g: The same, or `None`.
    """

    target: str
    memory: str
    where: Box
    b: Array
    c: Array
    g: Array | None


def bends_of(stepper: Stepper, *, electric: bool) -> list[Bend]:
    """Lists the whole curls that a layer around the axis stretches."""
    parts, axis, block = stepper.components, stepper.axes[0], stepper.block
    if axis.radial is None or axis.high is None:
        return []
    cells, other = block.shape
    where = ((cells - axis.high.cells, cells), (0, other))
    found = []
    for name in parts.electric if electric else parts.magnetic:
        rows = axis.radial.layer[name]
        b, c = (along(row, 0, 2) for row in (rows.b, rows.c))
        g = None if rows.g is None else along(rows.g, 0, 2)
        found.append(Bend(name, bend_name(name), where, b, c, g))
    return found


def zero_psi(stepper: Stepper, dtype) -> Arrays:
    """Returns the memory of all layers of the whole grid, at rest."""
    psi = {}
    block, parts = stepper.block, stepper.components
    shape = tuple(map(mul, block.shape, block.parts))
    for electric, terms in (
        (True, parts.electric_terms),
        (False, parts.magnetic_terms),
    ):
        for term in terms:
            for side, slab, _ in slabs_of(stepper.axes[term.axis], electric=electric):
                size = list(shape)
                size[term.axis] = slab.cells * block.parts[term.axis]
                psi[psi_name(term, side)] = jnp.zeros(size, dtype)
        for bend in bends_of(stepper, electric=electric):
            low, high = bend.where[0]
            cells = (high - low) * block.parts[0]
            psi[bend.memory] = jnp.zeros((cells, *shape[1:]), dtype)
    return psi
