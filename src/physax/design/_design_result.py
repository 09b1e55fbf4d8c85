"""What an optimisation returns, raises, and reports after each step."""

from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from .._status import RunError, Status
from ..runtime import DriveResult
from ._design_state import History


class DesignResult(eqx.Module):
    """The result of an optimisation.

    Attributes:
        parameters: The parameters of the last step, whose objective is the last of the
            history.
        best: Those that met the constraints and had the best objective at the last
            strength; None if none met them.
        best_objective: Their objective; NaN without them.
        history: Objective, strength and constraints of each step.
        status: How it ended.
        step: How many steps were done, those before a resumption included.
        detail: Where and why it ended, in words.
        drive: Time and rate.
    """

    parameters: PyTree
    best: PyTree
    best_objective: float
    history: History
    status: Status
    step: int
    detail: str
    drive: DriveResult

    @property
    def design(self) -> PyTree:
        """The best parameters, or the last ones if none met the constraints."""
        return self.parameters if self.best is None else self.best


class DesignError(RunError):
    """An optimisation ended early.

    Attributes:
        result: What it has reached: the last good design is in it.
    """

    def __init__(self, message: str, result: DesignResult):
        super().__init__(message, result.status, result)


class StepInfo(NamedTuple):
    """What is known after a step.

    Attributes:
        step: Its number, from 0.
        parameters: The parameters that were evaluated.
        objective: Their objective.
        constraints: Their constraints.
        strength: The strength of the projection.
        aux: What the objective returned in addition.
    """

    step: int
    parameters: PyTree
    objective: float
    constraints: Float[Array, " m"]
    strength: float
    aux: PyTree
