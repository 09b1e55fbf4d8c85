"""Fields given in the elements of a mesh."""

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, ArrayLike, Float, Num

from .._checks import as_array, instance, refuse_traced, true_or_false
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
from ._mesh_field import weighted
from ._numbers import unmasked


_LINEAR = Linear()


class CellField(AbstractField):
    r"""Values in the elements of a mesh, steady or at instants of time.

    In the element $c$ it is $u_c + G_c (x - x_c)$, with the centre of mass $x_c$ and
    the slopes $G_c$ that fit its neighbours best, by least squares weighted with the
    inverse square of the distance: exact for linear functions, of order 2, and
    discontinuous between elements by an error of that order. Without slopes it is
    constant in each element. Differentiable in the values, through the constructor, and
    in the place.

    Attributes:
        mesh: The mesh.
        values: The values of each element at the corners of its largest simplex, or its
            only value; behind the axes of times and elements.
        instants: When they are known.
        constant: Whether it is constant in each element.
    """

    mesh: Mesh
    values: Num[Array, "..."]
    instants: Instants
    constant: bool = eqx.field(static=True)

    def __init__(
        self,
        mesh: Mesh,
        values: Num[ArrayLike, "..."],
        times: Float[ArrayLike, " times"] | None = None,
        *,
        constant: bool = False,
        time_period: float | None = None,
        time_method: AbstractInterpolation = _LINEAR,
        time_outside: AbstractOutside | Leave | None = None,
    ):
        """Makes a field of its values in the elements.

        Args:
            mesh: The mesh. For slopes it must be known, not traced.
            values: Of shape `[elements, *components]`, or `[times, elements,
                *components]`. Masked ones are NaN: there, and with slopes in the
                elements beside, particles end with the status `NOT_FINITE`.
            times: The instants, increasing; `None` for a steady field.
            constant: Whether it is constant in each element.
            time_period: The time after which the field repeats.
            time_method: The interpolation in time.
            time_outside: What it is before the first and after the last instant, as for
                `GriddedField`.

        Raises:
            ArgumentError: If the shape of the values fits neither, the times do not
                increase, or the mesh is traced.
        """
        instance(mesh, "mesh", Mesh)
        constant = true_or_false(constant, "constant")
        self.mesh = mesh
        self.instants = make_instants(
            times,
            time_period=time_period,
            time_method=time_method,
            time_outside=time_outside,
        )
        given = as_array(unmasked(values), "values")
        check_values(given, self.instants, mesh.elements, "elements")
        leading = len(self.instants.leading)
        self.values = given if constant else _at_corners(mesh, given, leading)
        self.constant = constant

    def start(self, x):
        check_place(x, self.mesh.ndim)
        return self.mesh.first_guess(x)

    def span(self):
        return self.instants.span()

    def look(self, t, x, memory):
        check_place(x, self.mesh.ndim)
        simplex, found = locate(self.mesh, x, memory)
        element = gather(self.mesh.owner, simplex)
        if self.constant:
            value, status = self.instants.blend(
                t, lambda instant: gather(self.values, *instant, element)
            )
            return Look(value, simplex, left_where(~found, status))
        largest = gather(self.mesh.largest, element)
        weights = self.mesh.weights(x, largest)

        def at(instant):
            corners = gather(self.values, *instant, element)
            return weighted(weights, list(corners), found)

        value, status = self.instants.blend(t, at)
        return Look(value, simplex, left_where(~found, status))


def _at_corners(mesh: Mesh, values: Num[Array, "..."], axis: int) -> Num[Array, "..."]:
    """Continues the values of elements to the corners of their largest simplices."""
    refuse_traced(
        mesh.links,
        "mesh",
        "Make the field outside, close over the mesh, or choose `constant=True`.",
    )
    element, other, weights = _stencil(mesh)
    first = jnp.moveaxis(values, axis, 0)
    rise = first[other] - first[element]
    weights = jnp.asarray(weights, mesh.rows.dtype)
    corners = [
        first
        + jax.ops.segment_sum(
            weights[:, k].reshape(-1, *[1] * (rise.ndim - 1)) * rise,
            jnp.asarray(element),
            mesh.elements,
            indices_are_sorted=True,
        )
        for k in range(mesh.ndim + 1)
    ]
    stacked = jnp.stack(corners, 1)
    return jnp.moveaxis(stacked, (0, 1), (axis, axis + 1))


