"""A whole step in one sweep over the rows of a block, for blocks on CPU cores."""

import math
import os
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from ..grid import Layout
from ._row_step import (
    Both,
    add_to_row,
    as_one_function,
    from_beside,
    half_row,
    hidden_zero,
    is_across,
    last_row,
    of_row,
    only_if,
    reached_rows,
    sources_beside,
)
from ._step import half_step
from ._stepper import Arrays, Stepper


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
    # A row for each face without a layer: the first and the last must be two, and no
    # layer may reach a row beside another block.
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
    followed by the row of E that it completes, while both are in the cache. What the
    first row of E lacks of the block before, which has to step first, is added then.
    Derivatives are those of two half steps.

    Args:
        stepper: The coefficients, inside a loop; only the first axis is cut.
        fields: All components on this block.
        psi: Memory of the layers.

    Returns:
        The fields and the memory, with all entries replaced.
    """
    block = stepper.block
    last, first = last_row(block), hidden_zero(block)
    # No layer reaches a row beside which there is another block: see `suits_sweep`.
    at_end = of_row(stepper, (), last, electric=False, only=is_across)
    after = from_beside(at_end, _planes(stepper, block.after, fields, electric=False))
    all_rows = partial(_all_rows, stepper, (fields, psi), after)
    fields, psi = as_one_function(all_rows)
    at_start = of_row(stepper, (), first, electric=True, only=is_across)
    planes = _planes(stepper, block.before, fields, electric=True)
    return add_to_row(fields, first, from_beside(at_start, planes)), psi


@sweep.def_jvp
def _(primals, tangents):
    return eqx.filter_jvp(_halves, primals, tangents)


def _halves(stepper: Stepper, fields: Arrays, psi: Arrays) -> Both:
    for electric in (False, True):
        fields, psi = half_step(stepper, fields, psi, electric=electric)
    return fields, psi


def _planes(
    stepper: Stepper,
    beyond: Callable[[Array, int], Array | None],
    fields: Arrays,
    *,
    electric: bool,
) -> Arrays:
    """Returns the rows of the sources in the block beside."""
    names = sources_beside(stepper, electric=electric)
    found = {name: beyond(fields[name], 0) for name in names}
    # Where the first axis is cut there is one, of zeros at the ends of the grid.
    return {name: plane for name, plane in found.items() if plane is not None}


def _all_rows(stepper: Stepper, carry: Both, after: Arrays) -> Both:
    """Advances all rows, with nothing beyond the block.

    In one loop: one more, for the rows in a layer say, doubles what is compiled.

    Args:
        stepper: The coefficients.
        carry: The fields and the memory.
        after: What the last row of H gets from the block after.
    """
    end, layers = last_row(stepper.block), reached_rows(stepper)

    def complete(i: Array, carry: Both) -> Both:
        return add_to_row(carry[0], i, after), carry[1]

    def both(i: Array, carry: Both) -> Both:
        carry = half_row(stepper, layers, i, carry, electric=False)
        carry = only_if(i == end, i, complete, carry)
        return half_row(stepper, layers, i, carry, electric=True)

    return lax.fori_loop(jnp.int32(0), end + 1, both, carry)
