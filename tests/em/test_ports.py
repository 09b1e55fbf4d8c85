"""Ports in 3-D: one-way sources, power that passes, mirrors, and refusals."""

import warnings

import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT


CELL = 40e-9
FREQUENCY = SPEED_OF_LIGHT / 1.55e-6


def test_ports_at_bloch_faces_are_refused():
    grid = Grid.uniform((16, 8, 8), CELL)
    faces = em.Boundaries(y=em.Bloch(1e6), z=em.Periodic())
    port = em.Port((8 * CELL, 4 * CELL, 4 * CELL), np.inf, "+x")
    monitors = {"m": em.ModeMonitor(port, FREQUENCY)}
    with pytest.raises(
        ArgumentError, match="must end before the `Bloch` faces along y"
    ):
        em.Simulation(grid, boundaries=faces, monitors=monitors, steps=1)


def test_ports_check_width_and_direction():
    with pytest.raises(ArgumentError, match="`direction` must be '\\+x'"):
        em.Port((0, 0, 0), 1.0, "x")
    with pytest.raises(ArgumentError, match="`width` must be positive, but is -1"):
        em.Port((0, 0, 0), (1.0, -1.0), "+z")
    with pytest.raises(ArgumentError, match="must be one number or have 2 entries"):
        em.Port((0, 0, 0), (1.0, 1.0, 1.0), "+z").widths(2)


def index_of_a_period(cut):
    """The index of layers that recur, on unequal cells, cut before some cell."""
    widths = CELL * np.array([1.0, 1.0, 1.2, 1.4, 1.4, 1.2, 1.0, 1.0, 1.0, 1.0])
    cells = np.array([2.0, 2.0, 6.0, 6.0, 6.0, 6.0, 2.0, 2.0, 2.0, 2.0])
    before = np.roll(widths, 1)
    nodes = (cells * widths + np.roll(cells, 1) * before) / (widths + before)
    edges = np.cumsum([0.0, *np.roll(widths, -cut)])
    values = {"Ex": nodes, "Ey": cells}
    sim = em.Simulation(
        Grid.graded((np.arange(25) * CELL, edges)),
        em.Medium({k: np.tile(np.roll(v, -cut), (24, 1)) for k, v in values.items()}),
        em.Boundaries(x=em.CPML(8), y=em.Periodic()),
        monitors={
            "m": em.ModeMonitor(
                em.Port((12 * CELL, edges[-1] / 2), np.inf, "+x"), FREQUENCY
            )
        },
        steps=1,
        polarisation="Hz",
    )
    return float(em.simulate(sim).monitors["m"].effective_index[0])


@pytest.mark.filterwarnings("ignore::physax._checks.PhysaxWarning")
def test_the_mode_of_a_period_is_the_same_wherever_it_is_cut():
    found = [index_of_a_period(cut) for cut in (0, 3)]
    assert found[1] == pytest.approx(found[0], rel=1e-10)


WAY = (36, 26, 22)


def guide(axis):
    """A strip along an axis, its section the same one turned round."""
    order = [axis, (axis + 1) % 3, (axis + 2) % 3]
    shape, size = [0] * 3, [0.0] * 3
    for a, cells, length in zip(order, WAY, (np.inf, 12 * CELL, 6 * CELL), strict=True):
        shape[a], size[a] = cells, length
    grid = Grid.centred(shape, CELL)
    core = em.Structure(em.Box((0, 0, 0), size), em.Material(permittivity=12.0))
    return grid, em.rasterise([core], grid, em.Material(permittivity=2.1)), order


def port(axis, sign, at, offset=0.0):
    centre = [0.0] * 3
    centre[axis] = at * CELL
    return em.Port(centre, np.inf, f"{sign}{'xyz'[axis]}", offset=offset * CELL)


@pytest.mark.slow
@pytest.mark.parametrize(("axis", "sign"), [(0, "+"), (1, "-"), (2, "+")])
def test_source_in_3d_launches_one_way(axis, sign):
    # One wavelength, so that the spectrum has one profile: a long narrow pulse.
    grid, medium, _ = guide(axis)
    way = 1 if sign == "+" else -1
    pulse = em.band_pulse(0.98 * FREQUENCY, 1.02 * FREQUENCY)
    monitors = {
        name: em.ModeMonitor(port(axis, sign, at * way), FREQUENCY)
        for name, at in (("behind", -7), ("ahead", 5))
    }
    plane, size = port(axis, sign, 5 * way).centre, [np.inf] * 3
    size[axis] = 0
    monitors["flux"] = em.FluxMonitor("xyz"[axis], plane, size, FREQUENCY)
    sim = em.Simulation(
        grid,
        medium,
        em.Boundaries.all(em.CPML(8)),
        sources={"in": em.ModeSource(port(axis, sign, -3 * way), pulse)},
        monitors=monitors,
        steps=2600,
    )
    found = em.simulate(sim).monitors
    forward = abs(found["ahead"].incoming[0]) ** 2
    backward = abs(found["behind"].outgoing[0]) ** 2
    print(f"{sign}{'xyz'[axis]}: backward over forward {backward / forward:.1e}")
    assert bool(found["ahead"].guided[0])
    assert backward < 1e-3 * forward
    assert abs(found["ahead"].outgoing[0]) ** 2 < 1e-3 * forward
    # Across the layers, which the mode reaches, no power is conserved.
    assert way * float(found["flux"].flux[0]) == pytest.approx(float(forward), rel=0.03)


