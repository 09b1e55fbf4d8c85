"""Velocities on the faces of cells, as ocean models have them on C grids."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import ArgumentError, as_array
from ..grid import AbstractInterpolation, AbstractOutside, Clamp, Linear
from ._axis import Axis, Stencil, as_periods, make_axis
from ._fields import AbstractField, Look
from ._instants import Instants, Leave, check_outside, check_place, make_instants
from ._numbers import check_listed, unmasked
from ._state import bounded, code
from ._status import ParticleStatus


_LINEAR = Linear()


def _closed(samples: Num[ArrayLike, "..."], leading: int) -> Array:
    array = as_array(unmasked(samples), "components")
    times = tuple(range(leading))
    return jnp.where(jnp.isfinite(array).any(times, keepdims=True), array, 0)


class Parallels(eqx.Module):
    """How long the parallels are that bound the cells of a grid on a sphere.

    Attributes:
        faces: Cosines of the latitudes of the faces.
        cells: Means of the cosine over the cells between them.
        nearest: The cosine below which it is constant: that of `OnSphere.pole`.
    """

    faces: Float[Array, " faces"]
    cells: Float[Array, " cells"]
    nearest: Float[Array, ""]

    def weigh(self, stencils: list[Stencil], latitude: Array) -> list[Stencil]:
        """Weighs faces by their lengths over that of the parallel through a place.

        Args:
            stencils: The faces along each axis.
            latitude: Of the place, in degrees.
        """
        cosine = jnp.maximum(jnp.cos(jnp.radians(latitude)), self.nearest)

        def weighed(stencil: Stencil, lengths: list[Array]) -> Stencil:
            pairs = zip(stencil.weights, lengths, strict=True)
            weights = [w * (x / cosine).astype(w.dtype) for w, x in pairs]
            return stencil._replace(weights=weights)

        along, faces = stencils[0], [self.faces[i] for i in stencils[1].indices]
        cell = self.cells[stencils[1].indices[0]]
        heights = [weighed(stencil, [cell, cell]) for stencil in stencils[2:]]
        return [along, weighed(stencils[1], faces), *heights]


class CGridField(AbstractField):
    r"""A velocity whose components are known on the faces of cells, normal to them.

    In a cell each component goes linearly from face to face along its own axis and is
    constant along the others. So the divergence in a cell is constant, and is the
    difference of what flows in and out: where a model conserves volume cell by cell,
    tracks do, too. On an `OnSphere` parallels and meridians bound the cells, whose
    width goes as the cosine of the latitude $\phi$: there $v \cos\phi$ goes linearly
    from face to face and $w \cos\phi$ is constant across a cell, so that as much flows
    through each face as the samples say: through one without length, on a pole, nothing
    does, and in the cells around a pole $w$ increases toward it. Through a closed face,
    of velocity 0, no particle goes in the limit of short steps; a step of finite length
    may cut a corner of land that juts out, as often as `SlipField` says, and a `Coast`
    ends who does. Faces whose sample is at no time finite, or is masked, are closed.
    One that is missing at some times is a gap, which ends particles with the status
    `NOT_FINITE`. Components along a face jump from cell to cell.

    Models that store as many samples as cells leave out one outer face of each axis: in
    NEMO $u$ lies on the east and $v$ on the north face of a cell, so the first row of
    cells lacks a face. Give the positions of the $u$ points as the edges along x, of
    the $v$ points as those along y, and drop the first row of $u$ and column of $v$:
    `CGridField((u[:, 1:], v[1:, :]), (x_u, y_v))`, with x first.

    Reference: Arakawa and Lamb, *Computational design of the basic dynamical processes
    of the UCLA general circulation model*, Methods in Computational Physics 17, 173
    (1977).

    Attributes:
        components: For each axis the samples on the faces normal to it, of shape
            `[times, *places]` or, of a steady field, `[*places]`: along this axis as
            many places as faces, along others as many as cells.
        edges: For each axis the positions of the faces, increasing.
        instants: When the samples are known.
        outside: What the field is beyond its outer faces: `Leave()`, the default, ends
            particles, `Clamp()` takes the nearest value.
        parallels: Set by the `OnSphere` that holds the field; `None` in a plane.

    Raises:
        ArgumentError: If shapes do not agree, or positions do not increase.
    """

    components: tuple[Num[Array, "..."], ...]
    edges: tuple[Axis, ...]
    instants: Instants
    outside: Clamp | Leave | None
    parallels: Parallels | None

    def __init__(
        self,
        components: Sequence[Num[ArrayLike, "..."]],
        edges: Sequence[Float[ArrayLike, " _"]],
        times: Float[ArrayLike, " times"] | None = None,
        *,
        periods: Sequence[float | None] | None = None,
        time_period: float | None = None,
        time_method: AbstractInterpolation = _LINEAR,
        outside: Clamp | Leave | None = None,
        time_outside: AbstractOutside | Leave | None = None,
    ):
        """Makes a velocity of samples.

        Args:
            components: As the attribute.
            edges: As the attribute. Of a periodic axis the last face is left out, which
                is the first one again.
            times: The instants, increasing; `None` for a steady field.
            periods: For each axis the length after which the field repeats, or `None`.
            time_period: As for `GriddedField`.
            time_method: As for `GriddedField`.
            outside: As the attribute.
            time_outside: As for `GriddedField`.
        """
        check_outside(outside, kinds=(Leave, Clamp))
        check_listed(components, "components", "(u, v)")
        check_listed(edges, "edges", "(x, y)")
        if len(components) != len(edges):
            raise ArgumentError(
                "`components` and `edges` must have one entry for each axis, but have "
                f"{len(components)} and {len(edges)}."
            )
        sizes = as_periods(periods, len(edges))
        leading = 0 if times is None else 1
        self.components = tuple(_closed(samples, leading) for samples in components)
        self.edges = tuple(
            make_axis(places, f"edges[{number}]", period=size)
            for number, (places, size) in enumerate(zip(edges, sizes, strict=True))
        )
        self.instants = make_instants(
            times,
            time_period=time_period,
            time_method=time_method,
            time_outside=time_outside,
        )
        self.outside = outside
        self.parallels = None

    def __check_init__(self):
        if not 1 <= len(self.edges) <= 3:
            raise ArgumentError(
                f"`edges` must have 1 to 3 entries, but have {len(self.edges)}."
            )
        for number, samples in enumerate(self.components):
            wanted = (
                *self.instants.leading,
                *(
                    axis.count - (k != number and axis.period is None)
                    for k, axis in enumerate(self.edges)
                ),
            )
            if samples.shape != wanted:
                raise ArgumentError(
                    f"`components[{number}]` must have the shape {wanted}, faces along "
                    f"axis {number} and cells along others, but has {samples.shape}."
                )

    def between_parallels(self, pole: Float[Array, ""]) -> "CGridField":
        """Returns the field on a sphere, where parallels bound its cells.

        Args:
            pole: The distance from a pole, in degrees, within which cosines are those
                at this distance.
        """
        if len(self.edges) < 2:
            return self
        # Cells that reach over a pole end there.
        faces = jnp.radians(jnp.clip(self.edges[1].positions(), -90.0, 90.0))
        half = jnp.diff(faces) / 2
        means = jnp.cos(faces[:-1] + half) * jnp.sinc(half / jnp.pi)
        parallels = Parallels(jnp.cos(faces), means, jnp.sin(jnp.radians(pole)))
        return eqx.tree_at(
            lambda field: field.parallels, self, parallels, is_leaf=lambda x: x is None
        )

    def start(self, x):
        del x
        return ()

    def span(self):
        return self.instants.span()

    def look(self, t, x, memory):
        check_place(x, len(self.edges))
        stencils = [
            axis.stencil(at, _LINEAR) for axis, at in zip(self.edges, x, strict=True)
        ]
        inside = jnp.stack([s.inside for s in stencils]).all()
        if self.parallels is not None:
            latitude = bounded(x[1], self.edges[1].low, self.edges[1].high)
            stencils = self.parallels.weigh(stencils, latitude)
        values, status = [], code(ParticleStatus.ALIVE)
        for number, samples in enumerate(self.components):
            # A cell has the number of its lower face.
            cell = [s.indices[0] for s in stencils]
            look = partial(_between_faces, samples, stencils[number], number, cell)
            value, status = self.instants.blend(t, look)
            values.append(value)
        if not isinstance(self.outside, Clamp):
            left = code(ParticleStatus.LEFT_DATA)
            status = jnp.where(inside, status, left)
        return Look(jnp.stack(values), memory, status)


def _between_faces(
    samples: Array, stencil: Stencil, axis: int, cell: list, instant: tuple[Any, ...]
) -> Array:
    """Returns a component in a cell at one instant."""
    low, high = (
        samples[(*instant, *cell[:axis], face, *cell[axis + 1 :])]
        for face in stencil.indices
    )
    return stencil.weights[0] * low + stencil.weights[1] * high
