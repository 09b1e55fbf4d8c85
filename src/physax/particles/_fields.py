"""What may carry particles: modules `u(t, x)`, and what ours say beyond the value."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Num, PyTree

from .._checks import ArgumentError, as_array, forgotten
from .._written_for_jax import check_takes
from ._callables import called_as, returned
from ._state import code
from ._status import ParticleStatus


class Look(NamedTuple):
    """What a field is at one place and time.

    Attributes:
        value: The value, finite even where there are no data: then that of a nearby
            place, so that gradients of discarded values stay finite.
        memory: What helps to find the next place; empty for most fields.
        status: `ParticleStatus.ALIVE`, `LEFT_DATA` or `LEFT_TIME`.
    """

    value: Any
    memory: PyTree
    status: Int[Array, ""]


class AbstractField(eqx.Module):
    """A function of time and place that knows where it has data.

    Any Equinox module or function `u(t, x)` of one particle may carry particles; a
    subclass of this also says which particles have left the data, and may carry
    a memory from step to step: the cell of a mesh where the particle was last.
    """

    @abstractmethod
    def start(self, x: Float[Array, " ndim"]) -> PyTree:
        """Returns the memory of a particle that was never seen before.

        Args:
            x: Its position.
        """

    @abstractmethod
    def look(
        self, t: Float[Array, ""], x: Float[Array, " ndim"], memory: PyTree
    ) -> Look:
        """Evaluates the field at one place.

        Args:
            t: The time, in seconds.
            x: The position.
            memory: From `start` or from the last look at the same particle.
        """

    @abstractmethod
    def span(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Returns the first and the last time that may be asked for, in seconds."""

    def __call__(
        self, t: Num[ArrayLike, ""], x: ArrayLike | Sequence
    ) -> Num[Array, "..."]:
        """Returns the value at one place, NaN where there are no data."""
        t, x = as_array(t, "t"), as_array(x, "x")
        seen = self.look(t, x, self.start(x))
        return jnp.where(seen.status == ParticleStatus.ALIVE, seen.value, jnp.nan)


def always() -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Returns the span of a field that has data at all times."""
    return jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf)


class Everywhere(AbstractField):
    """A module or function `u(t, x)` of one particle, defined everywhere.

    Attributes:
        function: The function.
        name: What the caller calls it.
    """

    function: Callable[..., Any]
    name: str = eqx.field(static=True, default="velocity")

    def start(self, x):
        del x
        return ()

    def look(self, t, x, memory):
        with called_as(self.name, "u(t, x)", x):
            value = returned(self.function(t, x), self.name, x.dtype)
        return Look(value, memory, code(ParticleStatus.ALIVE))

    def span(self):
        return always()


def as_field(velocity: Any, name: str = "velocity") -> AbstractField:
    """Returns a velocity as a field.

    Args:
        velocity: A field, or a callable `u(t, x)`.
        name: What the caller calls it.

    Raises:
        ArgumentError: If it is neither, or does not take two arguments.
    """
    if isinstance(velocity, AbstractField):
        return velocity
    if not callable(velocity) or isinstance(velocity, type):
        arrays = " Arrays on a grid become a field by `GriddedField`."
        raise ArgumentError(
            f"`{name}` must be a field or a function of time and place, `u(t, x)`, but "
            f"is {velocity!r}.{forgotten(velocity) or arrays}"
        )
    check_takes(velocity, name, "u(t, x)")
    return Everywhere(velocity, name)


def as_function(x: Any, name: str, form: str) -> Callable[..., Any]:
    """Returns a function.

    Args:
        x: What was given.
        name: What the caller calls it.
        form: How it is called.

    Raises:
        ArgumentError: If it is not a function, or takes other arguments.
    """
    if not callable(x) or isinstance(x, type):
        raise ArgumentError(
            f"`{name}` must be a function, `{form}`, but is {x!r}.{forgotten(x)}"
        )
    check_takes(x, name, form)
    return x


def _as_fields(parts: Any) -> tuple[AbstractField, ...]:
    """Returns several velocities as fields."""
    if not isinstance(parts, Sequence):
        raise ArgumentError(
            "`parts` must be a list of fields or functions, as `[u, v]`, but is a "
            f"{type(parts).__name__}."
        )
    return tuple(as_field(part, f"parts[{n}]") for n, part in enumerate(parts))


def check_components(
    value: Num[Array, "..."],
    x: Float[Array, " ndim"],
    name: str,
    *,
    scalar: bool = False,
) -> None:
    """Raises unless a vector is real, with one component for each coordinate.

    Args:
        value: The vector.
        x: A position.
        name: What to call it in messages.
        scalar: Whether one number for all axes will do.

    Raises:
        ArgumentError: If it has another shape, or is complex.
    """
    if jnp.iscomplexobj(value):
        raise ArgumentError(
            f"{name} must be real, but has dtype {value.dtype}. Take the part you "
            "need, such as `.real`."
        )
    if value.shape != x.shape and not (scalar and value.shape == ()):
        wanted = "one number, or one for" if scalar else "one number for"
        raise ArgumentError(
            f"{name} must be {wanted} each of {x.size} coordinates, but has shape "
            f"{value.shape}."
        )


def _look_at_all(parts, t, x, memory) -> Look:
    """Looks at several fields; they are all needed, so one that ends, ends it."""
    seen = [part.look(t, x, m) for part, m in zip(parts, memory, strict=True)]
    status = jnp.stack([look.status for look in seen]).max()
    return Look([look.value for look in seen], [look.memory for look in seen], status)


def common_span(
    parts: Sequence[Any],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Returns the times at which all of several fields have data.

    Args:
        parts: The fields, or motions.
    """
    spans = [part.span() for part in parts]
    first = jnp.stack([low for low, _ in spans]).max()
    return first, jnp.stack([high for _, high in spans]).min()


