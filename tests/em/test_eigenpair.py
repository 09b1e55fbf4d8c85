import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

from physax.em._eigenpair import eigenpair


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
