"""Driven runs on a mesh."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.runtime import (
    Checkpointing,
    all_finite,
    drive,
    mesh,
    no_recompile,
    pack_state,
)


pytestmark = pytest.mark.devices


def placed(made):
    sharding = jax.NamedSharding(made, jax.P(*made.axis_names))
    return jax.device_put(jnp.arange(64, dtype=jnp.uint32).reshape(8, 8), sharding)


@partial(jax.jit, donate_argnums=0)
def advance(state, start, stop):
    def one_step(i, x):
        # In integers, since the rounding of the same expression may differ by mesh.
        return x * jnp.uint32(1_664_525) + jnp.roll(x, 1, 0)

    return jax.lax.fori_loop(start, stop, one_step, state)


def test_run_resumes_on_another_mesh_to_the_same_bits(tmp_path):
    checkpoint = Checkpointing(tmp_path, 50)
    run = partial(drive, advance, checkpoint=checkpoint)
    run(placed(mesh(8, 1)), stop=100)
    state = placed(mesh(2, 2))
    sharding = state.sharding
    result = run(state, stop=200)
    assert result.first_step == 100
    assert result.state.sharding.is_equivalent_to(sharding, 2)
    alone = drive(advance, placed(mesh(1, 1)), stop=200)
    np.testing.assert_array_equal(result.state, alone.state)


def test_resuming_compiles_nothing(tmp_path):
    checkpoint = Checkpointing(tmp_path, 50)
    drive(advance, placed(mesh(4, 2)), stop=100, checkpoint=checkpoint)
    state = placed(mesh(4, 2))
    with no_recompile():
        drive(advance, state, stop=150, checkpoint=checkpoint)


def test_watching_gathers_nothing():
    compiled = jax.jit(all_finite).lower(1.0 * placed(mesh(4, 2))).compile().as_text()
    assert "all-gather" not in compiled
    assert "all-reduce" in compiled


def test_file_does_not_depend_on_the_mesh():
    one, many = pack_state(placed(mesh(1, 1))), pack_state(placed(mesh(2, 4)))
    np.testing.assert_array_equal(one["state"], many["state"])


def test_part_of_the_devices_makes_a_mesh():
    assert mesh(2, 3).devices.shape == (2, 3)
    assert mesh(a=2).shape == {"a": 2}
