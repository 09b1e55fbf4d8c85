"""Keeps the best binary device whose parts and gaps are wide enough."""

import numpy as np

from physax import design


class BestBinary:
    """Checks each step of `design.optimise`, whose objective returns the device too.

    Keeps the lowest objective, evaluated before the last narrow cells are removed.
    """

    def __init__(self, cell: float, least: float):
        """Starts with nothing.

        Args:
            cell: Width of a cell in metres.
            least: Minimum width of parts and gaps in metres.
        """
        self.cell, self.least = cell, least
        self.solid, self.objective = None, float("inf")

    def __call__(self, info: design.StepInfo) -> None:
        if not info.objective < self.objective:
            return
        solid = np.asarray(info.aux) > 0.5
        # The constraints leave a few narrow cells; removing more would make another
        # device, for which the objective says nothing.
        mended = design.remove_narrow(solid, self.least, self.cell)
        if np.mean(mended != solid) > 0.01:
            return
        # Slightly less, because widths are whole cells times a rounded number.
        if design.minimum_length(mended, self.cell).smallest > 0.999 * self.least:
            self.solid, self.objective = mended, info.objective

    def device(self) -> np.ndarray:
        """Returns where the best device is solid, or ends the program without one."""
        if self.solid is None:
            raise SystemExit(
                "In no step were all parts and gaps wide enough: take more steps, or "
                "another seed."
            )
        return self.solid
