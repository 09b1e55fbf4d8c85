"""The instants at which a field is known, and what it is between and beyond them."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Num

from .._checks import ArgumentError, instance
from .._known_number import known_number
from ..grid import (
    AbstractInterpolation,
    AbstractOutside,
    Clamp,
    Cubic,
    CubicHermite,
    Fill,
    Linear,
    Nearest,
)
from ._axis import Axis, PeriodError, Stencil, make_axis
from ._fields import always
from ._state import code
from ._status import ParticleStatus


_LINEAR = Linear()


class Leave(eqx.Module):
    """Outside the data particles end, with the status `LEFT_DATA` or `LEFT_TIME`."""


def check_outside(
    outside: Any, name: str = "outside", kinds: tuple[type, ...] = (Leave, Clamp, Fill)
) -> None:
    """Raises unless an argument says what a field is beyond its data.

    Args:
        outside: What was given, `None` for the default.
        name: What the caller calls it.
        kinds: What the field can be.

    Raises:
        ArgumentError: If it is not an object of these.
    """
    if outside is not None:
        instance(outside, name, kinds)


def check_method(method: Any, name: str = "method") -> None:
    """Raises unless an argument is an interpolation.

    Args:
        method: What was given.
        name: What the caller calls it.

    Raises:
        ArgumentError: If it is not one.
    """
    if not isinstance(method, AbstractInterpolation):
        instance(method, name, (Nearest, Linear, Cubic, CubicHermite))


class Instants(eqx.Module):
    """When a field is known; made by `make_instants`.

    Attributes:
        axis: The instants, `None` for a steady field.
        method: The interpolation.
        outside: What the field is before the first and after the last instant.
    """

    axis: Axis | None
    method: AbstractInterpolation
    outside: AbstractOutside | Leave | None

    @property
    def leading(self) -> tuple[int, ...]:
        """Leading axes of the values."""
        return () if self.axis is None else (self.axis.count,)

    def span(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Returns the first and the last time that may be asked for."""
        if (
            self.axis is None
            or self.axis.period is not None
            or self.outside is not None
        ):
            return always()
        return self.axis.low, self.axis.high

    def blend(
        self, t: Float[Array, ""], look: Callable[[tuple[Any, ...]], Num[Array, "..."]]
    ) -> tuple[Num[Array, "..."], Int[Array, ""]]:
        """Returns the value at a time, and `ALIVE` or `LEFT_TIME`.

        Args:
            t: The time.
            look: Gives the value at one instant, from the index of the instant as a
                tuple, which is empty for a steady field.
        """
        status = code(ParticleStatus.ALIVE)
        if self.axis is None:
            return look(()), status
        stencil = self.axis.stencil(t, self.method)
        value = sum(
            weight * _without_gap(look((index,)), weight)
            for index, weight in zip(stencil.indices, stencil.weights, strict=True)
        )
        value = self.filled(jnp.asarray(value), stencil)
        return value, self.status(status, stencil)

    def filled(self, value: Num[Array, "..."], stencil: Stencil) -> Num[Array, "..."]:
        """Puts the constant where the time is outside.

        Args:
            value: The value.
            stencil: The instants around the time.
        """
        if isinstance(self.outside, Fill):
            return self.outside.finish(value, stencil.inside)
        return value

    def status(self, status: Int[Array, ""], stencil: Stencil) -> Int[Array, ""]:
        """Returns `LEFT_TIME` where particles end outside, else the status.

        Args:
            status: The status so far.
            stencil: The instants around the time.
        """
        if self.outside is None or isinstance(self.outside, Leave):
            left = code(ParticleStatus.LEFT_TIME)
            return jnp.where(stencil.inside, status, left)
        return status


def make_instants(
    times: ArrayLike | Sequence | Axis | None,
    *,
    time_period: Any = None,
    time_method: Any = _LINEAR,
    time_outside: Any = None,
) -> Instants:
    """Makes the instants of a field.

    Args:
        times: The instants, increasing; `None` for a steady field.
        time_period: The time after which the field repeats.
        time_method: The interpolation in time.
        time_outside: `Clamp()`, `Fill(value)`, `Leave()` or `None`, as for
            `GriddedField`.

    Raises:
        ArgumentError: If the times do not increase, a steady field has a period, or an
            argument is of the wrong kind.
    """
    check_method(time_method, "time_method")
    check_outside(time_outside, "time_outside")
    if time_period is not None:
        time_period = known_number(
            time_period, "time_period", "Make the field outside and pass it in."
        )
    if times is None and time_period is not None:
        raise PeriodError(
            "`times` must be given with `time_period`, but is None.", "times", None
        )
    axis = None if times is None else make_axis(times, "times", period=time_period)
    return Instants(axis, time_method, time_outside)


def check_values(
    values: Num[Array, "..."], instants: Instants, count: int, what: str
) -> None:
    """Raises unless the leading axes of values are the times and the places.

    Args:
        values: The values.
        instants: When they are known.
        count: The number of places.
        what: The places, in the plural.

    Raises:
        ArgumentError: If the shape is another.
    """
    leading = (*instants.leading, count)
    if values.shape[: len(leading)] != leading:
        names = ["times"] * len(instants.leading) + [what]
        raise ArgumentError(
            f"`values` must begin with the number of {' and of '.join(names)}, "
            f"{leading}, but have shape {values.shape}."
        )


def check_place(x: Float[Array, "..."], ndim: int) -> None:
    """Raises if a place has another number of dimensions.

    Args:
        x: The place.
        ndim: The number of dimensions.

    Raises:
        ArgumentError: If it has another shape.
    """
    if x.shape != (ndim,):
        raise ArgumentError(
            f"Positions must have {ndim} coordinates, as the points of the field, but "
            f"have shape {x.shape}."
        )


def left_where(outside: Bool[Array, ""], status: Int[Array, ""]) -> Int[Array, ""]:
    """Returns `LEFT_DATA` outside, else the status.

    Args:
        outside: Whether the place is outside the data.
        status: The status of the time.
    """
    left = code(ParticleStatus.LEFT_DATA)
    return jnp.where(outside, left, status)


def _without_gap(value: Num[Array, "..."], weight: Float[Array, ""]) -> Array:
    """Returns the value at an instant; 0 for a gap that has no weight."""
    return jnp.where((weight == 0) & ~jnp.isfinite(value), 0, value)
