"""Writing in place is what indexed updates are, under all transformations."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.grid._in_place import write_in_place


WHERE = (slice(1, 3), slice(0, 2))
VALUES = jnp.linspace(0.1, 1.0, 12).reshape(4, 3)
WHAT = jnp.array([[0.3, 0.7], [-0.2, 0.4]])


def in_place(values, what, zero, add):
    return write_in_place(values, [s.start for s in WHERE], what, zero, add=add)


def indexed(values, what, zero, add):
    box = values.at[WHERE]
    return box.add(what) if add else box.set(what)


def looped(write, add):
    """A function of the values and of what is written, in each turn of a loop."""

    def turn(values, what, n):
        return write(values * values, what * what, jnp.minimum(n, 0), add)

    def run(values, what):
        body = lambda carry, n: (turn(carry, what, n), None)  # noqa: E731
        numbers = jnp.arange(3, dtype=jnp.int32)
        return jnp.sum(jax.lax.scan(body, values, numbers)[0] ** 3)

    return run


def slope(run):
    """The derivative of the gradient along a direction."""
    gradient = jax.grad(run, argnums=(0, 1))
    return lambda *x: jax.jvp(gradient, x[:2], x[2:])


@pytest.mark.slow(after=4)
@pytest.mark.parametrize("add", [True, False])
# Which of the values, of what is written, and of their tangents are batched.
@pytest.mark.parametrize(
    "batched", ["1111", "1000", "0100", "0010", "0001", "1001", "0110", "1011"]
)
def test_batches_of_second_derivatives(batched, add):
    axes = tuple(0 if one == "1" else None for one in batched)
    x = [
        jnp.stack([value, 2 * value, 3 * value]) if axis == 0 else value
        for value, axis in zip((VALUES, WHAT, VALUES, WHAT), axes, strict=True)
    ]
    got, want = (
        jax.vmap(slope(looped(write, add)), axes)(*x) for write in (in_place, indexed)
    )
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("add", [True, False])
def test_a_batch_may_be_nested_empty_and_of_zeros(add):
    zeros = jnp.zeros(3, jnp.int32)
    nothing = jax.vmap(lambda v, z: in_place(v, WHAT, z, add))
    assert nothing(VALUES[None][:0], zeros[:0]).shape == (0, 4, 3)
    for count in (2, 0):
        many = jnp.stack([VALUES, -VALUES, 2 * VALUES])[None].repeat(count, 0)
        got, want = (
            jax.vmap(jax.vmap(lambda v, z: write(v, WHAT, z, add)), (0, None))  # noqa: B023
            for write in (in_place, indexed)
        )
        np.testing.assert_array_equal(got(many, zeros), want(many, zeros))


@pytest.mark.parametrize("add", [True, False])
def test_a_batch_may_lie_along_any_axis(add):
    values = jnp.stack([VALUES, -VALUES, 2 * VALUES], 1)
    what = jnp.stack([WHAT, 3 * WHAT, -WHAT], 2)
    got, want = (
        jax.vmap(lambda v, w: write(v, w, jnp.int32(0), add), (1, 2), 2)(values, what)  # noqa: B023
        for write in (in_place, indexed)
    )
    np.testing.assert_array_equal(got, want)


def test_a_box_of_another_type_or_too_large_is_refused():
    with pytest.raises(TypeError, match="dtype"):
        in_place(VALUES.astype(jnp.float32), WHAT, jnp.int32(0), False)
    with pytest.raises(TypeError, match="shape"):
        in_place(VALUES[:1], WHAT, jnp.int32(0), True)


def test_a_batch_makes_no_scatters():
    many = jax.vmap(lambda v: in_place(v, WHAT, jnp.int32(0), True))
    text = jax.jit(many).lower(jnp.stack([VALUES, VALUES])).as_text()
    assert "dynamic_update_slice" in text
    assert not re.search("scatter|gather", text)
