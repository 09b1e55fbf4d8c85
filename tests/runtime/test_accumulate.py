import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.runtime import accumulate, memory


RNG = np.random.default_rng(5)
ROWS = 24
X = RNG.standard_normal((ROWS, 3))
Y = RNG.standard_normal(ROWS)
THETA = RNG.standard_normal(3)


def loss(theta, batch):
    x, y = batch
    return jnp.mean((x @ theta - y) ** 2) / 2


def of_part(theta):
    return lambda part: jax.value_and_grad(loss)(theta, part)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("microbatches", [1, 2, 8, ROWS])
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_mean_and_gradient_are_those_of_linear_regression(transform, microbatches):
    @transform
    def run(theta, batch):
        return accumulate(of_part(theta), batch, microbatches)

    value, gradient = run(jnp.asarray(THETA), (jnp.asarray(X), jnp.asarray(Y)))
    error = X @ THETA - Y
    # Sums of 24 values of order 1 in float32.
    np.testing.assert_allclose(value, np.mean(error**2) / 2, rtol=2e-6)
    np.testing.assert_allclose(gradient, X.T @ error / ROWS, rtol=2e-6, atol=1e-6)
    assert gradient.dtype == jnp.asarray(THETA).dtype


def test_memory_falls_with_the_number_of_parts():
    weights = [jax.ShapeDtypeStruct((64, 64), jnp.float32)] * 4
    batch = jax.ShapeDtypeStruct((1024, 64), jnp.float32)

    def deep(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    def temporary(microbatches):
        def run(weights, batch):
            return accumulate(
                lambda part: jax.value_and_grad(deep)(weights, part),
                batch,
                microbatches,
            )

        return memory(run, weights, batch).temporary

    # What the layers keep takes 4 to 8 times 256 kB; sums and gradients of the weights,
    # which stay, 8 times 16 kB.
    assert temporary(1) > 4 * 1024 * 64 * 4
    assert temporary(16) < temporary(1) / 4


def test_low_precision_is_summed_in_float32():
    # In bfloat16, 256 + 1 is 256.
    batch = jnp.concatenate([jnp.full(1, 256.0), jnp.ones(255)]).astype(jnp.bfloat16)
    found = accumulate(lambda part: part[0], batch, 256)
    assert found.dtype == jnp.bfloat16
    assert found == jnp.asarray((256 + 255) / 256, jnp.bfloat16)


def test_parts_hold_every_nth_row():
    seen = accumulate(lambda part: part / 1, jnp.arange(6.0), 2)
    np.testing.assert_allclose(seen, [0.5, 2.5, 4.5])


def test_a_number_that_does_not_divide_is_refused():
    with pytest.raises(
        ArgumentError,
        match="`microbatches` must divide the 24 rows of `batch`, but is 7. The "
        "divisors next to it are 6 and 8",
    ):
        accumulate(of_part(THETA), (jnp.asarray(X), jnp.asarray(Y)), 7)


def test_more_parts_than_rows_are_refused():
    with pytest.raises(ArgumentError, match="but is 25. .* next to it are 24"):
        accumulate(of_part(THETA), (jnp.asarray(X), jnp.asarray(Y)), 25)


def test_less_than_one_part_is_refused():
    with pytest.raises(
        ArgumentError, match="`microbatches` must be an integer of at least 1, .* 0"
    ):
        accumulate(lambda part: part, jnp.ones(3), 0)


@pytest.mark.parametrize(
    ("batch", "found"),
    [
        ((jnp.ones((4, 2)), jnp.ones(3)), r"`batch\[0\]` 4, `batch\[1\]` 3"),
        (jnp.ones(()), "`batch` 0"),
        ((), "no arrays"),
        ((jnp.ones(4), 1.0), r"`batch\[0\]` 4, `batch\[1\]` 0"),
    ],
)
def test_leaves_must_have_the_same_rows(batch, found):
    with pytest.raises(ArgumentError, match=rf"one and the same .* have: {found}\."):
        inspect.unwrap(accumulate)(lambda part: part, batch, 1)


@pytest.mark.parametrize(("made", "kind"), [(jnp.ones(2, int), "int32"), ("x", "str")])
def test_integers_and_texts_have_no_mean(made, kind):
    with pytest.raises(
        ArgumentError,
        match=rf"arrays only, but `result\['n'\]` is {kind}, which has no mean",
    ):
        accumulate(lambda part: {"n": made}, jnp.ones(4), 2)
