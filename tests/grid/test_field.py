import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.grid import Field, Grid, GridMismatchError


GRID = Grid.uniform((3, 4), 1.0)
A = jnp.arange(12.0).reshape(3, 4)
B = A[::-1] + 1


def field(values=A, stagger=(0.5, 0.0), grid=GRID):
    return Field(values, stagger, grid)


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        (lambda a, b: a + b, A + B),
        (lambda a, b: a - b, A - B),
        (lambda a, b: a * b, A * B),
        (lambda a, b: a / b, A / B),
        (lambda a, b: 2 + a, 2 + A),
        (lambda a, b: a + 2, A + 2),
        (lambda a, b: 2 - a, 2 - A),
        (lambda a, b: a - jnp.asarray(2.0), A - 2),
        (lambda a, b: jnp.asarray(2.0) * a, 2 * A),
        (lambda a, b: np.float32(2) * a, 2 * A),
        (lambda a, b: a * 2j, 2j * A),
        (lambda a, b: 2 / b, 2 / B),
        (lambda a, b: b / 2, B / 2),
        (lambda a, b: -a, -A),
    ],
)
def test_arithmetic_acts_on_the_samples(operation, result):
    out = jax.jit(operation)(field(), field(B))
    assert isinstance(out, Field)
    assert out.stagger == (0.5, 0.0)
    assert out.values.dtype == result.dtype
    # A division by a constant may be compiled to a product with its inverse.
    np.testing.assert_allclose(out.values, result, rtol=1e-6)


def test_coordinates_follow_the_stagger():
    x, y = field().coordinates()
    np.testing.assert_array_equal(x, [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(y, [0, 1, 2, 3])


def test_leading_axes_are_free_and_vmap_and_grad_work():
    stack = jnp.stack([A, B])

    def energy(values):
        f = field(values)
        return jnp.sum((f * f).values)

    np.testing.assert_allclose(jax.vmap(energy)(stack).sum(), energy(stack))
    np.testing.assert_array_equal(jax.grad(energy)(stack), 2 * stack)
    doubled = 2 * field(stack)
    np.testing.assert_array_equal(doubled.values, 2 * stack)


def test_dtype_is_kept_next_to_python_numbers():
    half = field(A.astype(jnp.bfloat16))
    assert (2.0 * half).values.dtype == jnp.bfloat16


def test_other_stagger_is_refused():
    with pytest.raises(GridMismatchError, match=r"\(0.5, 0.0\) and \(0.0, 0.5\)"):
        field() + field(stagger=(0.0, 0.5))


def test_other_grid_is_refused():
    other = field(jnp.ones((4, 4)), grid=Grid.uniform((4, 4), 1.0))
    with pytest.raises(GridMismatchError, match=r"\(3, 4\) and \(4, 4\)"):
        field() * other


@pytest.mark.parametrize("array", [A, np.ones((3, 4))])
def test_bare_array_is_refused(array):
    with pytest.raises(GridMismatchError, match=r"array has shape \(3, 4\)"):
        field() + array
    with pytest.raises(GridMismatchError, match=r"array has shape \(3, 4\)"):
        array + field()


def test_unknown_operand_is_a_type_error():
    with pytest.raises(TypeError):
        field() + "1"


def test_values_of_other_shape_are_refused():
    message = r"`values` must end in the shape of the grid, \(3, 4\), .* \(4, 3\)"
    with pytest.raises(GridMismatchError, match=message):
        field(A.T)


@pytest.mark.parametrize("stagger", [(0.5,), (0.5, 0.25), (0.0, 0.0, 0.0)])
def test_bad_stagger_is_refused(stagger):
    with pytest.raises(PhysaxError, match=r"`stagger` must be 0 or 0\.5 for each of"):
        field(stagger=stagger)
