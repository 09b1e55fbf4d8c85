r"""Maxwell's equations of a mode on the Yee points of a cross-section.

Axes u and v lie in the section and w, the direction of travel, completes a right-handed
set. Lengths are in units of $1 / k_0$. With $e = (E_u, E_v)$ and the turned magnetic
field $h = \eta_0 (H_v, -H_u)$ a mode is a solution of $n h = A e$, $n e = G h$, hence
$G A e = n^2 e$. Weighted by areas $A$ and $G$ are symmetric, so $h$ is the left
eigenvector of $G A$ (reciprocity).

Cylindrical coordinates are the axes u = r and v = phi of a medium that the radius
stretches, with $r E_\phi$ and $r H_\phi$ along v (Ward and Pendry, J. Mod. Opt. 43,
773, 1996). Eu, Ew and Hv are factors of cos m phi, the others of sin m phi.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax
from jaxtyping import Array, Num


Values = Array | np.ndarray
"""The solver works on NumPy's arrays, all else on those of JAX."""

Pair = tuple[Any, Any]

Ends = tuple[tuple[bool, bool] | None, ...]
"""For each axis whether the nodes at the low and the high end are unknowns, as on a
magnetic wall; on an electric wall they are not. `None`: the axis is periodic."""


class CrossSection(eqx.Module):
    """What fills a section of `nu` by `nv` cells, at the points of each component.

    There are `mu = nu + 1` nodes along u, or `nu` where it is periodic; likewise along
    v. Everything may be complex.

    Attributes:
        permittivity: Of Eu (nu, mv), Ev (mu, nv) and Ew (mu, mv).
        permeability: Of Hu (mu, nv), Hv (nu, mv) and Hw (nu, nv).
        widths: Of the cells along u and v, times k0.
        duals: Around the nodes along u and v, times k0; at an end half a cell.
        ends: What the nodes at the ends are.
        around: The angular number m, if v is the azimuth, one periodic cell of a
            radian, and u begins on the axis, whose node is an unknown of Ew alone.
    """

    permittivity: tuple[
        Num[Values, "nu mv"], Num[Values, "mu nv"], Num[Values, "mu mv"]
    ]
    permeability: tuple[
        Num[Values, "mu nv"], Num[Values, "nu mv"], Num[Values, "nu nv"]
    ]
    widths: tuple[Num[Values, " nu"], Num[Values, " nv"]]
    duals: tuple[Num[Values, " mu"], Num[Values, " mv"]]
    ends: Ends = eqx.field(static=True)
    around: int | None = eqx.field(static=True, default=None)


def areas(section: CrossSection) -> Pair:
    """Returns the areas around the points of Eu and of Ev, times k0^2."""
    (wu, wv), (du, dv) = section.widths, section.duals
    return wu[:, None] * dv, du[:, None] * wv


