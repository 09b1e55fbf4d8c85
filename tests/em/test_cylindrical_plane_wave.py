"""Plane waves along the axis of cylindrical coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


CELL = 50 * NANO
CARRIER = SPEED_OF_LIGHT / (1 * MICRO)
PULSE = em.GaussianPulse(CARRIER, CARRIER / 4)
EVERYWHERE = float("inf")
RADIUS, LENGTH = 14 * CELL, 20 * CELL
FACES = em.Boundaries(r=em.CPML(8), z=em.CPML(8))


def along_axis(direction="+z", medium=None, m=1, origin=0.0, grid=None, **options):
    """A wave of 2 V/m in a cylinder about the origin."""
    default = Grid.uniform((30, 50), CELL, origin=(origin, -25 * CELL))
    size = options.pop("size", (2 * RADIUS, LENGTH))
    keys = ("monitors", "steps", "boundaries")
    others = {key: options.pop(key) for key in keys if key in options}
    wave = em.PlaneWave(
        direction,
        options.pop("component", "Er"),
        options.pop("centre", (0.0, 0.0)),
        size,
        PULSE,
        2.0,
        **options,
    )
    return em.Simulation(
        default if grid is None else grid,
        medium,
        **{"boundaries": FACES, "steps": 3, **others},
        cylindrical=em.Cylindrical(m),
        sources={"wave": wave},
    )


def recorded(sim_options):
    """Returns each component inside the box and outside of it, over time."""
    names = em.Cylindrical.components
    whole = (0.0, 0.0), (EVERYWHERE,) * 2
    monitors = {name: em.TimeMonitor((name,), *whole) for name in names}
    found = em.simulate(along_axis(monitors=monitors, **sim_options)).monitors
    inside, outside = {}, {}
    for name in names:
        values = np.abs(np.asarray(found[name].values[name]))
        r, z = map(np.asarray, found[name].coordinates[name])
        box = np.logical_and.outer(r < 1.001 * RADIUS, abs(z) < 0.501 * LENGTH)
        inside[name], outside[name] = values[:, box].max(), values[:, ~box].max()
    return inside, outside


def graded():
    r = np.concatenate([np.arange(12), 12 + np.arange(37) / 2]) * CELL
    z = np.concatenate([np.arange(-25, 0), np.arange(0, 25.5, 0.5)]) * CELL
    return Grid.graded([r, z])


GLASS = {"permittivity": 1.4, "poles": (em.Lorentz(0.9, 2.4 * CARRIER),)}
FULL = em.Dispersion(((0, 30), (0, 50)), GLASS["poles"])
CASES = {
    "up": {},
    "down": {"direction": "-z"},
    "graded": {"grid": graded()},
    "glass": {"medium": em.Medium(1.4, dispersions=(FULL,)), **GLASS},
}


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
@pytest.mark.parametrize("case", list(CASES))
def test_an_empty_box_holds_the_wave_and_leaks_nothing(case):
    inside, outside = recorded({"steps": 350, **CASES[case]})
    tiny = 1e-12 if jnp.result_type(float) == jnp.float64 else 3e-6
    for name in ("Er", "Ep"):
        # 5 percent are lost between samples of time at the peak.
        assert inside[name] == pytest.approx(2, rel=0.06)
    for name in ("Ez", "Hz"):
        assert inside[name] <= tiny
    assert max(outside.values()) <= tiny


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 0}, r"`cylindrical` must be `Cylindrical\(1\)` .* angular number 1"),
        ({"centre": (CELL, 0.0)}, "must be 0 and finite along r"),
        ({"size": (EVERYWHERE, LENGTH)}, "must be 0 and finite along r"),
        ({"exit": False}, "`exit` of source 'wave' must be True where .* has sides"),
        ({"component": "Ex"}, r"among the axes \('r', 'z'\) and the components"),
        ({"direction": "+y", "component": "Ez"}, r"among the axes \('r', 'z'\)"),
        ({"size": (60 * CELL, LENGTH)}, "must end inside the grid along r, but"),
        ({"permittivity": 2.0}, "`permittivity` .* must be 2, .* but is 1"),
    ],
)
def test_what_is_no_plane_wave_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        along_axis(**options)


def test_the_medium_is_the_same_along_r_and_around():
    same = {"Er": 1.0, "Ep": 1.0, "Ez": 3.0}
    along_axis(medium=em.Medium(same))
    with pytest.raises(ArgumentError, match="`permittivity` .* but is 1.2"):
        along_axis(medium=em.Medium({**same, "Ep": 1.2}))
    mu = {"Hr": 1.2, "Hp": 1.0, "Hz": 1.0}
    with pytest.raises(ArgumentError, match="`permeability` .* but is 1.2"):
        along_axis(medium=em.Medium(permeability=mu))


@pytest.mark.parametrize("direction", ["r", "+r", "+x"])
def test_it_travels_along_z(direction):
    with pytest.raises(
        ArgumentError, match=r"`direction` must be one of \['\+z', '-z'"
    ):
        em.PlaneWave(direction, "Er", (0.0, 0.0), (CELL, CELL), PULSE)


@pytest.mark.x64
def test_gradient_by_a_region_in_its_box():
    place = (2 * CELL, 4 * CELL)
    monitors = {"spot": em.FieldMonitor(("Er",), place, (0.0, 0.0), CARRIER)}

    def found(epsilon):
        region = em.DesignRegion(((0, 4), (22, 26)), epsilon)
        sim = along_axis(medium=em.Medium(regions=region), monitors=monitors, steps=400)
        value = em.simulate(sim).monitors["spot"].values["Er"]
        return jnp.sum(jnp.abs(value) ** 2) * 1e28

    start = 2 + jnp.arange(16.0).reshape(4, 4) / 16
    towards = jnp.cos(jnp.arange(16.0)).reshape(4, 4)
    slope = jnp.sum(jax.jit(jax.grad(found))(start) * towards)
    ends = [jax.jit(found)(start + sign * 1e-4 * towards) for sign in (1, -1)]
    assert float(slope) == pytest.approx(float(ends[0] - ends[1]) / 2e-4, rel=1e-6)
