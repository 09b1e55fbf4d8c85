"""Fields sampled on the nodes of a grid and at instants of time."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, Num

from .._checks import ArgumentError, as_array, numeric, true_or_false
from .._gather import gather
from .._products import tensordot
from ..grid import AbstractInterpolation, AbstractOutside, Field, Fill, Linear
from ._axis import Axis, Stencil, as_periods, make_axis
from ._fields import AbstractField, Components, Look
from ._instants import Instants, Leave, check_method, check_outside, make_instants
from ._numbers import check_listed, unmasked
from ._state import code
from ._status import ParticleStatus


_LINEAR = Linear()


class GriddedField(AbstractField):
    r"""Samples on a uniform or graded grid, steady or at instants of time.

    Along each axis of space, and along time, the samples around the place take part
    with the weights of an interpolation; the product of the weights is the weight of a
    sample. The error is that of the interpolation (orders in `grid`); `Linear()` bounds
    the order of any solver, since the velocity has kinks where particles cross cells.

    Units are the user's: positions in those of `axes`, time in those of `times`, and
    the values of a velocity in the one over the other.

    Attributes:
        values: The samples, of shape `[times, *nodes, *components]`, or
            `[*nodes, *components]` of a steady field. A velocity has one axis of
            components, a scalar none. They may be NaN where no particle goes, and are
            where NumPy has them masked. A step that reads such a sample, be its weight
            0, is not made: the particle ends with the status `NOT_FINITE`, and its
            derivatives with it.
        axes: For each axis of space the positions of the nodes, increasing. With
            `periods` given, for each axis the length after which the field repeats, or
            `None`.
        instants: Of `times`, increasing, `None` for a steady field. With `time_period`
            given, the time after which the field repeats. `time_method` interpolates.
            `time_outside` is what the field is before the first and after the last:
            `Clamp()` takes the nearest instant, `Fill(value)` a constant, `Leave()`
            ends the particle with the status `LEFT_TIME`. So does `None`, the default,
            but where times are known beforehand it makes them an error.
        method: The interpolation in space.
        outside: What the field is beyond its ends in space: `Leave()`, the default,
            ends the particle with the status `LEFT_DATA`; `Clamp()` takes the nearest
            value on the surface, `Fill(value)` a constant.
        at_once: Whether samples are read by one gather instead of one for each. That is
            slower, but its transpose, a scatter, goes through the values once.

    Raises:
        ArgumentError: If an axis does not increase, the shape of the values does not
            fit the axes, or an argument is of the wrong kind.
    """

    values: Num[Array, "..."] = eqx.field(converter=numeric("values"))
    axes: tuple[Axis, ...]
    instants: Instants
    method: AbstractInterpolation
    outside: AbstractOutside | Leave | None
    at_once: bool = eqx.field(static=True)

    def __init__(
        self,
        values: Num[ArrayLike, "..."],
        axes: Sequence[ArrayLike | Sequence | Axis],
        times: ArrayLike | Sequence | Axis | None = None,
        *,
        periods: Sequence[float | None] | None = None,
        time_period: float | None = None,
        method: AbstractInterpolation = _LINEAR,
        time_method: AbstractInterpolation = _LINEAR,
        outside: AbstractOutside | Leave | None = None,
        time_outside: AbstractOutside | Leave | None = None,
        at_once: bool = False,
    ):
        check_method(method)
        check_outside(outside)
        self.values = as_array(unmasked(values), "values")
        check_listed(axes, "axes", "(x, y)")
        sizes = as_periods(periods, len(axes))
        self.axes = tuple(
            make_axis(nodes, f"axes[{number}]", period=size)
            for number, (nodes, size) in enumerate(zip(axes, sizes, strict=True))
        )
        self.instants = make_instants(
            times,
            time_period=time_period,
            time_method=time_method,
            time_outside=time_outside,
        )
        self.method, self.outside = method, outside
        self.at_once = true_or_false(at_once, "at_once")

    def __check_init__(self):
        nodes = tuple(axis.count for axis in self.axes)
        instants = self.instants.leading
        leading = (*instants, *nodes)
        if not 1 <= len(nodes) <= 3:
            raise ArgumentError(
                f"`axes` must have 1 to 3 entries, but have {len(nodes)}."
            )
        if self.values.shape[: len(leading)] != leading:
            what = "times and nodes" if instants else "nodes"
            late = not instants and self.values.shape[1 : len(nodes) + 1] == nodes
            remedy = " For several times pass `times`." if late else ""
            raise ArgumentError(
                f"`values` must begin with the numbers of {what}, {leading}, but have "
                f"shape {self.values.shape}.{remedy}"
            )

    @property
    def components(self) -> tuple[int, ...]:
        """Shape of the value at one place."""
        return self.values.shape[len(self.axes) + len(self.instants.leading) :]

    def start(self, x):
        del x
        return ()

    def span(self):
        return self.instants.span()

    def look(self, t, x, memory):
        if x.shape != (len(self.axes),):
            raise ArgumentError(
                f"Positions must have {len(self.axes)} coordinates, one for each axis "
                f"of the field, but have shape {x.shape}."
            )
        status = self.stencils(t, x)[1]
        return Look(_value(self, t, x), memory, status)

    def stencils(
        self, t: Float[Array, ""], x: Float[Array, " ndim"]
    ) -> tuple[list[Stencil], Int[Array, ""]]:
        """Returns the samples around a place along time and each axis, and the status.

        Args:
            t: The time.
            x: The position.
        """
        found = [axis.stencil(at, method) for axis, at, method in self._along(t, x)]
        status = code(ParticleStatus.ALIVE)
        if self.outside is None or isinstance(self.outside, Leave):
            left = code(ParticleStatus.LEFT_DATA)
            for stencil in found[-len(self.axes) :]:
                status = jnp.where(stencil.inside, status, left)
        if self.instants.axis is not None:
            status = self.instants.status(status, found[0])
        return found, status

    def _along(self, t, x) -> list[tuple[Axis, Array, AbstractInterpolation]]:
        """Returns time and each axis, the coordinate along it, and the method."""
        along = [(axis, at, self.method) for axis, at in zip(self.axes, x, strict=True)]
        if self.instants.axis is None:
            return along
        return [(self.instants.axis, t, self.instants.method), *along]

    def samples(
        self, stencils: list[Stencil], at: tuple[Int[Array, ""], ...] = ()
    ) -> Any:
        """Returns the samples of a block, in lists of lists axis by axis.

        Args:
            stencils: The samples along time and each axis.
            at: Their numbers along the first axes.
        """
        if self.at_once:
            index = jnp.ix_(*(jnp.stack(s.indices) for s in stencils))
            return gather(self.values, *index)
        if len(at) == len(stencils):
            # A gather for each sample: one gather of the whole block takes 5 times
            # longer on CPUs. The components lie side by side for the same reason.
            return gather(self.values, *at)
        indices = stencils[len(at)].indices
        return [self.samples(stencils, (*at, index)) for index in indices]

    def filled(self, value: Any, stencils: list[Stencil]) -> Any:
        """Puts constants where the place or the time is outside.

        Args:
            value: The value.
            stencils: The samples along time and each axis.
        """
        in_space = stencils[-len(self.axes) :]
        if isinstance(self.outside, Fill):
            inside = reduce(jnp.logical_and, [s.inside for s in in_space])
            value = self.outside.finish(value, inside)
        if self.instants.axis is not None:
            value = self.instants.filled(value, stencils[0])
        return value


def _plain(field: GriddedField, t: Float[Array, ""], x: Float[Array, " ndim"]) -> Any:
    stencils, _ = field.stencils(t, x)
    weights = [stencil.weights for stencil in stencils]
    return field.filled(_total(field.samples(stencils), weights), stencils)


_value = eqx.filter_custom_jvp(_plain)


@_value.def_jvp
def _value_jvp(primals, tangents):
    """Takes the slope along each coordinate, all that reverse mode then has to keep.

    Of the sum of samples it would keep all samples and weights around the place, which
    is several times slower.
    """
    (field, t, x), (field_dot, t_dot, x_dot) = primals, tangents
    stencils, _ = field.stencils(t, x)
    weights, samples = [s.weights for s in stencils], field.samples(stencils)
    value = _total(samples, weights)
    dots = [] if field.instants.axis is None else [t_dot]
    dots += [None] * len(field.axes) if x_dot is None else list(x_dot)
    change = jnp.zeros_like(value)
    along = zip(field._along(t, x), dots, strict=True)
    for number, ((axis, at, method), dot) in enumerate(along):
        if dot is not None:
            weigh = lambda y, a=axis, m=method: a.stencil(y, m).weights  # noqa: E731
            slopes = jax.jvp(weigh, (at,), (jnp.ones_like(at),))[1]
            turned = [*weights[:number], slopes, *weights[number + 1 :]]
            # The step that meets NaN is thrown away. In reverse its slopes would still
            # spoil the derivatives of the steps before.
            change += jnp.where(jnp.isfinite(value), _total(samples, turned), 0) * dot
    finish = lambda value: field.filled(value, stencils)  # noqa: E731
    value, change = jax.jvp(finish, (value,), (change,))
    if jax.tree.leaves(field_dot):
        of_field = lambda field: _plain(field, t, x)  # noqa: E731
        change += eqx.filter_jvp(of_field, (field,), (field_dot,))[1]
    return value, change


def _total(samples: Any, weights: list) -> Num[Array, "..."]:
    """Sums the samples of a block times their weights, axis by axis."""
    if not isinstance(samples, list):
        for axis in weights:
            samples = tensordot(jnp.stack(axis), samples, 1)
        return samples
    parts = [
        weight * (_total(more, weights[1:]) if weights[1:] else more)
        for weight, more in zip(weights[0], samples, strict=True)
    ]
    return sum(parts[1:], parts[0])


def from_fields(
    *components: Field, times: Float[ArrayLike, " times"] | None = None, **options: Any
) -> AbstractField:
    """Makes a velocity of fields on a `Grid`, whose samples may be staggered.

    Components that share their stagger become one `GriddedField`; of a Yee or C grid
    each is sampled where it lies. Samples of a staggered axis lie half a cell inside
    the faces, beyond which `outside=Clamp()` continues them.

    Args:
        *components: One field for each component, with leading axis `times` if given.
        times: The instants, increasing.
        **options: As for `GriddedField`.

    Returns:
        The velocity.
    """
    if len({field.stagger for field in components}) == 1:
        stacked = jnp.stack([field.values for field in components], -1)
        return GriddedField(stacked, components[0].coordinates(), times, **options)
    return Components(
        tuple(
            GriddedField(field.values, field.coordinates(), times, **options)
            for field in components
        )
    )
