"""Mode monitors: how much of a guided mode passes a port, and which way."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Complex, Float

from ..units import ETA_0
from ._components import stagger
from ._monitors import AbstractSpectralMonitor, Read, as_frequencies
from ._ports import Port, mode_fields, phase_per_cell, port_line, port_modes


class ModeAmplitudes(eqx.Module):
    """Amplitudes of one mode at a port, whose squared moduli are powers.

    Attributes:
        frequencies: In Hz.
        incoming: Along the direction of the port, into the device.
        outgoing: Against it.
        effective_index: Of the mode.
        guided: Whether the line guides the mode, at each frequency; `None` if unknown.
    """

    frequencies: Float[Array, " freqs"]
    incoming: Complex[Array, " freqs"]
    outgoing: Complex[Array, " freqs"]
    effective_index: Float[Array, " freqs"]
    guided: Bool[Array, " freqs"] | None = None


class ModeMonitor(AbstractSpectralMonitor):
    r"""Overlap of the fields on a port's line with its mode, at each frequency.

    With the mode fields $e$, $h$ the sums $u = \sum e H$ and $v = \sum h E$, E averaged
    over two nodes to the plane of H, give the amplitudes
    $(v \pm u) / \sqrt{8 \sum e h}$ of the waves along and against the direction. Both
    follow the transverse electric field: a mirror with $r = -1$ has $S_{11} = -1$.

    Attributes:
        port: Plane, line, direction and mode; measured `offset` from its plane.
        frequencies: In Hz.
    """

    port: Port
    frequencies: Float[Array, " freqs"] = eqx.field(converter=as_frequencies)

    def locate(self, frame, what):
        port = self.port
        box = port_line(port, frame, what, along=port.offset)
        frame.warn_in_layer(box, what, axes=(port.axis,))
        parts = frame.components
        out = "Ez" if "Ez" in parts.names else "Hz"
        terms = parts.magnetic_terms if out == "Ez" else parts.electric_terms
        partner = next(
            t.target for t in terms if t.axis == port.axis and t.source == out
        )
        reads = []
        for name in (out, partner):
            spans = list(box)
            node = box[port.axis][0]
            # The plane of H, half a cell before the node; E on both sides of it.
            at_node = stagger(name, 2)[port.axis] == 0.0
            spans[port.axis] = (node - 1, node + 1) if at_node else (node - 1, node)
            reads.append(Read(name, name, tuple(spans)))
        return tuple(reads)

    def finish(self, total, reads, setup):
        port, axis = self.port, self.port.axis
        boxes = {read.key: read.box for read in reads}
        nodal = next(r for r in reads if stagger(r.component, 2)[axis] == 0.0)
        line = list(boxes[reads[0].key])
        node = nodal.box[axis][0] + 1
        line[axis] = (node, node + 1)
        modes = port_modes(port, tuple(line), setup, self.frequencies)
        fields = mode_fields(port, modes, setup)
        values = {key: jnp.mean(v, axis=1 + axis) for key, v in total.items()}
        if port.compensate:
            turn = phase_per_cell(port, modes, node, setup, self.frequencies)
            values[nodal.key] = values[nodal.key] / jnp.cos(turn / 2)[:, None]
        out, partner = reads[0].key, reads[1].key
        other = 1 - axis
        half = stagger(out, 2)[other]
        widths = setup.sample_widths(other, half)[slice(*line[other])]
        u = jnp.sum(fields[out] * values[partner] * widths, axis=-1)
        v = jnp.sum(fields[partner] * values[out] * widths, axis=-1)
        norm = jnp.sum(fields[out] * fields[partner] * widths, axis=-1)
        # In this sum the sign of e h is that of the flux; the amplitudes need its root.
        sign = jnp.sign(norm)
        scale = jnp.sqrt(8 * jnp.abs(norm) * ETA_0)
        incoming, outgoing = sign * (u + v) / scale, sign * (v - u) / scale
        return ModeAmplitudes(
            self.frequencies,
            incoming,
            outgoing,
            modes.effective_index,
            modes.guided,
        )
