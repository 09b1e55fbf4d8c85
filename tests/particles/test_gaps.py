"""Samples that are missing at some times end particles; at all times they are land."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax.particles import (
    CGridField,
    GriddedField,
    ParticleStatus,
    SlipField,
    fill_land,
    track,
)


X, T = np.arange(5.0), np.arange(4.0)


def samples(kind):
    """A flow along x of 1 m/s: the last column is land, one node lacks two instants."""
    values = np.zeros((4, 5, 5, 2), kind)
    values[..., 0] = 0.1
    values[:, :, 4] = np.nan
    values[1:3, 2, 2] = np.nan
    return values


def gridded(values):
    return GriddedField(fill_land(values, (X, X), leading=1, trailing=1)[0], (X, X), T)


def slipping(values):
    return SlipField(values, (X, X), T)


def faces(values):
    u = values[:, :, :4, 0].copy()
    u[:, :, 3] = np.nan
    return CGridField((u, np.zeros((4, 4, 5), values.dtype)), (X, X), T)


def check(make, kind):
    field = make(samples(kind))
    # The second runs into the node in its gap; the third lies beside the land.
    tracks = track(
        field, np.array([[1.3, 0.5], [1.3, 2.3], [1.3, 3.3]], kind), T, dt=0.5
    )
    assert tracks.status.tolist() == [
        ParticleStatus.ALIVE, ParticleStatus.NOT_FINITE, ParticleStatus.ALIVE
    ]  # fmt: skip
    assert np.all(np.isfinite(tracks.positions[:, [0, 2]]))
    # Instants 0 and 1 are read from time 0 on.
    assert tracks.ended[1] == 0
    assert np.isnan(field(jnp.asarray(1.5, kind), jnp.asarray([1.5, 2.3], kind))[0])


@pytest.mark.parametrize("make", [gridded, slipping, faces])
def test_particles_end_in_gaps(make):
    check(make, np.float32)


@pytest.mark.x64
@pytest.mark.parametrize("make", [gridded, slipping, faces])
def test_particles_end_in_gaps_in_float64(make):
    check(make, np.float64)


def test_land_is_missing_at_all_times():
    filled, land = fill_land(samples(np.float32), (X, X), leading=1, trailing=1)
    assert filled.dtype == np.float32
    dry = np.zeros((5, 5), bool)
    dry[:, 4] = True
    assert land is not None
    assert np.array_equal(land.mask, dry)
    assert np.all(filled[:, :, 4] == 0)
    assert np.isnan(filled[:, 2, 2, 0]).tolist() == [False, True, True, False]
    field = slipping(samples(np.float32))
    assert np.array_equal(field.dry, dry)
    u = np.asarray(faces(samples(np.float32)).components[0])
    assert np.all(u[:, :, 3] == 0)
    assert np.isnan(u[:, 2, 2]).tolist() == [False, True, True, False]


def test_a_run_may_end_at_the_last_instant_before_a_gap():
    edges, times = np.arange(6.0), np.arange(5.0)
    u, v = np.full((5, 6, 5), 0.1), np.full((5, 5, 6), 0.1)
    u[3] = v[3] = np.nan
    field = CGridField((u, v), (edges, edges), times)
    found = track(field, [[2.2, 2.2]], [0.0, 1.0, 2.0], dt=0.5)
    assert int(found.status[0]) == ParticleStatus.ALIVE
    np.testing.assert_allclose(found.positions[-1, 0], 2.4, rtol=1e-6)
    gone = track(field, [[2.2, 2.2]], [0.0, 1.0, 2.5], dt=0.5)
    assert int(gone.status[0]) == ParticleStatus.NOT_FINITE
