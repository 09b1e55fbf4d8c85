"""The slab mode solver: tabulated indices, order, gradients, degenerate spectra."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid, smooth_edges
from physax.units import SPEED_OF_LIGHT
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

    def mode(self, order, epsilon=None, ends=em.PEC()):
        """Returns a mode, of another permittivity at the nodes and centres if given."""
        nodes, centres = (self.at_nodes, self.at_centres) if epsilon is None else epsilon
        one = jnp.ones_like(nodes)
        properties = (nodes, one, one) if self.polarisation == "Ez" else (one, nodes, centres)
        return em.slab_mode(
            *properties,
            self.widths,
            self.gaps,
            self.frequency,
            polarisation=self.polarisation,
            order=order,
            ends=ends,
        )


def uniform_edges(row, cell=0.005, margin=1.0):
    count = round((row["width"] / 2 + margin) / cell)
    return np.arange(-count, count + 1) * cell


def graded_edges(row, cell=0.005):
    """Cells of 5 nm in the slab and around it, growing to 0.2 um far outside."""
    half = row["width"] / 2 + 0.1
    low = smooth_edges(
        -30.0, 30.0, coarse=0.2, fine=cell, region=(-half, half), ratio=1.05
    )
    return low


@pytest.mark.x64
@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['n_core']:g}/{r['n_clad']:g} w {r['width']:g} {r['pol']} {r['wavelength']:.4g}")
def test_effective_index_is_that_of_the_table(row):
    # A mode close to its cut-off reaches tens of micrometres into the cladding.
    slab = Slab(row, graded_edges(row))
    errors = []
    for order, exact in enumerate(row["neff"], 1):
        mode = slab.mode(order)
        errors.append(float(mode.effective_index) - exact)
        assert mode.guided
    print("errors", *(f"{e:+.1e}" for e in errors))
    assert np.max(np.abs(errors)) < 1e-4
    assert not slab.mode(len(row["neff"]) + 1).guided


@pytest.mark.parametrize("row", [ROWS[0], ROWS[1]], ids=["TE", "TM"])
def test_effective_index_on_a_uniform_grid_of_5_nm(row):
    slab = Slab(row, uniform_edges(row, margin=0.6))
    for order, exact in enumerate(row["neff"], 1):
        found = float(slab.mode(order).effective_index)
        print(f"error {found - exact:+.1e}")
        assert found == pytest.approx(exact, abs=1e-4)


@pytest.mark.x64
@pytest.mark.parametrize("row", [ROWS[0], ROWS[1]], ids=["TE", "TM"])
@pytest.mark.parametrize("order", [1, 2])
def test_effective_index_is_of_second_order(row, order):
    sizes = (0.02, 0.01, 0.005)
    errors = []
    for cell in sizes:
        slab = Slab(row, uniform_edges(row, cell))
        index = slab.mode(order).effective_index
        errors.append(abs(float(index) - row["neff"][order - 1]))
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
    return along / norm, n**2 * u**2 * w / centres**2 / norm


@pytest.mark.x64
@pytest.mark.parametrize("row", [ROWS[0], ROWS[1]], ids=["TE", "TM"])
@pytest.mark.parametrize("order", [1, 2])
def test_gradient_of_the_index_is_hellmann_feynmans(row, order):
    slab = Slab(row, uniform_edges(row, 0.01, 0.5))
    epsilon = (slab.at_nodes, slab.at_centres)

    @jax.jit
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
    shifted = (
        index(jax.tree.map(lambda e, d: e + s * step * d, epsilon, way))
        for s in (1, -1)
    )
    numeric = float(next(shifted) - next(shifted)) / (2 * step)
    directional = sum(float(jnp.sum(g * d)) for g, d in zip(slope, way, strict=True))
    print(f"against differences {directional / numeric - 1:.1e}")
    assert directional == pytest.approx(numeric, rel=1e-6)


@pytest.mark.parametrize("pol", ["TE", "TM"])
@pytest.mark.parametrize("ends", [em.PEC(), em.Periodic()], ids=["PEC", "periodic"])
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
    up, down = (
        profile(jax.tree.map(lambda e, d: e + s * step * d, epsilon, way))
        for s in (1, -1)
    )
    numeric = (up - down) / (2 * step)
    assert jnp.max(jnp.abs(found - numeric)) < 1e-7 * jnp.max(jnp.abs(numeric))


def test_mode_carries_one_watt_per_metre():
    # P = sum E H* w / 2 with H = eta0 H / eta0.
    from physax.units import ETA_0

    for row in ROWS[:2]:
        slab = Slab(row, uniform_edges(row, 0.01, 0.5))
        mode = slab.mode(1)
        power = jnp.sum(mode.electric * mode.magnetic * slab.widths) / (2 * ETA_0)
        assert float(power) == pytest.approx(1, rel=1e-4)


def test_batched_solve_equals_single_solves():
    row = ROWS[0]
    slab = Slab(row, uniform_edges(row, 0.02, 0.5))
    scales = jnp.asarray([0.9, 1.0, 1.1])
    solve = lambda s: slab.mode(1, (slab.at_nodes * s, slab.at_centres)).effective_index  # noqa: E731
    batch = jax.vmap(solve)(scales)
    assert jnp.allclose(batch, jnp.stack([solve(s) for s in scales]), rtol=1e-5)
