"""Times in regions of particles that go round a periodic box."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    Box,
    BoxRegion,
    Periodic,
    Reflect,
    first_passage,
    residence_time,
    track,
    unwrap_periodic,
)


pytestmark = pytest.mark.f32

CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def around(seeds, velocity, rows, end=2.0, faces=None):
    seeds = jnp.atleast_2d(jnp.asarray(seeds))
    ndim = seeds.shape[1]
    box = Box(np.zeros(ndim), np.ones(ndim), faces or [Periodic()] * ndim)
    times = np.linspace(0, end, rows)
    flow = lambda t, x: jnp.asarray(velocity, x.dtype)  # noqa: E731
    return track(flow, seeds, times, boundary=box)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_a_wrap_is_no_way_through_the_box(sign):
    # Once round, from 0.2 before one end: the middle is met once.
    seed = 0.8 if sign > 0 else 0.2
    tracks = around([seed], [0.5 * sign], 9)
    middle = BoxRegion([0.4], [0.6])
    assert np.allclose(residence_time(tracks, middle), 0.2 / 0.5, **CLOSE)
    assert np.allclose(first_passage(tracks, middle), 0.6 / 0.5, **CLOSE)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_region_at_an_end_of_the_box_is_left_where_the_box_is(sign):
    # A half space: beyond the box it goes on, but nobody is there.
    seed = 0.8 if sign > 0 else 0.3
    tracks = around([seed], [0.5 * sign], 9, end=1.0)
    found = residence_time(tracks, lambda x: x[0] - 0.1)
    expected = 0.1 / 0.5
    assert np.allclose(found, expected, **CLOSE)
    came = first_passage(tracks, lambda x: x[0] - 0.1)
    assert np.allclose(came, 0.4, **CLOSE)


@pytest.mark.slow
def test_few_rows_tell_the_same_as_many_across_both_ends_of_two_axes():
    seeds = jax.random.uniform(jax.random.key(0), (50, 2))
    region = BoxRegion([0.1, 0.0], [0.45, 0.3])
    few = around(seeds, [0.7, -0.9], 9)
    many = around(seeds, [0.7, -0.9], 129)
    # Each leg is straight, so the rows do not matter; float32 wraps 256 times.
    assert np.allclose(
        residence_time(few, region), residence_time(many, region), atol=2e-3
    )
    times = np.stack([first_passage(few, region), first_passage(many, region)])
    assert np.allclose(*times, atol=2e-3, equal_nan=True)
    assert np.isfinite(times).any()
    assert float(jnp.max(residence_time(few, region))) > 0.3


def test_periodic_along_one_axis_only():
    tracks = around([[0.8, 0.5]], [0.5, 0.0], 9, faces=[Periodic(), Reflect()])
    assert np.isinf(tracks.wraps[:, 1]).all()
    middle = BoxRegion([0.4, 0.0], [0.6, 1.0])
    assert np.allclose(residence_time(tracks, middle), 0.4, **CLOSE)
    whole = unwrap_periodic(tracks, (1.0, np.inf))
    assert whole.wraps is None
    assert np.allclose(residence_time(whole, middle), 0, **CLOSE)


@pytest.mark.slow
def test_derivatives_go_through_the_end_of_the_box():
    def came(seed):
        return first_passage(around([seed], [0.5], 9), BoxRegion([0.4], [0.6]))[0]

    slope = jax.grad(came)(jnp.asarray(0.8))
    assert np.allclose(slope, -1 / 0.5, **CLOSE)


def test_no_box_notes_no_period():
    assert around([0.1], [0.1], 3, faces=[Reflect()]).wraps is None
