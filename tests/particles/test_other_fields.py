"""Fields beside the velocity: what is integrated of them, and where their data end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    Box,
    EulerMaruyama,
    GriddedField,
    MaxeyRiley,
    Milstein,
    OnSphere,
    ParticleStatus,
    Reflect,
    StochasticHeun,
    Variable,
    run,
    track,
)


NODES = np.linspace(0.0, 1.0, 5)
KEY = jax.random.key(0)


def constant(value, ends=(0.0, 1.0), **options):
    nodes = np.linspace(ends[0], ends[1], 5)
    shape = (5, 5) if np.ndim(value) == 0 else (5, 5, 2)
    return GriddedField(np.broadcast_to(value, shape), (nodes, nodes), **options)


@pytest.mark.parametrize(
    ("solver", "sphere"),
    [
        (EulerMaruyama(), False),
        (Milstein(), False),
        (StochasticHeun(), False),
        (StochasticHeun(), True),
    ],
)
def test_a_diffusivity_on_a_grid_is_that_number_also_beside_walls(solver, sphere):
    # The walls lie where the data end, so stages of Heun's method lie beyond both.
    def still(t, x):
        return 0 * x

    def spread(diffusivity):
        return track(
            OnSphere(still, radius=1.0) if sphere else still,
            np.tile(NODES[1:4, None], 2),
            [0.0, 1.0],
            steps=20,
            solver=solver,
            diffusivity=diffusivity,
            key=KEY,
            boundary=Box([0, 0], [1, 1], Reflect()),
        )

    number = 0.5 * np.radians(1.0) ** 2 if sphere else 0.5
    gridded, plain = spread(constant(number)), spread(number)
    assert np.all(gridded.alive[-1])
    assert jnp.allclose(gridded.positions, plain.positions, atol=1e-5)


@pytest.mark.parametrize("follow", [track, lambda *a, **o: run(*a, **o).tracks])
def test_a_field_is_the_rate_of_a_variable_also_beside_walls(follow):
    # At the speed 0.7 two of three particles turn around within the time.
    tracks = follow(
        constant([0.7, 0.0]),
        np.tile(NODES[:3, None], 2),
        np.linspace(0, 1, 6),
        boundary=Box([0, 0], [1, 1], Reflect()),
        variables={"dose": Variable(constant(3.0), initial=1.0)},
    )
    assert np.all(tracks.alive)
    dose = 1 + 3 * np.linspace(0, 1, 6)[:, None]
    assert jnp.allclose(tracks.variables["dose"], dose, rtol=1e-5)


def test_a_field_is_the_rate_of_a_variable_beyond_a_pole():
    lon, lat = np.linspace(0, 350, 36), np.linspace(-90, 90, 19)
    height = GriddedField(np.tile(lat, (36, 1)), (lon, lat), periods=(360.0, None))

    def over(t, x):
        return jnp.stack([0.0, jnp.where(x[0] > 100, -1.0, 1.0)])

    tracks = track(
        OnSphere(over, radius=np.degrees(1.0)),
        [[20.0, 80.0]],
        np.linspace(0, 20, 21),
        variables={"integral": Variable(height)},
    )
    # From 80 degrees over the pole, where it is 90, down to 80: 85 on the average.
    assert tracks.variables["integral"][-1, 0] == pytest.approx(20 * 85, rel=1e-5)


@pytest.mark.parametrize(
    "others",
    [
        {"diffusivity": constant(0.0), "key": KEY},
        {"variables": {"dose": Variable(constant(3.0))}},
    ],
    ids=["diffusivity", "variables"],
)
def test_a_particle_ends_where_another_field_has_no_data(others):
    wide = constant([1.0, 0.0], (-1.0, 3.0))
    tracks = track(wide, [[0.55, 0.5]], np.linspace(0, 1, 11), **others)
    assert tracks.status[0] == ParticleStatus.LEFT_DATA
    assert tracks.positions[-1, 0, 0] == pytest.approx(0.95, rel=1e-5)
    assert tracks.ended[0] == pytest.approx(0.4, rel=1e-5)
    with pytest.raises(ArgumentError, match="`seeds` must lie within the data of"):
        track(wide, [[1.5, 0.5]], [0.0, 0.1], **others)


@pytest.mark.parametrize("name", ["diffusivity", "variables"])
def test_times_beyond_those_of_another_field_are_refused(name):
    nodes = np.linspace(-1.0, 3.0, 5)
    short = GriddedField(np.ones((2, 5, 5)), (nodes, nodes), [0.0, 1.0])
    others = {
        "diffusivity": {"diffusivity": short, "key": KEY},
        "variables": {"variables": {"dose": Variable(short)}},
    }[name]
    with pytest.raises(ArgumentError, match="`times` must lie within those of the"):
        track(constant([1.0, 0.0], (-1.0, 3.0)), [[0.5, 0.5]], [0.0, 2.0], **others)


def test_a_field_is_the_rate_of_a_variable_of_a_heavy_particle():
    motion = MaxeyRiley(constant([0.1, 0.0]), response_time=0.1)
    dose = {"dose": Variable(constant(3.0))}
    tracks = track(motion, [[0.5, 0.5]], np.linspace(0, 1, 11), variables=dose)
    assert tracks.variables["dose"][-1, 0] == pytest.approx(3.0, rel=1e-5)
