"""Particles with a velocity of their own, thrown back by walls while forces act."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    Absorb,
    Box,
    Gravity,
    Newtonian,
    Obstacle,
    Outlet,
    ParticleStatus,
    Reflect,
    track as follow,
)


pytestmark = pytest.mark.x64
G = 9.81
WIDE = [-50.0, 0.0], [50.0, 30.0]


def track(motion, seeds, times, **options):
    tracks = follow(motion, jnp.asarray(seeds), np.asarray(times), **options)
    assert tracks.velocities is not None
    return tracks.positions, tracks.velocities


def floor(x):
    return x[1]


def box(kept):
    return Box(*WIDE, Reflect(kept))


def body(kept):
    return Obstacle(floor, Reflect(kept))


def both(kept):
    return [Box([-50.0, -1.0], [50.0, 30.0], Reflect(kept)), body(kept)]


WALLS = pytest.mark.parametrize("walls", [box, body, both])
ALSO_SLOW = pytest.mark.parametrize(
    "walls", [box, body, pytest.param(both, marks=pytest.mark.slow)]
)


def falling(velocity=None, g=G):
    pull = Gravity(1.0, jnp.stack([jnp.zeros(()), -jnp.asarray(g)]))
    return Newtonian([pull], 1.0, velocity)


def energy(x, v):
    return G * x[..., 1] + jnp.sum(v**2, -1) / 2


def groove(x):
    """Returns the distance to two planes at right angles."""
    return jnp.minimum(x[1] - x[0], x[1] + x[0]) / np.sqrt(2)


@pytest.mark.parametrize("kept", [0.9, 0.5])
def test_balls_in_a_groove_gain_nothing_and_come_to_rest(kept):
    random = np.random.default_rng(1)
    seeds = np.stack([random.uniform(-0.5, 0.5, 30), random.uniform(0.9, 1.8, 30)], 1)
    times = np.linspace(0, 8, 41)
    x, v = track(
        falling(), seeds, times, dt=0.02, boundary=Obstacle(groove, Reflect(kept))
    )
    height = energy(x, v)
    assert np.all(np.diff(height, axis=0) < 1e-12)
    if kept == 0.5:
        assert np.abs(x[-1]).max() < 1e-3
        assert np.abs(v[-1]).max() < 1e-9


@pytest.mark.parametrize("start", [0.0, 0.03])
def test_a_particle_slides_into_the_corner_of_a_room_and_back(start):
    room = Obstacle(lambda x: jnp.minimum(x[1], 1 - x[0]), Reflect())
    motion = falling(lambda t, x: jnp.array([1.0, 0.0]))
    x, v = track(motion, [[start, 0.0]], [0.0, 2.0], dt=0.1, boundary=room)
    assert np.allclose(x[-1, 0], [-start, 0], atol=1e-13)
    assert np.allclose(v[-1, 0], [-1, 0], atol=1e-13)


def lid(kept):
    return Obstacle(lambda x: 30 - x[1], Reflect(kept))


@pytest.mark.parametrize("walls", [box, lid])
def test_a_ceiling_is_met_by_who_falls_back_within_the_step(walls):
    speed, gap, h = 0.49, 0.01, 0.1
    motion = falling(lambda t, x: jnp.array([0.0, speed]))
    seed = [[0.0, 30 - gap]]
    x, v = track(motion, seed, [0.0, h], dt=h, boundary=walls(1.0))
    hit = (speed - np.sqrt(speed**2 - 2 * G * gap)) / G
    left, back = h - hit, speed - G * hit
    assert np.allclose(x[-1, 0, 1], 30 - back * left - G / 2 * left**2, rtol=1e-13)
    assert np.allclose(v[-1, 0, 1], -back - G * left, rtol=1e-12)


def slope(angle):
    return np.array([-np.sin(angle), np.cos(angle)])


@WALLS
def test_a_bouncing_ball_keeps_its_energy_and_its_period(walls):
    heights = np.linspace(0.5, 1.5, 7)
    seeds = np.stack([0 * heights, heights], 1)
    times = np.linspace(0, 20, 41)
    x, v = track(falling(), seeds, times, dt=0.02, boundary=walls(1.0))
    # Gravity is even, so parabolas are exact: a period lasts 2 sqrt(2 h / g).
    half = np.sqrt(2 * heights / G)
    since = (times[:, None] + half) % (2 * half) - half
    assert np.allclose(x[..., 1], heights - G / 2 * since**2, atol=1e-9)
    assert np.allclose(energy(x, v), G * heights, rtol=1e-10)


@WALLS
@pytest.mark.parametrize("kept", [0.5, 0.8])
def test_a_ball_that_loses_speed_comes_to_rest_when_it_should(walls, kept):
    rest, dt = np.sqrt(2 / G) * (1 + kept) / (1 - kept), 0.005
    times = np.arange(900) * dt
    x, v = track(falling(), [[0.0, 1.0]], times, dt=dt, boundary=walls(kept))
    y, v = np.asarray(x[:, 0, 1]), np.asarray(v[:, 0, 1])
    # Bounces that are shorter than a step are not seen: 1 / (1 - r) of them.
    near = 2 * dt / (1 - kept)
    still = times > rest + near
    assert np.all(np.abs(y[still]) < 1e-14)
    assert np.all(np.abs(v[still]) < 1e-12)
    moving = (times < rest - near) & (times > rest - 2 * near)
    assert np.max(y[moving]) > 0
    assert np.min(y) >= 0


@pytest.mark.parametrize("centre", [-0.5, 0.0, 0.5])
def test_a_trap_cut_by_a_wall_has_an_error_of_second_order(centre):
    trap = Newtonian([lambda t, x, v: -4 * (x - jnp.array([centre, 0.0]))], 1.0)
    seeds = [[x, 0.0] for x in np.linspace(1.5, 2.0, 16)]

    def gain(dt):
        times = np.linspace(0, 20, 2)
        walls = Box([0.0, -9.0], [9.0, 9.0], Reflect())
        x, v = track(trap, seeds, times, dt=dt, boundary=walls)
        stretch = x[..., 0] - centre
        total = 4 * stretch**2 + jnp.sum(v**2, -1)
        return float(jnp.mean(jnp.abs(total[-1] / total[0] - 1)))

    coarse, fine = gain(0.02), gain(0.005)
    # The force behind the wall is not that before it: (omega dt)^2 / 3 for each of some
    # 13 bounces, as the expansion in dt gives where the centre is on the wall.
    assert coarse < 13 * (2 * 0.02) ** 2
    assert fine < coarse / 8


@pytest.mark.parametrize("hollow", [True, False])
def test_energy_is_kept_on_slopes_and_in_a_hollow(hollow):
    normal = slope(0.4)

    def distance(x):
        return 1 - jnp.linalg.norm(x) if hollow else x @ normal

    seeds = np.array([[0.3, 0.2], [0.5, 0.6], [-0.2, 0.1]])
    seeds = seeds if hollow else seeds + normal
    times = np.linspace(0, 4, 9)
    walls = Obstacle(distance, Reflect())
    x, v = track(falling(), seeds, times, dt=0.02, boundary=walls)
    assert np.allclose(energy(x, v), energy(x, v)[0], atol=1e-10)


def test_a_particle_at_rest_on_a_slope_slides_down_without_friction():
    normal, down = slope(0.4), -slope(0.4 - np.pi / 2)
    times = np.linspace(0, 2, 5)
    walls = Obstacle(lambda x: x @ normal, Reflect(0.5))
    x, _ = track(falling(), [[0.0, 0.0]], times, dt=0.02, boundary=walls)
    path = np.asarray(x[:, 0])
    assert np.allclose(path @ down, G / 2 * np.sin(0.4) * times**2, atol=1e-10)
    assert np.allclose(path @ normal, 0, atol=1e-12)


def test_a_particle_that_slides_down_a_ball_leaves_it_where_it_should():
    start, dt, end = 0.3, 0.004, 0.9
    walls = Obstacle(lambda x: jnp.linalg.norm(x) - 1, Reflect(0.5))
    seeds = (1 + 1e-12) * np.array([[np.sin(start), np.cos(start)]])
    x, _ = track(falling(), seeds, [0.0, end], dt=dt, boundary=walls)
    # Sliding, it leaves where the cosine is 2/3 of that at the start, as Galilei knew.
    angle, speed, time, step = start, 0.0, 0.0, 1e-5
    while np.cos(angle) > 2 / 3 * np.cos(start):
        speed += step * G * np.sin(angle)
        angle, time = angle + step * speed, time + step
    left = end - time
    along = speed * np.array([np.cos(angle), -np.sin(angle)])
    exact = np.array([np.sin(angle), np.cos(angle)]) + left * along
    exact[1] -= G / 2 * left**2
    assert left > 0.2
    # Of first order in the step, in which it moves by 0.014 at the end.
    assert np.allclose(x[-1, 0], exact, atol=0.01)


def test_a_particle_swings_in_a_bowl_as_a_pendulum():
    start, dt = 1.0, 0.005
    walls = Obstacle(lambda x: 1 - jnp.linalg.norm(x), Reflect(0.5))
    seeds = (1 - 1e-12) * np.array([[np.sin(start), -np.cos(start)]])
    x, _ = track(falling(), seeds, np.linspace(0, 2, 3), dt=dt, boundary=walls)
    angle, speed, step, exact = start, 0.0, 1e-4, [start]
    for n in range(1, 20001):
        speed -= step * G * np.sin(angle)
        angle += step * speed
        if n % 10000 == 0:
            exact.append(angle)
    x, y = np.asarray(x[:, 0]).T
    assert np.allclose(np.hypot(x, y), 1, atol=1e-6)
    # Of first order in the step, in which it moves by 0.015 at most.
    assert np.allclose(np.arctan2(x, -y), exact, atol=0.005)


def bounces(y, v, kept, g, time):
    """Follows a ball between 0 and 1 from one bounce to the next."""
    while True:
        fall = np.sqrt(v**2 + 2 * g * y)
        rise = v**2 - 2 * g * (1 - y)
        up = v > 0 and rise > 0
        hit = (v - np.sqrt(rise)) / g if up else (v + fall) / g
        if hit >= time:
            return y + v * time - g / 2 * time**2, v - g * time
        y, v, time = (
            (1, -kept[1] * (v - g * hit), time - hit)
            if up
            else (
                0,
                -kept[0] * (v - g * hit),
                time - hit,
            )
        )


@pytest.mark.parametrize("kind", ["box", "body", "both"])
def test_several_bounces_in_one_step_are_right(kind):
    kept, g, speeds = (0.5, 0.8), 1.3, np.array([0.5, 2.5, 4.0, -3.0, 6.0])
    below, above = (
        Obstacle(floor, Reflect(0.5)),
        Obstacle(lambda x: 1 - x[1], Reflect(0.8)),
    )
    walls = {
        "box": Box([-9.0, 0.0], [9.0, 1.0], [Reflect(), (Reflect(0.5), Reflect(0.8))]),
        "body": [below, above],
        "both": [below, Box([-9.0, -1.0], [9.0, 1.0], [Reflect(), Reflect(0.8)])],
    }[kind]
    seeds = np.stack([np.arange(5.0), np.full(5, 0.4)], 1)

    def launch(t, x):
        speed = jnp.asarray(speeds)[jnp.round(x[0]).astype(int)]
        return jnp.stack([0 * speed, speed])

    x, v = track(falling(launch, g), seeds, [0.0, 1.0], steps=1, boundary=walls)
    exact = np.array([bounces(0.4, v, kept, g, 1.0) for v in speeds])
    assert np.allclose(x[-1, :, 1], exact[:, 0], atol=1e-12)
    assert np.allclose(v[-1, :, 1], exact[:, 1], atol=1e-12)


@pytest.mark.parametrize("several", [False, True])
def test_a_ball_ends_at_the_face_above_the_mirror_that_throws_it_there(several):
    # In one step; forces bend its way, and the floor takes a part of its speed.
    kept, g, v = 0.9, 10.0, -10.0
    outlets = Box([-9.0, 0.0], [0.1, 1.0], [Reflect(0.7), (Reflect(kept), Outlet())])
    far = Obstacle(lambda x: x[1] + 50, Absorb())
    walls = [far, outlets] if several else outlets
    launch = lambda t, x: jnp.array([2.0, v])  # noqa: E731

    def ended(height):
        seeds = jnp.stack([0 * height, height])[None]
        motion = falling(launch, g)
        tracks = follow(motion, seeds, [0.0, 0.5], steps=1, boundary=walls)
        return tracks.ended[0], tracks

    def exact(height):
        speed = np.sqrt(v**2 + 2 * g * height)
        down, speed = (v + speed) / g, kept * speed
        return down + (speed - np.sqrt(speed**2 - 2 * g)) / g

    slope, tracks = jax.grad(ended, has_aux=True)(jnp.asarray(0.5))
    time = exact(0.5)
    # Off the side wall at 0.1 on the way.
    x = 0.1 - 0.7 * (2 * time - 0.1)
    assert tracks.status.tolist() == [ParticleStatus.EXITED]
    assert np.allclose(tracks.ended, time, atol=1e-12)
    assert np.allclose(tracks.positions[-1], [[x, 1]], atol=1e-12)
    fall = np.sqrt(v**2 + 2 * g * 0.5)
    speed = -0.7 * 2, np.sqrt((kept * fall) ** 2 - 2 * g)
    assert tracks.velocities is not None
    assert np.allclose(tracks.velocities[-1], [speed], atol=1e-12)
    assert np.isclose(slope, (exact(0.5 + 1e-6) - exact(0.5 - 1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("walls", [box, body, both])
def test_the_velocity_of_a_particle_that_ends_is_that_of_the_hit(walls):
    rule = Absorb()
    boundary = {
        box: Box(*WIDE, rule),
        body: Obstacle(floor, rule),
        both: [Box([-50.0, -1.0], [50.0, 30.0], Reflect()), Obstacle(floor, rule)],
    }[walls]
    launch = lambda t, x: jnp.array([3.0, 2.0])  # noqa: E731
    _, v = track(falling(launch), [[0.2, 0.7]], [0.0, 2.0], steps=2, boundary=boundary)
    exact = [3.0, -np.sqrt(2.0**2 + 2 * G * 0.7)]
    assert np.allclose(v[-1], [exact], atol=1e-12)


@pytest.mark.parametrize("floor_of", [box, body])
def test_a_ball_at_rest_does_not_rise_on_its_way_along_the_floor(floor_of):
    # Thrown upward by what gravity takes back it would rise to 1.2 within the step.
    lid = Obstacle(lambda x: 0.5 - x[1], Absorb())
    tracks = follow(
        falling(lambda t, x: jnp.array([1.0, 0.0])),
        jnp.zeros((1, 2)),
        [0.0, 1.0],
        steps=1,
        boundary=[lid, Box([-50.0, 0.0], [50.0, 30.0], Reflect(0.5))]
        if floor_of is box
        else [lid, body(0.5)],
    )
    assert np.allclose(tracks.positions[-1], [[1, 0]], atol=1e-12)
    assert tracks.alive.all()


def test_time_can_be_turned_around():
    launch = lambda t, x: jnp.array([3.0, 2.0])  # noqa: E731
    for walls in (Box([-1.0, 0.0], [1.0, 9.0], Reflect()), body(1.0)):
        options = {"dt": 0.03, "boundary": walls}
        x, v = track(falling(launch), [[0.2, 0.7]], [0.0, 3.0], **options)
        end = v[-1, 0]
        home = falling(lambda t, x, end=end: end)
        x, v = track(home, x[-1], [3.0, 0.0], **options)
        assert np.allclose(x[-1], [[0.2, 0.7]], atol=1e-9)
        assert np.allclose(v[-1], [[3.0, 2.0]], atol=1e-9)


@ALSO_SLOW
def test_derivatives_through_bounces_are_those_of_finite_differences(walls):
    def outcome(given):
        height, g, kept, speed = given
        seed = jnp.stack([0 * height, height])[None]
        motion = falling(lambda t, x: jnp.stack([speed, 0 * speed]), g)
        x, v = track(motion, seed, [0.0, 2.0], dt=0.05, boundary=walls(kept))
        return jnp.sum(x[-1] + 0.3 * v[-1] ** 2)

    run = jax.jit(jax.value_and_grad(outcome))
    given, eps = jnp.array([1.0, G, 0.9, 0.4]), 1e-6
    slopes = run(given)[1]
    for number in range(4):
        step = eps * jnp.eye(4)[number]
        difference = (run(given + step)[0] - run(given - step)[0]) / (2 * eps)
        assert np.allclose(slopes[number], difference, rtol=1e-6)


@ALSO_SLOW
def test_derivatives_are_finite_and_right_for_a_particle_at_rest(walls):
    def outcome(given):
        speed, g = given
        motion = falling(lambda t, x: jnp.stack([speed, 0 * speed]), g)
        boundary = walls(0.5)
        x, _ = track(motion, [[0.0, 0.0]], [0.0, 1.0], dt=0.1, boundary=boundary)
        return x[-1, 0] @ jnp.array([1.0, 10.0])

    assert np.allclose(jax.grad(outcome)(jnp.array([0.7, G])), [1, 0], atol=1e-12)


@pytest.mark.parametrize("room", [True, False])
def test_an_even_density_of_particles_that_also_diffuse_stays_even(room):
    def distance(x):
        return jnp.min(jnp.minimum(x, 1 - x))

    walls = Obstacle(distance, Reflect()) if room else Box([0.0], [1.0], Reflect())
    seeds = (np.arange(8000) + 0.5)[:, None] / 8000
    launch = Newtonian([], 1.0, lambda t, x: jnp.sign(jnp.sin(1e4 * x)))
    options = {"dt": 0.05, "diffusivity": 0.05, "key": jax.random.key(0)}
    tracks = follow(launch, jnp.asarray(seeds), [0.0, 1.0], boundary=walls, **options)
    shares = np.histogram(tracks.positions[-1], 10, (0, 1))[0] / 800
    # Four and a half deviations of a share; velocities that all led off the walls
    # would take a fifth of those beside them away.
    assert np.allclose(shares, 1, atol=4.5 / np.sqrt(800))
