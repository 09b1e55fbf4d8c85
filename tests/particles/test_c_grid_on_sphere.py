"""Whether flows on C grids over longitude and latitude conserve volume."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.grid import Clamp
from physax.particles import (
    EARTH_RADIUS,
    CGridField,
    Masked,
    OnSphere,
    Sum,
    track,
)


EAST = np.linspace(0.0, 40.0, 11)
NORTH = np.linspace(40.0, 80.0, 11)


def stream(longitude, latitude):
    """In m^2/s, 0 on the shore."""
    gyre = np.sin(np.pi * longitude / 40) * np.sin(np.pi * (latitude - 40) / 40)
    eddies = np.sin(np.radians(4 * latitude + 5 * longitude))
    return 2e6 * gyre * (1 + 0.5 * eddies)


def closed_basin(**options):
    """Returns a C grid of which no cell gains, and its stream function at corners."""
    corners = stream(*np.meshgrid(EAST, NORTH, indexing="ij"))
    metres = EARTH_RADIUS * np.radians(4.0)
    u = -np.diff(corners, axis=1) / metres
    v = np.diff(corners, axis=0) / (metres * np.cos(np.radians(NORTH)))
    return CGridField((u, v), (EAST, NORTH), **options), corners


def bilinear(corners, places):
    at = (places - [EAST[0], NORTH[0]]) / 4.0
    i, j = np.clip(np.floor(at).astype(int), 0, 9).T
    a, b = (at - np.stack([i, j], -1)).T
    south = (1 - a) * corners[i, j] + a * corners[i + 1, j]
    north = (1 - a) * corners[i, j + 1] + a * corners[i + 1, j + 1]
    return (1 - b) * south + b * north


def test_particles_stay_on_the_stream_lines_of_a_closed_basin():
    # Linear fluxes are the derivatives of the bilinear stream function, which stays the
    # same along a track, up to the error of the steps.
    grid, corners = closed_basin()
    seeds = np.array([[20.0, 55.0], [30.0, 65.0], [10.0, 72.0], [8.0, 50.0]])
    times = np.linspace(0.0, 86400.0 * 200, 6)
    tracks = track(OnSphere(grid), seeds, times, dt=3600.0)
    at = [bilinear(corners, np.asarray(row)) for row in tracks.positions]
    assert np.abs(np.array(at) / at[0] - 1).max() < 0.015


def closed_cells(east, north, heights):
    """Returns velocities on faces around the globe, of which no cell gains."""
    rng = np.random.default_rng(3)
    shape = east.size - 1, north.size - 1, heights.size - 1
    u = rng.normal(size=shape)
    v = rng.normal(size=(shape[0], shape[1] + 1, shape[2]))
    phi, width = np.radians(north), np.radians(np.diff(east))[:, None, None]
    outward = np.diff(phi)[:, None] * (np.roll(u, -1, 0) - u)
    outward += width * np.diff(v * np.cos(phi)[:, None], axis=1)
    area = EARTH_RADIUS * width * np.diff(np.sin(phi))[:, None]
    rise = np.cumsum(-outward / area * np.diff(heights), axis=2)
    return u, v, np.concatenate([np.zeros((*shape[:2], 1)), rise], axis=2)


def slopes(flow, x):
    """Returns the divergence and the part of it along z."""
    slope = jnp.diagonal(jax.jacfwd(lambda x: flow(0.0, x))(x))
    narrows = jnp.tan(jnp.radians(x[1])) * jnp.radians(flow(0.0, x)[1])
    return jnp.sum(slope) - narrows, slope[2]


@pytest.mark.parametrize("north", [(40, 52, 60, 75, 90), (50, 60, 70, 80, 90)])
@pytest.mark.parametrize("holder", ["alone", "sum", "masked", "in time"])
def test_no_volume_appears_within_a_cell(north, holder):
    # Gauss' theorem: what comes in through the faces of a cell goes out through them,
    # and no place in the cell is favoured. To the rounding of differences.
    east, heights = np.linspace(0.0, 360.0, 9), np.array([0.0, 100.0, 250.0])
    parts, times = closed_cells(east, np.array(north, float), heights), None
    if holder == "in time":
        parts = [np.stack([part, 3 * part]) for part in parts]
        times = np.array([0.0, 10.0])
    axes, periods = (east[:-1], np.array(north, float), heights), (360.0, None, None)
    grid = CGridField(parts, axes, times, periods=periods)
    made = {
        "sum": lambda: Sum((grid, lambda t, x: jnp.zeros(3))),
        "masked": lambda: Masked(grid, lambda t, x: 2.0),
    }
    flow = OnSphere(made.get(holder, lambda: grid)())
    corners = [-180, north[0], 0], [180, 89.9, 250]
    places = np.random.default_rng(4).uniform(*corners, (40, 3))
    gain, rising = jax.vmap(lambda x: slopes(flow, x))(jnp.asarray(places))
    eps = jnp.finfo(gain.dtype).eps
    assert np.abs(gain).max() < 200 * eps * np.abs(rising).max()


def test_on_a_face_the_velocity_is_its_sample():
    grid, _ = closed_basin(outside=Clamp())
    field = OnSphere(grid).velocity
    for j, latitude in ((3, NORTH[3]), (0, 35.0), (10, 85.0)):
        seen = field(0.0, jnp.array([18.0, latitude]))
        assert seen[1] == pytest.approx(float(grid.components[1][4, j]), abs=1e-6)


def test_at_a_pole_velocity_and_derivative_are_finite():
    # No flux through a face without length: between it and the next one at latitude
    # phi_0, v = v_0 cos(phi_0) (90 - phi) / (90 - phi_0) / cos(phi).
    grid = CGridField(
        (np.ones((4, 2)), np.array([[1.0, 3.0, 7.0]] * 4)),
        (np.arange(0.0, 360.0, 90.0), np.array([80.0, 85.0, 90.0])),
        periods=(360.0, None),
    )
    field = OnSphere(grid).velocity
    near = field(0.0, jnp.array([10.0, 89.0]))[1]
    wanted = 3 * np.cos(np.radians(85)) / 5 / np.sin(np.radians(1))
    assert near == pytest.approx(wanted, rel=1e-4)
    for latitude in (89.9999, 90.0):
        x = jnp.array([10.0, latitude])
        assert np.isfinite(field(0.0, x)).all()
        assert np.isfinite(jax.jacrev(lambda x: field(0.0, x))(x)).all()


@pytest.mark.x64
def test_derivatives_by_samples_are_those_of_differences():
    u, v = closed_basin()[0].components
    seeds, times = np.array([[20.0, 55.0], [30.0, 65.0]]), np.array([0.0, 86400.0])

    def end(factor):
        made = OnSphere(CGridField((u, factor * v), (EAST, NORTH)))
        return jnp.sum(track(made, seeds, times, dt=3600.0).positions[-1])

    difference = (end(1 + 1e-5) - end(1 - 1e-5)) / 2e-5
    assert jax.grad(end)(1.0) == pytest.approx(float(difference), rel=1e-7)
    _, forward = jax.jvp(end, (1.0,), (1.0,))
    assert forward == pytest.approx(float(difference), rel=1e-7)


def test_cells_that_reach_over_a_pole_end_there():
    edges = np.array([80.0, 89.0, 91.0])
    velocity = OnSphere(
        CGridField(
            (np.zeros((4, 2)), np.zeros((3, 3))), (np.arange(0.0, 40.0, 10.0), edges)
        )
    )
    (cells,) = (velocity.velocity.parallels.cells,)
    wide = np.radians(89.5)
    assert float(cells[1]) == pytest.approx(np.cos(wide), rel=1e-3)
    assert np.all(np.asarray(velocity.velocity.parallels.faces) > -1e-6)
