import jax
import jax.numpy as jnp
import pytest

from physax._checks import ArgumentError
from physax.runtime import all_finite, bounded, locate_fault


def state_with(value):
    field = jnp.zeros((3, 4), jnp.complex64).at[1, 2].set(value)
    return {"n": jnp.array(3), "E": field, "key": jax.random.key(0)}


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf, -jnp.inf, 1j * jnp.nan])
def test_one_bad_value_is_seen_and_located(bad):
    assert not all_finite(state_with(bad))
    assert locate_fault(state_with(bad)).startswith("`state['E'][1, 2]` is ")


def test_finite_states_pass():
    assert all_finite(state_with(1j))
    assert locate_fault(state_with(1j)) == ""
    assert all_finite({})


@pytest.mark.parametrize(("limit", "said"), [("9", "'9'"), (jnp.nan, "nan")])
def test_a_limit_that_no_state_keeps_is_refused(limit, said):
    with pytest.raises(ArgumentError, match=f"`limit` must be a number, but is {said}"):
        bounded(jnp.sum, limit)


def test_bound_holds_for_what_is_not_a_number():
    watch = bounded(jnp.sum, 10)
    assert watch(jnp.ones(10))
    assert not watch(jnp.ones(11))
    assert not watch(jnp.array([jnp.nan]))
    assert not watch(jnp.array([-jnp.inf]))
