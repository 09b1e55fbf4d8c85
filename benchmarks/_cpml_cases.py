r"""How strongly an absorbing layer reflects: one definition for every code.

Geometry (vacuum, 2-D, component Ez, cells of `dx = wavelength / 20`, time step
`dt = dx / (2 c)`): the plane x-y is one cell wide along y with Bloch phase
`exp(i k_parallel dx)` (periodic at normal incidence), and along x, from left to right::

    wall | layer, `cells` | LEFT | source | to_edge | edge | layer, `cells` | wall

Ez sits on the nodes, the walls and both inner edges of the layers lie on nodes, and a
wall is a node where Ez = 0 (of what lies behind the left layer nothing is seen). The
source is a current Jz on one node, `LEFT` = 20 cells right of the left layer and
`to_edge` cells left of the right one. It drives the pulse

    exp(-(t - t0)^2 / (2 s^2)) exp(-i w0 (t - t0)),   s = 1 / (2 pi width), t0 = 6 s,

(its real part where the fields are real) for 0 <= t <= 12 s. `width`, a frequency over
the carrier's, is a sixth of the distance to the cut-off, so that almost nothing is sent
near it, where waves stand still. Ez on the node of the right inner edge is recorded
after every one of `steps` steps: "short".

The same run with the right layer, and nothing else, moved `far` cells to the right
gives "long": `far` is so large that even a signal at c cannot come back in time. The
left layer is the same in both. What it returns of the source's wave is part of the
incident wave; what it returns of the reflected wave makes a relative error of some r.

    r = |F(short - long)| / |F(long)|,   F(u) = sum over n of u_n exp(i w0 n dt)

is the amplitude reflected, at the frequency w0 and at the inner edge itself (for the
evanescent case it matters where: the incident field falls by exp(-kappa d)). Recording
for longer changes r by less than 1e-5 of itself.
"""

import dataclasses
import math

import numpy as np


CELLS_PER_WAVELENGTH = 20
COURANT = 0.5
STEPS_PER_PERIOD = CELLS_PER_WAVELENGTH / COURANT
LEFT = 20
LAYERS = (10, 20)


@dataclasses.dataclass(frozen=True)
class Case:
    """One incident wave.

    Attributes:
        name: As printed.
        k_parallel: Wavenumber along y over that of vacuum, sin(angle); above 1 the
            wave is evanescent along x.
        to_edge: Cells from the source to the inner edge of the right layer.
        after: Periods that are recorded after the source has ended.
    """

    name: str
    k_parallel: float
    to_edge: int
    after: float

    @property
    def width(self) -> float:
        """Width of the pulse's spectrum over the carrier frequency."""
        return min(0.05, abs(1 - self.k_parallel) / 6)

    @property
    def spread(self) -> float:
        """Standard deviation of the pulse's envelope, in periods."""
        return 1 / (2 * math.pi * self.width)

    @property
    def steps(self) -> int:
        """Time steps of the run."""
        return math.ceil((12 * self.spread + self.after) * STEPS_PER_PERIOD)

    @property
    def far(self) -> int:
        """Cells by which the long domain is longer."""
        return 2 * math.ceil(self.steps * COURANT / 4) + 10


CASES = (
    Case("0 degrees", 0.0, 40, 20.0),
    Case("60 degrees", math.sin(math.radians(60)), 40, 100.0),
    Case("80 degrees", math.sin(math.radians(80)), 40, 150.0),
    Case("evanescent, k_parallel = 1.2 k", 1.2, 4, 100.0),
)


def nodes(case: Case, cells: int, extra: int) -> tuple[int, int, int]:
    """Returns the cells along x, the source node and the observed node.

    Node `i` lies `i` cells from the left wall. All counts are even: Meep centres its
    grid, and only then do its nodes lie where the definition has them.

    Args:
        case: The incident wave.
        cells: Thickness of each layer.
        extra: Cells between the observed node and the right layer: 0 or `case.far`.
    """
    source = cells + LEFT
    edge = source + case.to_edge
    return edge + extra + cells, source, edge


def reflection(short: np.ndarray, long: np.ndarray) -> float:
    """Returns the amplitude reflected, from the traces of the short and long domain."""
    phase = 2 * np.pi / STEPS_PER_PERIOD * np.arange(1, len(short) + 1)
    turn = np.exp(1j * phase)
    return float(abs(np.sum((short - long) * turn)) / abs(np.sum(long * turn)))
