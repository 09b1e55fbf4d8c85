"""A whole step in one sweep over the rows of a block, for blocks on CPU cores."""

import math
import os

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..grid import Layout
from ._row_step import (
    Both,
    as_one_function,
    cut_row,
    half_row,
    hidden_zero,
    of_row,
    only_if,
    reached_rows,
    sources_beside,
    written,
)
from ._step import Arrays, Stepper, half_step


# All fields of two rows, in bytes, should stay in the cache of a core.
_WIDEST = 1 << 20
# Cells of a row from which they take longer than what comes with each row.
_NARROWEST = 256
# Bytes of all fields of a block: those of a smaller one stay in the cache anyway.
_LEAST = 1 << 18


def suits_sweep(stepper: Stepper, layout: Layout | None, itemsize: int) -> bool:
    """Tells whether a block is one that `sweep` steps, and faster than half steps do.

    A sweep of a block takes one core, and reads each field from memory once in a step.
    Half steps take all cores that XLA finds, and read each field three or four times.

    Args:
        stepper: The coefficients.
        layout: The devices, or `None`.
        itemsize: Bytes of a sample of a field.
    """
    block, axis = stepper.block, stepper.axes[0]
    if layout is None or axis.radial is not None or block.parts[0] == 1:
        return False
    rows, *others = block.shape
    size = math.prod(others)
    row = size * itemsize * len(stepper.components.names)
    # A row for each face without a layer: the first and the last must be two.
    ends = [1 if slab is None else slab.cells for slab in (axis.low, axis.high)]
    devices = list(layout.mesh.devices.flat)
    return (
        all(device.platform == "cpu" for device in devices)
        # Half steps use the cores that have no device.
        and 2 * len(devices) >= (os.cpu_count() or 1)
        and math.prod(block.parts[1:]) == 1
        and sum(ends) <= rows
        and size >= _NARROWEST
        and row <= _WIDEST
        and row * rows >= _LEAST
    )


@eqx.filter_custom_jvp
def sweep(stepper: Stepper, fields: Arrays, psi: Arrays) -> Both:
    """Advances the magnetic and the electric fields by one step, row by row.

    A row is what a block holds at one place of the first axis. Each row of H is
    followed by the row of E that it completes, while both are in the cache. Only the
    last row of H, which the next block waits for, comes first. Derivatives are those of
    two half steps.

    Args:
        stepper: The coefficients, inside a loop; only the first axis is cut.
        fields: All components on this block.
        psi: Memory of the layers.

    Returns:
        The fields and the memory, with all entries replaced.
    """
    block = stepper.block
    after = {
        k: block.after(fields[k], 0) for k in sources_beside(stepper, electric=False)
    }
    row = of_row(stepper, "high", _end(stepper), electric=False)
    # Were this row written into the fields here, XLA would copy the fields.
    last = half_step(
        row.own,
        {name: cut_row(values, row.i) for name, values in fields.items()},
        {name: cut_row(psi[name], row.i - at) for name, at in row.memory.items()},
        electric=False,
        beside=after,
    )
    # Where the first axis is cut there is a plane, of zeros at the ends of the grid.
    before = {
        name: plane
        for name in sources_beside(stepper, electric=True)
        if (plane := block.beyond(last[0][name], 0, after=False)) is not None
    }

    return as_one_function(lambda: _all_rows(stepper, (fields, psi), last, before))


@sweep.def_jvp
def _(primals, tangents):
    return eqx.filter_jvp(_halves, primals, tangents)


def _halves(stepper: Stepper, fields: Arrays, psi: Arrays) -> Both:
    for electric in (False, True):
        fields, psi = half_step(stepper, fields, psi, electric=electric)
    return fields, psi


def _all_rows(stepper: Stepper, carry: Both, last: Both, before: Arrays) -> Both:
    """Advances all rows.

    In one loop: one more, for the rows in a layer say, doubles what is compiled.
    Without a choice between rows in its body: it would be made in every cell. So
    until the last row of H is reached, its place holds what the first row of E reads
    from the block before.
    """
    end, layers = _end(stepper), reached_rows(stepper)
    end_row = of_row(stepper, "high", end, electric=False, others=False)

    def half(i: Array, carry: Both, *, electric: bool) -> Both:
        def beside(fields: Arrays) -> Arrays:
            at = jnp.where(i == 0, end, i - 1) if electric else jnp.minimum(i + 1, end)
            names = sources_beside(stepper, electric=electric)
            return {name: cut_row(fields[name], at) for name in names}

        # What the last row of H reads is not here.
        bent = electric | (i < end)
        return half_row(stepper, layers, i, carry, beside, electric=electric, bent=bent)

    def both(i: Array, carry: Both) -> Both:
        carry = half(i, carry, electric=False)
        carry = only_if(i == end, i, lambda _, c: written(end_row, c, *at_end), carry)
        return half(i, carry, electric=True)

    kept = {name: last[1][name] for name in end_row.memory}
    at_end = {name: last[0][name] for name in stepper.components.magnetic}, kept
    carry = written(end_row, carry, before, {})
    return lax.fori_loop(jnp.int32(0), end + 1, both, carry)


def _end(stepper: Stepper) -> Array:
    """Returns the number of the last row, which the compiler does not know.

    It would compute a known row again where it is read, from copies of the fields.
    """
    return stepper.block.shape[0] - 1 + hidden_zero(stepper.block)
