"""physax under the definition of `benchmarks._cpml_cases`."""

import numpy as np

from ._cpml_cases import Case


def physax_trace(case: Case, cells: int, extra: int) -> np.ndarray:
    """Returns Ez at the observed node after every step, in float64.

    Args:
        case: The incident wave; `case.steps` steps are made.
        cells: Thickness of the layers.
        extra: Cells between the observed node and the right layer: 0 or `case.far`.

    Returns:
        One number per step, complex where `case.k_parallel` is not zero.
    """
    raise NotImplementedError("physax's CPML is not measured yet")
