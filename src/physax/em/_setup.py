"""What sources and monitors see of the simulation that they belong to."""

import equinox as eqx
from jaxtyping import Array, Float

from ..grid import Grid
from ._components import Components
from ._layers import Axis
from ._medium import Medium


class Setup(eqx.Module):
    """The traced part of a simulation, whole, before it is cut into blocks.

    Attributes:
        grid: The grid.
        components: The components.
        medium: The medium.
        axes: Metrics and layers of each axis.
        dt: Time step in seconds.
        phases: For each axis the Bloch factor of one period, or `None`.
        steps: Number of steps of the run.
    """

    grid: Grid
    components: Components = eqx.field(static=True)
    medium: Medium
    axes: tuple[Axis, ...]
    dt: Float[Array, ""]
    phases: tuple[Array | None, ...]
    steps: int = eqx.field(static=True)
