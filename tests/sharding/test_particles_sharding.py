"""Tracks are the same on any number of devices, which do not talk to each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import runtime
from physax.io import TrackFile
from physax.particles import Box, Inlet, Outlet, Reflect, Variable, run, track
from physax.runtime import Checkpointing
from tests.particles.flows import gridded_gyre, seeds
from tests.sharding.processes import together


COUNT = 21  # not a multiple of the devices
FACES = [(Inlet(), Outlet()), Reflect()]
OPTIONS = {
    "steps": 40,
    "boundary": Box([0.15, 0.05], [1.85, 0.95], FACES),
    "diffusivity": 0.01,
    "key": jax.random.key(4),
}
TIMES = np.linspace(0, 4, 5)


@pytest.mark.x64
def test_any_mesh_gives_the_same_tracks():
    field, at = gridded_gyre(nodes=8), seeds(COUNT)
    own = {"own": Variable(lambda t, x, value: 1.0, jnp.arange(COUNT) ** 2)}
    expected = track(field, at, TIMES, variables=own, **OPTIONS)
    assert jnp.any(expected.entries > 0)
    for count in (2, 4):
        mesh = runtime.mesh(count)
        found = track(field, at, TIMES, mesh=mesh, variables=own, **OPTIONS)
        for name, values in found.variables.items():
            assert jnp.allclose(values, expected.variables[name], atol=1e-12)
        np.testing.assert_allclose(found.positions, expected.positions, atol=1e-12)
        np.testing.assert_array_equal(found.entries, expected.entries)
    batches = track(field, at, TIMES, batch=8, **OPTIONS)
    np.testing.assert_allclose(batches.positions, expected.positions, atol=1e-12)


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize("count", [2, 4])
def test_processes_give_the_same_rows(tmp_path, count):
    expected = track(gridded_gyre(nodes=8), seeds(COUNT), TIMES, **OPTIONS)
    file = tmp_path / "rows.npy"
    together("tests.sharding.track_together", str(file), count=count)
    rows = np.load(file)
    np.testing.assert_allclose(rows, expected.positions, rtol=0, atol=1e-12)


@pytest.mark.f32
def test_devices_do_not_talk_to_each_other():
    field, at = gridded_gyre(nodes=8), jnp.asarray(seeds(20), jnp.float32)
    mesh = runtime.mesh(4)
    whole = jax.jit(lambda at: track(field, at, TIMES, mesh=mesh, **OPTIONS).positions)
    text = whole.lower(at).compile().as_text()
    assert "while(" in text
    for name in ("all-reduce", "all-gather", "collective-permute", "all-to-all"):
        assert name not in text


@pytest.mark.f32
@pytest.mark.parametrize(("count", "devices"), [(5, 4), (9, 8), (3, 8)])
def test_devices_that_have_no_particle_write_none(tmp_path, count, devices):
    field, at = gridded_gyre(nodes=8), seeds(count).astype("f4")
    expected = track(field, at, TIMES, steps=8).positions
    run(
        field,
        at,
        TIMES,
        steps=8,
        mesh=runtime.mesh(devices),
        sink=TrackFile(tmp_path / "rows.npy", TIMES.size, count, 2),
        progress=False,
    )
    rows = np.load(tmp_path / "rows.npy")
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.f32
def test_a_driven_run_on_devices_writes_and_resumes_the_same_rows(tmp_path):
    field, at = gridded_gyre(), seeds(COUNT).astype("f4")
    options = OPTIONS | {"steps": 40}
    expected = track(field, at, np.linspace(0, 4, 11), **options).positions
    rows = np.zeros(expected.shape, np.float32)

    def sink(row, particle, values):
        rows[row : row + 1, particle : particle + values.shape[1]] = values

    def follow(stop=None, count=4):
        def interrupt(step, state, info):
            del state, info
            if stop is not None and step >= stop:
                raise KeyboardInterrupt

        return run(
            field,
            at,
            np.linspace(0, 4, 11),
            mesh=runtime.mesh(count),
            sink=sink,
            checkpoint=Checkpointing(tmp_path, 8),
            progress=False,
            chunk=4,
            on_chunk=interrupt,
            **options,
        )

    with pytest.raises(KeyboardInterrupt):
        follow(stop=20)
    # On another number of devices.
    assert follow(count=2).drive.first_step == 16
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-6)
