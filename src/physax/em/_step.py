"""The Yee step: one function for every dimension, boundary, medium and layout."""

from functools import partial
from operator import mul

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Num

from ..grid import Block, Box
from ..units import ETA_0
from ._components import Components, CurlTerm
from ._layers import Axis, Rows, Slab
from ._medium import Medium, at_component, cells_of


Arrays = dict[str, Num[Array, "..."]]


class Row(eqx.Module):
    r"""The row of one component: $f \gets ((m - s) f + \mathrm{curl}) / (m + s)$.

    Where an entry varies from cell to cell the division stands inside the step: a
    coefficient array computed before the loop would cost a third of the state of a 2-D
    run. Where both are numbers the quotients are taken once.

    Attributes:
        inertia: $m$, the relative permittivity or permeability.
        loss: $s$, `None` for none.
        gain: $1 / (m + s)$ where both are numbers.
        decay: $(m - s) / (m + s)$ where both are numbers and there is loss.
    """

    inertia: Num[Array, "..."]
    loss: Num[Array, "..."] | None
    gain: Num[Array, ""] | None = None
    decay: Num[Array, ""] | None = None

    def quotients(self) -> "Row":
        """Returns the row with its quotients, where both entries are numbers."""
        m, s = self.inertia, self.loss
        if m.ndim or (s is not None and s.ndim):
            return self
        if s is None:
            return Row(m, None, gain=1 / m)
        return Row(m, s, gain=1 / (m + s), decay=(m - s) / (m + s))

    def drive(self, curl: Array, where: Box | None = None) -> Array:
        """Returns what a curl adds to the field in some cells."""
        if self.gain is not None:
            return self.gain * curl
        m = _cut(self.inertia, where)
        return curl / (m if self.loss is None else m + _cut(self.loss, where))

    def kept(self, field: Array) -> Array:
        """Returns what is left of a field that nothing drives."""
        if self.loss is None:
            return field
        if self.gain is not None:
            return field if self.decay is None else self.decay * field
        m, s = self.inertia, self.loss
        return (m - s) / (m + s) * field

    def update(self, field: Array, curl: Array) -> Array:
        """Returns the next field."""
        if self.gain is not None:
            kept = field if self.decay is None else self.decay * field
            return kept + self.gain * curl
        m, s = self.inertia, self.loss
        return field + curl / m if s is None else ((m - s) * field + curl) / (m + s)


def _cut(value: Array, where: Box | None) -> Array:
    """Returns the entries in a box of local cells; a number stands for all."""
    if where is None or value.ndim == 0:
        return value
    return value[cells_of(where)]


def build_row(medium: Medium, component: str, step_length: Num[Array, ""]) -> Row:
    """Builds the row of a component from the medium and `c dt` in metres."""
    electric = component[0] == "E"
    kinds = ("permittivity", "conductivity")
    if not electric:
        kinds = ("permeability", "magnetic_conductivity")
    m: Array = at_component(getattr(medium, kinds[0]), component)
    s: Array | None = at_component(getattr(medium, kinds[1]), component)
    if s is not None:
        s = s * (ETA_0 if electric else 1 / ETA_0) * step_length / 2
    return Row(m, s)


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


def slabs_of(axis: Axis, *, electric: bool) -> list[tuple[str, Slab, Rows]]:
    """Lists the slabs of an axis with the rows of the fields that are updated."""
    slabs = (("low", axis.low), ("high", axis.high))
    return [
        (side, slab, slab.electric if electric else slab.magnetic)
        for side, slab in slabs
        if slab is not None
    ]


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
    return psi


def half_step(
    stepper: Stepper, fields: Arrays, psi: Arrays, *, electric: bool
) -> tuple[Arrays, Arrays]:
    """Advances the electric or the magnetic fields by one step.

    The whole grid gets the plain update. What the layers add is computed in the slabs
    alone: along the last axis it is padded and fused into the update, along the others,
    whose slabs are contiguous in memory, it is added in place afterwards. Each of these
    choices was the fastest measured.

    Args:
        stepper: The coefficients.
        fields: All components on this block.
        psi: Memory of the layers.
        electric: Which half.

    Returns:
        The fields and the memory, with the updated entries replaced.
    """
    parts, block = stepper.components, stepper.block
    terms = parts.electric_terms if electric else parts.magnetic_terms
    ndim, last, forward = parts.ndim, parts.ndim - 1, not electric
    psi, curls, later = dict(psi), {}, []
    for term in terms:
        axis, source = stepper.axes[term.axis], fields[term.source]
        beyond = block.after if forward else block.before
        plane = beyond(source, term.axis)
        difference = partial(
            block.difference, source, term.axis, plane, forward=forward
        )
        cells = block.shape[term.axis]
        metric = along(axis.electric if electric else axis.magnetic, term.axis, ndim)
        curl, inside = difference(0, cells), None
        fused = ndim == 3 and term.axis == last
        for side, slab, rows in slabs_of(axis, electric=electric):
            start = 0 if side == "low" else cells - slab.cells
            stop = start + slab.cells
            d = difference(start, stop)
            name = psi_name(term, side)
            b, c = (along(v, term.axis, ndim) for v in (rows.b, rows.c))
            # Without the barrier XLA computes the recursion again in each of its users.
            psi[name] = lax.optimization_barrier(b * psi[name] + c * d)
            extra = psi[name]
            if rows.g is not None:
                extra = extra + along(rows.g, term.axis, ndim) * d
            if fused:
                extra = in_whole(extra, last, start, cells)
                inside = extra if inside is None else inside + extra
            else:
                where = tuple(
                    (start, stop) if a == term.axis else (0, n)
                    for a, n in enumerate(block.shape)
                )
                scaled = _cut(metric, where) * extra
                later.append((term.target, where, term.sign * scaled))
        curl = metric * (curl if inside is None else curl + inside)
        curl = curl if term.sign > 0 else -curl
        curls[term.target] = curls[term.target] + curl if term.target in curls else curl
    fields = dict(fields)
    for name, curl in curls.items():
        fields[name] = stepper.rows[name].update(fields[name], curl)
    for name, where, extra in later:
        gain = stepper.rows[name].drive(extra, where)
        fields[name] = block.add_here(fields[name], where, gain)
    return fields, psi
