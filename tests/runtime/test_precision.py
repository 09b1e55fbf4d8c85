import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.runtime import Precision, PrecisionError, require_x64


def test_default_is_float32_throughout():
    precision = Precision()
    for name in ("storage", "compute", "accumulate"):
        assert getattr(precision, name) == "float32"
        assert getattr(precision, f"{name}_dtype") == np.float32
    assert precision.complex_dtype == np.complex64


def test_dtypes_become_names_and_equal_precisions_are_equal():
    assert Precision(jnp.bfloat16, np.float32) == Precision("bfloat16", "float32")


@pytest.mark.f32
@pytest.mark.parametrize("field", ["storage", "compute", "accumulate"])
def test_float64_is_refused_while_it_is_off(field):
    with pytest.raises(
        ArgumentError, match=rf'`{field}` must be .*jax.config.update\("jax_enable_x64"'
    ):
        Precision(**{field: "float64"})


@pytest.mark.f32
def test_require_x64_says_what_asked_for_it():
    with pytest.raises(TypeError, match="The permittivity must be at most float32"):
        require_x64("The permittivity")


@pytest.mark.x64
def test_float64_is_accepted_when_it_is_on():
    precision = Precision("float64", "float64", "float64")
    assert precision.complex_dtype == np.complex128


def test_unknown_type_is_refused():
    with pytest.raises(PrecisionError, match="`storage` must be one of .* but is int8"):
        Precision("int8")


def test_sums_may_not_be_less_precise_than_the_arithmetic():
    with pytest.raises(ArgumentError, match="`accumulate` must be at least as precise"):
        Precision(accumulate="bfloat16")
