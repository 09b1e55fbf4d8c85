"""What sources and monitors see of the simulation that they belong to."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..grid import Grid
from ..units import SPEED_OF_LIGHT
from ._boundaries import Bloch, Boundaries, Periodic
from ._components import Components
from ._cylindrical import ring_widths
from ._layers import Axis
from ._medium import Medium


class Setup(eqx.Module):
    """The traced part of a simulation, whole, before it is cut into blocks.

    Attributes:
        grid: The grid.
        components: The components.
        medium: The medium, its design regions apart.
        axes: Metrics and layers of each axis.
        dt: Time step in seconds.
        phases: For each axis the Bloch factor of one period, or `None`.
        steps: Number of steps of the run.
        boundaries: The faces.
    """

    grid: Grid
    components: Components = eqx.field(static=True)
    medium: Medium
    axes: tuple[Axis, ...]
    dt: Float[Array, ""]
    phases: tuple[Array | None, ...]
    steps: int = eqx.field(static=True)
    boundaries: Boundaries

    def node_gaps(self, axis: int) -> Float[Array, " cells"]:
        """Returns the distances between the centres of the cells at each node.

        At node 0 of a periodic axis over the ends of the period, else the first width.
        """
        grid, gaps = self.grid, self.grid.dual_widths(axis)
        low = self.boundaries.axis(axis)[0]
        if grid.is_uniform(axis) or not isinstance(low, Periodic | Bloch):
            return gaps
        cells = grid.cell_widths(axis)
        return gaps.at[0].set((cells[0] + cells[-1]) / 2)

    def sample_widths(
        self, axis: int, half: float, component: str = ""
    ) -> Float[Array, " samples"]:
        """Returns the width around each sample along an axis, in metres.

        Half a cell on the node of a magnetic wall, zero on that of an electric wall,
        where the field is zero. Along r it is the area of the ring of a component.
        """
        rows, m = self.axes[axis], self.components.m
        if rows.radial is not None and m is not None:
            length = SPEED_OF_LIGHT * self.dt
            return ring_widths(rows, component, half, length, m)
        metric = rows.magnetic if half else rows.electric
        length = SPEED_OF_LIGHT * self.dt
        if metric.ndim == 0:
            return jnp.broadcast_to(length / metric, (self.grid.shape[axis],))
        safe = jnp.where(metric > 0, metric, 1)
        return jnp.where(metric > 0, length / safe, 0)
