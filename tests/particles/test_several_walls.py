"""Walls that are met one after the other in one step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    Absorb,
    Box,
    Hold,
    Inlet,
    Newtonian,
    Obstacle,
    Outlet,
    ParticleStatus,
    Periodic,
    Reflect,
    Stick,
    Uniform,
    track,
)


pytestmark = pytest.mark.f32

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
ONE_STEP = np.array([0.0, 1.0])
ALIVE, ABSORBED = ParticleStatus.ALIVE, ParticleStatus.ABSORBED


def steady(*velocity):
    return lambda t, x: jnp.asarray(velocity, x.dtype)


def below(place, rule):
    """A body on the left of a place."""
    return Obstacle(lambda x: x[0] - place, rule)


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    ("faces", "speed", "face"),
    [((Reflect(), Absorb()), -3.0, 1), ((Absorb(), Reflect()), 3.0, 0)],
)
def test_a_particle_ends_at_the_face_opposite_a_mirror(faces, speed, face, several):
    box = Box([0.0], [1.0], [faces])
    far = below(-9.0, Absorb())

    def ended(seed):
        walls = [box, far] if several else box
        tracks = track(steady(speed), seed[None], ONE_STEP, boundary=walls)
        return tracks.ended[0], tracks

    slope, tracks = jax.grad(ended, has_aux=True)(jnp.asarray([0.5]))
    assert tracks.status.tolist() == [ABSORBED]
    assert tracks.face.tolist() == [face]
    assert np.allclose(tracks.positions[-1], [[face]], **CLOSE)
    assert np.allclose(tracks.ended, 0.5, **CLOSE)
    # The way to the mirror and back is longer by what the seed is farther from it.
    assert np.allclose(slope, np.sign(-speed) / abs(speed), **CLOSE)


@pytest.mark.slow
def test_no_diffusing_particle_survives_on_an_outlet_opposite_a_mirror():
    # Images of the face at -1 and 1 let out all whose way leads beyond.
    tracks = track(
        steady(0.0),
        np.full((20_000, 1), 0.5),
        [0.0, 1.0],
        steps=10,
        diffusivity=4.0,
        key=jax.random.key(0),
        boundary=Box([0.0], [1.0], [(Reflect(), Outlet())]),
    )
    assert not np.any(tracks.alive & (tracks.positions[-1, :, 0] == 1))
    assert np.allclose(tracks.positions[-1][~tracks.alive], 1, **CLOSE)
    assert 0 < np.sum(tracks.alive) < 600


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1])
def test_a_mirror_throws_a_particle_onto_a_body(order):
    walls = [below(0.1, Absorb()), Box([0.0], [1.0], Reflect())][::order]

    def ended(seed):
        tracks = track(steady(1.8), seed[None], ONE_STEP, boundary=walls)
        return tracks.ended[0], tracks

    slope, tracks = jax.grad(ended, has_aux=True)(jnp.asarray([0.2]))
    # 0.8 to the mirror, and 0.9 back.
    assert np.allclose(tracks.ended, 1.7 / 1.8, **CLOSE)
    assert np.allclose(slope, -1 / 1.8, **CLOSE)
    assert tracks.status.tolist() == [ABSORBED]
    assert np.allclose(tracks.positions[-1], 0.1, **CLOSE)
    assert tracks.face.tolist() == [0 if order == 1 else 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "last", "slope"), [(Reflect(), 0.2, 1.0), (Hold(), 0.1, 0.0)]
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_body_throws_a_particle_back_from_a_mirror(rule, last, slope, order):
    walls = [below(0.1, rule), Box([0.0], [1.0], Reflect())][::order]

    def last_of(seed):
        tracks = track(steady(1.8), seed[None], ONE_STEP, boundary=walls)
        return tracks.positions[-1, 0, 0]

    found = jax.jit(jax.value_and_grad(last_of))(jnp.asarray([0.2]))
    assert np.allclose(found[0], last, **CLOSE)
    assert np.allclose(found[1], slope, **CLOSE)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("order", [1, -1])
def test_a_body_behind_a_periodic_face_is_met(order):
    # Once round: out at 1, in at 0, on the left side of the body.
    body = Obstacle(lambda x: jnp.abs(x[0] - 0.4) - 0.1, Stick())
    walls = [body, Box([0.0], [1.0], Periodic())][::order]
    seeds = np.array([[0.6], [0.9], [0.1]])
    tracks = track(steady(0.8), seeds, ONE_STEP, boundary=walls)
    assert tracks.status.tolist() == [ParticleStatus.STUCK] * 3
    assert np.allclose(tracks.positions[-1], 0.3, **CLOSE)
    assert np.allclose(tracks.ended, np.array([0.7, 0.4, 0.2]) / 0.8, **CLOSE)


def test_what_nothing_is_in_the_way_of_goes_as_with_one_wall():
    # Corners, and many turns: what a mirror box alone does in closed form.
    key = jax.random.key(3)
    seeds = jax.random.uniform(key, (200, 2))
    flow = lambda t, x: 3 * (x - 0.4)[::-1]  # noqa: E731
    alone = Box([0.0, 0.0], [1.0, 1.0], [Periodic(), Reflect()])
    far = Obstacle(lambda x: x[0] + 50, Absorb())
    options = {"times": np.linspace(0, 3, 7)}
    one = track(flow, seeds, boundary=alone, **options)
    two = track(flow, seeds, boundary=[far, alone], **options)
    np.testing.assert_allclose(two.positions, one.positions, atol=1e-4)
    assert two.status.tolist() == one.status.tolist()


@pytest.mark.slow
def test_velocities_turn_around_at_each_wall():
    # Free flight between a mirror that takes half of the speed and a body.
    motion = Newtonian([], 1.0, velocity=steady(1.5, 0.25))
    walls = [
        below(0.0, Reflect(restitution=0.5)),
        Box([-1.0, 0.0], [1.0, 9.0], [Reflect(restitution=0.8), Absorb()]),
    ]
    tracks = track(motion, [[0.5, 1.0]], [0.0, 1.2], boundary=walls)
    # To 1 in 1/3 s, back to 0 in 5/6 s, and 1/30 s on from there.
    assert np.allclose(tracks.positions[-1], [[0.6 / 30, 1.3]], **CLOSE)
    assert np.allclose(tracks.velocities[-1], [[1.5 * 0.8 * 0.5, 0.25]], **CLOSE)


@pytest.mark.slow
def test_a_particle_that_comes_in_again_has_no_way_left():
    box = Box([0.0, 0.0], [1.0, 1.0], [(Inlet(Uniform()), Outlet()), Reflect()])
    body = Obstacle(lambda x: jnp.linalg.norm(x - 0.5) - 0.1, Absorb())
    seeds = [[0.9, 0.1], [0.2, 0.5], [0.2, 0.9]]
    given = {"boundary": [body, box], "key": jax.random.key(0)}
    tracks = track(steady(0.4, 0.0), seeds, ONE_STEP, **given)
    assert tracks.status.tolist() == [ALIVE, ABSORBED, ALIVE]
    assert tracks.entries.tolist() == [1, 0, 0]
    assert tracks.positions[-1, 0, 0] == 0
    assert np.allclose(tracks.since, [1, 0, 0])
    assert np.allclose(tracks.positions[-1, 1:], [[0.4, 0.5], [0.6, 0.9]], **CLOSE)


def test_a_particle_between_two_bodies_stays_between_them():
    # Far more bounces than are followed.
    walls = [below(0.0, Reflect()), Obstacle(lambda x: 0.01 - x[0], Reflect())]
    tracks = track(steady(1.0), [[0.005]], ONE_STEP, boundary=walls)
    assert tracks.status.tolist() == [ALIVE]
    assert 0 <= float(tracks.positions[-1, 0, 0]) <= 0.01 + 1e-8


def test_released_particles_meet_several_walls_at_their_own_times():
    walls = [below(0.1, Absorb()), Box([0.0], [1.0], Reflect())]
    tracks = track(
        steady(1.8), [[0.2], [0.2]], [0.0, 4.0], release=[0.0, 0.5], boundary=walls
    )
    assert np.allclose(tracks.ended - tracks.since, 1.7 / 1.8, **CLOSE)


def test_traced_corners_out_of_order_end_all_particles_also_of_several():
    @jax.jit
    def status(high):
        walls = [below(-5.0, Absorb()), Box(jnp.zeros(1), high, Absorb())]
        return track(steady(0.1), [[0.2]], ONE_STEP, boundary=walls).status

    assert status(jnp.ones(1)).tolist() == [ALIVE]
    assert status(-jnp.ones(1)).tolist() == [ParticleStatus.NOT_FINITE]


def test_a_mirror_before_a_face_that_holds_is_met_first():
    motion = Newtonian([], 1.0, velocity=steady(3.0))
    box = Box([0.0], [1.0], [(Hold(), Reflect())])
    tracks = track(motion, [[0.5]], ONE_STEP, boundary=box)
    assert np.allclose(tracks.positions[-1], 0, **CLOSE)
    assert np.allclose(tracks.velocities[-1], 0, **CLOSE)
