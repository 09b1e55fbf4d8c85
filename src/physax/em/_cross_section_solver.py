"""Eigenmodes of a cross-section: a sparse solver on the host, derivatives in JAX."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from jax import lax
from jaxtyping import Array, Float, Num

from ._cross_section_operator import (
    CrossSection,
    Pair,
    areas,
    dot,
    electric_of,
    magnetic_of,
    sparse_operators,
)
from ._resolution import LEAST_SPAN


class Request(NamedTuple):
    """What is asked of the solver.

    Attributes:
        count: Number of modes.
        open: For each axis whether the section goes on beyond its low and high end.
    """

    count: int
    open: tuple[tuple[bool, bool], tuple[bool, bool]]


class Eigenmodes(NamedTuple):
    """Modes in falling order of the effective index, leaves with a first axis.

    Attributes:
        squares: Squares of the effective indices; infinite where the solver did not
            converge.
        electric: Eu and Ev, scaled so that the sum of `e h` times area is 1.
        magnetic: The turned magnetic field, `eta0 (Hv, -Hu)`.
        outside: Largest effective index of what lies beyond the open ends, one number;
            0 if there are none. It has no derivative.
    """

    squares: Num[Array, " modes"]
    electric: tuple[Num[Array, "modes nu mv"], Num[Array, "modes mu nv"]]
    magnetic: tuple[Num[Array, "modes nu mv"], Num[Array, "modes mu nv"]]
    outside: Float[Array, ""]


def _wide(section: CrossSection) -> CrossSection:
    """Returns the section in NumPy's double precision."""
    return jax.tree.map(_double, section)


def _double(x) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


# Below this size a dense solver is quicker and finds all.
_DENSE = 80


def _eigenpairs(matrix, count: int, near: float) -> tuple[Any, Any]:
    """Returns the eigenpairs nearest to a number, at least `count` where there are."""
    size = matrix.shape[0]
    if size <= max(_DENSE, count + 4):
        found: Any = scipy.linalg.eig(matrix.toarray())
        values, vectors = found
        chosen = np.argsort(np.abs(values - near))[:count]
        return values[chosen], vectors[:, chosen]
    # Not symmetric, so that no mode of a symmetric section is orthogonal to it.
    start = np.sin(1 + 2.399963 * np.arange(size)) + 0.5
    shifted = (matrix - near * sp.eye_array(size)).tocsc()
    solve = _factored(shifted).solve
    inverse = spla.aslinearoperator(_Inverse(matrix.shape, matrix.dtype, solve))
    try:
        found: Any = spla.eigs(
            matrix, count, sigma=near, OPinv=inverse, v0=start, tol=0
        )
    except spla.ArpackNoConvergence as error:
        found = error.eigenvalues, error.eigenvectors
    return found


class _Inverse(NamedTuple):
    """A factored matrix, as SciPy knows a linear operator."""

    shape: tuple[int, int]
    dtype: Any
    matvec: Any


def _factored(matrix):
    """Factors a matrix whose pattern is nearly symmetric."""
    return spla.splu(
        matrix,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.01,
        options={"SymmetricMode": True},
    )


def _largest_index(section: CrossSection) -> float:
    """Returns the largest effective index of a section one cell wide along u."""
    a, g, _ = sparse_operators(section)
    bound = _bound(section)
    values, _ = _eigenpairs((g @ a).tocsc(), 1, bound)
    return float(np.sqrt(max(values.real.max(initial=0.0), 0.0)))


def _bound(section: CrossSection) -> float:
    """Returns a number a little above the squares of all effective indices."""
    eps_u, eps_v, _ = section.permittivity
    mu_u, mu_v, _ = section.permeability
    products = np.real(eps_u * mu_v), np.real(eps_v * mu_u)
    return 1.02 * max(float(np.max(x)) for x in products) + 1e-3


def _outside(section: CrossSection, open_: tuple) -> float:
    """Returns the largest index of the slabs that go on beyond the open ends."""
    found = [0.0]
    for axis, sides in enumerate(open_):
        for index, is_open in zip((0, -1), sides, strict=True):
            if is_open:
                found.append(_largest_index(_border(section, axis, index)))
    return max(found)


def _border(section: CrossSection, axis: int, index: int) -> CrossSection:
    """Returns the cells at one end as a section that is uniform along the axis."""

    def take(x):
        return np.take(x, [index], axis)

    one = np.ones(1)
    widths, duals = list(section.widths), list(section.duals)
    widths[axis] = duals[axis] = one
    ends = list(section.ends)
    ends[axis] = None
    return CrossSection(
        tuple(map(take, section.permittivity)),  # pyright: ignore[reportArgumentType]
        tuple(map(take, section.permeability)),  # pyright: ignore[reportArgumentType]
        (widths[0], widths[1]),
        (duals[0], duals[1]),
        tuple(ends),
    )


