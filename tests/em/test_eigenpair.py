import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

from physax import em
from physax.em._eigenpair import eigenpair
from physax.units import SPEED_OF_LIGHT


def dense(diagonal, coupling):
    n = len(diagonal)
    matrix = np.diag(np.asarray(diagonal, float))
    for i in range(n):
        j = (i + 1) % n
        matrix[i, j] += coupling[i]
        matrix[j, i] += coupling[i]
    return matrix


def matrices():
    rng = np.random.default_rng(0)
    n = 40
    slab = np.where(np.abs(np.arange(n) - 20) < 5, -1.9, -2.0) + 0.02
    yield "random", rng.normal(size=n), rng.normal(size=n)
    yield "no corner", rng.normal(size=n), np.r_[rng.normal(size=n - 1), 0.0]
    yield "slab", slab, np.ones(n)


CASES = {name: (d, c) for name, d, c in matrices()}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_agrees_with_a_dense_solver(name, order):
    diagonal, coupling = CASES[name]
    values, vectors = np.linalg.eigh(dense(diagonal, coupling))
    value, vector = eigenpair(jnp.asarray(diagonal), jnp.asarray(coupling), order)
    eps = float(jnp.finfo(value.dtype).eps)
    # Of the vector, rounding over the gap to the nearest eigenvalue is the limit.
    gap = np.min(np.abs(np.delete(values, -order) - values[-order]))
    assert abs(value - values[-order]) < 40 * eps
    reference = vectors[:, -order]
    vector = np.asarray(vector, float)
    vector = vector * np.sign(np.vdot(reference, vector))
    assert np.linalg.norm(vector - reference) < 100 * eps / gap


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_right_beside_degenerate_pairs(name):
    # The radiation modes of a symmetric periodic slab are pairs; ours is simple.
    diagonal, coupling = (jnp.asarray(x) for x in CASES[name])
    weights = jnp.asarray(np.random.default_rng(1).normal(size=diagonal.shape))

    @jax.jit
    def figure(d, c):
        value, vector = eigenpair(d, c, 1)
        return value + jnp.sum(weights * vector**2)

    order = 2 if name == "slab" else 1
    jax.test_util.check_grads(
        figure, (diagonal, coupling), order, modes=("fwd", "rev"), rtol=2e-5
    )


@pytest.mark.slow
def test_batches_agree_with_single_solves():
    diagonal, coupling = (jnp.asarray(x) for x in CASES["slab"])
    shifts = jnp.linspace(0.0, 0.1, 5)
    solve = jax.jit(jax.vmap(lambda s: eigenpair(diagonal + s, coupling, 1)[0]))
    one = eigenpair(diagonal, coupling, 1)[0]
    assert jnp.allclose(solve(shifts), one + shifts, atol=1e-6)


def largest_error(diagonals, coupling, orders):
    """Errors of vectors over what rounding and the nearest eigenvalue allow."""
    worst = 0.0
    values, exact = np.linalg.eigh([dense(one, coupling) for one in diagonals])
    for order in orders:
        solve = jax.jit(jax.vmap(lambda d, o=order: eigenpair(d, coupling, o)[1]))
        found = np.asarray(solve(diagonals), float)
        reference = exact[:, :, -order]
        found = found * np.sign(np.sum(reference * found, 1, keepdims=True))
        others = np.delete(values, -order, axis=1)
        gaps = np.min(np.abs(others - values[:, [-order]]), axis=1)
        limits = float(jnp.finfo(diagonals.dtype).eps) * 4 / gaps
        worst = max(worst, np.max(np.linalg.norm(found - reference, axis=1) / limits))
    return worst


@pytest.mark.slow
@pytest.mark.f32
@pytest.mark.parametrize("corner", [0.0, 1.0])
@pytest.mark.parametrize("node", [3, 10])
def test_odd_modes_are_whole(corner, node):
    # Zero at the middle row and, where there is a corner, between the last and first.
    rng = np.random.default_rng(node)
    half = rng.choice([0.0, 0.3], size=(200, node)) + rng.uniform(0, 0.02, (200, 1))
    middle = rng.uniform(0, 0.3, (200, 1))
    diagonals = jnp.asarray(np.hstack([half, middle, half[:, ::-1]]) - 2)
    coupling = jnp.ones(2 * node + 1).at[-1].set(corner)
    assert largest_error(diagonals, coupling, [2, 4]) < 1


@pytest.mark.slow
@pytest.mark.f32
@pytest.mark.parametrize("cells", [6, 18])
def test_supermodes_of_guides_far_apart_mix_no_more_than_rounding_allows(cells):
    core = np.full(8, 0.25)
    line = np.hstack([np.zeros(20), core, np.zeros(cells), core, np.zeros(20)])
    scale = np.linspace(0.9, 1.1, 12)[:, None]
    diagonals = jnp.asarray(scale * line - 2)
    assert largest_error(diagonals, jnp.ones(line.size), [1, 2]) < 1


CELL = 40e-9
POINTS = (np.arange(75) - 37) * CELL
CORE = 2.09 + 10.01 * np.clip((200e-9 - abs(POINTS)) / CELL + 0.5, 0, 1)


def second_mode(polarisation, ends, core=CORE):
    one = jnp.ones(75, jnp.asarray(core).dtype)
    own, across = (core, one) if polarisation == "Ez" else (one, core)
    middle = jnp.roll(core, 1) / 2 + core / 2
    along = one if polarisation == "Ez" else middle
    line = own, along, across, CELL * one, CELL * one

    def solve(frequency):
        options = {"polarisation": polarisation, "order": 2, "ends": ends}
        mode = em.slab_mode(*line, frequency, **options)
        return mode.electric if polarisation == "Ez" else mode.magnetic

    return solve


@pytest.mark.slow
@pytest.mark.f32
@pytest.mark.parametrize("ends", [em.Periodic(), em.PEC()])
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_second_modes_of_slabs_about_a_sample_are_odd(polarisation, ends):
    # Rounding decides at which frequencies the rows before the node are singular.
    waves = np.linspace(1.4e-6, 1.7e-6, 3001)
    solve = second_mode(polarisation, ends, jnp.asarray(CORE))
    u = np.asarray(jax.jit(jax.vmap(solve))(jnp.asarray(SPEED_OF_LIGHT / waves)))
    assert np.max(np.abs(u + u[:, ::-1])) < 1e-5 * np.max(np.abs(u))


@pytest.mark.slow
@pytest.mark.f32
def test_derivatives_of_odd_modes_change_little_between_frequencies():
    weights = jnp.asarray(np.random.default_rng(0).normal(size=75))

    def figure(core, frequency):
        u = second_mode("Ez", None, core)(frequency)
        return jnp.sum(weights * u**2) / jnp.sum(u**2)

    waves = np.linspace(1.4e-6, 1.7e-6, 1001)
    slopes = jax.jit(jax.vmap(jax.grad(figure), in_axes=(None, 0)))
    found = np.asarray(slopes(jnp.asarray(CORE), jnp.asarray(SPEED_OF_LIGHT / waves)))
    # The second difference of a smooth function leaves its rounding.
    bend = np.linalg.norm(np.diff(found, 2, axis=0), axis=1)
    assert np.max(bend) < 1e-4 * np.max(np.linalg.norm(found, axis=1))
