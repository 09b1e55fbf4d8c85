import logging

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.runtime import RecompileError, count_compiles, no_recompile, watched


class Medium(eqx.Module):
    index: jax.Array
    order: int = eqx.field(static=True)
    shape: object = eqx.field(static=True, default=None)


def make():
    def advance(params, x, *, scale=1):
        del scale
        return jax.tree.map(jnp.sum, eqx.filter(params, eqx.is_array)), x * 2

    return advance


def refusal(run, *args, **kwargs):
    """What the guard says about a call."""
    with pytest.raises(RecompileError) as caught, no_recompile():
        run(*args, **kwargs)
    return str(caught.value)


def complaint(run, first, second):
    """What the guard says about a second call after a first one."""
    run(*first)
    with no_recompile():
        run(*first)
    return refusal(run, *second)


X = jnp.ones(3)
CHANGES = [
    (
        {"dt": jnp.ones(3)},
        {"dt": jnp.ones(4)},
        "`params['dt']` changed from float32[3] to float32[4]",
    ),
    (
        {"dt": jnp.ones(3)},
        {"dt": jnp.ones(3, jnp.int32)},
        "`params['dt']` changed from float32[3] to int32[3]",
    ),
    (
        {"dt": jnp.ones(())},
        {"dt": jnp.asarray(1.0)},
        "`params['dt']` changed from float32[] to float32[] of weak type",
    ),
    (
        {"a": X},
        {"a": X, "b": X},
        "`params['b']` changed from absent to float32[3]",
    ),
    (
        [X, Medium(X, order=2)],
        [X, Medium(X, order=4)],
        "`params[1].order` changed from 2 to 4",
    ),
    (
        Medium(X, 2, ("a", 1)),
        Medium(X, 2, ("a", 2)),
        "`params.shape` changed from ('a', 1) to ('a', 2)",
    ),
    (X, (X,), "`params` changed from float32[3] to tuple"),
    (X, None, "`params` changed from float32[3] to None"),
]


@pytest.mark.parametrize("jit", [jax.jit, eqx.filter_jit])
@pytest.mark.parametrize(("first", "second", "said"), CHANGES)
def test_guard_names_function_and_argument(jit, first, second, said):
    found = complaint(watched(jit(make())), (first, X), (second, X))
    assert f"`advance` compiled again because {said}" in found
    assert "at most 0 programs, but compiled 1: jit(advance)" in found


def test_a_number_that_was_an_array_is_named():
    found = complaint(watched(jax.jit(make())), (jnp.ones(()), X), (1.0, X))
    assert "`params` changed from float32[] to 1.0" in found


def test_numbers_that_are_traced_are_not_blamed():
    run = watched(jax.jit(make()))
    run(1.0, X)
    with no_recompile():
        run(2.0, X)
    found = complaint(run, (1.0, X), (3.0, jnp.ones(7)))
    assert "because `x` changed from float32[3] to float32[7]." in found


def test_another_type_of_number_is_named():
    found = complaint(watched(jax.jit(make())), (1, X), (1.0, X))
    assert "because `params` changed from 1 to 1.0." in found


def test_numbers_that_are_static_are_named():
    found = complaint(watched(eqx.filter_jit(make())), (0.1, X), (0.2, X))
    assert "because `params` changed from 0.1 to 0.2." in found
    run = watched(jax.jit(make(), static_argnames="scale"))
    run(X, X, scale=1)
    assert "`scale` changed from 1 to 2" in refusal(run, X, X, scale=2)


def test_a_new_function_object_is_named():
    run = watched(eqx.filter_jit(lambda f, x: f(x)))
    found = complaint(run, (lambda x: x + 1, X), (lambda x: x + 1, X))
    assert "`f` changed from the object test_a_new_function_object_is_named" in found


def test_a_function_that_jits_anew_is_told():
    run = watched(lambda x: jax.jit(lambda x: x + 1)(x))
    run(X)
    assert "`<lambda>` compiled although no argument changed: it" in refusal(run, X)


def test_a_function_made_anew_is_told():
    found = refusal(watched(jax.jit(make())), X, X)
    assert "`advance` compiled at its first call. A function that is made anew" in found


def test_a_placed_array_is_named():
    run = watched(jax.jit(make()))
    placed = jax.device_put(X, jax.devices()[0])
    assert "from float32[3] to float32[3] placed on cpu:0" in complaint(
        run, (X, X), (placed, X)
    )


def test_the_nearest_earlier_call_is_compared():
    run = watched(jax.jit(make()))
    run(jnp.ones(4), jnp.ones(4))
    run(jnp.ones(5), jnp.ones(5))
    with count_compiles() as count:
        run(jnp.ones(4), jnp.ones(6))
    assert count.reasons == [
        "`advance` compiled again because `x` changed from float32[4] to float32[6]."
    ]


def test_donated_arguments_are_known():
    run = watched(jax.jit(lambda u: u + 1, donate_argnums=0))
    first, second = jnp.ones(3), jnp.ones(4)
    run(first)
    assert "`u` changed from float32[3] to float32[4]" in refusal(run, second)
    assert second.is_deleted()


def test_results_pass_through_and_tracers_are_taken():
    run = watched(make())
    np.testing.assert_array_equal(run(X, x=X)[1], 2 * X)
    assert jax.grad(lambda x: jnp.sum(run(X, x)[1]))(X).tolist() == [2, 2, 2]
    assert jax.jit(run)(X, X)[1].shape == (3,)
    assert run.__name__ == "advance"


def test_no_configuration_and_no_logger_changes():
    before = dict(jax.config.values), list(logging.getLogger("jax").handlers)
    complaint(watched(jax.jit(make())), (X, X), (X, jnp.ones(5)))
    assert before == (
        dict(jax.config.values),
        list(logging.getLogger("jax").handlers),
    )
