import jax
import jax.numpy as jnp
import pytest
from jax._src import monitoring

from physax._checks import ArgumentError, PhysaxError
from physax.runtime import RecompileError, count_compiles, no_recompile


def test_compilations_are_counted_with_their_names():
    def named(x):
        return x + 1

    x, y = jnp.ones(3), jnp.ones(4)
    run = jax.jit(named)
    with count_compiles() as count:
        run(x)
        assert len(count) == 1
        run(x)
        assert len(count) == 1
        run(y)
    assert count.names == ["jit(named)"] * 2
    assert all(seconds > 0 for seconds in count.seconds)


def test_guard_names_what_compiled():
    def named(x):
        return x + 2

    x = jnp.ones(3)
    with (
        pytest.raises(
            RecompileError,
            match=r"at most 0 .* compiled 1: jit\(named\). Call .* `watched",
        ),
        no_recompile(),
    ):
        jax.jit(named)(x)
    assert issubclass(RecompileError, PhysaxError)


def test_guard_allows_what_is_allowed():
    x = jnp.ones(3)
    with no_recompile(allow=1):
        jax.jit(lambda x: x + 3)(x)


def test_guard_does_not_hide_another_error():
    x = jnp.ones(3)

    def fail():
        jax.jit(lambda x: x + 4)(x)
        raise KeyError

    with pytest.raises(KeyError), no_recompile():
        fail()


def test_guards_nest_and_leave_no_listener_behind():
    before = len(monitoring.get_event_duration_listeners())
    x = jnp.ones(3)
    with count_compiles() as outer:
        with count_compiles() as inner:
            jax.jit(lambda x: x + 5)(x)
        jax.jit(lambda x: x + 6)(x)
    assert (len(outer), len(inner)) == (2, 1)
    assert len(monitoring.get_event_duration_listeners()) == before


def test_negative_allowance_is_refused():
    with pytest.raises(
        ArgumentError, match="`allow` must be an integer of at least 0, but is -1"
    ):
        no_recompile(-1).__enter__()