class Components(AbstractField):
    """A vector whose components are scalar fields, each on a grid of its own.

    Attributes:
        parts: Scalar fields, or callables `s(t, x)`.
    """

    parts: tuple[AbstractField, ...] = eqx.field(converter=_as_fields)

    def start(self, x):
        return [part.start(x) for part in self.parts]

    def look(self, t, x, memory):
        seen = _look_at_all(self.parts, t, x, memory)
        return Look(jnp.stack(seen.value), seen.memory, seen.status)

    def span(self):
        return common_span(self.parts)


class Sum(AbstractField):
    """The sum of fields, each with its own grid or formula.

    Attributes:
        parts: Fields, or callables `u(t, x)`, of the same number of components.
    """

    parts: tuple[AbstractField, ...] = eqx.field(converter=_as_fields)

    def __check_init__(self):
        if not self.parts:
            raise ArgumentError("`parts` must hold at least one field, but is empty.")

    def start(self, x):
        return [part.start(x) for part in self.parts]

    def look(self, t, x, memory):
        seen = _look_at_all(self.parts, t, x, memory)
        shapes = [value.shape for value in seen.value]
        if len(set(shapes)) > 1:
            raise ArgumentError(
                f"`parts` must return values of one shape, but return {shapes}."
            )
        value = sum(seen.value[1:], seen.value[0])
        return Look(value, seen.memory, seen.status)

    def span(self):
        return common_span(self.parts)


class Masked(AbstractField):
    """A field times a factor that depends on time and place.

    Attributes:
        field: The field, or a callable `u(t, x)`.
        factor: A callable `m(t, x)` that returns a number; 0 switches the field off,
            also where it has no data.
    """

    field: AbstractField = eqx.field(converter=lambda field: as_field(field, "field"))
    factor: Callable[..., Any] = eqx.field(
        converter=lambda x: as_function(x, "factor", "m(t, x)")
    )

    def start(self, x):
        return self.field.start(x)

    def look(self, t, x, memory):
        seen = self.field.look(t, x, memory)
        with called_as("factor", "m(t, x)", x):
            factor = returned(self.factor(t, x), "factor", x.dtype)
        off = factor == 0
        value = jnp.where(off, 0, factor * seen.value)
        status = jnp.where(off, code(ParticleStatus.ALIVE), seen.status)
        return Look(value, seen.memory, status)

    def span(self):
        return self.field.span()
