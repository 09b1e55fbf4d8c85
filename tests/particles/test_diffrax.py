"""The engine of diffrax: tolerances, stiffness, events, ends, and what it refuses."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.particles import (
    RK4,
    Absorb,
    Box,
    Diffrax,
    GriddedField,
    MaxeyRiley,
    Mesh,
    MeshField,
    ParticleStatus,
    classical_runge_kutta,
    track,
)
from physax.runtime import RunError


pytestmark = pytest.mark.x64

TIMES = np.array([0.0, 0.7, 1.5, 2.0])


def rotation(t, x):
    del t
    return jnp.stack([-x[1], x[0]])


def turned(seeds, angles):
    c, s = np.cos(angles), np.sin(angles)
    turn = np.array([[c, -s], [s, c]])
    return np.einsum("ijt,pj->tpi", turn, seeds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "each"),
    [
        (diffrax.Tsit5(), None),
        (diffrax.Tsit5(), True),
        (diffrax.Dopri5(), None),
        (diffrax.Dopri8(), None),
        (diffrax.Kvaerno5(), None),
    ],
    ids=["Tsit5", "Tsit5 each", "Dopri5", "Dopri8", "Kvaerno5"],
)
def test_tolerances_hold_at_all_recorded_times(solver, each):
    seeds = np.array([[1.0, 0.0], [0.0, -2.0], [0.3, 0.1]])
    engine = Diffrax(solver, 1e-9, 1e-9, each=each)
    tracks = track(rotation, seeds, TIMES, solver=engine)
    # The tolerances are those of one step.
    assert np.abs(tracks.positions - turned(seeds, TIMES)).max() < 2e-7
    assert np.all(tracks.status == ParticleStatus.ALIVE)
    backward = track(rotation, tracks.positions[-1], TIMES[::-1], solver=engine)
    assert np.abs(backward.positions[-1] - seeds).max() < 4e-7


@pytest.mark.slow
def test_a_lone_particle_in_a_crowd_is_as_accurate_as_by_itself():
    def whirl(t, x):
        return 20 * jnp.exp(-1000 * x[0] ** 2) * jnp.sin(9 * t) + 0 * x

    crowd = np.ones((1000, 1))
    crowd[7] = 0.0
    engine = Diffrax(diffrax.Tsit5(), 1e-6, 1e-6)
    alone = track(whirl, crowd[7:8], TIMES, solver=engine).positions[:, 0]
    together = track(whirl, crowd, TIMES, solver=engine).positions[:, 7]
    exact = track(whirl, crowd[7:8], TIMES, dt=1e-4).positions[:, 0]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)
    assert np.abs(together - exact).max() < 1e-4


def test_the_classical_method_is_that_of_the_other_engine():
    seeds = np.array([[1.0, 0.0], [0.3, 0.1]])
    given = {"times": [0.0, 1.0, 2.0], "steps": 20}
    own = track(rotation, seeds, solver=RK4(), **given)
    theirs = track(rotation, seeds, solver=Diffrax(classical_runge_kutta()), **given)
    np.testing.assert_allclose(theirs.positions, own.positions, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_small_stokes_numbers_take_few_steps_of_an_implicit_solver():
    gravity, response = np.array([0.0, -9.81]), 1e-6
    motion = MaxeyRiley(
        lambda t, x: jnp.array([0.1, 0.0]),
        response_time=response,
        density_ratio=2.0,
        gravity=gravity,
    )
    # Explicit steps would have to be shorter than the response time, of 10 s.
    engine = Diffrax(diffrax.Kvaerno5(), 1e-6, 1e-10, max_steps=500)
    tracks = track(motion, [[0.0, 0.0]], [0.0, 5.0, 10.0], solver=engine)
    settling = 0.5 * gravity * response
    expected = np.array([0.1, 0.0]) + settling
    np.testing.assert_allclose(tracks.velocities[-1, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(tracks.positions[-1, 0], 10 * expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("unstructured", [False, True])
def test_steps_end_at_the_instants_of_fields(unstructured):
    # Between the instants the place is a parabola of time, which any step follows
    # exactly that does not go over a kink.
    instants, speeds = np.array([0.0, 0.61, 1.37, 2.0]), np.array([1.0, -3.0, 4.0, 0.0])
    values = np.broadcast_to(speeds[:, None, None] * [1.0, 0.0], (4, 4, 2))
    if unstructured:
        points = np.array([[-9.0, -9], [9, -9], [-9, 9], [9, 9]])
        mesh = Mesh(points, {"triangle": np.array([[0, 1, 2], [1, 3, 2]])})
        field = MeshField(mesh, values, instants)
    else:
        nodes = [np.array([-9.0, 9.0])] * 2
        field = GriddedField(values.reshape(4, 2, 2, 2), nodes, instants)
    engine = Diffrax(diffrax.Tsit5(), 1e-2, 1e-2)
    tracks = track(field, [[0.0, 0.0]], [0.0, 2.0], solver=engine)
    way = np.sum((speeds[1:] + speeds[:-1]) / 2 * np.diff(instants))
    np.testing.assert_allclose(tracks.positions[-1, 0], [way, 0.0], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_an_event_ends_a_particle_where_and_when_it_happens():
    def beyond(t, y, args, **kwargs):
        del t, args, kwargs
        return y[0] - 1

    event = diffrax.Event(beyond, root_finder=diffrax.VeryChord(rtol=1e-10, atol=1e-10))
    engine = Diffrax(diffrax.Tsit5(), 1e-8, 1e-8, each=True, event=event)
    seeds = np.array([[0.0, 0.0], [0.5, 3.0], [-5.0, 1.0]])
    tracks = track(lambda t, x: jnp.array([1.0, 2.0]), seeds, TIMES, solver=engine)
    ended, alive = ParticleStatus.ABSORBED, ParticleStatus.ALIVE
    assert tracks.status.tolist() == [ended, ended, alive]
    np.testing.assert_allclose(tracks.ended[:2], [1.0, 0.5], atol=1e-7)
    assert np.isnan(tracks.ended[2])
    np.testing.assert_allclose(tracks.positions[-1, :2], [[1, 2], [1, 4]], atol=1e-6)
    np.testing.assert_allclose(tracks.positions[1, 0], [0.7, 1.4], atol=1e-7)
    with pytest.raises(ArgumentError, match="`each` must be True with an `event`"):
        Diffrax(diffrax.Tsit5(), event=event)


@pytest.mark.slow
def test_who_leaves_the_data_stays_at_the_last_record_within():
    nodes = np.linspace(0, 1, 3)
    field = GriddedField(np.ones((3, 1)), [nodes])
    tracks = track(
        field, [[0.2], [-0.0]], [0, 0.5, 0.9, 1.2], solver=Diffrax(diffrax.Tsit5())
    )
    assert tracks.status.tolist() == [ParticleStatus.LEFT_DATA] * 2
    np.testing.assert_allclose(tracks.ended, [0.9, 1.2])
    np.testing.assert_allclose(tracks.positions[-1, :, 0], [0.7, 0.9], atol=1e-9)


@pytest.mark.slow
def test_too_many_steps_are_an_error_with_a_remedy():
    engine = Diffrax(diffrax.Tsit5(), 1e-12, 1e-12, max_steps=3)
    with pytest.raises(
        RunError, match="last time within `max_steps`, 3. Increase it or"
    ):
        track(rotation, [[1.0, 0.0]], TIMES, solver=engine)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"boundary": Box([-3, -3], [3, 3], Absorb())}, "boundary"),
        ({"release": [0.5]}, "release"),
    ],
)
def test_what_needs_a_fixed_step_is_refused(options, name):
    with pytest.raises(ArgumentError, match=f"`{name}` needs a solver of fixed step"):
        track(rotation, [[1.0, 0.0]], TIMES, solver=Diffrax(diffrax.Tsit5()), **options)


@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_tolerances_must_be_positive(name):
    with pytest.raises(ArgumentError, match=f"`{name}` must be positive, but is 0"):
        Diffrax(diffrax.Tsit5(), **{name: 0.0})
