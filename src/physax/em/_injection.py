"""Currents on boxes of samples: what every source becomes before a run."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from ..grid import Block, Box
from ._clock import Clock
from ._pulses import AbstractPulse
from ._row import Row


class Injection(eqx.Module):
    """A current on one component in a box of samples.

    Attributes:
        component: The component it drives.
        box: The samples.
        amplitude: What is added to the curl of the component, shaped like the box (or
            broadcast to it), in units of the field.
        delay: Time in seconds by which the pulse comes later, likewise.
        pulse: The time dependence.
    """

    component: str = eqx.field(static=True)
    box: Box = eqx.field(static=True)
    amplitude: Num[Array, "..."]
    delay: Float[Array, "..."]
    pulse: AbstractPulse


Read = Callable[[Array, Box, float], Array]
"""Returns values at the samples of a box, a number where another block has them."""


def read_row(row: Row, read: Read, box: Box) -> Row:
    """Returns a material row at the samples of a box."""

    def entry(value: Array, fill: float) -> Array:
        return read(value, box, fill) if value.ndim else value

    # A sample of another block gets inertia 1: its value is dropped, but must not be a
    # quotient by zero.
    loss = None if row.loss is None else entry(row.loss, 0.0)
    return Row(entry(row.inertia, 1.0), loss, row.gain, row.decay)


def drives(
    injections: list[Injection],
    fields: dict[str, Array],
    rows: dict[str, Row],
    read: Read,
    clock: Clock,
) -> list[Array]:
    """Returns what the currents of one half step add to the fields in their boxes.

    Args:
        injections: Those of the half step.
        fields: All fields; only their types matter.
        rows: Material rows by component.
        read: Reads an entry of a row in a box.
        clock: The middle of the half step's leapfrog interval.
    """
    found = []
    for one in injections:
        value = one.amplitude * one.pulse(clock, one.delay)
        value = value.astype(jnp.result_type(value, fields[one.component]))
        found.append(read_row(rows[one.component], read, one.box).drive(value))
    return found


def inject(
    injections: list[Injection],
    fields: dict[str, Array],
    rows: dict[str, Row],
    block: Block,
    clock: Clock,
) -> dict[str, Array]:
    """Adds the currents of one half step to the fields.

    Args:
        injections: Those of the half step just done.
        fields: All fields on this block.
        rows: Material rows by component.
        block: The block.
        clock: The middle of the half step's leapfrog interval.

    Returns:
        The fields.
    """
    fields = dict(fields)
    found = drives(injections, fields, rows, block.read, clock)
    for one, drive in zip(injections, found, strict=True):
        fields[one.component] = block.add(fields[one.component], one.box, drive)
    return fields
