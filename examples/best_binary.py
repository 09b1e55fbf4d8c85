"""Keeps the best binary device whose parts and gaps are wide enough."""

import numpy as np

from physax import design


class BestBinary:
    """Looks at each step of `design.optimise`; its objective returns the device too.

    The least objective wins. It is that of the device before the last cells are mended.
    """

    def __init__(self, cell: float, least: float):
        """Starts with nothing.

        Args:
            cell: Width of a cell in metres.
            least: Least width of parts and gaps in metres.
        """
        self.cell, self.least = cell, least
        self.solid, self.objective = None, float("inf")

    def __call__(self, info: design.StepInfo) -> None:
        if not info.objective < self.objective:
            return
        solid = np.asarray(info.aux) > 0.5
        # The constraints leave a few cells that are too narrow; more would make another
        # device, of which the objective says nothing.
        mended = design.remove_narrow(solid, self.least, self.cell)
        if np.mean(mended != solid) > 0.01:
            return
        # A hair less, because widths are whole cells times a rounded number.
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
