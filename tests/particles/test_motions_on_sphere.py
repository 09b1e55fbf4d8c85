"""Which motions are accepted on a sphere."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    EARTH_RADIUS,
    AbstractMotion,
    Carried,
    Entry,
    FieldAdjoint,
    Look,
    Masked,
    MaxeyRiley,
    Newtonian,
    OnSphere,
    Overdamped,
    StokesDrag,
    Sum,
    Variable,
    WithVariables,
    flow_map,
    flow_map_gradient,
    run,
    track,
)


SEEDS = np.array([[0.0, 60.0]])
TIMES = np.array([0.0, 1000.0])


def eastward(t, x):
    return jnp.stack([10.0 + 0 * x[0], 0 * x[0]])


def push(t, x, v):
    return jnp.ones_like(x)


class Swimmer(AbstractMotion):
    """Swims northward, in degrees per second."""

    second_order: ClassVar[bool] = False
    flow: OnSphere

    def enter(self, t, x):
        return Entry(x, self.flow.start(x))

    def rate(self, t, y, memory):
        seen = self.flow.look(t, y, memory)
        return Look(seen.value + jnp.array([0.0, 1e-3]), seen.memory, seen.status)

    def span(self):
        return self.flow.span()


class SphericalSwimmer(Swimmer):
    on_sphere: ClassVar[bool] = True


FLOW = OnSphere(eastward)
PLANE = [
    MaxeyRiley(FLOW, 10.0, relative_velocity=[10.0, 0.0]),
    Newtonian([StokesDrag(FLOW, 1.0)], 1.0),
    Newtonian([push], 1.0, velocity=FLOW),
    Overdamped(FLOW, [push], 1.0),
    Overdamped(Sum([FLOW, FLOW]), [push], 1.0),
    Swimmer(FLOW),
]
# The inner motion is what the message must name.
WRAPPED = [
    WithVariables(
        motion, (Variable(lambda t, x, value: 1.0),), ("age",), motion.second_order
    )
    for motion in PLANE
]


@pytest.mark.parametrize("motion", PLANE + WRAPPED, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("follow", [track, run], ids=["track", "run"])
def test_motions_of_a_plane_are_refused_on_a_sphere(motion, follow):
    inner = motion.motion if isinstance(motion, WithVariables) else motion
    message = (
        "`velocity` on a sphere must be a field.* but is "
        f"{type(inner).__name__}: its equation.* Project the region to a plane"
    )
    with pytest.raises(ArgumentError, match=message):
        follow(motion, SEEDS, TIMES)


@pytest.mark.parametrize("follow", [flow_map, flow_map_gradient])
def test_flow_maps_of_motions_of_a_plane_are_refused_on_a_sphere(follow):
    for motion in (PLANE[3], PLANE[5]):
        with pytest.raises(
            ArgumentError, match=f"but is {type(motion).__name__}: its equation"
        ):
            follow(motion, SEEDS, TIMES)


def test_options_do_not_bypass_the_refusal():
    for options in (
        {"adjoint": FieldAdjoint()},
        {"diffusivity": 1.0, "key": jax.random.key(0)},
        {"variables": {"age": Variable(lambda t, x, value: 1.0)}},
    ):
        with pytest.raises(ArgumentError, match="but is Overdamped: its equation"):
            track(PLANE[3], SEEDS, TIMES, **options)
    with pytest.raises(ArgumentError, match="but is MaxeyRiley: its equation"):
        eqx.filter_jit(track)(PLANE[0], SEEDS, TIMES)


def test_passive_transport_on_a_sphere_is_accepted():
    # cos 60 degrees is 1/2.
    east = 2 * np.degrees(1e4 / EARTH_RADIUS)
    half = Masked(FLOW, lambda t, x: 0.5)
    aged = {"age": Variable(lambda t, x, value: 1.0)}
    for velocity, factor in (
        (FLOW, 1.0),
        (Carried(FLOW), 1.0),
        (Sum([FLOW, half]), 1.5),
    ):
        found = track(velocity, SEEDS, TIMES, steps=2).positions[-1, 0]
        assert np.allclose(found, [factor * east, 60.0], rtol=1e-5)
        found = run(velocity, SEEDS, TIMES, steps=2, progress=False).tracks
        assert np.allclose(found.positions[-1, 0, 0], factor * east, rtol=1e-5)
    noise = {"diffusivity": 1e-9, "key": jax.random.key(0)}
    found = track(FLOW, SEEDS, TIMES, steps=2, variables=aged, **noise)
    # Milstein's steps carry round-off of float32 only, the noise is below 1e-8 degrees.
    assert np.allclose(found.positions[-1, 0], [east, 60.0], rtol=1e-5)
    assert np.allclose(found.variables["age"][-1], 1000.0)


def test_a_motion_that_works_in_degrees_says_so():
    found = track(SphericalSwimmer(FLOW), SEEDS, TIMES, steps=2).positions[-1, 0]
    assert np.allclose(found[1], 61.0, atol=1e-4)


def test_the_same_motions_are_accepted_in_a_plane():
    motion = MaxeyRiley(lambda t, x: 0 * x, 1e12, relative_velocity=[10.0, 0.0])
    found = track(motion, SEEDS, TIMES).positions[-1, 0]
    assert np.allclose(found, [1e4, 60.0], rtol=1e-5)
