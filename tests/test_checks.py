"""What stands for numbers, and what does not."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax._checks import as_array, check, instance, one_key, whole


pytestmark = pytest.mark.f32


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": 1.0},
        object(),
        [[0.1], [0.2, 0.3]],
        10**400,
        [10**400, float],
        [jnp.ones(2), jnp.ones(3)],
        [jnp.ones(()), {}],
        [jnp.ones(()), 10**400],
        np.datetime64("2020-01-01"),
        np.zeros(2, [("a", float)]),
        jax.random.key(0),
        [jax.random.key(0)],
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_is_no_number_is_refused_by_its_name(value):
    with pytest.raises(ArgumentError, match="`x` must be a number or an array of num"):
        inspect.unwrap(as_array)(value, "x")


def test_whole_numbers_of_any_size_are_floating_point():
    assert np.array_equal(as_array([2 * 10**14, 1]), np.float32([2e14, 1]))
    assert as_array(2**70) == np.float32(2.0**70)


@pytest.mark.parametrize("value", [3, 2.5, 1 + 2j, [1, 2], [1.5, -2.0]])
@pytest.mark.parametrize("order", [">", "<"])
def test_both_orders_of_bytes_are_read(value, order):
    host = np.asarray(value)
    given = host.astype(host.dtype.newbyteorder(order))
    assert np.array_equal(as_array(given), host)


@pytest.mark.parametrize("value", [[1.0, 2.0], [1, 2]])
def test_masked_entries_are_refused(value):
    given = np.ma.array(value, mask=[False, True])
    with pytest.raises(ArgumentError, match=r"`x` must be known .* entry \[1\] is ma"):
        as_array(given, "x")
    assert np.array_equal(as_array(np.ma.array(value)), value)


def test_a_class_is_no_instance():
    with pytest.raises(ArgumentError, match="an `int`, but is the class int. Did you"):
        inspect.unwrap(instance)(int, "x", int)


def test_what_fails_under_jit_is_nan_and_so_is_its_derivative():
    def total(x):
        return jnp.sum(check(x, x > 0, "`x` must be positive"))

    x = jnp.asarray([1.0, -1.0, 2.0])
    value, slope = jax.jit(jax.value_and_grad(total))(x)
    assert np.isnan(value)
    assert np.array_equal(slope, [1.0, np.nan, 1.0], equal_nan=True)


def test_untyped_keys_become_typed_ones_of_the_same_bits():
    one, other = one_key(jax.random.PRNGKey(3)), jax.random.key(3)
    assert one.dtype == other.dtype
    assert jnp.array_equal(jax.random.bits(one), jax.random.bits(other))
    assert one_key(other) is other
    with pytest.raises(ArgumentError, match=r"one key, as .*, but has shape \(2,\)"):
        one_key(jax.random.split(other))


@pytest.mark.parametrize("one", [2, np.int8(2), np.array(2), jnp.array(2)])
def test_integers_of_any_library_are_counts(one):
    assert whole(one, "n") == 2
    assert type(whole(one, "n")) is int


@pytest.mark.parametrize(
    "bad", [True, np.True_, np.array(True), jnp.array(True), 2.0, "2", [2], None, 0]
)
def test_what_is_not_a_count_is_refused(bad):
    with pytest.raises(
        ArgumentError, match="`n` must be an integer of at least 1, but"
    ):
        whole(bad, "n")
