"""Flux monitors: power through a plane."""

from collections.abc import Collection
from functools import partial
from math import isinf

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..grid import Box
from ..units import ETA_0, FEMTO
from ._boundaries import Bloch, Periodic
from ._components import AXES
from ._cylindrical import around
from ._frame import Point, as_point, check_point, check_size
from ._monitors import AbstractSpectralMonitor, Read, as_frequencies
from ._setup import Setup


class FluxMonitor(AbstractSpectralMonitor):
    r"""Power through a plane (3-D), a line (2-D) or a point (1-D), up its axis.

    $P(f) = \frac12 \mathrm{Re} \int E \times H^* \cdot dA$ of the spectra;
    quotients of two fluxes of one pulse are fractions of power. H is averaged over the
    two planes on either side of the node nearest to the monitor, so that in a lossless
    region the flux is the same through every plane, to rounding.

    Attributes:
        axis: `"x"`, `"y"` or `"z"`, in cylindrical coordinates `"r"` or `"z"`: the
            normal.
        centre: Middle in metres.
        size: Lengths in metres, 0 along the normal. Each sample counts with the part of
            its cell that lies within, so that monitors side by side add up to one; with
            its whole cell along another axis of size 0.
        frequencies: In Hz.

    Raises:
        ArgumentError: If `axis` is no axis, or a frequency is not positive.
    """

    axis: str = eqx.field(static=True)
    centre: Point = eqx.field(static=True, converter=partial(as_point, name="centre"))
    size: Point = eqx.field(static=True, converter=partial(as_point, name="size"))
    frequencies: Float[Array, " freqs"] = eqx.field(converter=as_frequencies)

    def __check_init__(self):
        if self.axis not in (*AXES, "r"):
            raise ArgumentError(
                "`axis` of a flux monitor must be 'x', 'y' or 'z', in cylindrical "
                f"coordinates 'r' or 'z', but is {self.axis!r}."
            )

    def locate(self, frame, what):
        axes = frame.components.axes
        if self.axis not in axes:
            raise ArgumentError(
                f"`axis` of {what} must be one of {axes}, but is {self.axis!r}."
            )
        normal = axes.index(self.axis)
        centre = check_point(self.centre, frame.ndim, "centre", what)
        size = check_size(self.size, frame, what)
        if size[normal]:
            raise ArgumentError(
                f"`size` of {what} must be 0 along its axis {self.axis}, because the "
                f"flux is that through one plane, but is {size[normal]:g} m. For the "
                "power out of a box take a `NearFieldMonitor`."
            )
        node = max(frame.nearest(normal, centre[normal], 0.0, what), 1)
        reads = []
        for electric, magnetic, _ in poynting_pairs(self.axis, frame.components.names):
            for name in (electric, magnetic):
                spans = [
                    frame.cover(a, centre[a], size[a], half, what)
                    for a, half in enumerate(frame.components.stagger(name))
                ]
                low = node if name[0] == "E" else node - 1
                spans[normal] = (low, node + 1)
                reads.append(Read(name, name, tuple(spans)))
        frame.warn_in_layer(reads[0].box, what)
        return tuple(reads)

    def finish(self, total, reads, setup):
        return SpectralFlux(self.frequencies, self.power(total, reads, setup))

    def power(self, total, reads, setup):
        """Returns the flux at each frequency."""
        parts = setup.components
        normal = parts.axes.index(self.axis)
        boxes = {read.key: read.box for read in reads}
        flux = jnp.zeros(self.frequencies.shape, jnp.real(total[reads[0].key]).dtype)
        for electric, magnetic, sign in poynting_pairs(self.axis, parts.names):
            e, h = total[electric] / FEMTO, total[magnetic] / FEMTO
            if parts.m is not None and normal == 0:
                e = e * _radii(electric, boxes[electric], setup)
                h = h * _radii(magnetic, boxes[magnetic], setup)
            h = jnp.mean(h, axis=1 + normal, keepdims=True)
            area = self._area(electric, boxes[electric], setup)
            product = jnp.real(e * jnp.conj(h)) * area
            flux = flux + sign * jnp.sum(product, axis=range(1, product.ndim))
        return flux / (2 * ETA_0)

    def _area(self, component: str, box: Box, setup: Setup) -> Array:
        """Returns the area around each sample, in metres to its dimension."""
        ndim, parts = setup.grid.ndim, setup.components
        area = jnp.ones((1,) * ndim, setup.dt.dtype)
        for axis, half in enumerate(parts.stagger(component)):
            if axis == parts.axes.index(self.axis):
                if parts.m is not None and axis == 0:
                    area = area * around(parts.m)
                continue
            widths = setup.sample_widths(axis, half, component)[slice(*box[axis])]
            if self.size[axis] > 0 and not isinf(self.size[axis]):
                widths = widths * self._share(axis, half, setup)[slice(*box[axis])]
            area = area * widths.reshape([-1 if a == axis else 1 for a in range(ndim)])
        return area

    def _share(self, axis: int, half: float, setup: Setup) -> Float[Array, " samples"]:
        """Returns which part of the cell of each sample lies within the size."""
        grid = setup.grid
        widths, origin = grid.cell_widths(axis), grid.origin[axis]
        nodes = jnp.concatenate([jnp.zeros(1, widths.dtype), jnp.cumsum(widths)])
        ends = nodes
        if not half:
            middles = (nodes[1:] + nodes[:-1]) / 2
            ends = jnp.concatenate([nodes[:1], middles, nodes[-1:]])
        # The difference of two large numbers has no error, and the rest is small.
        large = np.asarray(self.centre[axis], widths.dtype)
        middle = (large - origin) + (self.centre[axis] - float(large))
        reach = self.size[axis] / 2
        inside = jnp.clip(ends, middle - reach, middle + reach)
        if setup.components.m is not None and axis == 0:
            # Areas of rings.
            ends, inside = (ends + origin) ** 2, (inside + origin) ** 2
        whole, part = jnp.diff(ends), jnp.diff(inside)
        if not half and isinstance(setup.boundaries.axis(axis)[0], (Periodic, Bloch)):
            # The first node has half a cell at either end.
            whole, part = (x[:-1].at[0].add(x[-1]) for x in (whole, part))
        return part / whole


class SpectralFlux(eqx.Module):
    """Power through a monitor.

    Attributes:
        frequencies: In Hz.
        flux: Spectral energy in W fs^2 (3-D), W fs^2/m (2-D), W fs^2/m^2 (1-D),
            positive up the axis. In W s^2 that of a wave of 1 V/m would be 1e-38, which
            float32 does not hold.
    """

    frequencies: Float[Array, " freqs"]
    flux: Float[Array, " freqs"]


def poynting_pairs(normal: str, names: Collection[str]) -> list[tuple[str, str, int]]:
    """Returns the products of which the normal Poynting component is the sum."""
    axes = ("r", "p", "z") if "Hp" in names else AXES
    at = axes.index(normal)
    j, k = axes[(at + 1) % 3], axes[(at + 2) % 3]
    both = [("E" + j, "H" + k, 1), ("E" + k, "H" + j, -1)]
    return [pair for pair in both if pair[0] in names and pair[1] in names]


def _radii(component: str, box: Box, setup: Setup) -> Array | int:
    """Returns by what a component counts in the flow through a cylinder."""
    points = {"Ep": setup.grid.edges, "Hp": setup.grid.centres}.get(component)
    return 1 if points is None else points(0)[slice(*box[0]), None]
