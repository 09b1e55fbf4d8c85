"""How a run steps nonlinear media, whose response has powers of the field."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from ..grid import AXES, Block, Box
from ..units import EPSILON_0
from ._boundaries import PMC
from ._boxes import cells_of, in_block, over_cuts, size_of, to_wall
from ._nonlinear import COEFFICIENTS, Nonlinearity
from ._simulation import Simulation
from ._stepper import Arrays, Stepper, along
from ._tilt import neighbour_mean


# Newton iterations from the field of the linear step: each doubles the digits.
_TURNS = 3
# The largest last correction, over the largest field.
_LAST = 1e-3


class Powers(eqx.Module):
    """Nonlinear cells, made ready to step.

    Attributes:
        box: Cells of the whole grid; all of them along the axes that devices cut.
        reach: The same and their neighbours, whose fields enter averages.
        spans: For each axis whether the reach has all its cells.
        chi2: By component, in the cells of the box.
        chi3: Likewise.
        loss: A quarter of what `sigma3` adds in a step for each cube of the field;
            empty without.
        mirrors: Where an axis ends at a magnetic wall, by its electric component what
            means at the nodes are to be multiplied by: 2 on the wall, behind which the
            same square lies once more.
    """

    box: Box = eqx.field(static=True)
    reach: Box = eqx.field(static=True)
    spans: tuple[bool, ...] = eqx.field(static=True)
    chi2: Arrays
    chi3: Arrays
    loss: Arrays
    mirrors: Arrays

    def inner(self) -> tuple[slice, ...]:
        """Returns the cells of the box as an index of those of its reach."""
        return cells_of(self.box, self.reach)


def build_powers(
    one: Nonlinearity, sim: Simulation, stored: tuple[int, ...], block: Block
) -> Powers:
    """Makes the cells of a box ready to step.

    Args:
        one: The box.
        sim: The simulation.
        stored: Cells of the grid with the nodes on magnetic walls.
        block: How devices cut the grid.
    """
    names, grid = sim.components.electric, sim.grid.shape
    cells, more = to_wall(one.box, grid, stored)
    whole = tuple(n * p for n, p in zip(block.shape, block.parts, strict=True))
    box, pad = over_cuts(cells, block)

    def padded(prop):
        return {
            name: jnp.pad(jnp.pad(one.at(prop, name), more, mode="edge"), pad)
            for name in names
            if prop in one.given()
        }

    reach = []
    for (low, high), n, wraps in zip(box, whole, block.periodic, strict=True):
        near = (max(low - 1, 0), min(high + 1, n))
        # The neighbour of a cell at the border may be at the other one.
        reach.append((0, n) if wraps and (low == 0 or high == n) else near)
    spans = tuple(span == (0, n) for span, n in zip(reach, whole, strict=True))
    chi2, chi3, sigma3 = map(padded, COEFFICIENTS)
    # In this order: a conductivity over `EPSILON_0` alone may leave float32.
    loss = {name: x * (sim.dt / EPSILON_0 / 4) for name, x in sigma3.items()}
    mirrors = {}
    for axis, (low, high) in enumerate(reach):
        walls = [isinstance(face, PMC) for face in sim.boundaries.axis(axis)]
        name = f"E{AXES[axis]}"
        if any(walls) and name in names:
            node = np.arange(low, high)
            on = (walls[0] & (node == 0)) | (walls[1] & (node == grid[axis]))
            factor = along(jnp.asarray(1.0 + on), axis, len(grid))
            mirrors[name] = jnp.broadcast_to(factor, size_of(tuple(reach)))
    return Powers(box, tuple(reach), spans, chi2, chi3, loss, mirrors)


def fields_before(
    many: tuple[Powers, ...], block: Block, fields: Arrays
) -> tuple[Arrays, list[Arrays]]:
    """Returns the fields, and copies of those in nonlinear cells, before a step."""
    old = [
        {name: fields[name][cells_of(in_block(one.reach, block))] for name in one.chi2}
        for one in many
    ]
    return lax.optimization_barrier((fields, old))


def solve_nonlinear(
    many: tuple[Powers, ...], stepper: Stepper, fields: Arrays, old: list[Arrays]
) -> Arrays:
    r"""Corrects the fields of a linear half step for the nonlinear response.

    With $a = m + s$ and $N(E) = \chi_2 E^2 + \chi_3 |E|^2 E$ the field solves
    $a E + N(E) + L = a E' + N(E_0)$, with $E'$ of the linear step and $E_0$ from before
    it. $L = l (E + E_0) (|E|^2 + |E_0|^2)$ is what $\sigma_3$ adds: it takes energy in
    every step. The squares of the other components are averaged from where they are.

    Args:
        many: The nonlinear cells.
        stepper: The coefficients.
        fields: After the linear half step.
        old: The copies from `fields_before`.

    Returns:
        The fields.
    """
    fields, block = dict(fields), stepper.block
    for one, before in zip(many, old, strict=True):
        where, reach = (in_block(box, block) for box in (one.box, one.reach))
        linear = {name: fields[name][cells_of(reach)] for name in before}
        linear = lax.optimization_barrier(linear)
        place = tuple(
            span if parts == 1 else None
            for span, parts in zip(where, block.parts, strict=True)
        )
        for name, e in _solved(one, stepper, where, linear, before).items():
            fields[name] = block.put(fields[name], place, e)
    return fields


def _solved(
    one: Powers, stepper: Stepper, where: Box, linear: Arrays, before: Arrays
) -> Arrays:
    """Solves the equation of `solve_nonlinear` in one box.

    Args:
        one: Its cells.
        stepper: The coefficients.
        where: The box in cells of the block.
        linear: The fields in its reach after the linear half step.
        before: And before it.
    """
    inner = one.inner()
    others = partial(_others, one, stepper.block)
    squares, earlier = ({n: e * e for n, e in own.items()} for own in (linear, before))
    found = {name: field[inner] for name, field in linear.items()}
    known = {
        name: (before[name][inner], others(earlier, name)[inner]) for name in found
    }
    starts, changes = dict(found), {}
    for _ in range(_TURNS):
        for name, e in found.items():
            # Of the other components what is known of them so far.
            now = e, others(squares, name)[inner], *known[name]
            more, slope = _answer(one, name, *now)
            drive = stepper.rows[name].drive
            gap = e - starts[name] + drive(more, where)
            changes[name] = gap / (1 + drive(slope, where))
            found[name] = e = e - changes[name]
            if len(found) > 1:
                squares[name] = squares[name].at[inner].set(e * e)
    # NaN where the nonlinear response far exceeds the linear one.
    return {
        name: jnp.where(
            jnp.abs(changes[name]) <= _LAST * jnp.max(jnp.abs(e)), e, jnp.nan
        )
        for name, e in found.items()
    }


def _answer(
    one: Powers, name: str, e: Array, others: Array, first: Array, earlier: Array
) -> tuple[Array, Array]:
    """Returns the nonlinear terms that take the field to `e`, and their derivative.

    Args:
        one: The cells.
        name: The component.
        e: It after the step.
        others: The squares of the other components then.
        first: The component before the step.
        earlier: The squares of the others then.
    """
    chi2, chi3, loss = one.chi2[name], one.chi3[name], one.loss.get(name)

    def power(e, others):
        return (chi2 + chi3 * e) * e * e + chi3 * others * e

    more = power(e, others) - power(first, earlier)
    slope = (2 * chi2 + 3 * chi3 * e) * e + chi3 * others
    if loss is None:
        return more, slope
    squares = e * e + others + first * first + earlier
    return (
        more + loss * (e + first) * squares,
        slope + loss * (squares + 2 * e * (e + first)),
    )


def _others(one: Powers, block: Block, squares: Arrays, name: str) -> Array:
    """Returns the sum of squares of the other components where one is sampled."""
    total = jnp.zeros_like(squares[name])
    for other, square in squares.items():
        if other == name:
            continue
        for component, after in ((other, False), (name, True)):
            square = neighbour_mean(one.spans, block, square, component, after=after)
            if not after and component in one.mirrors:
                square = one.mirrors[component] * square
        total = total + square
    return total
