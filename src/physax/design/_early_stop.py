"""Ends an optimisation that no longer improves."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, whole
from .._known_number import known_number


class EarlyStop(eqx.Module):
    """Ends an optimisation whose objective no longer gets better.

    Applies only at the last strength of the schedule.

    Attributes:
        patience: Over how many steps to look back.
        tolerance: The improvement in these steps, relative to the objective or to 1,
            whichever is larger, below which it ends.

    Raises:
        ArgumentError: If `patience` is not a positive integer or `tolerance` negative.
    """

    patience: int = eqx.field(
        static=True, default=20, converter=lambda x: whole(x, "patience")
    )
    tolerance: float = eqx.field(
        static=True, default=1e-4, converter=lambda x: known_number(x, "tolerance")
    )

    def __check_init__(self):
        if not self.tolerance >= 0:
            raise ArgumentError(
                f"`tolerance` must be at least 0, but is {self.tolerance:g}."
            )

    def reached(
        self,
        objective: Float[np.ndarray, " steps"] | Float[Array, " steps"],
        strength: Float[np.ndarray, " steps"] | Float[Array, " steps"],
        final: float,
    ) -> bool:
        """Says whether to stop.

        Args:
            objective: What is minimised, at each step so far; infinite where a
                constraint was not met.
            strength: The strengths at these steps.
            final: The last strength of the schedule.

        Returns:
            Whether the last `patience` steps have brought too little.
        """
        values, strengths = np.asarray(objective), np.asarray(strength)
        same = strengths == np.asarray(final, strengths.dtype)
        # Steps before the last change of strength minimised something else.
        others = np.flatnonzero(~same)
        run = values[others[-1] + 1 if others.size else 0 :]
        if run.size <= self.patience:
            return False
        before = run[: -self.patience].min()
        if not np.isfinite(before):
            return False
        gain = before - run[-self.patience :].min()
        return bool(gain <= self.tolerance * max(1.0, abs(float(before))))
