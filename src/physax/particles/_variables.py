"""What particles carry along their tracks: numbers integrated with the position."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import ArgumentError, real
from .._written_for_jax import check_takes
from ._callables import called_as
from ._fields import AbstractField, Look, common_span
from ._motions import AbstractMotion, Entry
from ._sphere import sphere_of, unfolded


class Variable(eqx.Module):
    """A number that each particle carries and that changes along its track.

    Attributes:
        rate: Its derivative by time: a callable `rate(t, x, value)`, or a field, which
            is its value there. A particle ends where the field has no data, as it does
            where the velocity has none.
        initial: Its value when the particle begins.
    """

    rate: Any
    initial: Float[Array, ""] = eqx.field(
        converter=lambda x: real(x, "initial"), default=0.0
    )

    def __check_init__(self):
        if not callable(self.rate) or isinstance(self.rate, type):
            raise ArgumentError(
                "`rate` must be a function `rate(t, x, value)` or a field, but is "
                f"{self.rate!r}. A constant one is `lambda t, x, value: 1.0`."
            )
        if not isinstance(self.rate, AbstractField):
            check_takes(self.rate, "rate", "rate(t, x, value)")


class WithVariables(AbstractMotion):
    """A motion together with variables that are integrated along.

    Attributes:
        motion: The motion.
        variables: The variables; they follow position and velocity in their order.
        second_order: That of the motion.
    """

    # The motion within is checked on its own.
    on_sphere: ClassVar[bool] = True
    motion: AbstractMotion
    variables: tuple[Variable, ...]
    second_order: bool = eqx.field(static=True)

    def enter(self, t, x):
        entry = self.motion.enter(t, x)
        initial = [v.initial.astype(x.dtype)[None] for v in self.variables]
        return Entry(jnp.concatenate([entry.y, *initial]), entry.memory)

    def rate(self, t, y, memory):
        width = y.size - len(self.variables)
        seen = self.motion.rate(t, y[:width], memory)
        x = y[: width // 2 if self.second_order else width]
        rates, status = [seen.value], seen.status
        for variable, value in zip(self.variables, y[width:], strict=True):
            if isinstance(variable.rate, AbstractField):
                place = x if sphere_of(self.motion) is None else unfolded(x)[0]
                there = variable.rate.look(t, place, variable.rate.start(place))
                rate, status = there.value, jnp.maximum(status, there.status)
            else:
                with called_as("rate", "rate(t, x, value)", x):
                    rate = variable.rate(t, x, value)
            rates.append(_one(rate, y.dtype))
        return Look(jnp.concatenate(rates), seen.memory, status)

    def span(self):
        fields = [v.rate for v in self.variables if isinstance(v.rate, AbstractField)]
        return common_span([self.motion, *fields])


def _one(rate: Any, dtype: Any) -> Float[Array, "1"]:
    """Returns the derivative of a variable."""
    rate = jnp.asarray(rate, dtype)
    if rate.size != 1:
        raise ArgumentError(
            f"`rate` must return one number, but returns an array of shape {rate.shape}"
            ". Each component may be a `Variable` of its own."
        )
    return rate.reshape(1)


def coordinates(motion: AbstractMotion, width: int) -> int:
    """Returns how many coordinates a position has.

    Args:
        motion: The motion.
        width: How many numbers are integrated.
    """
    if isinstance(motion, WithVariables):
        return coordinates(motion.motion, width - len(motion.variables))
    return width // 2 if motion.second_order else width
