import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.grid import Grid, backward_difference, forward_difference


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_differences_with_and_without_halo(axis):
    f = jax.random.normal(jax.random.key(0), (3, 4, 5))
    size = f.shape[axis]
    first, last = (jnp.take(f, jnp.array([i]), axis) for i in (0, size - 1))
    # Sums and differences of the same two numbers are rounded alike: exact equality.
    np.testing.assert_array_equal(
        forward_difference(f, axis, first), jnp.roll(f, -1, axis) - f
    )
    np.testing.assert_array_equal(
        backward_difference(f, axis, last), f - jnp.roll(f, 1, axis)
    )
    zero = jnp.zeros_like(first)
    np.testing.assert_array_equal(
        forward_difference(f, axis), jnp.diff(f, axis=axis, append=zero)
    )
    np.testing.assert_array_equal(
        backward_difference(f, axis), jnp.diff(f, axis=axis, prepend=zero)
    )


@pytest.mark.x64
def test_differences_are_second_order_where_yee_needs_them():
    def error(cells):
        # Smooth grading: the image of a uniform grid under a smooth map.
        s = np.linspace(0, 1, cells + 1)
        grid = Grid.graded([s + 0.1 * np.sin(2 * np.pi * s) / (2 * np.pi)])
        at = {stagger: grid.coordinates(0, stagger) for stagger in (0.0, 0.5)}
        node, centre = jnp.sin(3 * at[0.0]), jnp.sin(3 * at[0.5])
        forward = forward_difference(node, 0) / grid.cell_widths(0)
        backward = backward_difference(centre, 0) / grid.dual_widths(0)
        inner = slice(1, -1)
        return np.array(
            [
                jnp.max(jnp.abs(forward - 3 * jnp.cos(3 * at[0.5]))[inner]),
                jnp.sqrt(jnp.mean((backward - 3 * jnp.cos(3 * at[0.0]))[inner] ** 2)),
            ]
        )

    # A node lies off the middle of its neighbours' centres by O(h^2) when the map is
    # smooth, so both differences have error h^2.
    order = np.log2(error(64) / error(128))
    np.testing.assert_allclose(order, 2, atol=0.05)


def test_backward_is_minus_the_transpose_of_forward():
    a, b = jax.random.normal(jax.random.key(1), (2, 7, 6))
    left = jnp.vdot(a, forward_difference(b, 0))
    right = -jnp.vdot(backward_difference(a, 0), b)
    # Sums of 42 terms of size 1 in float32.
    np.testing.assert_allclose(left, right, atol=1e-5)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.complex64])
@pytest.mark.parametrize("difference", [forward_difference, backward_difference])
def test_dtype_stays_under_jit_vmap_and_grad(difference, dtype):
    f = jax.random.normal(jax.random.key(2), (2, 5), dtype)
    plane = f[:, :1]
    out = jax.jit(jax.vmap(lambda f, p: difference(f, 0, p)))(f, plane)
    np.testing.assert_array_equal(out, difference(f, 1, plane))
    assert out.dtype == dtype

    def energy(f):
        return jnp.sum(jnp.abs(difference(f, 0)) ** 2)

    assert jax.grad(energy)(f[0]).dtype == dtype


@pytest.mark.parametrize(
    ("difference", "name"),
    [(forward_difference, "next_plane"), (backward_difference, "previous_plane")],
)
def test_halo_of_wrong_shape_is_refused(difference, name):
    message = rf"`{name}` must have shape \(3, 1\).* along axis 1, but has .*\(3, 2\)"
    with pytest.raises(PhysaxError, match=message):
        difference(jnp.ones((3, 4)), 1, jnp.ones((3, 2)))