def _masks(section: CrossSection) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns which samples of Eu along v, of Ev along u and of Ew are unknowns."""
    masks = []
    for axis in (0, 1):
        mask = np.ones(section.duals[axis].shape[0], bool)
        ends = section.ends[axis]
        if ends is not None:
            mask[0], mask[-1] = ends
        masks.append(mask)
    along_u, along_v = masks
    inside = along_u[:, None] & along_v
    if section.around is not None:
        along_u[0] = False
    return along_v, along_u, inside


def _turns(section: CrossSection, axis: int) -> int:
    """Returns the angular number along v, if v is an azimuth, or 0."""
    return (section.around or 0) * axis


def _forward(section: CrossSection, axis: int, x: Array) -> Array:
    """Differences of samples at nodes, divided by the widths of the cells."""
    x = jnp.moveaxis(x, axis, 0)
    if section.ends[axis] is None:
        step = jnp.roll(x, -1, 0) - x - _turns(section, axis) * x
    else:
        step = jnp.diff(x, axis=0)
    return jnp.moveaxis(step / section.widths[axis][:, None], 0, axis)


def _backward(section: CrossSection, axis: int, x: Array) -> Array:
    """Differences of samples in cells, divided by the widths around the nodes.

    Beyond the ends the samples count as zero: with half a cell around the end node
    this is the rule of a magnetic wall, about which they are odd.
    """
    x = jnp.moveaxis(x, axis, 0)
    if section.ends[axis] is None:
        step = x - jnp.roll(x, 1, 0) + _turns(section, axis) * x
    else:
        step = jnp.diff(jnp.pad(x, ((1, 1), (0, 0))), axis=0)
    return jnp.moveaxis(step / section.duals[axis][:, None], 0, axis)


def _off_walls(section: CrossSection, pair: Pair) -> Pair:
    """Sets what is tangential to an electric wall, and on it, to zero."""
    along_v, along_u, _ = _masks(section)
    return pair[0] * along_v, pair[1] * along_u[:, None]


def magnetic_of(section: CrossSection, e: Pair) -> Pair:
    """Returns `A e`: the turned magnetic field times the effective index."""
    eps_u, eps_v, _ = section.permittivity
    turn = magnetic_along(section, e)
    h_u = eps_u * e[0] + _backward(section, 1, turn)
    h_v = eps_v * e[1] - _backward(section, 0, turn)
    return _off_walls(section, (h_u, h_v))


def electric_of(section: CrossSection, h: Pair) -> Pair:
    """Returns `G h`: the electric field times the effective index."""
    mu_u, mu_v, _ = section.permeability
    along = electric_along(section, h)
    e_u = mu_v * h[0] + _forward(section, 0, along)
    e_v = mu_u * h[1] + _forward(section, 1, along)
    return _off_walls(section, (e_u, e_v))


def magnetic_along(section: CrossSection, e: Pair) -> Array:
    """Returns the field along w over the imaginary unit, `eta0 Hw / i`."""
    curl = _forward(section, 0, e[1]) - _forward(section, 1, e[0])
    return -curl / section.permeability[2]


def electric_along(section: CrossSection, h: Pair) -> Array:
    """Returns the field along w over the imaginary unit, `Ew / i`."""
    curl = _backward(section, 0, h[0]) + _backward(section, 1, h[1])
    return curl / section.permittivity[2] * _masks(section)[2]


def dot(a: Pair, b: Pair) -> Array:
    """Sums products, without conjugation."""
    return jnp.sum(a[0] * b[0]) + jnp.sum(a[1] * b[1])


def _incidence(section: CrossSection, axis: int) -> sp.csr_array:
    """Returns the differences of neighbouring nodes as a matrix."""
    cells, nodes = section.widths[axis].shape[0], section.duals[axis].shape[0]
    row = np.arange(cells)
    columns = np.concatenate([row, (row + 1) % nodes])
    values = np.concatenate([-np.ones(cells), np.ones(cells)])
    shape = (cells, nodes)
    steps = sp.csr_array((values, (np.tile(row, 2), columns)), shape=shape)
    turns = _turns(section, axis)
    return steps - turns * sp.eye_array(cells, nodes, format="csr") if turns else steps


def sparse_operators(section: CrossSection) -> tuple[Any, Any, np.ndarray]:
    """Builds the operators as sparse matrices.

    Args:
        section: With NumPy arrays.

    Returns:
        `A`, `G` and which of the points of Eu, then Ev, are unknowns; rows and columns
        of the other points are left out.
    """
    nu, nv = (len(x) for x in section.widths)
    forward, backward, identity = [], [], []
    for axis in (0, 1):
        step: Any = _incidence(section, axis)
        forward.append(sp.diags_array(1 / section.widths[axis]) @ step)
        backward.append(-sp.diags_array(1 / section.duals[axis]) @ step.T)
        identity.append((sp.eye_array(step.shape[0]), sp.eye_array(step.shape[1])))
    (half_u, node_u), (half_v, node_v) = identity
    along_v, along_u, inside = _masks(section)
    kept = np.concatenate(
        [np.tile(along_v, nu), np.repeat(along_u, nv)]  # Eu (nu, mv), then Ev (mu, nv)
    )
    eps_u, eps_v, eps_w = (np.ravel(x) for x in section.permittivity)
    mu_u, mu_v, mu_w = (np.ravel(x) for x in section.permeability)

    curl = sp.hstack([-sp.kron(half_u, forward[1]), sp.kron(forward[0], half_v)])
    back = sp.vstack([-sp.kron(half_u, backward[1]), sp.kron(backward[0], half_v)])
    a = sp.diags_array(np.concatenate([eps_u, eps_v]))
    a = a + back @ sp.diags_array(1 / mu_w) @ curl
    gradient = sp.vstack([sp.kron(forward[0], node_v), sp.kron(node_u, forward[1])])
    divergence = sp.hstack([sp.kron(backward[0], node_v), sp.kron(node_u, backward[1])])
    g = sp.diags_array(np.concatenate([mu_v, mu_u]))
    g = g + gradient @ sp.diags_array(inside.ravel() / eps_w) @ divergence
    return a.tocsr()[kept][:, kept], g.tocsr()[kept][:, kept], kept


def power_density(section: CrossSection, e: Pair, h: Pair) -> Array:
    """Averages `e h*` to the centres of the cells; leading axes are kept."""
    first, second = e[0] * jnp.conj(h[0]), e[1] * jnp.conj(h[1])

    def to_cells(x, axis):
        if section.ends[axis] is None:
            return (x + jnp.roll(x, -1, axis - 2)) / 2
        n = x.shape[axis - 2]
        low, high = (
            lax.slice_in_dim(x, start, start + n - 1, axis=axis - 2) for start in (0, 1)
        )
        return (low + high) / 2

    return jnp.real(to_cells(first, 1) + to_cells(second, 0))
