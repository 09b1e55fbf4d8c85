import inspect
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.runtime import compile_ahead, count_compiles


def scaled(x, *, power=1):
    return x**power


FORMS = {
    "plain": scaled,
    "jit": jax.jit(scaled, static_argnames="power"),
    "filter_jit": eqx.filter_jit(scaled),
}


@pytest.mark.parametrize("form", FORMS)
def test_first_run_compiles_nothing(form):
    x = jax.device_put(np.arange(4.0, dtype=np.float32))
    run = compile_ahead(FORMS[form], x, power=2)
    with count_compiles() as count:
        out = run(x)
    assert len(count) == 0
    np.testing.assert_array_equal(out, [0, 1, 4, 9])


def test_shapes_are_enough():
    shape = jax.ShapeDtypeStruct((3,), jnp.float32)
    run = compile_ahead(scaled, shape, power=3)
    np.testing.assert_array_equal(run(jnp.full(3, 2, jnp.float32)), 8)


def test_modules_with_functions_inside_are_accepted():
    module = eqx.nn.Lambda(jnp.cos)
    run = compile_ahead(lambda module, x: module(x), module, jnp.zeros(2))
    np.testing.assert_array_equal(run(module, jnp.zeros(2)), 1)


def test_donation_is_kept():
    step = partial(jax.jit, donate_argnums=0)(lambda x: x + 1)
    x = jnp.ones(100)
    compile_ahead(step, x)(x)
    assert x.is_deleted()


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentError, match="`fn` must be a function, but is an int"):
        inspect.unwrap(compile_ahead)(3)