def _real_basis(values: np.ndarray, vectors: np.ndarray, a, weights, first):
    """Returns real eigenvectors, those of equal eigenvalues orthogonal to each other.

    Of equal ones, that with the larger part of its power in the first component comes
    first.
    """
    # Up to the sign, the phase in which a vector is real is that of this root.
    vectors = vectors / np.sqrt(np.sum(vectors**2, axis=0) + 0j)
    out = np.real(vectors)
    start = 0
    for stop in range(1, len(values) + 1):
        if stop < len(values) and np.isclose(values[stop], values[start], 1e-9, 1e-9):
            continue
        if stop - start > 1:
            both = vectors[:, start:stop]
            both = np.concatenate([np.real(both), np.imag(both)], axis=1)
            span = np.linalg.svd(both, full_matrices=False)[0][:, : stop - start]
            magnetic = a @ span * weights[:, None]
            power, share = span.T @ magnetic, span[first].T @ magnetic[first]
            power, share = (power + power.T) / 2, (share + share.T) / 2
            if np.all(np.linalg.eigvalsh(power) > 0):
                out[:, start:stop] = span @ scipy.linalg.eigh(share, power)[1][:, ::-1]
        start = stop
    return out


def _signs(vectors: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Returns the signs that make the first lobe of the larger component positive."""
    signs = np.ones(vectors.shape[1])
    for k, vector in enumerate(vectors.T):
        parts = vector[first], vector[~first]
        larger = max(parts, key=np.linalg.norm)
        lobe = np.argmax(np.abs(larger) > 0.5 * np.max(np.abs(larger)))
        signs[k] = -1.0 if larger[lobe].real < 0 else 1.0
    return signs


def _find(section: CrossSection, count: int, target: float):
    """Returns squares, electric and magnetic fields of modes, a column for each."""
    a, g, kept = sparse_operators(section)
    near = target**2 if target > 0 else _bound(section)
    values, vectors = _eigenpairs((g @ a).tocsc(), count + 2, near)
    chosen = np.argsort(np.abs(values - near))[:count]
    chosen = chosen[np.argsort(-values[chosen].real)]
    values, vectors = values[chosen], vectors[:, chosen]
    weights = np.concatenate([np.ravel(x) for x in areas(section)])[kept]
    first = np.flatnonzero(kept) < section.permittivity[0].size
    if not np.iscomplexobj(a):
        vectors = _real_basis(values, vectors, a, weights, first)
        # A pair of complex modes, which a lossless section may have, is not supported.
        real = np.abs(values.imag) <= 1e-6 * np.abs(values)
        values = np.where(real, values.real, np.nan)
    with np.errstate(invalid="ignore"):
        magnetic = a @ vectors / np.sqrt(values)
        scale = np.sqrt(np.sum(weights[:, None] * vectors * magnetic, axis=0))
    scale = scale * _signs(vectors / scale, first)
    whole = np.zeros((2, len(kept), len(values)), np.result_type(vectors, scale))
    whole[:, kept] = vectors / scale, magnetic / scale
    return values, whole[0], whole[1]


def _solve_on_host(request: Request, section: CrossSection, target) -> Eigenmodes:
    """Finds the modes; NaN where nothing can be solved, or a mode is complex.

    No more can be where the section spans but a tiny part of a wavelength.
    """
    dtype, real = section.permittivity[0].dtype, np.asarray(target).dtype
    section = _wide(section)
    shapes = [x.shape for x in section.permittivity[:2]]
    squares = np.full(request.count, np.nan, dtype)
    fields = [np.full((request.count, *s), np.nan, dtype) for s in 2 * shapes]
    outside = np.asarray(np.nan, real)
    # Lengths are times the wavenumber.
    longest = max(np.sum(np.real(width)) for width in section.widths)
    known = all(np.all(np.isfinite(x)) for x in jax.tree.leaves(section))
    if known and longest >= 2 * np.pi * LEAST_SPAN:
        values, *found = _find(section, request.count, float(target))
        known = len(values)
        squares[:known], squares[known:] = values, np.inf
        for k, columns in enumerate(found):
            parts = np.split(columns.T, [section.permittivity[0].size], axis=1)
            for slot, part, shape in zip(fields[2 * k :], parts, shapes, strict=False):
                slot[:known] = part.reshape(known, *shape)
        outside = np.asarray(_outside(section, request.open), real)
    return Eigenmodes(squares, (fields[0], fields[1]), (fields[2], fields[3]), outside)  # pyright: ignore[reportArgumentType]


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def eigenmodes(
    section: CrossSection, target: Float[Array, ""], request: Request
) -> Eigenmodes:
    """Finds modes of a cross-section.

    SciPy's shift-and-invert Arnoldi method (ARPACK) in double precision on the host,
    also from a compiled program. Derivatives are those of an eigenpair, forward,
    reverse and repeated, and need one sparse solve for each mode whose fields are
    differentiated. A mode must be simple for them; others may be degenerate.

    Reference: Zhu and Brown, *Full-vectorial finite-difference analysis of
    microstructured optical fibers*, Optics Express 10, 853 (2002).

    Args:
        section: The cross-section.
        target: Find the modes with the indices nearest to this one; 0 for the largest.
        request: How many, and which ends are open.

    Returns:
        The modes, their fields NaN where there are fewer.
    """
    dtype = section.permittivity[0].dtype
    shapes = [(request.count, *x.shape) for x in section.permittivity[:2]]
    pair = tuple(jax.ShapeDtypeStruct(s, dtype) for s in shapes)
    squares = jax.ShapeDtypeStruct((request.count,), dtype)
    outside = jax.ShapeDtypeStruct((), target.dtype)
    return jax.pure_callback(
        partial(_solve_on_host, request),
        Eigenmodes(squares, pair, pair, outside),  # pyright: ignore[reportArgumentType]
        section,
        target,
        vmap_method="sequential",
    )


@eigenmodes.defjvp
def _(request, primals, tangents):
    section, target = primals
    found = eigenmodes(section, target, request)
    slopes = []
    for k in range(request.count):
        one = jax.tree.map(lambda x, k=k: x[k], found[:3])
        slopes.append(_slopes(section, tangents[0], *one))
    squares, e, h = jax.tree.map(lambda *x: jnp.stack(x), *slopes)
    return found, Eigenmodes(squares, e, h, jnp.zeros_like(found.outside))


def _operate(section: CrossSection, e: Pair) -> Pair:
    """Multiplies by the matrix whose eigenvalues are the squares."""
    return electric_of(section, magnetic_of(section, e))


def _slopes(section: CrossSection, change: CrossSection, square, e: Pair, h: Pair):
    """Returns the derivatives of a mode with respect to the section."""
    weights = areas(section)
    left = weights[0] * h[0], weights[1] * h[1]
    _, moved = jax.jvp(lambda s: _operate(s, e), (section,), (change,))
    slope = dot(left, moved)  # the product of `left` and `e` is 1
    right = tuple(slope * x - m for x, m in zip(e, moved, strict=True))
    turn = _solve_beside(section, square, e, left, right)

    def partner(section, square, e):
        return tuple(x / jnp.sqrt(square) for x in magnetic_of(section, e))

    steps = change, slope, turn
    _, follow = jax.jvp(partner, (section, square, e), steps)
    _, swell = jax.jvp(areas, (section,), (change,))
    # The scale keeps the sum of `e h` times area.
    power = sum(jnp.sum(s * x * y) for s, x, y in zip(swell, e, h, strict=True))
    power += dot(left, turn)
    power += sum(jnp.sum(w * x * f) for w, x, f in zip(weights, e, follow, strict=True))
    turn, follow = (
        tuple(t - power / 2 * x for t, x in zip(tangent, field, strict=True))
        for tangent, field in ((turn, e), (follow, h))
    )
    return slope, turn, follow


def _solve_beside(section: CrossSection, square, e: Pair, left: Pair, right: Pair):
    """Solves with the matrix less the eigenvalue, beside the eigenvector.

    The border makes the matrix regular: `(P - square) x + e t = right`, `left x = 0`.
    """
    cut, shapes = e[0].size, [x.shape for x in e]

    def unpack(x) -> Pair:
        return x[:cut].reshape(shapes[0]), x[cut:-1].reshape(shapes[1])

    def pack(pair: Pair, extra):
        return jnp.concatenate([pair[0].ravel(), pair[1].ravel(), extra[None]])

    def multiply(x):
        image = _operate(section, unpack(x))
        rows = tuple(
            i - square * p + f * x[-1]
            for i, p, f in zip(image, unpack(x), e, strict=True)
        )
        return pack((rows[0], rows[1]), dot(left, unpack(x)))

    def solve(trans, multiply, x):
        del multiply
        return jax.pure_callback(
            partial(_solve_border_on_host, trans),
            jax.ShapeDtypeStruct(x.shape, x.dtype),
            *lax.stop_gradient((section, square, pack(e, square), pack(left, square))),
            x,
            vmap_method="sequential",
        )

    found = lax.custom_linear_solve(
        multiply,
        pack(right, jnp.zeros_like(square)),
        partial(solve, "N"),
        partial(solve, "T"),
    )
    return unpack(found)


def _solve_border_on_host(trans: str, section: CrossSection, square, e, left, right):
    """Solves with the bordered matrix, or its transpose, by a sparse factorisation."""
    if not np.all(np.isfinite(e)):
        return np.full_like(right, np.nan)
    a, g, kept = sparse_operators(_wide(section))
    square, e, left, given = (_double(x) for x in (square, e, left, right))
    matrix = g @ a - square * sp.eye_array(a.shape[0])
    down, across = e[:-1][kept, None], left[:-1][None, kept]
    matrix = sp.block_array(
        [[matrix, sp.csr_array(down)], [sp.csr_array(across), None]]
    )
    kept = np.append(kept, True)
    found = np.zeros(given.shape, given.dtype)
    found[kept] = _factored(matrix.tocsc()).solve(given[kept], trans=trans)
    return found.astype(right.dtype)
