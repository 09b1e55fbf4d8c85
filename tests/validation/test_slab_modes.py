"""The slab mode solver: tabulated indices, order, gradients, degenerate spectra."""

import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid, smooth_edges
from physax.units import ETA_0, SPEED_OF_LIGHT
from tests.validation.stepping import slope


DATA = json.loads((Path(__file__).parent / "data" / "em_analytic.json").read_text())
ROWS = DATA["slab_neff"]["rows"]
MICRO = 1e-6
# Of the tables "TE" has E, "TM" has H out of the plane.
COMPONENT = {"TE": "Ez", "TM": "Hz"}


class Slab:
    """A symmetric slab on a line, with its faces on nodes.

    A component along the faces sees the mean of both sides at a node on a face; the one
    across them lies between nodes, where there is nothing to average.
    """

    def __init__(self, row, edges):
        grid = Grid.graded([np.asarray(edges) * MICRO])
        self.row, self.polarisation = row, COMPONENT[row["pol"]]
        self.frequency = SPEED_OF_LIGHT / (row["wavelength"] * MICRO)
        widths, duals = grid.cell_widths(0), grid.dual_widths(0)
        node, centre = edges[:-1], (edges[1:] + edges[:-1]) / 2
        half = row["width"] / 2
        slack = 1e-6
        on_face = np.abs(np.abs(node) - half) < slack
        core, clad = row["n_core"] ** 2, row["n_clad"] ** 2
        at_nodes = np.where(np.abs(node) < half, core, clad)
        self.at_nodes = jnp.asarray(np.where(on_face, (core + clad) / 2, at_nodes))
        self.at_centres = jnp.asarray(np.where(np.abs(centre) < half, core, clad))
        self.widths, self.gaps = (
            (duals, widths) if self.polarisation == "Ez" else (widths, duals)
        )

    def mode(self, order, epsilon=None, ends=em.PEC()):  # noqa: B008
        """Returns a mode, of another permittivity at the nodes and centres if given."""
        epsilon = (self.at_nodes, self.at_centres) if epsilon is None else epsilon
        return _solve(
            *epsilon,
            self.widths,
            self.gaps,
            self.frequency,
            self.polarisation,
            order,
            ends,
        )

    def index(self, order):
        return float(self.mode(order).effective_index)


@partial(jax.jit, static_argnums=(5, 6, 7))
def _solve(nodes, centres, widths, gaps, frequency, polarisation, order, ends):
    one = jnp.ones_like(nodes)
    electric = polarisation == "Ez"
    return em.slab_mode(
        *((nodes, one, one) if electric else (one, nodes, centres)),
        widths,
        gaps,
        frequency,
        polarisation=polarisation,
        order=order,
        ends=ends,
    )


def uniform_edges(row, cell=0.005, margin=1.0):
    count = round((row["width"] / 2 + margin) / cell)
    return np.arange(-count, count + 1) * cell


def graded_edges(row, cell=0.005):
    """Fine cells in the slab and around it, 80 times as wide far outside.

    Coarser grids have every width in proportion, so that errors are in proportion too.
    """
    half, scale = row["width"] / 2 + 0.05, cell / 0.005
    edges = smooth_edges(
        -20.0,
        20.0,
        coarse=0.4 * scale,
        fine=cell,
        region=(-half, half),
        ratio=1.1**scale,
    )
    # More cells far away, so that all slabs of the table have as many: the solver is
    # compiled for each number of cells.
    missing = (round(391 / scale) - len(edges)) // 2
    more = 0.4 * scale * np.arange(1, missing + 1)
    return np.concatenate([edges[0] - more[::-1], edges, edges[-1] + more])


def name_of(row):
    return "{n_core:.4g}/{n_clad:g} w {width:g} {pol} at {wavelength:.4g}".format(**row)


@pytest.mark.slow(after=2)
@pytest.mark.x64
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_effective_index_is_that_of_the_table(row):
    # A mode close to its cut-off reaches tens of micrometres into the cladding, hence
    # the grading. Yee's transverse dispersion, (k dx)^2 / 24, alone is 8e-4 for the
    # second TM mode of the first slab at 5 nm; cells of 10 and 5 nm tell it apart.
    fine, coarse = (Slab(row, graded_edges(row, cell)) for cell in (0.005, 0.01))
    direct, extrapolated = [], []
    for order, exact in enumerate(row["neff"], 1):
        at_5, at_10 = (slab.index(order) for slab in (fine, coarse))
        direct.append(at_5 - exact)
        extrapolated.append((4 * at_5 - at_10) / 3 - exact)
    print("5 nm", *(f"{e:+.1e}" for e in direct), end="; ")
    print("extrapolated", *(f"{e:+.1e}" for e in extrapolated))
    assert np.max(np.abs(direct)) < 1e-3
    assert np.max(np.abs(extrapolated)) < 1e-4


@pytest.mark.slow
def test_modes_beyond_the_last_are_not_called_guided():
    row = ROWS[0]
    slab = Slab(row, uniform_edges(row, 0.02))
    assert [bool(slab.mode(order).guided) for order in (1, 2, 3)] == [1, 1, 0]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("row", "order", "limit"),
    [(0, 1, 1e-4), (0, 2, 1e-4), (1, 1, 1.3e-4), (1, 2, 8e-4)],
)
def test_effective_index_on_a_uniform_grid_of_5_nm(row, order, limit):
    # float32 adds some 3e-5.
    slab = Slab(ROWS[row], uniform_edges(ROWS[row], margin=0.8))
    error = slab.index(order) - ROWS[row]["neff"][order - 1]
    print(f"error {error:+.1e}")
    assert abs(error) < limit


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize(("row", "order"), [(ROWS[0], 1), (ROWS[1], 2)])
def test_effective_index_is_of_second_order(row, order):
    sizes = (0.04, 0.02, 0.01)
    errors = []
    for cell in sizes:
        slab = Slab(row, uniform_edges(row, cell, 0.6))
        errors.append(abs(slab.index(order) - row["neff"][order - 1]))
    print(f"order {slope(sizes, errors):.4f}")
    assert slope(sizes, errors) == pytest.approx(2, abs=0.1)


