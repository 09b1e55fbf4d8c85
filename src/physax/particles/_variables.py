"""What particles carry along their tracks: numbers integrated with the position."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from .._checks import ArgumentError, forgotten, real
from .._gather import gather
from .._written_for_jax import check_takes
from ._callables import called_as, returned
from ._fields import AbstractField, Look, common_span
from ._motions import AbstractMotion, Entry
from ._sphere import sphere_of, unfolded


def _initial(x: Any) -> Any:
    """Returns a function as it is, else numbers."""
    if isinstance(x, type):
        raise ArgumentError(
            "`initial` must be a number, one for each seed, a field, or a function "
            f"`initial(t, x)`, but is {x!r}.{forgotten(x)}"
        )
    if not callable(x):
        return real(x, "initial")
    if not isinstance(x, AbstractField):
        check_takes(x, "initial", "initial(t, x)")
    return x


class Variable(eqx.Module):
    """A number that each particle carries and that changes along its track.

    Attributes:
        rate: Its derivative by time: a callable `rate(t, x, value)`, or a field, which
            is its value there. A particle ends where the field has no data, as it does
            where the velocity has none. Where the velocity is `OnSphere`, both are
            asked at latitudes within 90 degrees, also behind a pole.
        initial: Its value when a particle begins, and again when it comes in through
            an inlet: one number, one for each seed, or a field or callable `initial(t,
            x)` of when and where that is. A field is NaN beyond its data, which ends
            the particle with the status `NOT_FINITE`.
    """

    rate: Any
    initial: Any = eqx.field(converter=_initial, default=0.0)

    def __check_init__(self):
        if not callable(self.rate) or isinstance(self.rate, type):
            raise ArgumentError(
                "`rate` must be a function `rate(t, x, value)` or a field, but is "
                f"{self.rate!r}. A constant one is `lambda t, x, value: 1.0`."
            )
        if not isinstance(self.rate, AbstractField):
            check_takes(self.rate, "rate", "rate(t, x, value)")

    def begin(
        self,
        t: Float[Array, ""],
        x: Float[Array, " ndim"],
        number: Int[ArrayLike, ""],
        name: str,
    ) -> Float[Array, "1"]:
        """Returns its value when a particle begins.

        Args:
            t: The time, in seconds.
            x: The position.
            number: Of the particle.
            name: Of the variable.
        """
        value, what = self.initial, f"variables[{name!r}].initial"
        if callable(value):
            with called_as(what, "initial(t, x)", x):
                value = returned(value(t, x), what, x.dtype)
        elif value.shape:
            value = gather(value, number)
        return _one(value, x.dtype, what)


class WithVariables(AbstractMotion):
    """A motion together with variables that are integrated along.

    Attributes:
        motion: The motion.
        variables: The variables; they follow position and velocity in their order.
        names: What these are called.
        second_order: That of the motion.
    """

    # The motion within is checked on its own.
    on_sphere: ClassVar[bool] = True
    motion: AbstractMotion
    variables: tuple[Variable, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    second_order: bool = eqx.field(static=True)

    def enter(self, t, x, number: Int[ArrayLike, ""] = 0):
        entry = self.motion.enter(t, x)
        named = zip(self.variables, self.names, strict=True)
        initial = [v.begin(t, x, number, name) for v, name in named]
        return Entry(jnp.concatenate([entry.y, *initial]), entry.memory)

    def rate(self, t, y, memory):
        width = y.size - len(self.variables)
        seen = self.motion.rate(t, y[:width], memory)
        x = y[: width // 2 if self.second_order else width]
        place = x if sphere_of(self.motion) is None else unfolded(x)[0]
        rates, status = [seen.value], seen.status
        named = zip(self.variables, self.names, y[width:], strict=True)
        for variable, name, value in named:
            what = f"variables[{name!r}].rate"
            if isinstance(variable.rate, AbstractField):
                there = variable.rate.look(t, place, variable.rate.start(place))
                rate, status = there.value, jnp.maximum(status, there.status)
            else:
                with called_as(what, "rate(t, x, value)", place):
                    rate = returned(variable.rate(t, place, value), what, y.dtype)
            rates.append(_one(rate, y.dtype, what))
        return Look(jnp.concatenate(rates), seen.memory, status)

    def span(self):
        fields = [v.rate for v in self.variables if isinstance(v.rate, AbstractField)]
        return common_span([self.motion, *fields])


def _one(value: Any, dtype: Any, name: str) -> Float[Array, "1"]:
    """Returns what a function of a variable gave."""
    value = real(value, name).astype(dtype)
    if value.size != 1:
        raise ArgumentError(
            f"`{name}` must return one number, but returns an array of shape "
            f"{value.shape}. Each component may be a `Variable` of its own."
        )
    return value.reshape(1)


def begin(
    motion: AbstractMotion,
    t: Float[Array, ""],
    x: Float[Array, " ndim"],
    number: Int[ArrayLike, ""],
) -> Entry:
    """Returns how one of many particles begins.

    Args:
        motion: The motion.
        t: The time, in seconds.
        x: The position.
        number: Of the particle; variables may begin with one value for each.
    """
    if isinstance(motion, WithVariables):
        return motion.enter(t, x, number)
    return motion.enter(t, x)


def coordinates(motion: AbstractMotion, width: int) -> int:
    """Returns how many coordinates a position has.

    Args:
        motion: The motion.
        width: How many numbers are integrated.
    """
    if isinstance(motion, WithVariables):
        return coordinates(motion.motion, width - len(motion.variables))
    return width // 2 if motion.second_order else width
