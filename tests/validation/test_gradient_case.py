"""The gradient of a published-style device, against a frequency-domain adjoint.

The case and its tolerances are those of `data/gradient/README.md`.
"""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import PhysaxWarning
from physax.grid import Grid
from physax.units import NANO, SPEED_OF_LIGHT


DATA = Path(__file__).parent / "data" / "gradient"


@pytest.fixture(scope="module")
def case():
    reference = json.loads((DATA / "reference.json").read_text())
    with np.load(DATA / "mode_converter_40nm.npz", allow_pickle=False) as data:
        arrays = dict(data)
    return reference, arrays


def build(reference, background):
    """Returns the simulation; its time step and frequency make FDTD solve the FDFD."""
    problem = reference["problem"]
    cell = problem["dl_nm"] * NANO
    # Beyond the limit of vacuum, but nothing here has a lower index than 1.5.
    dt = 0.9 * cell / SPEED_OF_LIGHT
    wavenumber = 2 * np.pi / (reference["wavelength_nm"] * NANO)
    frequency = np.arcsin(wavenumber * SPEED_OF_LIGHT * dt / 2) / (np.pi * dt)
    ports = [
        em.Port(
            (port["plane"] * cell, port["centre"] * cell),
            port["width"] * cell,
            "+x" if port["towards"] > 0 else "-x",
            port["mode"],
            port["offset"] * cell,
            compensate=False,
        )
        for port in problem["ports"]
    ]
    pulse = em.GaussianPulse(frequency, frequency / 10)
    return em.Simulation(
        Grid.uniform(problem["shape"], cell),
        em.Medium(jnp.asarray(background, float)),
        em.Boundaries.all(em.CPML(problem["pml_cells"])),
        polarisation="Ez",
        dt=dt,
        steps=3600,
        sources={"in": em.ModeSource(ports[0], pulse)},
        monitors={
            "port 1": em.ModeMonitor(ports[0], frequency),
            "port 2": em.ModeMonitor(ports[1], frequency),
        },
    )


@pytest.mark.slow
@pytest.mark.f32
def test_gradient_of_a_mode_converter_in_single_precision(case):
    check_gradient(*case)


@pytest.mark.slow
def test_gradient_of_a_mode_converter_agrees_with_another_adjoint(case):
    check_gradient(*case)


def check_gradient(reference, arrays):
    # The case has 9 cells per wavelength in the core.
    with pytest.warns(PhysaxWarning, match="at least 10 cells per wavelength"):
        sim = build(reference, arrays["eps_background"])
    problem = reference["problem"]
    (x0, x1, y0, y1), clad = problem["design_box"], problem["eps_clad"]

    def transmission(density):
        eps = clad + (problem["eps_core"] - clad) * density
        region = em.DesignRegion(((x0, x1), (y0, y1)), eps)
        medium = em.Medium(sim.medium.permittivity, regions=region)
        new = eqx.tree_at(lambda s: s.medium, sim, medium)
        monitors = em.simulate(new).monitors
        ratio = monitors["port 2"].outgoing / monitors["port 1"].incoming
        return jnp.abs(ratio[0]) ** 2

    run = jax.jit(jax.value_and_grad(transmission))
    density = jnp.asarray(arrays["density"], float)
    value, gradient = run(density)
    wide = density.dtype == jnp.float64
    expected = arrays["grad_abs_s21_squared"]
    assert abs(value - abs(arrays["S"][1]) ** 2) <= (1e-5 if wide else 1e-4)
    error = np.linalg.norm(gradient - expected) / np.linalg.norm(expected)
    # Measured: 1.6e-5 in float64, 1.7e-5 in float32.
    assert error <= (3e-5 if wide else 1e-3)
    if not wide:
        return
    # A central difference: its own error is of third order, its rounding 1e-12 / h.
    direction = jnp.asarray(np.random.default_rng(2).normal(size=density.shape))
    h = 1e-4
    forward = jax.jit(transmission)
    values = [forward(density + sign * h * direction) for sign in (1, -1)]
    slope = (values[0] - values[1]) / (2 * h)
    assert abs(slope - jnp.sum(gradient * direction)) <= 1e-8 * abs(slope)
