"""Fields given at the nodes of a mesh."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from .._checks import as_array, instance
from .._gather import gather
from ..grid import AbstractInterpolation, AbstractOutside, Linear
from ._fields import AbstractField, Look
from ._instants import (
    Instants,
    Leave,
    check_place,
    check_values,
    left_where,
    make_instants,
)
from ._locate import locate
from ._mesh import Mesh
from ._numbers import unmasked


_LINEAR = Linear()


class MeshField(AbstractField):
    r"""Values at the nodes of a mesh, steady or at instants of time.

    In each triangle or tetrahedron of the mesh it is linear, $\sum_i \lambda_i(x) u_i$
    with the barycentric coordinates $\lambda_i$; quadrilaterals, hexahedra and the like
    are split into these. It is continuous, of order 2, and exact for linear functions.
    Differentiable in the values, through the constructor, and in the place.

    Units are the user's: those of the points, of `times`, and of the values.

    Attributes:
        mesh: The mesh.
        values: The values at the nodes, and behind them at the centres of faces and
            elements that the mesh was split with.
        instants: When they are known.
    """

    mesh: Mesh
    values: Num[Array, "..."]
    instants: Instants

    def __init__(
        self,
        mesh: Mesh,
        values: Num[ArrayLike, "..."],
        times: Float[ArrayLike, " times"] | None = None,
        *,
        time_period: float | None = None,
        time_method: AbstractInterpolation = _LINEAR,
        time_outside: AbstractOutside | Leave | None = None,
    ):
        """Makes a field of its values at the nodes.

        Args:
            mesh: The mesh.
            values: Of shape `[nodes, *components]`, or `[times, nodes, *components]`.
                A velocity has one axis of components, a scalar none. Masked values are
                NaN: there particles end with the status `NOT_FINITE`.
            times: The instants, increasing; `None` for a steady field.
            time_period: The time after which the field repeats.
            time_method: The interpolation in time.
            time_outside: What it is before the first and after the last instant, as for
                `GriddedField`.

        Raises:
            ArgumentError: If the shape of the values fits neither, or the times do
                not increase.
        """
        instance(mesh, "mesh", Mesh)
        self.mesh = mesh
        self.instants = make_instants(
            times,
            time_period=time_period,
            time_method=time_method,
            time_outside=time_outside,
        )
        given = as_array(unmasked(values), "values")
        check_values(given, self.instants, len(mesh.points), "nodes")
        self.values = _with_centres(mesh, given, len(self.instants.leading))

    def start(self, x):
        check_place(x, self.mesh.ndim)
        return self.mesh.first_guess(x)

    def span(self):
        return self.instants.span()

    def look(self, t, x, memory):
        check_place(x, self.mesh.ndim)
        simplex, found = locate(self.mesh, x, memory)
        n = self.mesh.ndim
        weights = self.mesh.weights(x, simplex)
        corners = gather(self.mesh.links, simplex)[n + 1 :]

        def at(instant):
            values = [gather(self.values, *instant, corner) for corner in corners]
            return weighted(weights, values, found)

        value, status = self.instants.blend(t, at)
        return Look(value, simplex, left_where(~found, status))


def weighted(
    weights: list[Float[Array, ""]],
    values: list[Num[Array, "..."]],
    found: Bool[Array, ""],
) -> Num[Array, "..."]:
    """Returns a mean of the values at the corners of a simplex.

    Args:
        weights: The barycentric coordinates of the place.
        values: The values.
        found: Whether the place lies in the simplex. If not the mean is the plain one,
            which is harmless: nobody should use it.
    """
    # Differences, so that a constant is exact and large values lose nothing.
    first = values[0]
    even = 1 / len(values)
    return first + sum(
        jnp.where(found, weight, even) * (value - first)
        for weight, value in zip(weights[1:], values[1:], strict=True)
    )


def _with_centres(
    mesh: Mesh, values: Num[Array, "..."], axis: int
) -> Num[Array, "..."]:
    """Appends the values at the centres of faces and elements: means of their nodes."""
    centre, node = mesh.averages
    if not centre.size:
        return values
    count = mesh.centre_count
    sums = jax.ops.segment_sum(jnp.moveaxis(values, axis, 0)[node], centre, count)
    weight = jax.ops.segment_sum(jnp.ones(node.shape, values.dtype), centre, count)
    means = sums / weight.reshape(-1, *[1] * (values.ndim - 1))
    return jnp.concatenate([values, jnp.moveaxis(means, 0, axis)], axis)
