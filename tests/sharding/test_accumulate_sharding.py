"""Parts of a batch that is spread over devices stay where they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from physax import runtime
from physax.runtime import accumulate, place


pytestmark = pytest.mark.f32


def loss(theta, x):
    return jnp.mean(jnp.tanh(x @ theta) ** 2)


def test_only_the_gradient_travels():
    mesh = runtime.mesh(data=8)
    keys = jax.random.split(jax.random.key(0))
    theta = jax.random.normal(keys[0], (16, 4))
    batch = jax.random.normal(keys[1], (128, 16))

    @jax.jit
    def run(theta, batch):
        return accumulate(
            lambda part: jax.value_and_grad(loss)(theta, part), batch, microbatches=4
        )

    spread, whole = place(batch, mesh, {"": P("data")}), place(theta, mesh, {})
    for found, expected in zip(
        run(whole, spread), jax.value_and_grad(loss)(theta, batch), strict=True
    ):
        # Sums of 128 values in another order.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    text = run.lower(whole, spread).compile().as_text()
    assert "all-reduce" in text
    for name in ("all-gather", "collective-permute", "all-to-all"):
        assert name not in text
