"""Scattering of a plane wave by a circular cylinder, as tests and docs run it."""

import functools

import numpy as np

from physax import em
from physax.grid import Grid
from physax.units import EPSILON_0, MICRO, SPEED_OF_LIGHT


RADIUS = 1 * MICRO
INNER, BOX, OUTER, HALF = 1.2, 3.2, 3.4, 4.3  # half widths in radii
SIZES = (0.5, 1.0, 1.0995574287564276, 2.0, 3.0, 5.0)
SIDES = {"left": ("x", -1), "right": ("x", 1), "low": ("y", -1), "high": ("y", 1)}
COMPONENTS = {"Ez": ("Ez", "Hx", "Hy"), "Hz": ("Hz", "Ex", "Ey")}


def frequency(size):
    """Returns the frequency at which the size parameter `2 pi a / lambda` is `size`."""
    return size * SPEED_OF_LIGHT / (2 * np.pi * RADIUS)


# From a fifth of the spectrum's peak at the lowest to a twentieth at the highest size.
PULSE = em.Ricker(frequency(2.0))


def box_monitors(name, half, frequencies):
    """Returns flux monitors on the four sides of a square."""
    out = {}
    for side, (axis, sign) in SIDES.items():
        centre, size = [0.0, 0.0], [2 * half * RADIUS] * 2
        centre["xy".index(axis)], size["xy".index(axis)] = sign * half * RADIUS, 0.0
        monitor = em.FluxMonitor(axis, tuple(centre), tuple(size), frequencies)
        out[f"{name} {side}"] = monitor
    return out


def _metal(polarisation, grid):
    rod = em.Structure(em.Circle((0.0, 0.0), RADIUS), em.PEC())
    return em.rasterise([rod], grid, components=COMPONENTS[polarisation])


def _glass(polarisation, index, grid):
    epsilon = complex(index) ** 2
    sigma = epsilon.imag * 2 * np.pi * PULSE.frequency * EPSILON_0
    rod = em.Structure(
        em.Circle((0.0, 0.0), RADIUS), em.Material(epsilon.real, 1.0, 1.0)
    )
    names = COMPONENTS[polarisation]
    # Painted with a conductivity of 1 S/m, then scaled: also where there is none the
    # arrays exist, so that all runs share a program.
    medium = em.rasterise([rod], grid, em.Material(1.0), names)
    if epsilon.real == 1:
        ones = {k: np.ones(grid.shape) for k in medium.conductivity}
    else:
        ones = medium.permittivity
    return em.Medium(
        {k: np.broadcast_to(v, grid.shape) + 0.0 for k, v in ones.items()},
        conductivity={k: sigma * v for k, v in medium.conductivity.items()},
    )


def run(polarisation, index, cells=20, steps=6000):
    """Returns the monitors of a run, one program for every index.

    Args:
        polarisation: `"Ez"` or `"Hz"`.
        index: Complex refractive index of the cylinder at the frequency of the pulse; 1
            for none, infinity for perfect metal.
        cells: Cells per radius.
        steps: Time steps at 20 cells per radius.
    """
    grid = Grid.centred((int(2 * HALF * cells),) * 2, RADIUS / cells)
    metal = np.isinf(index)
    medium = _metal(polarisation, grid) if metal else _glass(polarisation, index, grid)
    f = frequency(np.array(SIZES))
    ends = (0.0, 0.0), (2 * BOX * RADIUS,) * 2
    component = "Ez" if polarisation == "Ez" else "Ey"
    monitors = box_monitors("scattered", OUTER, f) | box_monitors("total", INNER, f)
    if polarisation == "Ez":
        reach = (6.01 * RADIUS, 0.0)
        monitors["along"] = em.FieldMonitor(("Ez",), (0.0, 0.0), reach, f)
        monitors["across"] = em.FieldMonitor(("Ez",), (0.0, 0.0), reach[::-1], f)
    sim = em.Simulation(
        grid,
        medium,
        em.Boundaries.all(em.CPML(max(8, cells * 3 // 5))),
        sources={"wave": em.PlaneWave("+x", component, *ends, PULSE)},
        monitors=monitors,
        polarisation=polarisation,
        dt=None if metal else 0.7 * RADIUS / cells / SPEED_OF_LIGHT,
        steps=steps * cells // 20,
    )
    result = em.simulate(sim, until=em.Decay(1e-9, 500))
    return result.monitors, float(result.residual)


def net(monitors, name):
    """Returns the power that leaves a square, at each frequency."""
    return sum(
        sign * np.asarray(monitors[f"{name} {side}"].flux)
        for side, (_, sign) in SIDES.items()
    )


@functools.cache
def empty(polarisation, cells=20):
    """Returns the monitors of a run without cylinder."""
    return run(polarisation, 1.0, cells)[0]


def efficiencies(polarisation, index, cells=20, steps=6000):
    """Returns the efficiencies of scattering and extinction, and the energy left."""
    found, residual = run(polarisation, index, cells, steps)
    incident = np.asarray(empty(polarisation, cells)["total left"].flux)
    per_radius = incident / (2 * INNER)  # power through one radius of the front
    scattered = net(found, "scattered") / (2 * per_radius)
    absorbed = -net(found, "total") / (2 * per_radius)
    return scattered, scattered + absorbed, residual


@functools.cache
def _passed(polarisation, index, size, cells, steps, centre):
    """Returns what squares around a cylinder record, of one frequency."""
    grid = Grid.centred((int(9 * cells),) * 2, RADIUS / cells)
    middle = tuple(RADIUS / cells * x for x in centre)
    f = frequency(size)
    wave = em.PlaneWave(
        "+x",
        "Ez" if polarisation == "Ez" else "Ey",
        (0.0, 0.0),
        (6 * RADIUS,) * 2,
        em.GaussianPulse(f, 0.1 * f),
    )
    rod = em.Structure(em.Circle(middle, RADIUS), em.Material(index**2))
    medium = em.rasterise(
        [rod],
        grid,
        components=COMPONENTS[polarisation],
        averaging="volume" if polarisation == "Ez" else "polarised",
    )
    sim = em.Simulation(
        grid,
        medium,
        em.Boundaries.all(em.CPML(cells * 3 // 5)),
        sources={"wave": wave},
        monitors=box_monitors("scattered", 3.5, f) | box_monitors("total", 1.5, f),
        polarisation=polarisation,
        courant=0.9,
        steps=steps * cells // 20,
    )
    sim = em.compensate_dispersion(sim, f)
    return em.simulate(sim, until=em.Decay(1e-9, 500)).monitors


def compensated(polarisation, index, size, cells=20, steps=12000, centre=(0.0, 0.0)):
    """Returns the efficiency of scattering by glass at one size.

    The dispersion of the cells is compensated at that size; interfaces are averaged by
    what is continuous across them.

    Args:
        polarisation: `"Ez"` or `"Hz"`.
        index: Refractive index of the cylinder.
        size: Size parameter.
        cells: Cells per radius.
        steps: Time steps at 20 cells per radius.
        centre: Centre of the cylinder in cells from the middle of the grid.
    """
    empty_square = _passed(polarisation, 1.0, size, cells, steps, (0.0, 0.0))
    incident = float(empty_square["total left"].flux[0]) / 3
    found = _passed(polarisation, index, size, cells, steps, centre)
    return float(net(found, "scattered")[0]) / (2 * incident)
