import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, xpcs


X64 = jnp.result_type(float) == jnp.float64
RNG = np.random.default_rng(0)
X = jnp.asarray(np.cumsum(RNG.normal(size=(6, 50, 2)), axis=0), float)
Q = jnp.array([[0.3, 0.4], [0.0, 0.5]])


def direct(x, q):
    moved = np.asarray(x)[None] - np.asarray(x)[:, None]
    return np.exp(1j * moved @ np.asarray(q)).mean(-1)


@pytest.mark.parametrize("chunk", [50, 16, 1000])
def test_chunks_of_particles_add_up(chunk):
    found = xpcs.field_correlation_from_positions(X, Q, chunk=chunk)
    exact = np.stack([direct(X, q) for q in Q])
    np.testing.assert_allclose(found, exact, atol=1e-14 if X64 else 1e-6)
    assert found.dtype == jnp.result_type(X.dtype, 1j)
    one = xpcs.two_time_from_positions(X, Q[1], chunk=chunk, unbiased=False)
    np.testing.assert_allclose(one, abs(exact[1]) ** 2, atol=1e-14 if X64 else 1e-6)


def test_place_of_particles_does_not_matter():
    # In float32, the phase of a place a million away would be rounded to 0.1.
    near = xpcs.two_time_from_positions(X.round(), Q)
    far = xpcs.two_time_from_positions(X.round() + 2.0**20, Q)
    np.testing.assert_allclose(far, near, atol=1e-14 if X64 else 1e-6)


def test_few_particles_give_no_bias():
    # Var(x) = 1 per frame: the factor is exp(-q^2 k). 4000 groups of 3 particles.
    steps = jax.random.normal(jax.random.key(0), (4, 4000, 3, 1))
    x = jnp.cumsum(steps, axis=0)
    q = jnp.array([1.0])

    def groups(**options):
        one = lambda x: xpcs.two_time_from_positions(x, q, **options)  # noqa: E731
        return jax.jit(jax.vmap(one, in_axes=1))(x)

    each = groups()
    exact = np.exp(-abs(np.subtract.outer(np.arange(4), np.arange(4))))
    error = np.std(each, axis=0) / np.sqrt(4000)
    assert np.all(abs(np.mean(each, axis=0) - exact) <= 4 * error + 1e-6)
    biased = groups(unbiased=False)
    added = np.mean(biased, axis=0) - np.mean(each, axis=0)
    np.testing.assert_allclose(added, (1 - np.mean(biased, 0)) / 2, atol=1e-3)


@pytest.mark.x64
def test_gradient_reaches_positions_and_wavevector():
    direction = jnp.asarray(RNG.normal(size=X.shape))

    @jax.jit
    def last(h):
        found = xpcs.two_time_from_positions(X + h * direction, Q * (1 + h), chunk=16)
        return found[0, 0, 5] + found[1, 1, 3]

    h = 1e-5
    slope = float((last(h) - last(-h)) / (2 * h))
    assert float(jax.jit(jax.grad(last))(0.0)) == pytest.approx(slope, rel=1e-7)


@pytest.mark.f32
@pytest.mark.parametrize(
    ("x", "q", "options", "message"),
    [
        (X, jnp.ones(3), {}, "`q` must have 2 components along its last axis"),
        (X[:, :0], Q, {}, "`x` must have shape .* hold at least one particle"),
        (X[:, :1], Q, {}, "`x` must hold at least 2 particles .* `unbiased=False`"),
        (X, Q, {"chunk": 0}, "`chunk` must be an integer of at least 1, but is 0"),
    ],
)
def test_bad_input_is_refused(x, q, options, message):
    with pytest.raises(ArgumentError, match=message):
        xpcs.two_time_from_positions(x, q, **options)
