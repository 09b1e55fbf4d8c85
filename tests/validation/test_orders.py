"""Second order: errors fall with the square of the cells."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid, smooth_edges
from physax.units import SPEED_OF_LIGHT
from tests.validation.stepping import advance, courant_steps, slope


# Field errors are dominated by the phase error, w T (k dx)^2 / 24, once the next power,
# some (k dx)^2 / 10 of it, is small: 24 cells per shortest half wavelength and more.
pytestmark = pytest.mark.x64

LENGTH = 1e-6
ORDER = 0.1
"""How far from 2 a slope may lie."""


class Cavity:
    """One mode of a vacuum box with perfectly conducting walls, with its exact fields.

    Electric fields go as cos(w t), magnetic ones as sin(w t); along each axis a
    component is a sine where it vanishes on the walls, else a cosine.
    """

    def __init__(self, modes, polarisation=None):
        self.polarisation = polarisation
        self.k = np.pi / LENGTH * np.array(modes, float)
        self.ndim = len(modes)
        k = np.pad(self.k, (0, 3 - self.ndim))
        size = np.linalg.norm(k)
        self.omega = SPEED_OF_LIGHT * size
        if polarisation == "Hz":
            electric = np.array([k[1], -k[0], 0]) / size
        elif self.ndim < 3:
            electric = np.array([0, 0, 1.0])
        else:
            electric = np.cross(k, [1.0, 2.0, -0.7]) / size
        # curl of (a c s s, b s c s, g s s c) is (k x E) with the same signs.
        magnetic = -np.cross(k, electric) / size
        self.amplitude = dict(zip(("Ex", "Ey", "Ez"), electric, strict=True))
        self.amplitude |= dict(zip(("Hx", "Hy", "Hz"), magnetic, strict=True))

    def fields(self, grid, names, electric_time, magnetic_time):
        out = {}
        for name in names:
            own, is_e = "xyz".index(name[1]), name[0] == "E"
            t = electric_time if is_e else magnetic_time
            value = self.amplitude[name] * (np.cos if is_e else np.sin)(self.omega * t)
            for axis in range(self.ndim):
                half = 0.5 if (axis == own) == is_e else 0.0
                x = np.asarray(grid.coordinates(axis, half)) * self.k[axis]
                row = (np.cos if half else np.sin)(x)
                value = np.multiply.outer(value, row)
            out[name] = jnp.asarray(value)
        return out

    def error(self, grid, steps, dt):
        """Returns the largest field error after `steps` steps."""
        sim = em.Simulation(grid, polarisation=self.polarisation, steps=1, dt=dt)
        names = tuple(advance(sim, {}, 0))
        found = advance(sim, self.fields(grid, names, 0.0, -dt / 2), steps)
        time = steps * dt
        exact = self.fields(grid, names, time, time - dt / 2)
        return max(float(jnp.max(jnp.abs(found[n] - exact[n]))) for n in names)


CAVITIES = {
    "1-D": Cavity((3,)),
    "2-D Ez": Cavity((2, 1), "Ez"),
    "2-D Hz": Cavity((1, 2), "Hz"),
    "3-D": Cavity((1, 2, 1)),
}


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("name", CAVITIES)
def test_cavity_is_of_second_order(name):
    cavity = CAVITIES[name]
    sizes = (24, 48) if cavity.ndim == 3 else (48, 96)
    time = 2.3 * 2 * np.pi / cavity.omega
    errors = []
    for cells in sizes:
        steps, dt = courant_steps(LENGTH, cells, time, 0.8, cavity.ndim)
        grid = Grid.uniform((cells,) * cavity.ndim, LENGTH / cells)
        errors.append(cavity.error(grid, steps, dt))
    order = -slope(sizes, errors)
    print(f"order {order:.4f}, errors {errors}")
    assert order == pytest.approx(2, abs=ORDER)


def wavy(s):
    """A smooth grading: neighbouring cells differ by 1 + O(1 / cells)."""
    return LENGTH * (s + 0.4 * np.sin(2 * np.pi * s) / (2 * np.pi))


def bent(s):
    """A smooth grading that has no symmetry: cells grow threefold along the axis."""
    return LENGTH * (s / 2 + s**2 / 2)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("modes", "polarisation"), [((3,), None), ((2, 1), "Ez"), ((1, 2), "Hz")]
)
def test_smoothly_graded_cavity_is_of_second_order(modes, polarisation):
    cavity, sizes = Cavity(modes, polarisation), (48, 96)
    time = 2.3 * 2 * np.pi / cavity.omega
    errors = []
    for cells in sizes:
        s = np.linspace(0, 1, cells + 1)
        grid = Grid.graded([bent(s), wavy(s)][: len(modes)])
        # The narrowest cell is about half the mean one, or 0.6 of it.
        steps, dt = courant_steps(LENGTH, cells, time, 0.45, len(modes))
        errors.append(cavity.error(grid, steps, dt))
    order = -slope(sizes, errors)
    print(f"order {order:.4f}, errors {errors}")
    assert order == pytest.approx(2, abs=ORDER)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_smooth_edges_keep_second_order(polarisation):
    # As its docstring asks: half the widths, and the square root of the ratio.
    cavity, sizes = Cavity((2, 2), polarisation), (1, 2)
    time = 2.3 * 2 * np.pi / cavity.omega
    errors = []
    for size in sizes:
        edges = smooth_edges(
            0.0,
            LENGTH,
            coarse=LENGTH / 32 / size,
            fine=LENGTH / 80 / size,
            region=(0.4 * LENGTH, 0.6 * LENGTH),
            ratio=1.15 ** (1 / size),
        )
        steps, dt = courant_steps(LENGTH, 80 * size, time, 0.9, 2)
        errors.append(cavity.error(Grid.graded([edges, edges]), steps, dt))
    order = -slope(sizes, errors)
    print(f"order {order:.4f}, errors {errors}")
    assert order == pytest.approx(2, abs=ORDER)


INDEX, THICKNESS, FREQUENCY = 3.0, 0.35e-6, SPEED_OF_LIGHT / 1e-6


def slab_transmission(cells):
    """Returns the power through a slab with its faces on nodes, `cells` a micron."""
    shape, width = (2 * cells,), 1e-6 / cells
    x = np.arange(2 * cells) * width
    left, right = 0.8e-6, 0.8e-6 + THICKNESS
    # A node on a face gets the mean of both sides.
    inside = np.clip((x - left) / width + 0.5, 0, 1)
    inside = inside * np.clip((right - x) / width + 0.5, 0, 1)
    wave = em.PlaneWave(
        "+x", "Ez", (1e-6,), (1e-6,), em.GaussianPulse(FREQUENCY, FREQUENCY / 4)
    )
    dt = 0.9 * width / SPEED_OF_LIGHT

    def flux(epsilon):
        sim = em.Simulation(
            Grid.uniform(shape, width),
            em.Medium(epsilon),
            em.Boundaries.all(em.CPML(cells // 4, reflection=1e-8, alpha_max=0.0)),
            sources={"wave": wave},
            monitors={"flux": em.FluxMonitor("x", (1.3e-6,), (0.0,), FREQUENCY)},
            steps=int(120e-15 / dt),
            dt=dt,
        )
        return em.simulate(sim).monitors["flux"].flux[0]

    both = jnp.asarray(np.stack([np.ones(shape), 1 + (INDEX**2 - 1) * inside]))
    empty, filled = jax.vmap(flux)(both)
    return float(filled / empty)


@pytest.mark.slow
def test_slab_transmission_is_of_second_order():
    # Airy's formula: T = 1 / (1 + F sin^2 d), F = (n - 1/n)^2 / 4.
    phase = 2 * np.pi * INDEX * THICKNESS / 1e-6
    exact = 1 / (1 + (INDEX - 1 / INDEX) ** 2 / 4 * np.sin(phase) ** 2)
    sizes = (60, 120)
    errors = [abs(slab_transmission(cells) - exact) for cells in sizes]
    order = -slope(sizes, errors)
    print(f"order {order:.4f}, errors {errors}")
    assert order == pytest.approx(2, abs=ORDER)
