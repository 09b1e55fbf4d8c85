import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.runtime import Precision, cast_floating, precision_error


BFLOAT16 = Precision("bfloat16")
HALF = Precision("float16", "float16", "float32")
SINGLE = Precision()


def square(x):
    return jnp.sum(x**2)


def test_storage_alone_rounds_the_arguments():
    # 1 + 2^-10 becomes 1 with the 8 bits of bfloat16; float16, with 11, has it.
    x = jnp.full(3, 1 + 2.0**-10)
    rounded, kept = precision_error(
        square, x, policies=[BFLOAT16, Precision("float16")]
    )
    assert rounded.value == pytest.approx(2 * 2.0**-10, rel=1e-2)
    assert rounded.gradient == pytest.approx(2.0**-10, rel=1e-2)
    assert kept.value == kept.gradient == 0
    assert rounded.precision is BFLOAT16


def test_low_precision_arithmetic_loses_increments():
    # Half of float16's spacing above 2048 is 1: the increment is lost or rounded.
    def increment(x, step):
        return x + step - x

    found, single = precision_error(
        increment, jnp.asarray(2048.0), jnp.asarray(0.5), policies=[HALF, SINGLE]
    )
    assert found.value == 1
    assert single.value == 0


@pytest.mark.x64
def test_single_precision_is_measured_against_double():
    x = jnp.linspace(0, 1, 1000) ** 3
    (row,) = precision_error(square, x, policies=[SINGLE])
    assert 0 < row.value < 1000 * np.finfo("f4").eps
    # The slope 2 x has the error of x: at most half an ulp.
    assert 0 < row.gradient <= np.finfo("f4").eps / 2


def test_a_reference_of_zero_gives_zero_or_infinity():
    def difference(x):
        return jnp.sum(x - (1 + 2.0**-10))

    (row,) = precision_error(difference, jnp.full(2, 1 + 2.0**-10), policies=[BFLOAT16])
    assert row.value == np.inf
    assert row.gradient == 0


def test_other_arguments_pass_through():
    (row,) = precision_error(
        lambda f, x, n: f(x["a"])[n], jnp.sin, {"a": jnp.ones(3)}, 1, policies=[SINGLE]
    )
    assert row.value < 1e-6


def test_casting_touches_floating_point_arrays_only():
    tree = {
        "w": jnp.ones(2),
        "n": jnp.arange(2),
        "z": jnp.ones(2, jnp.complex64),
        "host": np.ones(2),
        "number": 0.5,
        "name": "x",
        "f": jnp.sin,
    }
    found = cast_floating(tree, jnp.bfloat16)
    assert found["w"].dtype == found["host"].dtype == jnp.bfloat16
    assert found["n"].dtype == tree["n"].dtype
    assert found["z"].dtype == jnp.complex64
    assert (found["number"], found["name"], found["f"]) == (0.5, "x", jnp.sin)


@pytest.mark.f32
def test_casting_checks_the_type():
    with pytest.raises(ArgumentError, match="`dtype` must be one of .*, but is int8"):
        cast_floating(jnp.ones(2), "int8")
    with pytest.raises(ArgumentError, match=r"`dtype` must .*jax_enable_x64"):
        cast_floating(jnp.ones(2), "float64")


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (lambda x: x, r"float32\[3\]|shape=\(3,\)"),
        (lambda x: jnp.sum(x) * 1j, "complex"),
        (lambda x: None, "None"),
    ],
)
def test_a_function_must_return_a_real_scalar(function, made):
    with pytest.raises(
        ArgumentError, match=f"`function` must return a real scalar, but .*({made})"
    ):
        precision_error(function, jnp.ones(3), policies=[SINGLE])


def test_there_must_be_something_to_differentiate():
    with pytest.raises(ArgumentError, match="`args` must hold at least one floating"):
        precision_error(square, jnp.arange(3), policies=[SINGLE])
