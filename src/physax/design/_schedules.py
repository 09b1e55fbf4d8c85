"""How strong the projection is at each step of an optimisation."""

from abc import abstractmethod

import equinox as eqx

from .._checks import ArgumentError


def _numbers(values) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


class AbstractSchedule(eqx.Module):
    """A strength for each step."""

    @abstractmethod
    def at(self, step: int) -> float:
        """Returns the strength at a step, counted from 0."""


def _check_strengths(values: tuple[float, ...], name: str) -> None:
    if not values or not all(value >= 0 for value in values):
        raise ArgumentError(
            f"`{name}` must hold at least one number, none negative, but is {values}."
        )


class Constant(AbstractSchedule):
    """The same strength at all steps.

    Attributes:
        value: The strength.

    Raises:
        ArgumentError: If it is negative.
    """

    value: float = eqx.field(static=True, converter=float)

    def __check_init__(self):
        _check_strengths((self.value,), "value")

    def at(self, step: int) -> float:
        del step
        return self.value


class Stages(AbstractSchedule):
    """One strength after the other, such as 8, 16, 32, infinity.

    Attributes:
        values: The strengths; the last one stays.
        every: Steps for which each one holds.

    Raises:
        ArgumentError: If there is none, one is negative, or `every` is less than 1.
    """

    values: tuple[float, ...] = eqx.field(static=True, converter=_numbers)
    every: int = eqx.field(static=True)

    def __check_init__(self):
        _check_strengths(self.values, "values")
        if self.every < 1:
            raise ArgumentError(f"`every` must be at least 1, but is {self.every}.")

    def at(self, step: int) -> float:
        return self.values[min(step // self.every, len(self.values) - 1)]


class Geometric(AbstractSchedule):
    """A strength that grows by the same factor in each step.

    Attributes:
        first: The strength at step 0.
        last: The strength from step `steps` on.
        steps: Over how many steps it grows.

    Raises:
        ArgumentError: If a strength is not positive or `steps` is less than 1.
    """

    first: float = eqx.field(static=True, converter=float)
    last: float = eqx.field(static=True, converter=float)
    steps: int = eqx.field(static=True)

    def __check_init__(self):
        if not (0 < self.first < float("inf") and 0 < self.last < float("inf")):
            raise ArgumentError(
                "`first` and `last` must be positive and finite, but are "
                f"{self.first:g} and {self.last:g}."
            )
        if self.steps < 1:
            raise ArgumentError(f"`steps` must be at least 1, but is {self.steps}.")

    def at(self, step: int) -> float:
        done = min(step / self.steps, 1.0)
        return self.first * (self.last / self.first) ** done
