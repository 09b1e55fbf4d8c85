import gc

import jax
import jax.numpy as jnp
import pytest

from physax.runtime import live_arrays


def held(shape, dtype="float32"):
    """Number and bytes of the arrays of a kind that are alive."""
    gc.collect()
    groups = [g for g in live_arrays().groups if (g.shape, g.dtype) == (shape, dtype)]
    return sum(g.count for g in groups), sum(g.bytes for g in groups)


@pytest.mark.slow
def test_arrays_are_counted_while_they_live():
    # A shape that nothing else has.
    shape = (137, 211)
    assert held(shape) == (0, 0)
    first, second = jnp.ones(shape, jnp.float32), jnp.zeros(shape, jnp.float32)
    assert held(shape) == (2, 2 * 137 * 211 * 4)
    third = jax.jit(lambda x: x + 1, donate_argnums=0)(second)
    assert held(shape) == (2, 2 * 137 * 211 * 4)
    del first, third
    assert held(shape) == (0, 0)


def test_the_largest_stand_first_and_the_totals_are_theirs():
    keep = jnp.ones((1013, 503), jnp.float32), jax.random.key(1)
    found = live_arrays()
    sizes = [group.bytes for group in found.groups]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(found.bytes.values()) == sum(sizes) >= keep[0].nbytes
    assert set(found.peak) == set(found.bytes)


def test_the_report_is_a_table():
    keep = jnp.ones((1013, 503), jnp.float32)
    lines = str(live_arrays()).splitlines()
    assert lines[0].split() == ["bytes", "arrays", "array"]
    place = f"{jax.devices()[0].platform}:0"
    (line,) = (line for line in lines if "[1013, 503]" in line)
    assert line.split() == ["2,038,156", "1", "float32[1013,", "503]", "on", place]
    assert any(line.endswith(f"on {place}") for line in lines[len(lines) // 2 :])
    del keep
