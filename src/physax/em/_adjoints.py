"""How a run is differentiated in reverse mode."""

from abc import abstractmethod

import equinox as eqx

from .._checks import ArgumentError
from .._loop import divisor_near_root


class AbstractAdjoint(eqx.Module):
    """A way to take reverse-mode derivatives of a run."""

    @abstractmethod
    def checkpoint(self, steps: int) -> int | None:
        """Returns the steps between stored states, `None` to store all."""


class Checkpointed(AbstractAdjoint):
    """Stores some states and replays the steps between them.

    Exact for everything the forward run does. The default stores about twice the square
    root of the number of steps in states, and costs one more forward run.

    Attributes:
        every: Steps between stored states; about the square root of the number of
            steps if `None`.
    """

    every: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.every is not None and self.every < 1:
            raise ArgumentError(f"`every` must be at least 1, but is {self.every}.")

    def checkpoint(self, steps):
        if self.every is not None:
            return self.every
        divisor = divisor_near_root(steps)
        # A prime number of steps has no useful divisor; the loop then has a rest.
        return divisor if divisor**2 * 4 > steps else max(1, round(steps**0.5))


class Stored(AbstractAdjoint):
    """Stores what every step needs: the fastest for short runs, and the largest."""

    def checkpoint(self, steps):
        del steps
        return None