def hellmann_feynman(slab, mode):
    """Returns the derivatives of the index by the permittivity, from the fields.

    First-order perturbation theory of the matrix: for Ez dn = u^2 w / (2 n sum u^2 w);
    for Hz the part along the direction of travel works through the differences of u.
    """
    n, w = mode.effective_index, slab.widths
    if slab.polarisation == "Ez":
        u = mode.electric
        weight = u**2 * w
        return weight / (2 * n * jnp.sum(weight)), jnp.zeros_like(u)
    u, nodes, centres = mode.magnetic, slab.at_nodes, slab.at_centres
    k0 = 2 * jnp.pi * slab.frequency / SPEED_OF_LIGHT
    norm = 2 * n * jnp.sum(u**2 * w / centres)
    change = jnp.diff(u, prepend=0.0)
    along = change**2 / (slab.gaps * nodes**2) / k0**2
    # Beyond the line u is zero, behind one more gap like the last.
    along = along.at[-1].add(u[-1] ** 2 / (slab.gaps[-1] * nodes[-1] ** 2) / k0**2)
    return along / norm, n**2 * u**2 * w / centres**2 / norm


def moved(epsilon, way, step):
    return jax.tree.map(lambda e, d: e + step * d, epsilon, way)


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize(("row", "order"), [(ROWS[0], 2), (ROWS[1], 1)])
def test_gradient_of_the_index_is_hellmann_feynmans(row, order):
    slab = Slab(row, uniform_edges(row, 0.01, 0.5))
    epsilon = (slab.at_nodes, slab.at_centres)

    def index(epsilon):
        return slab.mode(order, epsilon).effective_index

    slope = jax.grad(index)(epsilon)
    exact = hellmann_feynman(slab, slab.mode(order))
    scale = max(float(jnp.max(jnp.abs(part))) for part in exact)
    for found, wanted in zip(slope, exact, strict=True):
        assert jnp.allclose(found, wanted, rtol=0, atol=1e-10 * scale)
    # And central differences, along a random direction; 1e-4 leaves 1e-8 of curvature.
    rng = np.random.default_rng(0)
    way = tuple(jnp.asarray(rng.normal(size=part.shape)) for part in epsilon)
    step = 1e-4
    up, down = (index(moved(epsilon, way, s * step)) for s in (1, -1))
    numeric = float(up - down) / (2 * step)
    directional = sum(float(jnp.sum(g * d)) for g, d in zip(slope, way, strict=True))
    print(f"against differences {directional / numeric - 1:.1e}")
    assert directional == pytest.approx(numeric, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("pol", "ends"), [("TE", em.PEC()), ("TM", em.Periodic())])
def test_gradients_are_finite_beside_degenerate_radiation_modes(pol, ends):
    # Above the cladding's index the modes of a symmetric slab come in pairs, equal to
    # rounding: the derivative of a whole eigenbasis divides by their difference.
    row = next(r for r in ROWS if r["pol"] == pol)
    slab = Slab(row, uniform_edges(row, 0.02, 0.8))

    def profile(epsilon):
        mode = slab.mode(1, epsilon, ends)
        return jnp.sum(mode.electric**2 * mode.magnetic) + mode.effective_index

    slopes = jax.grad(profile)((slab.at_nodes, slab.at_centres))
    for slope_ in slopes:
        assert jnp.all(jnp.isfinite(slope_))


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize("pol", ["TE", "TM"])
def test_profile_derivative_agrees_with_differences(pol):
    row = next(r for r in ROWS if r["pol"] == pol)
    slab = Slab(row, uniform_edges(row, 0.02, 0.6))
    epsilon = (slab.at_nodes, slab.at_centres)

    def profile(epsilon):
        mode = slab.mode(2, epsilon)
        return jnp.concatenate([mode.electric, mode.magnetic])

    rng = np.random.default_rng(1)
    way = tuple(jnp.asarray(rng.normal(size=part.shape)) for part in epsilon)
    _, found = jax.jvp(profile, (epsilon,), (way,))
    step = 1e-5
    up, down = (profile(moved(epsilon, way, s * step)) for s in (1, -1))
    numeric = (up - down) / (2 * step)
    assert jnp.max(jnp.abs(found - numeric)) < 1e-7 * jnp.max(jnp.abs(numeric))


def test_mode_carries_one_watt_per_metre():
    # P = sum E H* w / 2 with H = eta0 H / eta0.
    for row in ROWS[:2]:
        slab = Slab(row, uniform_edges(row, 0.01, 0.5))
        mode = slab.mode(1)
        power = jnp.sum(mode.electric * mode.magnetic * slab.widths) / (2 * ETA_0)
        assert float(power) == pytest.approx(1, rel=1e-4)


@pytest.mark.slow
def test_batched_solve_equals_single_solves():
    row = ROWS[0]
    slab = Slab(row, uniform_edges(row, 0.02, 0.5))
    scales = jnp.asarray([0.9, 1.0, 1.1])

    def solve(scale):
        return slab.mode(1, (slab.at_nodes * scale, slab.at_centres)).effective_index

    batch = jax.vmap(solve)(scales)
    assert jnp.allclose(batch, jnp.stack([solve(s) for s in scales]), rtol=1e-5)
