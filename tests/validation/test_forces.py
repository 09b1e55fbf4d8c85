"""Radiation pressure on cylinders and spheres against Mie's series."""

import numpy as np
import pytest
from scipy.special import hankel1, jv, spherical_jn, spherical_yn

from physax import em
from physax.grid import Grid
from physax.units import ETA_0, FEMTO, SPEED_OF_LIGHT


def cylinder(x, m, polarisation):
    """Returns Q_pr of a cylinder from the amplitudes of its series."""
    n = np.arange(-15, 16)

    def d(f, z):
        return (f(n - 1, z) - f(n + 1, z)) / 2

    u, v = (1, m) if polarisation == "Ez" else (m, 1)
    top = u * jv(n, m * x) * d(jv, x) - v * d(jv, m * x) * jv(n, x)
    low = u * jv(n, m * x) * d(hankel1, x) - v * d(jv, m * x) * hankel1(n, x)
    b = top / low
    # The scattered amplitude is sum_n b_n exp(i n theta): Q_ext - <cos> Q_sca.
    return 2 / x * (np.sum(b.real) - np.sum(np.real(b[1:] * np.conj(b[:-1]))))


def sphere(x, m):
    """Returns Q_pr of a sphere: Bohren and Huffman, 4.5."""
    n = np.arange(1, 15)

    def riccati(z):
        f, df = spherical_jn(n, z), spherical_jn(n, z, True)
        g, dg = spherical_yn(n, z), spherical_yn(n, z, True)
        return z * f, f + z * df, z * (f + 1j * g), f + 1j * g + z * (df + 1j * dg)

    psi, dpsi, xi, dxi = riccati(x)
    inner, dinner, _, _ = riccati(m * x)
    a = (m * inner * dpsi - psi * dinner) / (m * inner * dxi - xi * dinner)
    b = (inner * dpsi - m * psi * dinner) / (inner * dxi - m * xi * dinner)
    pairs = n[:-1] * (n[:-1] + 2) / (n[:-1] + 1)
    forward = np.sum(
        pairs * np.real(a[:-1] * np.conj(a[1:]) + b[:-1] * np.conj(b[1:]))
    ) + np.sum((2 * n + 1) / (n * (n + 1)) * np.real(a * np.conj(b)))
    return 2 / x**2 * np.sum((2 * n + 1) * np.real(a + b)) - 4 / x**2 * forward


RADIUS = 1e-6


def pressure(body, ndim, size, index, cells, inner, beyond, polarisation=None):
    """Returns Q_pr of a cylinder or a sphere, from a box in the total field.

    Args:
        body: The shape.
        ndim: 2 or 3.
        size: Size parameter.
        index: Refractive index.
        cells: Cells per radius.
        inner: Half width of the box in radii.
        beyond: Cells of each absorbing layer.
        polarisation: In 2-D.
    """
    f = size * SPEED_OF_LIGHT / (2 * np.pi * RADIUS)
    pulse = em.GaussianPulse(f, 0.4 * f)
    cell = RADIUS / cells
    wave = inner * cells + 3
    grid = Grid.centred((2 * int(wave + 3 + beyond),) * ndim, cell)
    names = {
        None: ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz"),
        "Ez": ("Ez", "Hx", "Hy"),
        "Hz": ("Hz", "Ex", "Ey"),
    }[polarisation]
    medium = em.rasterise(
        [em.Structure(body, em.Material(index**2))],
        grid,
        components=names,
        averaging="polarised",
    )
    middle = (0.0,) * ndim
    component = "Ez" if polarisation == "Ez" else "Ey"
    sim = em.Simulation(
        grid,
        medium,
        em.Boundaries.all(em.CPML(beyond)),
        sources={
            "wave": em.PlaneWave(
                "+x", component, middle, (2 * wave * cell,) * ndim, pulse
            )
        },
        monitors={"force": em.ForceMonitor(middle, (2 * inner * RADIUS,) * ndim, f)},
        polarisation=polarisation,
        steps=int(100 * cells),
    )
    force = em.simulate(sim, until=em.Decay(1e-7, 100)).monitors["force"].force
    # Half of the peak, times a width of the spectrum: V fs/m.
    spectrum = np.sqrt(2 * np.pi) / (2 * np.pi * 0.4 * f) / 2 / FEMTO
    # The power of a wave on the grid is smaller by a cosine.
    intensity = spectrum**2 / (2 * ETA_0) * np.cos(size / cells / 2)
    shadow = 2 * RADIUS if ndim == 2 else np.pi * RADIUS**2
    aside = [float(force[axis][0]) for axis in "xyz"[1:ndim]]
    # What is left between the samples of the monitor, and at the end.
    assert np.max(np.abs(aside)) < 1e-4 * float(force["x"][0])
    return float(force["x"][0]) * SPEED_OF_LIGHT / intensity / shadow


@pytest.mark.slow
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_pressure_on_a_cylinder_is_that_of_the_series(polarisation):
    want = cylinder(1.0, 2.0, polarisation)
    circle = em.Circle((0.0, 0.0), RADIUS)
    got = pressure(circle, 2, 1.0, 2.0, 12, 1.5, 10, polarisation)
    # The normal E of Hz jumps at the surface.
    assert got == pytest.approx(want, rel={"Ez": 2e-3, "Hz": 1e-2}[polarisation])


@pytest.mark.slow
def test_pressure_on_a_sphere_is_that_of_the_series():
    want = sphere(1.0, 1.5)
    ball = em.Sphere((0.0, 0.0, 0.0), RADIUS)
    got = pressure(ball, 3, 1.0, 1.5, 6, 1.5, 8)
    assert got == pytest.approx(want, rel=5e-3)
