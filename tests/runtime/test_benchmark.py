import json

import jax
import jax.numpy as jnp
import pytest

from physax._checks import ArgumentError
from physax.runtime import benchmark, profile


def test_times_are_ordered_host_numbers():
    found = benchmark(lambda x: x @ x, jnp.ones((64, 64)), repeats=5)
    assert 0 < found.min <= found.median <= found.max
    assert found.min <= found.mean <= found.max
    assert found.spread == pytest.approx((found.max - found.min) / found.median)
    assert found.repeats == 5
    assert found.compile_s > 0
    json.dumps([found.compile_s, found.min, found.std, found.flops, found.bytes])


def test_work_is_that_of_a_matrix_product():
    found = benchmark(lambda x: x @ x, jnp.ones((64, 64), jnp.float32), repeats=1)
    # A product of n x n matrices takes n^3 multiplications and as many additions.
    assert found.flops == pytest.approx(2 * 64**3, rel=0.05)
    # It reads one matrix, or that one twice, and writes one of 4 bytes per entry.
    assert 2 * 4 * 64**2 <= found.bytes <= 3.1 * 4 * 64**2


def test_the_result_is_waited_for():
    def slow(x):
        return jax.lax.fori_loop(0, 300, lambda i, x: jnp.sin(x), x)

    # 3e7 sines take far longer than 1 ms; to hand the work over takes less.
    assert benchmark(slow, jnp.ones(100_000), repeats=1).min > 1e-3


def test_short_runs_are_repeated_for_a_time():
    found = benchmark(lambda x: x + 1, jnp.ones(3), repeats=2, at_least=0.01)
    assert found.repeats > 2
    assert found.repeats * found.mean >= 0.01


def test_donated_arguments_survive():
    x = jnp.ones(100)
    benchmark(jax.jit(lambda x: x + 1, donate_argnums=0), x, repeats=3)
    assert not x.is_deleted()


def test_repeats_are_checked():
    with pytest.raises(
        ArgumentError, match="`repeats` must be an integer of at least 1, but is 0"
    ):
        benchmark(lambda x: x, jnp.ones(1), repeats=0)


@pytest.mark.slow
def test_profile_writes_a_trace(tmp_path):
    with profile(tmp_path / "trace") as folder:
        jax.block_until_ready(jax.jit(lambda x: x + 1)(jnp.ones(3)))
    assert list(folder.rglob("*.xplane.pb"))