def _stencil(mesh: Mesh) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns which elements have a say at the corners of each, and their weights.

    Weights for corners, not for slopes along coordinates: of those for a flat element
    at an angle to the axes, single precision keeps too little.
    """
    n, count = mesh.ndim, mesh.elements
    owner = np.asarray(mesh.owner)
    beside = np.asarray(mesh.links)[:, : n + 1]
    mine = np.repeat(owner, n + 1)[beside.reshape(-1) >= 0]
    other = owner[beside.reshape(-1)[beside.reshape(-1) >= 0]]
    shape = (count, count)
    ones = np.ones(len(mine), bool)
    around = scipy.sparse.csr_array((ones, (mine, other)), shape=shape)
    rings = around
    centres, corners = centres_and_corners(mesh)
    for _ in range(4):
        element, other, way, moments = _moments(centres, rings)
        spread = np.linalg.eigvalsh(moments)
        poor = spread[:, 0] < 1e-2 * spread[:, -1]
        if not poor.any():
            break
        # Where neighbours lie in a line or plane, theirs are asked as well.
        asked = scipy.sparse.diags_array(poor.astype(float))
        rings = ((asked @ rings.astype(float)) @ around.astype(float) + rings) > 0
    inverse = np.linalg.pinv(moments, rcond=1e-9, hermitian=True)
    square = np.sum(way**2, -1, keepdims=True)
    slope = np.einsum("pij,pj->pi", inverse[element], way) / square
    for _ in range(2):
        # Squared distances cost half of the digits in flat elements. Newton's steps
        # towards slopes that are exact for linear functions win them back.
        slope = 2 * slope - np.einsum(
            "pij,pj->pi", _sums(slope, way, element, count)[element], slope
        )
    reach = corners - centres[:, None]
    return element, other, np.einsum("pki,pi->pk", reach[element], slope)


def centres_and_corners(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Returns the centre of each element, and the corners of its largest simplex.

    In float64, which far from the origin is more than the mesh's own points have.

    Args:
        mesh: The mesh.
    """
    n = mesh.ndim
    rows = np.asarray(mesh.rows, float)[np.asarray(mesh.largest)]
    corner = rows[:, :n] - rows[:, n : 2 * n]
    factors = rows[:, 3 * n + 1 :].reshape(-1, n, n)
    upper = np.triu(factors, 1) + np.eye(n)
    lower = np.tril(factors, -1)
    lower[:, range(n), range(n)] = 1 / factors[:, range(n), range(n)]
    edges = np.swapaxes(lower @ upper, 1, 2)
    corners = corner[:, None] + np.concatenate([0 * edges[:, :1], edges], 1)
    return corner - np.asarray(mesh.arms, float), corners


def _moments(
    centres: np.ndarray, rings: scipy.sparse.csr_array
) -> tuple[np.ndarray, ...]:
    """Returns pairs of elements, the ways between them, and the sums of the squares."""
    element, other = rings.tocoo().coords
    kept = element != other
    order = np.argsort(element[kept], kind="stable")
    element, other = element[kept][order], other[kept][order]
    way = centres[other] - centres[element]
    square = np.sum(way**2, -1, keepdims=True)
    return element, other, way, _sums(way / square, way, element, len(centres))


def _sums(
    left: np.ndarray, right: np.ndarray, element: np.ndarray, count: int
) -> np.ndarray:
    """Sums the outer products of vectors of each element."""
    n = left.shape[1]
    sums = np.zeros((count, n, n))
    for i, j in np.ndindex(n, n):
        sums[:, i, j] = np.bincount(element, left[:, i] * right[:, j], count)
    return sums
