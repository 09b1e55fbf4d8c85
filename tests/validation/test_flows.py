"""The open cases of flows: double gyre, ABC and closed forms."""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipk

from physax.particles import RK4, flow_map, ftle, track


CASES = json.loads((Path(__file__).parent / "data" / "flows.json").read_text())
ABC = np.sqrt([3.0, 2.0, 1.0])


def double_gyre(t, x):
    a, eps, omega = 0.1, 0.25, 2 * np.pi / 10
    bend = eps * jnp.sin(omega * t)
    f = bend * x[0] ** 2 + (1 - 2 * bend) * x[0]
    slope = 2 * bend * x[0] + 1 - 2 * bend
    return jnp.stack(
        [
            -np.pi * a * jnp.sin(np.pi * f) * jnp.cos(np.pi * x[1]),
            np.pi * a * jnp.cos(np.pi * f) * jnp.sin(np.pi * x[1]) * slope,
        ]
    )


def abc(t, x):
    del t
    (a, b, c), (x, y, z) = ABC, x
    return jnp.stack(
        [
            a * jnp.sin(z) + c * jnp.cos(y),
            b * jnp.sin(x) + a * jnp.cos(z),
            c * jnp.sin(y) + b * jnp.cos(x),
        ]
    )


def cellular(t, x):
    del t
    return jnp.stack([-jnp.sin(x[0]) * jnp.cos(x[1]), jnp.cos(x[0]) * jnp.sin(x[1])])


class Linear(eqx.Module):
    matrix: jax.Array

    def __call__(self, t, x):
        del t
        return self.matrix @ x


def rows_of_double_gyre():
    """Seeds, and for the times 5 and 15 the end points and exponents."""
    rows = CASES["double_gyre"]["rows"]
    both = [[r for r in rows if r["T"] == T] for T in (5.0, 15.0)]
    seeds = [np.array([(r["x0"], r["y0"]) for r in part]) for part in both]
    assert np.array_equal(seeds[0], seeds[1])
    ends = [np.array([(r["x"], r["y"]) for r in part]) for part in both]
    return seeds[0], ends, [np.array([r["ftle"] for r in part]) for part in both]


def errors_of_double_gyre(dt):
    seeds, ends, exponents = rows_of_double_gyre()
    found = flow_map(double_gyre, seeds, np.array([0.0, 5.0, 15.0]), dt=dt)
    place = max(np.abs(found.positions[1 + i] - ends[i]).max() for i in (0, 1))
    stretch = max(
        np.abs(ftle(found.gradient[1 + i], T) - exponents[i]).max()
        for i, T in enumerate((5.0, 15.0))
    )
    return place, stretch, np.abs(jnp.linalg.det(found.gradient) - 1).max()


def test_double_gyre_ends_where_two_integrators_end():
    place, stretch, volume = errors_of_double_gyre(0.005)
    assert place < 1e-8
    assert stretch < 1e-6
    assert volume < 1e-9


@pytest.mark.f32
def test_double_gyre_in_single_precision():
    place, stretch, volume = errors_of_double_gyre(0.05)
    assert place < 2e-4
    assert stretch < 2e-4
    assert volume < 2e-3


def test_double_gyre_to_all_digits():
    rows = CASES["double_gyre"]["digits_25"]
    seeds = np.array([(r["x0"], r["y0"]) for r in rows])
    ends = np.array([(float(r["x"]), float(r["y"])) for r in rows])
    tracks = track(double_gyre, seeds, np.array([0.0, 15.0]), dt=0.0025)
    assert np.abs(tracks.positions[-1] - ends).max() < 1e-10


def test_abc_flow():
    rows = CASES["abc"]["rows"]
    seeds = np.array([r["p0"] for r in rows if r["T"] == 1.0])
    found = flow_map(abc, seeds, np.array([0.0, 1.0, 5.0]), dt=0.0025)
    for row, time in ((1, 1.0), (2, 5.0)):
        ends = np.array([r["p"] for r in rows if r["T"] == time])
        assert len(ends) == 3
        assert np.abs(found.positions[row] - ends).max() < 1e-8
    assert np.abs(jnp.linalg.det(found.gradient) - 1).max() < 1e-9


def test_flows_of_closed_form():
    seeds, times = np.array([[0.3, 0.4], [-1.2, 0.7]]), np.array([0.0, 1.0, 3.0])

    for name, matrix in (
        ("rotation", [[0.0, -2.0], [2.0, 0.0]]),
        ("saddle", [[1.0, 0.0], [0.0, -1.0]]),
        ("shear", [[0.0, 1.0], [0.0, 0.0]]),
    ):
        flow = Linear(jnp.array(matrix))
        found = flow_map(flow, seeds, times, dt=0.005)
        for row, time in enumerate(times[1:], start=1):
            exponent = float(ftle(found.gradient[row, 0], time))
            if name == "rotation":
                c, s = np.cos(2 * time), np.sin(2 * time)
                exact, rate = np.array([[c, -s], [s, c]]), 0.0
            elif name == "saddle":
                exact, rate = np.diag(np.exp([time, -time])), 1.0
            else:
                exact = np.array([[1, time], [0, 1]])
                rate = np.log((time**2 + 2 + time * np.sqrt(time**2 + 4)) / 2)
                rate /= 2 * time
            assert np.abs(found.gradient[row] - exact).max() < 1e-8
            assert np.abs(found.positions[row] - seeds @ exact.T).max() < 1e-8
            assert abs(exponent - rate) < 1e-8


def test_cellular_flow_returns_after_its_period():
    rows = CASES["closed_form"]["cellular"]["rows"]
    seeds = np.array([(r["x0"], r["y0"]) for r in rows])
    periods = np.array([r["period"] for r in rows])
    psi = np.array([r["psi0"] for r in rows])
    assert np.allclose(periods, 4 * ellipk(1 - psi**2), rtol=1e-14, atol=0)
    # Each particle has its own time, in units of its period.
    place = seeds + 0.0

    def scaled(t, x):
        return x[2] * jnp.append(cellular(t, x[:2]), 0.0)

    wide = np.concatenate([place, periods[:, None]], 1)
    tracks = track(scaled, wide, np.array([0.0, 0.5, 1.0]), steps=1000, solver=RK4())
    ends = np.asarray(tracks.positions)
    assert np.abs(ends[-1, :, :2] - seeds).max() < 1e-8
    assert np.allclose(np.sin(ends[..., 0]) * np.sin(ends[..., 1]), psi, atol=1e-9)
