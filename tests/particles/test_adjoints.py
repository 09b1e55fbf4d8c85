"""Derivatives of tracks: exact, whichever way they are taken."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    Box,
    Checkpointed,
    Diffrax,
    Euler,
    FieldAdjoint,
    GriddedField,
    Inlet,
    MaxeyRiley,
    Milstein,
    Outlet,
    Pattern,
    Reflect,
    track,
)
from tests.particles.flows import gridded_gyre, gyre, seeds


pytestmark = pytest.mark.x64

TIMES = [0.0, 1.0, 2.0]


def loss(tracks):
    return jnp.sum(jnp.sin(3 * tracks.positions[1:]))


def assert_taylor(function, point, direction, steps=(1e-2, 5e-3)):
    """The error of the linear model falls with the square of the step."""
    value, pull = jax.vjp(function, point)
    slope = jnp.vdot(pull(jnp.ones_like(value))[0], direction)
    errors = [function(point + h * direction) - value - h * slope for h in steps]
    order = np.log2(abs(errors[0] / errors[1]))
    assert abs(order - 2) < 0.05, (order, errors)
    middle = (
        function(point + 1e-6 * direction) - function(point - 1e-6 * direction)
    ) / 2e-6
    # Central differences: 1e-12 of third derivatives of 1e3, and rounding over 1e-6.
    np.testing.assert_allclose(slope, middle, rtol=1e-7, atol=1e-8)


def test_by_seeds_and_by_a_parameter_of_the_flow():
    direction = np.random.default_rng(0).standard_normal((6, 2))
    at = jnp.asarray(seeds())
    by_seeds = jax.jit(lambda s: loss(track(gyre, s, TIMES, steps=20)))
    assert_taylor(by_seeds, at, jnp.asarray(direction), (2e-3, 1e-3))

    def by_strength(a):
        return loss(track(lambda t, x: a * gyre(t, x), at, TIMES, steps=20))

    assert_taylor(jax.jit(by_strength), jnp.asarray(1.0), jnp.asarray(1.0))


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", [Checkpointed(), FieldAdjoint(points=50)])
def test_by_all_samples_of_a_field(adjoint):
    field = gridded_gyre(nodes=8)
    at = jnp.asarray(seeds())

    @jax.jit
    def by_values(values):
        field_now = eqx.tree_at(lambda f: f.values, field, values)
        return loss(track(field_now, at, TIMES, steps=20, adjoint=adjoint))

    direction = np.random.default_rng(1).standard_normal(field.values.shape)
    # Small enough for no particle to change its cell, where the slope jumps.
    assert_taylor(by_values, field.values, jnp.asarray(direction), (4e-5, 2e-5))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("every", "solver"), [(1, None), (20, Euler())])
def test_the_two_adjoints_agree_with_walls_release_and_records(every, solver):
    field, at = gridded_gyre(nodes=8), jnp.asarray(seeds())
    box = Box([0.5, 0.2], [1.5, 0.8], Reflect())
    inside = jnp.clip(at, jnp.asarray([0.6, 0.3]), jnp.asarray([1.4, 0.7]))
    times = np.linspace(0, 4, 2 if every == 20 else 21)

    def gradient(adjoint):
        def function(values, at, low, release):
            now = eqx.tree_at(lambda f: f.values, field, values)
            wall = eqx.tree_at(lambda b: b.low, box, low)
            tracks = track(
                now,
                at,
                times,
                steps=20,
                solver=solver,
                boundary=wall,
                release=release,
                adjoint=adjoint,
            )
            return loss(tracks)

        release = jnp.linspace(0, 1.03, 6)
        return jax.jit(jax.grad(function, (0, 1, 2, 3)))(
            field.values, inside, box.low, release
        )

    for a, b in zip(
        gradient(Checkpointed()), gradient(FieldAdjoint(points=64)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        assert jnp.any(a != 0)


@pytest.mark.slow
def test_forward_and_reverse_agree():
    at, field = jnp.asarray(seeds()), gridded_gyre(nodes=8)

    def ends(at):
        return track(field, at, TIMES, steps=20).positions[-1]

    direction = jnp.asarray(np.random.default_rng(2).standard_normal(at.shape))
    out, tangent = jax.jvp(ends, (at,), (direction,))
    weights = jnp.cos(jnp.arange(out.size)).reshape(out.shape)
    back = jax.vjp(ends, at)[1](weights)[0]
    np.testing.assert_allclose(
        jnp.vdot(weights, tangent), jnp.vdot(back, direction), rtol=1e-12
    )


@pytest.mark.slow
def test_a_bounce_turns_the_derivative_around_and_an_inlet_ends_it():
    def ends(at, box):
        return track(lambda t, x: x * 0 + 1, at, [0.0, 1.0], boundary=box).positions[-1]

    at = jnp.asarray([[0.3], [0.7]])
    bounce = Box([0.0], [1.0], Reflect())
    np.testing.assert_allclose(
        jax.jacobian(lambda x: jnp.sum(ends(x, bounce), 0))(at)[0, :, 0], [-1, -1]
    )
    pattern = Inlet(Pattern([[0.0]]))
    again = Box([0.0], [1.5], [(pattern, Outlet())])
    slope = jax.jacobian(lambda x: jnp.sum(ends(x, again), 0))(at)[0, :, 0]
    np.testing.assert_allclose(slope, [1, 0])


@pytest.mark.slow
def test_diffusion_is_differentiated_along_its_paths():
    at = jnp.full((50, 1), 0.4)

    @jax.jit
    def spread(strength):
        tracks = track(
            lambda t, x: -x,
            at,
            [0.0, 1.0],
            steps=20,
            solver=Milstein(),
            diffusivity=lambda t, x: strength * (1 + 0.3 * jnp.sin(x)),
            key=jax.random.key(0),
        )
        return jnp.sum(tracks.positions[-1] ** 2)

    assert_taylor(spread, jnp.asarray(0.2), jnp.asarray(1.0))


@pytest.mark.slow
def test_diffrax_is_differentiated_both_ways():
    at = jnp.asarray(seeds())

    def ends(at, adjoint):
        solver = Diffrax(diffrax.Tsit5(), 1e-10, 1e-10, adjoint=adjoint)
        return jnp.sum(jnp.sin(track(gyre, at, TIMES, solver=solver).positions[-1]))

    def by_steps(at):
        return jnp.sum(jnp.sin(track(gyre, at, TIMES, steps=400).positions[-1]))

    exact = jax.grad(by_steps)(at)
    reverse = jax.grad(ends)(at, diffrax.DirectAdjoint())
    np.testing.assert_allclose(reverse, exact, rtol=0, atol=1e-6)
    one = jnp.ones_like(at)
    forward = jax.jvp(lambda at: ends(at, diffrax.ForwardMode()), (at,), (one,))[1]
    np.testing.assert_allclose(forward, jnp.sum(exact), rtol=0, atol=1e-6)


def test_the_field_adjoint_has_second_derivatives():
    nodes = np.linspace(0.0, 3.0, 7)

    def end(rate, adjoint):
        field = GriddedField(rate * nodes[:, None], (nodes,))
        tracks = track(field, [[0.3]], [0.0, 1.0], steps=50, adjoint=adjoint)
        return tracks.positions[-1, 0, 0]

    # dx/dt = k x, which the grid holds exactly: x = 0.3 exp(k t).
    for adjoint in (Checkpointed(), FieldAdjoint()):
        second = jax.jit(jax.grad(jax.grad(lambda rate, a=adjoint: end(rate, a))))
        np.testing.assert_allclose(second(0.8), 0.3 * np.exp(0.8), rtol=1e-7)


def test_what_the_field_adjoint_cannot_do_is_refused():
    at = seeds()
    with pytest.raises(ArgumentError, match=r"`adjoint` must be `Checkpointed\(\)`"):
        track(
            gyre,
            at,
            TIMES,
            diffusivity=0.1,
            key=jax.random.key(0),
            adjoint=FieldAdjoint(),
        )
    with pytest.raises(ArgumentError, match="velocity of their own, that meet walls"):
        track(
            MaxeyRiley(gyre, 0.1),
            at,
            TIMES,
            boundary=Box([0, 0], [2, 1], Reflect()),
            adjoint=FieldAdjoint(),
        )
    with pytest.raises(
        ArgumentError, match="`points` must be an integer of at least 1, but is 0"
    ):
        track(gyre, at, TIMES, adjoint=FieldAdjoint(points=0))
    with pytest.raises(
        ArgumentError, match="`every` must be an integer of at least 1, but is 0"
    ):
        track(gyre, at, TIMES, adjoint=Checkpointed(0))
