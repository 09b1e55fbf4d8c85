import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.runtime import CheckpointError, mesh, pack_state, unpack_state


def some_state():
    return {
        "field": {"Ez": jnp.linspace(0, 1, 7), "psi": (jnp.zeros((2, 0)),)},
        "dft": jnp.ones(3, jnp.complex64) * 1j,
        "flag": jnp.array(True),
        "key": jax.random.split(jax.random.key(3), 2),
        "half": jnp.ones(2, jnp.bfloat16),
    }


def test_state_comes_back_to_the_bit():
    state = some_state()
    again = unpack_state(pack_state(state), state)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for name, array in pack_state(again).items():
        np.testing.assert_array_equal(array, pack_state(state)[name], strict=True)


def test_names_are_places():
    names = pack_state(some_state())
    assert "['field']['psi'][0]" in names
    assert list(pack_state(jnp.zeros(1))) == ["state"]


def test_placement_is_that_of_the_model():
    loose = jnp.arange(4.0)
    fixed = jax.device_put(loose, jax.NamedSharding(mesh(1), jax.P("x")))
    again = unpack_state(pack_state((loose, fixed)), (loose, fixed))
    assert not again[0].committed
    assert again[1].committed
    assert again[1].sharding == fixed.sharding


def test_large_arrays_are_copied():
    # The CPU backend shares the memory of large aligned arrays where it can.
    host = {"state": np.ones(1 << 20, np.float32)}
    placed = jax.device_put(jnp.ones(1 << 20, jnp.float32), jax.devices()[0])
    again = unpack_state(host, placed)
    host["state"][:] = 7
    assert jnp.all(again == 1)


def test_number_that_is_no_array_is_refused():
    with pytest.raises(ArgumentError, match=r"`state\['n'\]` must be a JAX array"):
        pack_state({"n": 3})


def test_arrays_that_do_not_fit_are_refused():
    state = {"a": jnp.zeros(3), "b": jnp.zeros(3)}
    arrays = pack_state(state)
    with pytest.raises(CheckpointError, match=r"lacks \[\"\['c'\]\"\] and also has"):
        unpack_state(arrays, {"a": jnp.zeros(3), "c": jnp.zeros(3)})
    with pytest.raises(CheckpointError, match=r"must be float\d\d\[4\], but is"):
        unpack_state(arrays, {"a": jnp.zeros(4), "b": jnp.zeros(3)})
    with pytest.raises(CheckpointError, match=r"must be int32\[3\], but is float"):
        unpack_state(arrays, {"a": jnp.zeros(3, jnp.int32), "b": jnp.zeros(3)})
