"""Mode monitors: how much of a guided mode passes a port, and which way."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Complex, Float

from ..grid import Box
from ..units import ETA_0, FEMTO
from ._components import stagger
from ._monitors import AbstractSpectralMonitor, Read, as_frequencies
from ._plane_modes import plane_modes
from ._port_disc import Disc, disc_read
from ._port_medium import check_loss, port_medium
from ._port_places import find_port
from ._port_plane import PortPlane, plane_read
from ._ports import (
    Port,
    as_port,
    mode_fields,
    normal_of,
    open_ends,
    phase_per_cell,
    port_modes,
    rim_share,
)
from ._setup import Setup


class ModeAmplitudes(eqx.Module):
    """Amplitudes of one mode at a port, whose squared moduli are fluxes.

    Attributes:
        frequencies: In Hz.
        incoming: Along the direction of the port, into the device, in sqrt(W) fs (3-D
            and cylindrical coordinates) or sqrt(W/m) fs (2-D).
        outgoing: Against it.
        effective_index: Of the mode.
        guided: Whether the line guides the mode, at each frequency; `None` if unknown.
        square: Of the index: not positive, or NaN, where the mode is cut off.
        cladding_index: Of what continues beyond a plane or a disc; `None` of a line.
        rim: Share of the mode's power in the outer twentieth of the port, at each of
            its ends that is not a wall.
    """

    frequencies: Float[Array, " freqs"]
    incoming: Complex[Array, " freqs"]
    outgoing: Complex[Array, " freqs"]
    effective_index: Float[Array, " freqs"]
    guided: Bool[Array, " freqs"] | None = None
    square: Float[Array, " freqs"] | None = None
    cladding_index: Float[Array, " freqs"] | None = None
    rim: Float[Array, " freqs"] | None = None


def _like(field: Array, value: Array) -> Array:
    """Pads samples by the zeros of nodes on electric walls, which are not stored."""
    more = [(0, n - m) for n, m in zip(field.shape, value.shape, strict=True)]
    return jnp.pad(value, more)


class ModeMonitor(AbstractSpectralMonitor):
    r"""Overlap of the fields on a port's line with its mode, at each frequency.

    With the mode fields $e$, $h$ the sums $u = \sum e H$ and $v = \sum h E$, E averaged
    over two nodes to the plane of H, give the amplitudes
    $(v \pm u) / \sqrt{8 \sum e h}$ of the waves along and against the direction. Both
    follow the transverse electric field: a mirror with $r = -1$ has $S_{11} = -1$.
    E and H of a mode lie half a cell apart, so the power is their product times
    $\cos(\beta \Delta / 2)$: the amplitudes have the root of that as a factor, where
    the port compensates.

    Attributes:
        port: Plane, line, direction and mode; measured `offset` from its plane.
        frequencies: In Hz.

    Raises:
        ArgumentError: If `port` is not a port, or a frequency is not positive.
    """

    port: Port = eqx.field(converter=as_port)
    frequencies: Float[Array, " freqs"] = eqx.field(converter=as_frequencies)

    def locate(self, frame, what):
        port = self.port
        place = find_port(port, frame, what, along=port.offset)
        if isinstance(place, PortPlane | Disc):
            return self._on_section(place, frame, what)
        box = place
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

    def _on_section(self, plane, frame, what):
        frame.warn_in_layer(plane.box, what, axes=(plane.axis,))
        reads = []
        for letter in "EH":
            for axis in plane.names[:2]:
                name = letter + axis
                spans = plane.spans(name, frame.stored)
                # The plane of H, half a cell before the node; E on both sides of it.
                spans[plane.axis] = (plane.node - 1, plane.node + (letter == "E"))
                reads.append(Read(name, name, tuple(spans)))
        return tuple(reads)

    def _lag(self, index, node: int, setup: Setup) -> Float[Array, " freqs"]:
        """Returns the cosine of the phase over half the cell of H; 1 if left out."""
        if not self.port.compensate:
            return jnp.ones_like(index)
        turn = phase_per_cell(self.port, index, node - 1, setup, self.frequencies)
        return jnp.cos(turn / 2)

    def finish(self, total, reads, setup):
        if setup.grid.ndim == 3 or setup.components.m is not None:
            return self._finish_section(total, reads, setup)
        port, axis = self.port, self.port.axis
        boxes = {read.key: read.box for read in reads}
        nodal = next(r for r in reads if stagger(r.component, 2)[axis] == 0.0)
        line = list(boxes[reads[0].key])
        node = nodal.box[axis][0] + 1
        line[axis] = (node, node + 1)
        modes = port_modes(port, tuple(line), setup, self.frequencies)
        fields = mode_fields(port, modes, setup)
        values = {key: jnp.mean(v, axis=1 + axis) for key, v in total.items()}
        lag = self._lag(modes.effective_index, node, setup)
        values[nodal.key] = values[nodal.key] / lag[:, None]
        out, partner = reads[0].key, reads[1].key
        other = 1 - axis
        half = stagger(out, 2)[other]
        widths = setup.sample_widths(other, half)[slice(*line[other])]
        e, h = sorted((out, partner))
        u = jnp.sum(fields[e] * values[h] * widths, axis=-1)
        v = jnp.sum(values[e] * fields[h] * widths, axis=-1)
        norm = jnp.sum(fields[e] * fields[h] * widths, axis=-1)
        # In this sum the sign of e h is that of the flux; the amplitudes need its root.
        sign = jnp.sign(norm)
        scale = FEMTO * jnp.sqrt(8 * jnp.abs(norm) * ETA_0 / lag)
        scale = scale + 0 * self._loss(tuple(line), setup)
        incoming, outgoing = sign * (u + v) / scale, sign * (v - u) / scale
        power = fields[e] * fields[h] * widths
        ends = open_ends(port, tuple(line), setup)
        return ModeAmplitudes(
            self.frequencies,
            incoming,
            outgoing,
            modes.effective_index,
            modes.guided,
            modes.effective_index**2,
            rim=jax.vmap(lambda p: rim_share(p, [ends]))(power),
        )

    def _loss(self, box: Box, setup: Setup) -> Float[Array, " freqs"]:
        axis = normal_of(self.port, setup.components)
        return check_loss(
            port_medium(setup.medium, box, axis, setup.grid.shape, setup.dt),
            setup.components.electric,
            self.frequencies,
            "the port of a monitor",
        )

    def _finish_section(self, total, reads, setup):
        port, boxes = self.port, {read.key: read.box for read in reads}
        around = setup.components.m is not None
        plane = disc_read(boxes) if around else plane_read(port, boxes)
        modes = plane_modes(port, plane, setup, self.frequencies)
        found = {
            k: _like(modes.fields[k], plane.flattened(v)) for k, v in total.items()
        }
        lag = self._lag(modes.effective_index, plane.node, setup)
        lift = 1 / lag[:, None, None]
        found = {k: v * lift if k[0] == "E" else v for k, v in found.items()}
        first, second, _ = plane.names

        def flow(e, h):
            products = (
                e["E" + first] * h["H" + second],
                e["E" + second] * h["H" + first],
            )
            weighted = (w * x for w, x in zip(modes.areas, products, strict=True))
            one, two = (jnp.sum(x, axis=(1, 2)) for x in weighted)
            return one - two

        u = port.sign * flow(modes.fields, found)
        v = flow(found, modes.fields)
        scale = FEMTO * jnp.sqrt(8 * flow(modes.fields, modes.fields) * ETA_0 / lag)
        scale = scale + 0 * self._loss(plane.box, setup)
        return ModeAmplitudes(
            self.frequencies,
            (v + u) / scale,
            (v - u) / scale,
            modes.effective_index,
            modes.guided,
            modes.square,
            modes.cladding_index,
            modes.rim,
        )
