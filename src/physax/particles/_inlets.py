"""Where particles that left come in again."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from .._checks import ArgumentError, real, single, whole
from ._fields import as_function
from ._numbers import check_listed
from ._seed_checks import as_box
from ._sphere import check_sphere_is_seen, sphere_of, unit_lengths


class AbstractPlacement(eqx.Module):
    """Where on the face of an inlet a particle comes in."""

    @abstractmethod
    def is_random(self) -> bool:
        """Whether it needs random numbers."""

    @abstractmethod
    def place(
        self,
        unit: Float[Array, " ndim"],
        number: Int[Array, ""],
        low: Float[Array, " ndim"],
        high: Float[Array, " ndim"],
    ) -> Float[Array, " ndim"]:
        """Returns a position; its coordinate normal to the face is not used.

        Args:
            unit: Random numbers from [0, 1).
            number: Number of the particle.
            low: Low corner of the box.
            high: High corner of the box.
        """

    @abstractmethod
    def check(self, axis: int, ndim: int) -> None:
        """Raises if it does not fit a face.

        Args:
            axis: The axis normal to the face.
            ndim: Axes of the box.
        """


class Uniform(AbstractPlacement):
    """Anywhere on the face with the same probability."""

    def is_random(self):
        return True

    def place(self, unit, number, low, high):
        del number
        return low + unit * (high - low)

    def check(self, axis, ndim):
        del axis, ndim


def _edges(axes: Any) -> tuple[Array, ...]:
    check_listed(axes, "axes", "(y_edges, z_edges)")
    return tuple(real(edges, "axes") for edges in axes)


class FluxWeighted(AbstractPlacement):
    """Where fluid comes in, with a probability proportional to the inflow.

    Attributes:
        axes: Edges of the cells of the face along each axis of the box but the one
            normal to it.
        inflow: Velocity inward through each cell, which is weighted with its size along
            `axes`; negative where fluid goes out, which counts as 0. Only ratios
            matter. Along degrees on a sphere, whose sizes are not in metres, times the
            metres in a unit of each axis, as `of` does it.
        normal: The axis normal to the face, counted from 0.

    Raises:
        ArgumentError: If nothing comes in, or the shapes do not agree.
    """

    axes: tuple[Float[Array, " edges"], ...] = eqx.field(converter=_edges)
    inflow: Float[Array, "..."] = eqx.field(converter=lambda x: real(x, "inflow"))
    normal: int = eqx.field(static=True, converter=lambda x: whole(x, "normal", 0))

    def __check_init__(self):
        shape = tuple(edges.size - 1 for edges in self.axes)
        if self.inflow.shape != shape:
            raise ArgumentError(
                f"`inflow` must have one entry for each cell, {shape}, but has shape "
                f"{self.inflow.shape}."
            )
        known = not isinstance(self.inflow, jax.core.Tracer)
        if known and not np.any(np.asarray(self.inflow) > 0):
            raise ArgumentError(
                "`inflow` must be positive somewhere, but nothing comes in: the "
                f"largest entry is {np.max(np.asarray(self.inflow)):g}."
            )

    @classmethod
    def of(
        cls,
        velocity: Any,
        low: ArrayLike | Sequence,
        high: ArrayLike | Sequence,
        *,
        face: int,
        cells: Sequence[int],
        t: float = 0.0,
    ) -> "FluxWeighted":
        r"""Takes the inflow from a velocity, at the centres of cells of equal size.

        With an `OnSphere` of radius $a$ the flux through a meridian is $u\, a\,
        d\phi$, through a parallel $v\, a \cos\phi\, d\lambda$.

        Args:
            velocity: A callable `u(t, x)`, a field, or an `OnSphere` over degrees.
            low: Low corner of the box.
            high: High corner of the box.
            face: Number of the face: low x, high x, low y, ...
            cells: Number of cells along each of the other axes.
            t: The time of the velocity, in seconds.
        """
        velocity = as_function(velocity, "velocity", "u(t, x)")
        (low, high), face = as_box(low, high), whole(face, "face", 0)
        at = single(real(t, "t"), "t")
        check_listed(cells, "cells", "(20,)")
        cells = [whole(n, "cells") for n in cells]
        if face >= 2 * low.size or len(cells) != low.size - 1:
            raise ArgumentError(
                f"`face` must be less than {2 * low.size} and `cells` have "
                f"{low.size - 1} entries in {low.size} dimensions, but are {face} and "
                f"{cells}."
            )
        normal, side = divmod(face, 2)
        others = [axis for axis in range(low.size) if axis != normal]
        axes = [
            jnp.linspace(low[axis], high[axis], n + 1)
            for axis, n in zip(others, cells, strict=True)
        ]
        centres = jnp.meshgrid(*[(e[1:] + e[:-1]) / 2 for e in axes], indexing="ij")
        points = [c.ravel() for c in centres]
        points.insert(normal, jnp.full_like(points[0], (low, high)[side][normal]))
        places = jnp.stack(points, -1)
        check_sphere_is_seen(velocity, velocity, at, places[0])
        speed = jnp.stack([velocity(at, x)[normal] for x in places])
        if (sphere := sphere_of(velocity)) is not None:
            speed = speed * jnp.abs(jnp.prod(unit_lengths(sphere, places), -1))
        inflow = speed.reshape(centres[0].shape) * (1 - 2 * side)
        return cls(tuple(axes), inflow, normal)

    def is_random(self):
        return True

    def place(self, unit, number, low, high):
        del number, low, high
        flux = jnp.maximum(self.inflow, 0)
        for axis, edges in enumerate(self.axes):
            size = jnp.diff(edges)
            flux = flux * jnp.expand_dims(size, tuple(range(1, flux.ndim - axis)))
        total = jnp.cumsum(jnp.ravel(flux))
        pick = jnp.searchsorted(total, unit[self.normal] * total[-1], side="right")
        cell = jnp.unravel_index(jnp.minimum(pick, total.size - 1), self.inflow.shape)
        place = [unit[0]] * unit.size
        others = [axis for axis in range(unit.size) if axis != self.normal]
        for axis, edges, i in zip(others, self.axes, cell, strict=True):
            place[axis] = edges[i] + unit[axis] * (edges[i + 1] - edges[i])
        return jnp.stack(place)

    def check(self, axis, ndim):
        if self.normal != axis or len(self.axes) != ndim - 1:
            raise ArgumentError(
                f"`placement` must be for a face normal to axis {axis} of {ndim}, but "
                f"`normal` is {self.normal} and there are cells along "
                f"{len(self.axes)} axes."
            )


class Pattern(AbstractPlacement):
    """At a fixed place for each particle, so that patterns persist.

    Particle i comes in at place i modulo their number.

    Attributes:
        places: Positions on the face; the coordinate normal to it does not matter.
    """

    places: Float[Array, "places ndim"] = eqx.field(
        converter=lambda x: real(x, "places")
    )

    def is_random(self):
        return False

    def place(self, unit, number, low, high):
        del unit, low, high
        return self.places[number % self.places.shape[0]]

    def check(self, axis, ndim):
        del axis
        good = self.places.ndim == 2 and self.places.shape[1] == ndim
        if not good or not self.places.shape[0]:
            raise ArgumentError(
                f"`places` must be at least one, of {ndim} coordinates each, but have "
                f"shape {self.places.shape}."
            )
