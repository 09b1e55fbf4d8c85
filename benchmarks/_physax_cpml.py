"""physax under the definition of `benchmarks._cpml_cases`."""

import math
import warnings
from functools import partial

import numpy as np

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT

from ._cpml_cases import CELLS_PER_WAVELENGTH, COURANT, Case, nodes


_WAVELENGTH = 1 * MICRO
_CELL = _WAVELENGTH / CELLS_PER_WAVELENGTH


def physax_trace(
    case: Case, cells: int, extra: int, layer: em.CPML | em.Absorber | None = None
) -> np.ndarray:
    """Returns Ez at the observed node after every step, in float64.

    The pulse is real under Bloch faces too: at one frequency it makes no difference.

    Args:
        case: The incident wave; `case.steps` steps are made.
        cells: Thickness of the layers.
        extra: Cells between the observed node and the right layer: 0 or `case.far`.
        layer: The layer on the right, of that thickness; `em.CPML(cells)` by default.

    Returns:
        One number per step, complex where `case.k_parallel` is not zero.
    """
    count, source, observed = nodes(case, cells, extra)
    carrier = SPEED_OF_LIGHT / _WAVELENGTH
    pulse = em.GaussianPulse(carrier, case.width * carrier)
    along = case.k_parallel * 2 * math.pi / _WAVELENGTH
    build = partial(
        em.Simulation,
        Grid.uniform((count, 1), _CELL),
        boundaries=em.Boundaries(
            x=(em.CPML(cells), em.CPML(cells) if layer is None else layer),
            y=em.Bloch(along) if case.k_parallel else em.Periodic(),
        ),
        sources={
            "sheet": em.Dipole(
                component="Ez", position=(source * _CELL, 0.0), pulse=pulse
            )
        },
        monitors={"edge": em.TimeMonitor(("Ez",), (observed * _CELL, 0.0), (0.0, 0.0))},
        polarisation="Ez",
        dt=COURANT * _CELL / SPEED_OF_LIGHT,
        steps=case.steps,
    )
    with warnings.catch_warnings():
        # The observed node is the inner edge itself.
        warnings.filterwarnings("ignore", "monitor 'edge' lies in the absorbing layer")
        sim = build()
    return np.ravel(em.simulate(sim).monitors["edge"].values["Ez"])
