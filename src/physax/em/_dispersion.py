"""Dispersive media: poles in boxes of cells, and how a run steps them."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float, PyTree

from .._checks import ArgumentError, as_array, at_once, traced
from .._products import matmul
from ..grid import Block, Box
from ._boxes import as_box, cells_of, common, in_block, over_cuts, size_of, to_wall
from ._components import KNOWN_ELECTRIC
from ._poles import (
    AbstractPole,
    Recursion,
    as_poles,
    check_poles,
    recursion,
    susceptibility,
)


Fraction = Float[Array, "..."] | dict[str, Float[Array, "..."]]


def _fraction(value: Any) -> Fraction:
    """Converts fractions, refusing what would amplify."""

    def one(value, where=""):
        value = as_array(value, "fraction")
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise ArgumentError(
                f"`fraction`{where} must be real, but has dtype {value.dtype}."
            )
        if isinstance(value, jax.core.Tracer):
            # A factor, so that the derivative is NaN, too.
            return value * jnp.where(value >= 0, 1, jnp.nan)
        host = np.asarray(value)
        bad = ~(np.isfinite(host) & (host >= 0))
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ArgumentError(
                f"`fraction`{where} must be finite and at least 0, or the medium "
                f"amplifies, but is {host[index]:g}"
                + (f" in cell {index} of the box." if index else ".")
            )
        return value

    if isinstance(value, dict):
        unknown = [key for key in value if key not in KNOWN_ELECTRIC]
        if unknown or not value:
            seen = f"has the keys {unknown}" if unknown else "is empty"
            raise ArgumentError(
                f"`fraction` must be keyed by components such as 'Ez', but {seen}."
            )
        return {key: one(v, f"[{key!r}]") for key, v in value.items()}
    return one(value)


class Dispersion(eqx.Module):
    r"""Poles that fill a box of cells, wholly or in part.

    They add $f \chi(\omega)$ to the relative permittivity of the medium, design
    regions included, with a fraction $f$ for each cell. Only the cells of the box are
    stepped for it. Reverse mode serves fractions and strengths; other numbers of the
    poles need `adjoint=Checkpointed()`.

    Attributes:
        box: For each axis the first cell and one past the last.
        poles: Those of one material; together they must not amplify, which is not
            checked if they are traced.
        fraction: The part of each cell that they fill: one number, an array of the
            shape of the box, or one of these for each component `"Ex"`, `"Ey"`, `"Ez"`;
            those left out have no poles.

    Raises:
        ArgumentError: If a fraction is negative or of another shape than the box, or
            the poles amplify at some frequency.
    """

    box: Box = eqx.field(static=True, converter=as_box)
    poles: tuple[AbstractPole, ...] = eqx.field(converter=as_poles)
    fraction: Fraction = eqx.field(converter=_fraction, default=1.0)

    def __check_init__(self):
        if not self.poles:
            raise ArgumentError("`poles` of a dispersion must not be empty.")
        check_poles(self.poles)
        given = self.fraction
        for entry in given.values() if isinstance(given, dict) else (given,):
            if entry.ndim and entry.shape != size_of(self.box):
                raise ArgumentError(
                    f"`fraction` must be a number or have the shape "
                    f"{size_of(self.box)} of its box, but has shape {entry.shape}."
                )

    def covers(self, component: str) -> bool:
        """Returns whether there is a fraction for a component."""
        return not isinstance(self.fraction, dict) or component in self.fraction

    def at(self, component: str) -> Float[Array, "*box"]:
        """Returns the fraction at each sample of a component in the box."""
        entry = self.fraction
        entry = entry[component] if isinstance(entry, dict) else entry
        return jnp.broadcast_to(entry, size_of(self.box))

    def meets(self, box: Box, component: str | None = None) -> Bool[Array, ""]:
        """Returns whether poles lie in some cells of the grid, for a component or any.

        The box of a traced shape has cells without poles.
        """
        where, size = cells_of(common(box, self.box), self.box), size_of(self.box)
        given = (
            self.fraction if isinstance(self.fraction, dict) else {"": self.fraction}
        )
        with at_once(given):
            found = [
                jnp.any(jnp.broadcast_to(part, size)[where] > 0)
                for name, part in given.items()
                if component in (name, None) or not name
            ]
            return jnp.any(jnp.asarray(found))


def metallic(poles: Sequence[AbstractPole], share: float = 0.0) -> bool:
    """Returns whether the permittivity is below 0 somewhere, when concrete.

    Args:
        poles: The poles.
        share: Of two decades around the frequencies of the poles, on a logarithmic
            scale, more than this must be so.
    """
    if not poles or traced(poles):
        return False
    with jax.ensure_compile_time_eval():
        scales = [float(pole.scale()) for pole in poles]
        frequencies = np.outer([x for x in scales if x > 0], np.geomspace(0.1, 10, 101))
        chi = np.asarray(susceptibility(poles, frequencies.ravel()))
    return bool(np.mean(np.real(chi) < -1) > share)


class Response(eqx.Module):
    """The poles in one box at the samples of one component, made ready to step.

    Attributes:
        box: Cells of the whole grid; all of them along the axes that devices cut.
        cells: Those of them that may have a fraction.
        fraction: Of each cell of the box.
        poles: The recursions.
    """

    box: Box = eqx.field(static=True)
    cells: Box = eqx.field(static=True)
    fraction: Float[Array, "*box"]
    poles: tuple[Recursion, ...]

    def inertia(self) -> Float[Array, "*box"]:
        """Returns what the poles add to the inertia of the row."""
        return self.fraction * sum(one.amplitude * one.inertia for one in self.poles)

    def here(self, block: Block) -> Box:
        """Returns the box in cells of a block."""
        return in_block(self.box, block)


def build_response(
    one: Dispersion,
    component: str,
    dt: Float[Array, ""],
    grid: tuple[int, ...],
    stored: tuple[int, ...],
    block: Block,
) -> Response:
    """Makes the poles of a box ready to step.

    Args:
        one: Poles and box.
        component: The component.
        dt: Time step in seconds.
        grid: Cells of the grid.
        stored: The same with the nodes on magnetic walls.
        block: How devices cut the grid.

    Returns:
        The response. A box that ends at a magnetic wall has the node on it, too.
    """
    cells, more = to_wall(one.box, grid, stored)
    fraction = jnp.pad(one.at(component), more, mode="edge")
    box, pad = over_cuts(cells, block)
    poles = tuple(recursion(pole, dt) for pole in one.poles)
    return Response(box, cells, jnp.pad(fraction, pad), poles)


Responses = dict[str, tuple[Response, ...]]
"""The responses of each component."""


def each_response(function: Callable, responses: Responses, *others: PyTree) -> PyTree:
    """Calls a function of each response and of what other trees have at its place."""
    alike = lambda x: isinstance(x, Response)  # noqa: E731
    return jax.tree.map(function, responses, *others, is_leaf=alike)


States = tuple[tuple[Array, ...], ...]
"""What the poles of a response remember.

