"""Functions that call fields on a sphere, which nobody sees from outside."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    EARTH_RADIUS,
    FluxWeighted,
    GriddedField,
    Masked,
    MaxeyRiley,
    OnSphere,
    Sum,
    Variable,
    flow_map_gradient,
    run,
    track,
)


GRID = GriddedField(
    np.stack([np.full((6, 5), 20.0), np.zeros((6, 5))], -1),
    (np.arange(0.0, 360.0, 60.0), np.linspace(-80.0, 80.0, 5)),
    periods=(360.0, None),
)
FLOW = OnSphere(GRID)
LATITUDES = np.linspace(-85.0, 85.0, 69)
STREAM = GriddedField(
    np.tile(-1e6 * np.sin(np.radians(LATITUDES))[:, None], (6, 1, 1)),
    (np.arange(0.0, 360.0, 60.0), LATITUDES),
    periods=(360.0, None),
)
SEEDS = np.array([[100.0, 60.0]])
TIMES = np.array([0.0, 3600.0])
# Degrees in an hour at 20 m/s along the parallel of 60 degrees.
HOUR = np.degrees(20 * 3600 / EARTH_RADIUS / 0.5)


class Twice(eqx.Module):
    field: OnSphere

    def __call__(self, t, x):
        return 2 * self.field(t, x)


def double(t, x):
    return 2 * FLOW(t, x)


@pytest.mark.parametrize(
    "velocity",
    [
        double,
        jax.jit(double),
        Sum((double, lambda t, x: 0 * x)),
        MaxeyRiley(double, 1.0, 1.0),
    ],
)
@pytest.mark.parametrize("follow", [track, run, flow_map_gradient])
def test_a_function_that_hides_the_sphere_is_refused(velocity, follow):
    if follow is flow_map_gradient and isinstance(velocity, MaxeyRiley):
        pytest.skip("has no gradient of a flow")
    # What `jit` has seen before is not called again.
    jax.jit(double)(0.0, jnp.asarray(SEEDS[0]))
    with pytest.raises(ArgumentError, match=r"`velocity` must hold the field on a sph"):
        follow(velocity, SEEDS, TIMES, steps=2)


def test_flux_through_a_face_is_refused_where_metres_are_not_known():
    with pytest.raises(ArgumentError, match="`velocity` must hold the field on a sph"):
        FluxWeighted.of(double, [0.0, 0.0], [10.0, 10.0], face=0, cells=(2,))


@pytest.mark.parametrize(
    "velocity",
    [
        Twice(FLOW),
        Masked(FLOW, lambda t, x: 2.0),
        Sum((FLOW, FLOW)),
        OnSphere(lambda t, x: 2 * FLOW.velocity(t, x)),
    ],
)
def test_what_the_message_offers_is_on_the_sphere(velocity):
    end = track(velocity, SEEDS, TIMES, steps=2).positions[-1, 0]
    assert end[0] - 100 == pytest.approx(2 * HOUR, rel=1e-4)
    # Diffusion of 1e-4 m^2/s spreads by less than 1 m.
    key = jax.random.key(0)
    spread = track(velocity, SEEDS, TIMES, steps=2, diffusivity=1e-4, key=key)
    assert np.abs(spread.positions[-1, 0] - end).max() < 1e-4


@pytest.mark.parametrize("slope", [jax.grad, jax.jacrev, jax.jacfwd])
def test_slopes_of_a_field_may_be_put_on_a_sphere(slope):
    # Solid rotation from its stream function, a gridded field of one component.
    def rotation(t, x):
        across = slope(lambda x: STREAM(t, x)[0])(x)
        metres = jnp.radians(1.0) * EARTH_RADIUS
        return jnp.stack([-across[1], across[0]]) / metres

    end = track(OnSphere(rotation), SEEDS, TIMES, steps=2).positions[-1, 0]
    assert end[1] == pytest.approx(SEEDS[0][1], abs=1e-4)
    # 1e6 m^2/s a radian make cos(60 degrees) of 1e6 / EARTH_RADIUS m/s.
    assert end[0] - 100 == pytest.approx(HOUR / 40 * 1e6 / EARTH_RADIUS, rel=0.1)


def test_rates_of_variables_may_call_fields_on_a_sphere():
    # A map in metres, whose particles sum up the degrees per second of the sphere.
    rate = Variable(lambda t, x, value: FLOW(t, jnp.array([0.0, 60.0]))[0])
    still = track(lambda t, x: 0 * x, SEEDS, TIMES, steps=2, variables={"sum": rate})
    assert still.variables["sum"][-1, 0] == pytest.approx(HOUR, rel=1e-5)


def test_velocities_on_a_sphere_are_not_put_on_it_again():
    wanted = "`velocity` of an `OnSphere` must be in m/s, but is on a sphere already"
    for velocity in (FLOW, Twice(FLOW), Sum((FLOW, FLOW))):
        with pytest.raises(ArgumentError, match=wanted):
            OnSphere(velocity)
    with pytest.raises(ArgumentError, match=wanted):
        track(OnSphere(Sum((jax.jit(double), GRID))), SEEDS, TIMES, steps=2)
