"""A step undone: in the interior of the grid time can run backward."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from ..grid import Box
from ._clock import Clock
from ._components import CurlTerm
from ._cylindrical import Radial
from ._injection import Injection, inject
from ._layers import Axis
from ._program import Program
from ._row import Row
from ._step import half_step
from ._stepper import Arrays, Stepper


class Plane(NamedTuple):
    """Samples inside a layer that the interior beside it reads.

    A layer swallows what it is given, so that its fields cannot be found again.

    Attributes:
        component: Of the samples.
        box: Where; `None` along an axis for all cells of a block.
    """

    component: str
    box: tuple[tuple[int, int] | None, ...]


def interior(program: Program) -> Box:
    """Returns the cells outside all layers, from the first to the last node there."""
    shape, block = program.setup.grid.shape, program.stepper.block
    spans = []
    for a, axis in enumerate(program.stepper.axes):
        low = 0 if axis.low is None else axis.low.layer
        # Without a layer all that is stored, the node of a magnetic wall too.
        whole = block.shape[a] * block.parts[a]
        high = whole if axis.high is None else shape[a] - axis.high.layer
        spans.append((low, high))
    return tuple(spans)


def planes_of(program: Program) -> tuple[Plane, ...]:
    """Lists the planes that have to be kept of each step."""
    stepper, inner = program.stepper, interior(program)
    parts, block = stepper.components, stepper.block
    spans = []
    for a, axis in enumerate(stepper.axes):
        low = inner[a][0] - (axis.low is not None)
        high = block.shape[a] if axis.high is None else inner[a][1] + 1
        spans.append((low, high) if block.parts[a] == 1 else None)
    planes = []
    for a, axis in enumerate(stepper.axes):
        # H beside the low layer reads E in it, E beside the high one reads H in it.
        faces = (
            (axis.low, parts.magnetic_terms, inner[a][0] - 1),
            (axis.high, parts.electric_terms, inner[a][1]),
        )
        for slab, terms, at in faces:
            if slab is None:
                continue
            box = tuple((at, at + 1) if b == a else s for b, s in enumerate(spans))
            planes += [Plane(name, box) for name in _read_across(terms, a)]
    return tuple(planes)


def _read_across(terms: tuple[CurlTerm, ...], axis: int) -> list[str]:
    return sorted({term.source for term in terms if term.axis == axis})


def seen_planes(
    program: Program, planes: tuple[Plane, ...], fields: Arrays, *, electric: bool
) -> tuple[Array, ...]:
    """Reads the electric or the magnetic planes."""
    block, letter = program.stepper.block, "E" if electric else "H"
    return tuple(
        block.read(fields[one.component], one.box)
        for one in planes
        if one.component[0] == letter
    )


def _restored(
    program: Program, planes, fields: Arrays, values: tuple[Array, ...], letter: str
) -> Arrays:
    """Puts the planes of one kind back into the fields."""
    fields, block = dict(fields), program.stepper.block
    own = (one for one in planes if one.component[0] == letter)
    for one, value in zip(own, values, strict=True):
        fields[one.component] = block.put(fields[one.component], one.box, value)
    return fields


def reversed_program(program: Program) -> Program:
    """Returns a program whose half steps undo those of another, outside its layers.

    $f' = ((m - s) f + C) / (m + s)$ is undone by the same row with $-s$ and $-C$.
    """

    def axis(one: Axis) -> Axis:
        radial = one.radial
        if radial is not None:
            rings, turns = jax.tree.map(jnp.negative, (radial.rings, radial.turns))
            radial = Radial(rings, radial.radii, turns, {})
        return Axis(-one.electric, -one.magnetic, None, None, radial)

    def row(one: Row) -> Row:
        loss = None if one.loss is None else -one.loss
        return Row(one.inertia, loss).quotients()

    def current(one: Injection) -> Injection:
        return eqx.tree_at(lambda c: c.amplitude, one, -one.amplitude)

    old = program.stepper
    stepper = Stepper(
        old.components,
        old.block,
        tuple(map(axis, old.axes)),
        {name: row(one) for name, one in old.rows.items()},
    )
    return eqx.tree_at(
        lambda p: (p.stepper, p.electric, p.magnetic, p.setup.axes),
        program,
        (
            stepper,
            [current(one) for one in program.electric],
            [current(one) for one in program.magnetic],
            tuple(map(axis, program.setup.axes)),
        ),
    )


def unstep(
    undo: Program,
    planes: tuple[Plane, ...],
    fields: Arrays,
    seen: tuple[tuple[Array, ...], tuple[Array, ...]],
    lines: dict,
    n: Int[Array, ""],
) -> Arrays:
    """Returns the fields before a step, right in the interior.

    Args:
        undo: From `reversed_program`.
        planes: The planes in the layers.
        fields: Fields after the step, right in the interior.
        seen: Electric planes before the step, magnetic ones after it.
        lines: Incident waves before the step.
        n: Its number.

    Returns:
        The fields.
    """
    electric_planes, magnetic_planes = seen
    now, between = Clock(2 * n, undo.setup.dt), Clock(2 * n + 1, undo.setup.dt)
    middle = {
        name: line.advance(lines[name], now, electric=False)
        for name, line in undo.lines.items()
    }

    def move(k, fields):
        block = undo.stepper.block.within(k)
        program = eqx.tree_at(lambda p: p.stepper.block, undo, block)
        fields = _restored(program, planes, fields, magnetic_planes, "H")
        fields = _undone(program, fields, middle, between, electric=True)
        fields = _restored(program, planes, fields, electric_planes, "E")
        return _undone(program, fields, lines, now, electric=False)

    # A loop of one turn, for the reason that `step` gives.
    return lax.fori_loop(n, n + 1, move, fields)


def _undone(
    program: Program, fields: Arrays, lines: dict, clock: Clock, *, electric: bool
) -> Arrays:
    stepper = program.stepper
    rows, block = stepper.rows, stepper.block
    fields, _ = half_step(stepper, fields, {}, electric=electric)
    currents = program.electric if electric else program.magnetic
    fields = inject(currents, fields, rows, block, clock)
    for name, line in program.lines.items():
        fields = line.correct(
            lines[name], fields, program.setup.axes, rows, block, electric=electric
        )
    return jax.tree.map(lax.optimization_barrier, fields)