For each pole one array, or two where fields are complex: for the real and the
imaginary part. The two states of a pole are one complex number: an update then reads
and writes the same entry, so that it is done in place.
"""


class Memory(eqx.Module):
    """What a response remembers of the step before.

    Attributes:
        output: What its poles add to the curl of the next step, over the fraction.
        states: The states of its poles.
    """

    output: Array
    states: States


def at_rest(response: Response, dtype) -> Memory:
    """Returns the memory of poles before the first step, of the whole grid."""
    blank = jnp.zeros(size_of(response.box), dtype)
    return Memory(blank, still(response, blank))


def still(response: Response, blank: Array) -> States:
    """Returns states of zero, for a field that is zero."""
    return tuple(
        tuple(
            part if one.inflow.shape[0] == 1 else lax.complex(part, part)
            for part in real_parts(blank)
        )
        for one in response.poles
    )


def respond(response: Response, memory: Memory, field: Array) -> Memory:
    r"""Advances poles by a step, given the field after it in the box of this block.

    With $a B$ in the inertia of the row, poles add $-f \sum a (w x + 2 B E)$ to the
    curl of the next step, and then $x \gets M x + b (E + E^+)$. What is kept is
    $z = x - b E$: with $z \gets M z + (1 + M) b E$ nobody reads a field that the next
    step overwrites, which would be copied.

    Args:
        response: The poles.
        memory: What they remember.
        field: The field.

    Returns:
        What they remember for the next step.
    """
    outflows, direct = factors_of(response)
    output = given_by(outflows, memory.states, direct * field)
    later = nothing_of(output)
    states = []
    for one, own in zip(response.poles, memory.states, strict=True):
        inflow, _ = with_field(one)
        states.append(next_states(one.matrix, own, inflow, field, later))
    return Memory(output, tuple(states))


def nothing_of(output: Array) -> Array:
    """Returns a zero that is known to the CPU after the output alone.

    States are overwritten in place only if the output has read them before. Other
    compilers compute both at once.
    """
    known = jnp.real(lax.stop_gradient(output))
    return lax.platform_dependent(
        known[(0,) * known.ndim], cpu=lambda x: 0 * x, default=jnp.zeros_like
    )


def with_field(one: Recursion) -> tuple[Array, Array]:
    """Returns how a field that enters two steps drives the states and the next step."""
    inflow = one.inflow + matmul(one.matrix, one.inflow)
    return inflow, 2 * one.inertia + matmul(one.outflow, one.inflow)


def factors_of(response: Response) -> tuple[tuple[Array, ...], Array]:
    """Returns the factors in what poles add to the next curl, over the fraction.

    Args:
        response: The poles.

    Returns:
        For each pole those of its states, and that of the last field.
    """
    poles = response.poles
    outflows = tuple(-one.amplitude * one.outflow for one in poles)
    direct = reduce(add, (-one.amplitude * with_field(one)[1] for one in poles))
    return outflows, direct


def recall(
    response: Response, states: States, drive: Array
) -> tuple[States, tuple[Array, ...]]:
    r"""Carries cotangents back through poles, but for amplitude and fraction.

    Both scale what a pole gives, so that their cotangents need the field and what is
    returned here alone. The states go back by the transposed recursion. A field enters
    the step before and the step after it: together as $(1 + M) v$ and $2 B + w v$.

    Args:
        response: The poles.
        states: Cotangents of the states that the field after the step enters next, over
            amplitude and fraction.
        drive: The cotangent of what the poles drove in the step.

    Returns:
        The cotangents one step earlier, and for each pole what it adds to that of the
        field before the step, over amplitude and fraction.
    """
    before, given = [], []
    for one, after in zip(response.poles, states, strict=True):
        inflow, direct = with_field(one)
        given.append(given_by([inflow], [after], -direct * drive))
        before.append(next_states(one.matrix.T, after, -one.outflow, drive))
    return tuple(before), tuple(given)


def real_parts(values: Array) -> tuple[Array, ...]:
    """Returns real and imaginary part of complex values, else the values."""
    return (values.real, values.imag) if jnp.iscomplexobj(values) else (values,)


def as_field(parts: tuple[Array, ...]) -> Array:
    """Returns a field that has these parts."""
    return lax.complex(*parts) if len(parts) == 2 else parts[0]


def given_by(
    outflows: Sequence[Array],
    states: Sequence[tuple[Array, ...]],
    direct: Array,
) -> Array:
    """Returns what real linear systems give together.

    Args:
        outflows: For each system factors of its states.
        states: The states of each.
        direct: What the field gives at once.

    Returns:
        The sum, of the type of the field.
    """
    parts = real_parts(direct)
    for row, own in zip(outflows, states, strict=True):
        both = zip(parts, own, strict=True)
        parts = tuple(part + _dot(row, z) for part, z in both)
    return as_field(parts)


def next_states(
    matrix: Array,
    states: tuple[Array, ...],
    inflow: Array,
    field: Array,
    zero: ArrayLike = 0.0,
) -> tuple[Array, ...]:
    """Returns the next states of a real linear system, plus a zero.

    Args:
        matrix: What becomes of the states.
        states: The states.
        inflow: What the field adds to each.
        field: The field.
        zero: The zero.
    """
    rows = []
    for i in range(matrix.shape[0]):
        parts = zip(states, real_parts(inflow[i] * field), strict=True)
        rows.append([_dot(matrix[i], z) + part for z, part in parts])
    first = [x + zero for x in rows[0]]
    return tuple(first) if len(rows) == 1 else tuple(map(lax.complex, first, rows[1]))


def _dot(row: Array, state: Array) -> Array:
    """Returns a row times the one or two real states of a part of a field."""
    # Each part by itself: half the work of complex products.
    own = row[0] * state.real
    return own + row[1] * state.imag if jnp.iscomplexobj(state) else own
