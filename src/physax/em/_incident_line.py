"""The line along which the wave of a plane-wave source is stepped by itself."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..grid import Block
from ._clock import Clock
from ._components import CYLINDRICAL_AXES, Components, CurlTerm
from ._dispersion import Memory, Responses, at_rest, each_response, respond
from ._faces import Correction, metric_at
from ._injection import Injection, inject, read_row
from ._layers import Axis
from ._row import Row
from ._step import add_polarisation, half_step
from ._stepper import Arrays, Stepper, zero_psi


class WavePlace(NamedTuple):
    """The faces' corrections, electric then magnetic, and the extent of the line.

    Attributes:
        corrections: For each half step.
        start: Number, on the grid, of the first node of the line.
        cells: Cells of the line.
        source: Node of the line at which the wave is made.
    """

    corrections: tuple[tuple[Correction, ...], ...]
    start: int
    cells: int
    source: int


ALONG_AXIS = Components(
    2,
    ("Er",),
    ("Hp",),
    (CurlTerm("Er", 1, "Hp", -1),),
    (CurlTerm("Hp", 1, "Er", -1),),
    CYLINDRICAL_AXES,
)
"""What a plane wave along z has where phi = 0."""

# E along phi = 0 has the factor -sin phi of Ep, H across it that of sin phi of Hr.
_ALIKE = {"Ep": ("Er", -1), "Hr": ("Hp", 1)}


class LineState(eqx.Module):
    """Fields, layer memory and poles of an incident line."""

    fields: Arrays
    psi: Arrays
    poles: dict[str, tuple[Memory, ...]]


class IncidentLine(eqx.Module):
    """The line of an incident wave, stepped beside the simulation."""

    stepper: Stepper
    responses: Responses
    sheet: Injection
    axis: int = eqx.field(static=True)
    place: WavePlace = eqx.field(static=True)

    def rest(self, dtype) -> LineState:
        """Returns the line before anything has happened."""
        shape = self.stepper.block.shape
        names = self.stepper.components.names
        fields = {name: jnp.zeros(shape, dtype) for name in names}
        poles = each_response(partial(at_rest, dtype=dtype), self.responses)
        return LineState(fields, zero_psi(self.stepper, dtype), poles)

    def advance(self, state: LineState, clock: Clock, *, electric: bool) -> LineState:
        """Advances one half step of the line."""
        fields, psi = half_step(
            self.stepper, state.fields, state.psi, electric=electric
        )
        if not electric:
            return LineState(fields, psi, state.poles)
        drives = each_response(lambda _, own: own.output, self.responses, state.poles)
        fields = add_polarisation(self.stepper, self.responses, fields, drives)
        rows, block = self.stepper.rows, self.stepper.block
        fields = inject([self.sheet], fields, rows, block, clock)
        read = {name: (fields[name],) for name in self.responses}
        poles = each_response(respond, self.responses, state.poles, read)
        return LineState(fields, psi, poles)

    def correct(
        self,
        state: LineState,
        fields: Arrays,
        axes: tuple[Axis, ...],
        rows: dict[str, Row],
        block: Block,
        *,
        electric: bool,
    ) -> Arrays:
        """Adds to the rows at the faces what they lack of the incident wave.

        Args:
            state: The line, with the fields that the rows read.
            fields: Fields of the simulation on this block, just updated.
            axes: Metrics of the whole simulation.
            rows: Material rows on this block.
            block: The block.
            electric: Which half step.

        Returns:
            The fields.
        """
        fields = dict(fields)
        for term, value in self.corrections(state, axes, electric=electric):
            field = fields[term.target]
            drive = read_row(rows[term.target], block.read, term.box).drive(
                value.astype(field.dtype)
            )
            fields[term.target] = block.add(field, term.box, drive)
        return fields

    def corrections(
        self, state: LineState, axes: tuple[Axis, ...], *, electric: bool
    ) -> list[tuple[Correction, Array]]:
        """Returns what the curls at the faces lack, shaped like their boxes."""
        out = []
        for term in self.place.corrections[0 if electric else 1]:
            value = term.sign * metric_at(axes, term, electric)
            value = value * self._incident(state, term)
            shape = tuple(high - low for low, high in term.box)
            out.append((term, jnp.broadcast_to(value, shape)))
        return out

    def _incident(self, state: LineState, term: Correction) -> Array:
        """Returns the incident samples that a correction reads."""
        axis, box = self.axis, term.box
        name, sign = _ALIKE.get(term.source, (term.source, 1))
        line = sign * state.fields[name]
        low, high = box[axis]
        if term.axis == axis:
            low, high = term.at, term.at + 1
        start = self.place.start
        cut = tuple(
            slice(low - start, high - start) if a == axis else slice(None)
            for a in range(line.ndim)
        )
        value = line[cut]
        for a, phase in enumerate(self.stepper.block.phase):
            if phase is None:
                continue
            # Of the sample that is read, across a face that it lies behind.
            place = (term.at, term.at + 1) if a == term.axis else box[a]
            cells = jnp.arange(*place)
            turn = jnp.exp(1j * jnp.angle(phase) * cells).astype(line.dtype)
            value = value * turn.reshape(
                [-1 if b == a else 1 for b in range(line.ndim)]
            )
        return value
