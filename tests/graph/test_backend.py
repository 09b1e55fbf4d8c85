"""Backends: every verb of the table, and what can't be asked for."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.graph import (
    Backend,
    Graph,
    GraphError,
    Linear,
    compile,
    key_stream,
    op,
    register_op,
)
from physax.runtime import PrecisionError


KEY = jax.random.key(5)
X = np.arange(12, dtype=np.float32).reshape(3, 4)
BACKEND = Backend()


@register_op("shifted_square")
def shifted_square(x):
    return (x + 1) ** 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_a_dtype_is_that_of_what_is_made(dtype):
    backend = Backend(dtype=dtype)
    assert backend.zeros(3, 4).dtype == dtype
    assert backend.eye(3).dtype == dtype
    assert backend.linspace(0, 1, 5).dtype == dtype
    assert backend.ones(3, dtype="int32").dtype == jnp.int32
    assert backend.full((2, 2), 7, dtype=jnp.float16).dtype == jnp.float16
    assert Backend(dtype=jnp.float32).dtype == "float32"


@pytest.mark.parametrize(
    "default", ["float32", pytest.param("float64", marks=pytest.mark.x64)]
)
def test_the_default_type_is_that_of_jax(default):
    assert Backend().dtype == default
    program = compile(Graph() | op("sin").connect(x="x", output="y"), {"x": ()})
    found = program(x=jnp.asarray(1e6 + 0.1))["y"]
    assert found.dtype == default
    # A rounding of 1e6 moves the phase.
    assert abs(float(found) - np.sin(1e6 + 0.1)) < 2e6 * jnp.finfo(default).eps


@pytest.mark.f32
@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("int64", "int32"),
        ("uint64", "uint32"),
        ("float64", "float32"),
        ("complex128", "complex64"),
    ],
)
def test_a_dtype_of_64_bits_is_refused_while_they_are_off(wide, narrow):
    text = f"`dtype` must be at most {narrow} while .* are off, but is {wide}"
    with pytest.raises(PrecisionError, match=text):
        BACKEND.zeros(2, dtype=wide)


def test_arrays_are_what_they_say():
    assert jnp.array_equal(BACKEND.zeros(3, 4), np.zeros((3, 4)))
    assert jnp.array_equal(BACKEND.ones(3, 4), np.ones((3, 4)))
    assert jnp.array_equal(BACKEND.full((2, 3), 5.0), np.full((2, 3), 5))
    assert jnp.array_equal(BACKEND.arange(10), np.arange(10))
    assert BACKEND.arange(10).dtype == jnp.int32
    assert np.allclose(BACKEND.arange(0.0, 1.0, 0.25), [0, 0.25, 0.5, 0.75])
    assert jnp.allclose(BACKEND.linspace(0, 1, 5), np.linspace(0, 1, 5))
    assert jnp.array_equal(BACKEND.eye(3), np.eye(3))
    ones = BACKEND.ones_like(BACKEND.zeros(2, dtype="float16"))
    assert ones.dtype == jnp.float16
    assert jnp.array_equal(ones, np.ones(2))
    assert not jnp.any(BACKEND.zeros_like(ones))


def test_arrays_from_elsewhere_keep_integers_and_complex_numbers():
    half = Backend("float16")
    assert half.array(np.ones(3)).dtype == jnp.float16
    assert half.array([1, 2, 3]).dtype == jnp.int32
    assert half.array(np.array([1j], np.complex64)).dtype == jnp.complex64
    assert half.array([True]).dtype == jnp.bool_


def test_uniform_numbers_are_uniform_and_normal_ones_normal():
    n = 100_000
    u = np.asarray(BACKEND.uniform(KEY, n))
    assert u.min() >= 0
    assert u.max() < 1
    # Five standard errors of the mean and of the variance.
    assert abs(u.mean() - 1 / 2) < 5 * np.sqrt(1 / 12 / n)
    assert abs(u.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / n)
    wide = np.asarray(BACKEND.uniform(KEY, n, minval=-3, maxval=5))
    assert np.allclose(wide, 8 * u - 3, atol=1e-5)
    z = np.asarray(BACKEND.normal(KEY, n))
    assert abs(z.mean()) < 5 / np.sqrt(n)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / n)
    assert jnp.array_equal(z, jax.random.normal(KEY, (n,)))


def test_integers_and_permutations():
    k = np.asarray(BACKEND.integers(KEY, 1000, minval=-2, maxval=3))
    assert set(k) == {-2, -1, 0, 1, 2}
    p = np.asarray(BACKEND.permutation(KEY, 50))
    assert not np.array_equal(p, np.arange(50))
    assert np.array_equal(np.sort(p), np.arange(50))
    rows = np.asarray(BACKEND.permutation(KEY, X))
    assert {tuple(row) for row in rows} == {tuple(row) for row in X}


def test_a_stream_of_keys_replaces_the_hidden_seed():
    def draw(seed):
        keys = key_stream(seed)
        return [jax.random.uniform(next(keys)).item() for _ in range(4)]

    assert draw(42) == draw(42)
    assert len({*draw(42), *draw(43)}) == 8


@pytest.mark.parametrize("seed", [1.5, "a", 2**70])
def test_a_seed_that_is_no_integer_is_refused(seed):
    with pytest.raises(ArgumentError, match="`seed` must be an integer .* but is"):
        inspect.unwrap(key_stream)(seed)


OPERATIONS = {
    "add": (lambda b: b.add(X, 1), X + 1),
    "subtract": (lambda b: b.subtract(X, 1), X - 1),
    "multiply": (lambda b: b.multiply(X, X), X * X),
    "divide": (lambda b: b.divide(X, 2), X / 2),
    "matmul": (lambda b: b.matmul(X, X.T), X @ X.T),
    "sum": (lambda b: b.sum(X), X.sum()),
    "sum over an axis": (lambda b: b.sum(X, axis=0), X.sum(0)),
    "mean": (lambda b: b.mean(X), X.mean()),
    "max": (lambda b: b.max(X), X.max()),
    "relu": (lambda b: b.relu(X - 5), np.maximum(X - 5, 0)),
    "sigmoid": (lambda b: b.sigmoid(X), 1 / (1 + np.exp(-X))),
    "tanh": (lambda b: b.tanh(X), np.tanh(X)),
    "reshape": (lambda b: b.reshape(X, (4, 3)), X.reshape(4, 3)),
    "transpose": (lambda b: b.transpose(X), X.T),
    "concat": (lambda b: b.concat([X, X]), np.concatenate([X, X])),
    "of jax.lax": (lambda b: b.rsqrt(X + 1), 1 / np.sqrt(X + 1)),
    "registered": (lambda b: b.shifted_square(X), (X + 1) ** 2),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_go_by_name(name):
    run, expected = OPERATIONS[name]
    assert jnp.allclose(run(BACKEND), expected, rtol=1e-5)


def test_transforms():
    def cube(x):
        return jnp.sum(x**3)

    x = jnp.array([1.0, 2.0])
    assert jnp.allclose(BACKEND.grad(cube)(x), 3 * x**2)
    value, slope = BACKEND.value_and_grad(cube)(x)
    assert (value, slope[1]) == (9, 12)
    assert jnp.allclose(BACKEND.vjp(cube, x)[1](2.0)[0], 6 * x**2)
    assert BACKEND.jvp(cube, (x,), (x,))[1] == 27
    assert jnp.allclose(BACKEND.jacobian(jnp.sin)(x), jnp.diag(jnp.cos(x)), atol=1e-6)
    assert jnp.allclose(BACKEND.hessian(cube)(x), jnp.diag(6 * x))
    assert jnp.allclose(BACKEND.vmap(cube)(X), (X**3).sum(1))
    assert BACKEND.jit(cube)(x) == 9
    assert BACKEND.block_until_ready(x) is x


def test_the_precision_of_products_holds_inside_jit():
    def precision(backend):
        text = backend.jit(jnp.matmul).lower(X, X.T).as_text()
        return "HIGHEST" in text

    assert precision(Backend(precision="highest"))
    assert precision(Backend(precision=jax.lax.Precision.HIGHEST))
    assert not precision(Backend())
    assert Backend(precision="tensorfloat32").precision == "tensorfloat32"


def test_arrays_and_programs_go_to_the_device():
    assert Backend(device="cpu:0").ones(2).devices() == {jax.devices("cpu")[0]}
    program = compile(Linear(2), {"input": (3, 4)}, backend=Backend(device="cpu"))
    assert program(input=X)["linear"].devices() == {jax.devices("cpu")[0]}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Backend("float64"), PrecisionError, "64-bit types are off"),
        (lambda: Backend("complex128"), PrecisionError, "64-bit types are off"),
        (lambda: Backend("float8"), PrecisionError, "`dtype` must be one of float16"),
        (lambda: Backend(int), PrecisionError, "but is int"),
        (lambda: Backend(precision="best"), GraphError, "`precision` must be one of"),
        (
            lambda: Backend(device="warp"),
            GraphError,
            "a number after a colon, of cpu:0",
        ),
        (lambda: Backend(device="cpu:7"), GraphError, "number from 0 to 0 .*'cpu:7'"),
        (lambda: Backend(device="cpu:x"), GraphError, "number from 0 to 0 .*'cpu:x'"),
        (
            lambda: Backend(device="cpu", mesh=(1,)),
            GraphError,
            "`device` and `mesh` exclude",
        ),
        (lambda: Backend(mesh=(999,)), ValueError, "must use at most 1 devices"),
        (lambda: BACKEND.ones(2, dtype="int64"), PrecisionError, "64-bit types"),
        (
            lambda: BACKEND.ones(4, spec=jax.P("x")),
            GraphError,
            "`array` must not be cut without a mesh",
        ),
        (
            lambda: BACKEND.ones(4, tensor_split=(0,)),
            GraphError,
            "`tensor_split` must come with a mesh",
        ),
        (
            lambda: BACKEND.ones(4, spec=jax.P(), device_mesh=(1,)),
            GraphError,
            "`spec` excludes `device_mesh`",
        ),
        (
            lambda: BACKEND.ones(4, device_mesh=(1,), tensor_split=(1,)),
            GraphError,
            "axes from 0 to 0, but names 1",
        ),
        (lambda: BACKEND.normal(KEY, 4, sped=1), GraphError, "`layout` takes dtype"),
    ],
)
def test_what_can_not_be(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_an_unknown_operation_is_an_attribute_that_is_missing():
    with pytest.raises(AttributeError, match="'no_such_verb' is not"):
        BACKEND.no_such_verb  # noqa: B018


@pytest.mark.x64
def test_double_precision_where_it_is_on():
    backend = Backend("float64")
    assert backend.ones(2).dtype == jnp.float64
    assert backend.array(np.float32(1)).dtype == jnp.float64
    assert Backend("complex128").zeros(2).dtype == jnp.complex128


def test_registered_operations_chain():
    graph = Graph() + "shifted_square"
    assert jnp.allclose(
        compile(graph, {"x": (3, 4)})(x=X)["shifted_square"], (X + 1) ** 2
    )
