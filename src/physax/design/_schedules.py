"""How strong the projection is at each step of an optimisation."""

from abc import abstractmethod
from typing import Any

import equinox as eqx

from .._checks import ArgumentError, forgotten, whole
from .._known_number import known_number
from ._argument_checks import as_sequence


class AbstractSchedule(eqx.Module):
    """A strength for each step."""

    @abstractmethod
    def at(self, step: int) -> float:
        """Returns the strength at a step, counted from 0."""


def _strength(x: Any, name: str) -> float:
    value = known_number(x, name)
    if not value >= 0:
        raise ArgumentError(f"`{name}` must be at least 0, but is {value:g}.")
    return value


def _strengths(x: Any) -> tuple[float, ...]:
    each = as_sequence(x, "values", "(8, 16, 32)")
    return tuple(_strength(value, "values") for value in each)


class Constant(AbstractSchedule):
    """The same strength at all steps.

    Attributes:
        value: The strength.

    Raises:
        ArgumentError: If it is negative.
    """

    value: float = eqx.field(static=True, converter=lambda x: _strength(x, "value"))

    def at(self, step: int) -> float:
        del step
        return self.value


def as_schedule(x: Any) -> AbstractSchedule:
    """Returns a schedule; a number is the same strength at all steps.

    Args:
        x: What was given.

    Raises:
        ArgumentError: If it is neither a schedule nor a number of at least 0.
    """
    if isinstance(x, AbstractSchedule):
        return x
    if isinstance(x, type):
        raise ArgumentError(
            "`schedule` must be a number or a schedule, such as `Stages((8, 16), 20)`, "
            f"but is {x!r}.{forgotten(x)}"
        )
    return Constant(_strength(x, "schedule"))


class Stages(AbstractSchedule):
    """One strength after the other, such as 8, 16, 32, infinity.

    Attributes:
        values: The strengths; the last one is kept.
        every: Steps for which each one holds.

    Raises:
        ArgumentError: If there are no strengths, one is negative, or `every` is not a
            positive integer.
    """

    values: tuple[float, ...] = eqx.field(static=True, converter=_strengths)
    every: int = eqx.field(static=True, converter=lambda x: whole(x, "every"))

    def at(self, step: int) -> float:
        return self.values[min(step // self.every, len(self.values) - 1)]


class Geometric(AbstractSchedule):
    """A strength that grows by the same factor in each step.

    Attributes:
        first: The strength at step 0.
        last: The strength from step `steps` on.
        steps: Over how many steps it grows.

    Raises:
        ArgumentError: If a strength is not positive or `steps` is not a positive
            integer.
    """

    first: float = eqx.field(static=True, converter=lambda x: known_number(x, "first"))
    last: float = eqx.field(static=True, converter=lambda x: known_number(x, "last"))
    steps: int = eqx.field(static=True, converter=lambda x: whole(x, "steps"))

    def __check_init__(self):
        if not (0 < self.first < float("inf") and 0 < self.last < float("inf")):
            raise ArgumentError(
                "`first` and `last` must be positive and finite, but are "
                f"{self.first:g} and {self.last:g}."
            )

    def at(self, step: int) -> float:
        done = min(step / self.steps, 1.0)
        return self.first * (self.last / self.first) ** done