@pytest.mark.slow
def test_strip_waveguide_in_3d_transmits_everything():
    grid = Grid.centred((80, 40, 32), CELL)
    core = em.Box((0, 0, 0), (np.inf, 12 * CELL, 6 * CELL))
    medium = em.rasterise(
        [em.Structure(core, em.Material(permittivity=3.4757**2))],
        grid,
        em.Material(permittivity=1.444**2),
    )
    sim = em.Simulation(grid, medium, em.Boundaries.all(em.CPML(10)), steps=1800)
    size = (30 * CELL, 26 * CELL)
    ports = {
        "left": em.Port((-26 * CELL, 0, 0), size, "+x", offset=4 * CELL),
        "right": em.Port((22 * CELL, 0, 0), size, "-x"),
    }
    found = em.s_parameters(sim, ports, 1.55e-6, inputs=["left"])
    power = found.power[0, :, 0]
    print(f"reflection {power[0]:.1e}, transmission {power[1]:.5f}")
    assert float(power[1]) == pytest.approx(1, abs=2e-3)
    assert float(power[0]) < 1e-4


@pytest.mark.slow
def test_port_at_mirrors_carries_a_quarter_of_the_mode():
    # E of the first mode is normal to the plane y = 0 and even about z = 0.
    grid = Grid.uniform((40, 16, 13), CELL, (-20 * CELL, 0.0, 0.0))
    core = em.Box((0, 0, 0), (np.inf, 12 * CELL, 6 * CELL))
    medium = em.rasterise(
        [em.Structure(core, em.Material(permittivity=12.0))],
        grid,
        em.Material(permittivity=2.1),
    )
    faces = em.Boundaries(
        x=em.CPML(8), y=(em.PEC(), em.CPML(6)), z=(em.PMC(), em.CPML(5))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)
        sim = em.Simulation(grid, medium, faces, steps=1500)
    ports = {
        "in": em.Port((-9 * CELL, 0, 0), np.inf, "+x", offset=3 * CELL),
        "out": em.Port((8 * CELL, 0, 0), np.inf, "-x"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)
        found = em.s_parameters(sim, ports, 1.55e-6, inputs=["in"])
    power = found.power[0, :, 0]
    print(f"reflection {power[0]:.1e}, transmission {power[1]:.5f}")
    assert float(power[1]) == pytest.approx(1, abs=5e-3)
    assert float(power[0]) < 1e-3
    # The same cells as the upper right quarter of the whole section.
    whole, filled, _ = guide(0)
    section = Grid.uniform(whole.shape[1:], CELL, (-13 * CELL, -11 * CELL))
    filled = {
        "E" + new: filled.permittivity["E" + old][0]
        for new, old in zip("xyz", "yzx", strict=True)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)
        modes = em.cross_section_modes(section, em.Medium(filled), FREQUENCY, dt=sim.dt)
    index = modes.effective_index[0]
    seen = found.results["in"].monitors["port in"].effective_index[0]
    # That of the port is the root of the eigenvalue over the wavenumber the grid sees.
    k_seen = np.sin(np.pi * FREQUENCY * float(sim.dt)) / np.pi / float(sim.dt)
    assert float(seen) * k_seen / FREQUENCY == pytest.approx(float(index), rel=1e-3)


def test_ports_of_other_dimensions_are_refused():
    grid, medium, _ = guide(0)
    sim = {"medium": medium, "steps": 1}
    with pytest.raises(ArgumentError, match="must hold at least 3 cells along y"):
        em.Simulation(
            grid,
            **sim,
            monitors={"m": em.ModeMonitor(em.Port((0, 0, 0), CELL, "+x"), FREQUENCY)},
        )
    flat = em.Port((0, 0), 4 * CELL, "+z")
    with pytest.raises(ArgumentError, match="must lie in the xy plane"):
        em.Simulation(
            Grid.centred((20, 20), CELL),
            polarisation="Ez",
            steps=1,
            monitors={"m": em.ModeMonitor(flat, FREQUENCY)},
        )
