"""How a run ended: codes that arrays can hold, each with a sentence."""

import enum
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Int

from ._checks import PhysaxError


class Status(enum.IntEnum):
    """The outcome of a run or of one of its items.

    The members are integers, so that a compiled program can return
    `jnp.where(bad, Status.DIVERGED, Status.SUCCESSFUL)` and a batch of runs an array
    of codes.
    """

    SUCCESSFUL = 0
    CONVERGED = 1
    DECAYED = 2
    MAX_STEPS = 3
    DIVERGED = 4
    INTERRUPTED = 5
    INVALID = 6
    STALLED = 7
    UNDETERMINED = 8

    @property
    def sentence(self) -> str:
        """Says what the status means."""
        return _SENTENCES[self]

    @property
    def ok(self) -> bool:
        """Whether the result may be used as asked for."""
        return self in (Status.SUCCESSFUL, Status.CONVERGED, Status.DECAYED)


_SENTENCES = {
    Status.SUCCESSFUL: "The run did all the steps that were asked for.",
    Status.CONVERGED: "The run converged: the stop rule was met.",
    Status.DECAYED: "The run stopped early because its fields had decayed.",
    Status.MAX_STEPS: "The limit on the number of steps came before the stop rule.",
    Status.DIVERGED: "The values grew beyond the limit or are no longer finite.",
    Status.INTERRUPTED: "A signal ended the run before its last step.",
    Status.INVALID: "An input had a value that the physics does not allow.",
    Status.STALLED: "Nothing moves any more, but the gradient is not zero.",
    Status.UNDETERMINED: "The data do not determine every free parameter.",
}


class RunError(PhysaxError, RuntimeError):
    """A run ended without the result that was asked for.

    Attributes:
        status: How it ended; of a batch, how its first failed member did.
        result: What it had reached; `None` where nothing is kept.
    """

    def __init__(self, message: str, status: Status, result: Any = None):
        super().__init__(message)
        self.status = status
        self.result = result


def raise_for(
    status: Int[ArrayLike, "*batch"], detail: str = "", result: Any = None
) -> None:
    """Raises an exception unless every status is a good one.

    Args:
        status: One status, or the codes of a batch.
        detail: Where and when, as a sentence that ends the message.
        result: What was reached, for the exception to carry.

    Raises:
        RunError: If a member of the batch failed.
    """
    codes = np.ravel(np.asarray(status))
    failed = [i for i, code in enumerate(codes) if not Status(int(code)).ok]
    if not failed:
        return
    first = Status(int(codes[failed[0]]))
    message = first.sentence
    if codes.size > 1:
        message = (
            f"{len(failed)} of {codes.size} runs failed; number {failed[0]}: {message}"
        )
    raise RunError(f"{message} {detail}".rstrip(), first, result)
