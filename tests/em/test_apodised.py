"""Spectral monitors that look through a Gaussian window in time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from physax.units import FEMTO, MICRO, SPEED_OF_LIGHT


FREQUENCY = SPEED_OF_LIGHT / MICRO
FREQUENCIES = FREQUENCY * np.array([0.95, 1.0, 1.05])
CENTRE, WIDTH = 40 * FEMTO, 8 * FEMTO


def line(monitors, epsilon=2.0, steps=500):
    """A line with a dipole and a reflecting slab, 25 cells per wavelength."""
    grid = Grid.uniform((100,), MICRO / 25)
    inside = jnp.arange(100) >= 60
    return em.Simulation(
        grid,
        em.Medium(jnp.where(inside, epsilon, 1.0)),
        em.Boundaries.all(em.CPML(12)),
        sources={
            "dot": em.Dipole(
                "Ez", (1 * MICRO,), em.GaussianPulse(FREQUENCY, FREQUENCY / 6)
            )
        },
        monitors=monitors,
        steps=steps,
    )


def field(frequencies=FREQUENCIES):
    return em.FieldMonitor(("Ez", "Hy"), (1.5 * MICRO,), (0.2 * MICRO,), frequencies)


def test_window_is_that_of_the_sum_over_a_record():
    seen = em.simulate(
        line(
            {
                "window": em.Apodised(field(), CENTRE, WIDTH),
                "record": em.TimeMonitor(("Ez", "Hy"), (1.5 * MICRO,), (0.2 * MICRO,)),
            }
        )
    ).monitors
    for name in ("Ez", "Hy"):
        t = np.asarray(seen["record"].times[name], float)
        window = np.exp(-(((t - CENTRE) / WIDTH) ** 2) / 2)
        wave = np.exp(2j * np.pi * FREQUENCIES[:, None] * t) * window
        wanted = wave @ np.asarray(seen["record"].values[name], float) * (t[1] - t[0])
        found = np.asarray(seen["window"].values[name])
        assert found.shape == wanted.shape
        assert np.iscomplexobj(found)
        assert np.abs(wanted).max() > 0
        tolerance = 1e-4 if found.dtype == np.complex64 else 1e-9
        assert np.allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.slow
def test_a_window_of_no_end_is_no_window():
    flux = em.FluxMonitor("x", (1.5 * MICRO,), (0.0,), FREQUENCIES)
    seen = em.simulate(
        line({"wide": em.Apodised(flux, 0.0, 1.0), "plain": flux}, steps=1500)
    ).monitors
    # The plain one is decimated, which leaves out what is above the pulse's band.
    assert np.allclose(seen["wide"].flux, seen["plain"].flux, rtol=1e-3)


@pytest.mark.slow
def test_derivatives_by_medium_and_window():
    def power(values, adjoint=None):
        epsilon, centre, width = values
        monitor = em.Apodised(field(), centre * FEMTO, width * FEMTO)
        run = em.simulate(line({"window": monitor}, epsilon), adjoint=adjoint)
        return 1e20 * jnp.sum(jnp.abs(run.monitors["window"].values["Ez"]) ** 2)

    at = jnp.array([2.0, 40.0, 8.0])
    slope = jax.grad(power)(at, em.Checkpointed())
    h = 1e-4
    for number in range(3):
        step = h * jnp.eye(3)[number]
        expected = (power(at + step) - power(at - step)) / (2 * h)
        assert slope[number] == pytest.approx(float(expected), rel=1e-5)
        assert abs(expected) > 0
    taped = jax.grad(lambda epsilon: power((epsilon, CENTRE / FEMTO, WIDTH / FEMTO)))
    assert taped(at[0]) == pytest.approx(float(slope[0]), rel=1e-10)


def end_of(sim):
    return sim.steps * float(sim.dt)


@pytest.mark.parametrize("away", [4, -5, float("inf"), float("nan")])
def test_a_window_that_is_closed_all_the_time_is_refused(away):
    end = end_of(line({}))
    centre = end + away * WIDTH if away > 0 else away * WIDTH
    message = r"`centre` of monitor 'a' must be within 3 widths .* Take more `steps`"
    with pytest.raises(ArgumentError, match=message):
        line({"a": em.Apodised(field(), centre, WIDTH)})


@pytest.mark.parametrize("away", [2, -1])
def test_a_flank_of_a_window_is_warned_of(away):
    end = end_of(line({}))
    centre = end + away * WIDTH if away > 0 else away * WIDTH
    message = r"`centre` of monitor 'a' should lie in the run, from 0 to .* flank"
    with pytest.warns(PhysaxWarning, match=message):
        line({"a": em.Apodised(field(), centre, WIDTH)})
    # Wide ones and those at the ends are whole enough: warnings are errors here.
    line({"a": em.Apodised(field(), 0.9 * end, 3 * end)})


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="`width` must be positive, but is 0"):
        em.Apodised(field(), CENTRE, 0.0)
    with pytest.raises(ArgumentError, match="but is a TimeMonitor"):
        em.Apodised(em.TimeMonitor(("Ez",), (0.0,), (0.0,)), CENTRE, WIDTH)
    with pytest.raises(ArgumentError, match="half the sampling rate"):
        line({"a": em.Apodised(field(1e17), CENTRE, WIDTH)})
    # A wavelength.
    with pytest.raises(ArgumentError, match="billionth of a period in a run, but one"):
        line({"a": em.Apodised(field(1.55e-6), CENTRE, WIDTH)})
    sim = line({"a": em.Apodised(field(), CENTRE, WIDTH)})
    with pytest.raises(ArgumentError, match="needs monitors with frequencies"):
        em.simulate(sim, adjoint=em.FrequencyDomain())
