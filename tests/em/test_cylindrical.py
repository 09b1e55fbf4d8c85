"""Cylindrical coordinates: what they accept, refuse and hand on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em, io, plot
from physax._checks import ArgumentError
from physax.grid import Grid
from tests.em.scenes import CELL, PULSE, at
from tests.em.test_linear_tape import linear, squares


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]

GRID = Grid.uniform((20, 24), CELL)
FACES = em.Boundaries(r=em.CPML(8), z=em.CPML(8))
HOLLOW = Grid.uniform((20, 24), CELL, origin=(10 * CELL, 0.0))


def simulation(grid=GRID, boundaries=FACES, m=1, **options):
    return em.Simulation(
        grid,
        boundaries=boundaries,
        cylindrical=em.Cylindrical(m),
        steps=options.pop("steps", 8),
        **options,
    )


@pytest.mark.parametrize("m", [-1, True])
def test_angular_numbers_are_whole(m):
    with pytest.raises(ArgumentError, match="`m` must be an integer and at least 0"):
        em.Cylindrical(m)


@pytest.mark.parametrize(
    ("grid", "faces", "message"),
    [
        (Grid.uniform((8,), CELL), FACES, "`grid` must be 2-D, of r and z"),
        (GRID, em.Boundaries(z=em.CPML(8)), "`boundaries` must have `r`"),
        (Grid.centred((20, 24), CELL), FACES, "`origin` along r must be at least 0"),
        (
            GRID,
            em.Boundaries(r=(em.PEC(), em.CPML(8))),
            "`r` must be only the outer face",
        ),
        (HOLLOW, FACES, "`r` must be a pair of an inner wall and an outer face"),
        (
            HOLLOW,
            em.Boundaries(r=(em.CPML(8), em.CPML(8))),
            "`r` must be a pair of an inner wall and an outer face",
        ),
    ],
)
def test_grids_and_faces_that_do_not_fit_are_refused(grid, faces, message):
    with pytest.raises(ArgumentError, match=message):
        simulation(grid, faces)


def test_faces_along_r_are_walls_or_layers():
    with pytest.raises(ArgumentError, match="`r` must be the outer face, `PEC"):
        em.Boundaries(r=em.Periodic())


def test_faces_along_r_want_cylindrical_coordinates():
    with pytest.raises(ArgumentError, match="`r` in cylindrical coordinates only"):
        em.Simulation(GRID, boundaries=FACES, polarisation="Ez", steps=1)


def test_polarisations_are_refused():
    with pytest.raises(ArgumentError, match="`polarisation` must be left out"):
        simulation(polarisation="Ez")


def test_a_time_step_above_the_limit_is_refused():
    # Near the axis it falls as 1 / m.
    limits = [float(simulation(m=m, courant=1.0).dt) for m in (1, 2, 4, 8)]
    assert limits[0] / limits[3] == pytest.approx(8 / 1.4, rel=0.15)
    with pytest.raises(ArgumentError, match="the Courant limit of this grid"):
        simulation(m=8, dt=limits[2])
    # Off the axis a large m costs nothing.
    faces = em.Boundaries(r=(em.PEC(), em.CPML(8)), z=em.CPML(8))
    assert float(simulation(HOLLOW, faces, m=8, courant=1.0).dt) > 3 * limits[3]


FREQUENCY = jnp.array([2e14])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Without `sources`")
def test_functions_that_do_not_know_the_coordinates_refuse_them():
    seen = em.FieldMonitor(("Ez",), at(10, 12), at(4, 4), FREQUENCY)
    sim = simulation(monitors={"seen": seen}, boundaries=em.Boundaries(r=em.CPML(8)))
    with pytest.raises(ArgumentError, match="cylindrical coordinates to be unfolded"):
        em.unfold(em.simulate(sim).monitors["seen"], sim)
    with pytest.raises(ArgumentError, match="whose steps are not counted"):
        em.step_cost(sim, (1, 1), None)


@pytest.mark.parametrize(("component", "m"), [("Ez", 1), ("Ep", 1), ("Hr", 0)])
def test_currents_that_drive_nothing_on_the_axis_are_refused(component, m):
    source = em.Dipole(component, (0.2 * CELL, 12 * CELL), PULSE)
    with pytest.raises(ArgumentError, match="at least a cell, .* off the axis"):
        simulation(m=m, sources={"in": source})


HALVES = [("Er", 0), ("Er", 2), ("Hp", 0), ("Hp", 2), ("Hz", 1)]


@pytest.mark.parametrize(("component", "m"), HALVES)
def test_currents_beside_the_axis_are_refused_on_it(component, m):
    source = em.Dipole(component, (0.0, 12 * CELL), PULSE)
    with pytest.raises(ArgumentError, match="at least half a cell.*Er or Hp of m = 1"):
        simulation(m=m, sources={"in": source})
    # At the first sample they are what is asked for, and others are on the axis, too.
    beside = em.Dipole(component, (0.5 * CELL, 12 * CELL), PULSE)
    simulation(m=m, sources={"in": beside})
    simulation(m=0 if component == "Hz" else 1, sources={"in": source})


def test_averages_without_a_tensor_are_named_on_grids_of_r_and_z():
    grid = Grid.uniform((12, 12), CELL)
    names = em.Cylindrical(0).components
    ball = em.Cylinder((0, 0, 6 * CELL), 5.3 * CELL, "z", 4 * CELL)

    def made(permittivity, averaging):
        one = em.Structure(ball, em.Material(permittivity))
        em.rasterise([one], grid, components=names, averaging=averaging)

    with pytest.raises(ArgumentError, match="'volume' or 'staircase' on a grid of r"):
        made(4.0, "polarised")
    with pytest.raises(ArgumentError, match="one number or three on a grid of r and z"):
        made(np.eye(3), "volume")


@pytest.mark.slow
def test_samples_that_are_held_at_zero_on_the_axis_are_not_given_out():
    names = ("Er", "Ep", "Ez", "Hr", "Hp", "Hz")
    seen = em.TimeMonitor(names, (0.0, 12 * CELL), (0.0, 0.0), every=8)
    found = em.simulate(simulation(monitors={"seen": seen})).monitors["seen"]
    first = {name: float(found.coordinates[name][0][0]) / CELL for name in names}
    assert first == pytest.approx(
        {"Er": 0.5, "Ep": 1.0, "Ez": 0.0, "Hr": 1.0, "Hp": 0.5, "Hz": 0.5}
    )


def test_rasterise_knows_the_samples_and_the_directions():
    disk = em.Structure(
        em.Box((5 * CELL, 12 * CELL), (10 * CELL, 6 * CELL)),
        em.Material(jnp.array([2.0, 3.0, 4.0])),
    )
    eps = em.rasterise([disk], GRID, components=em.Cylindrical.components).permittivity
    # r, phi, z in the middle; Er at 9.5 lies inside, Ep and Ez at 10 on the rim.
    for name, inside, rim in (("Er", 2.0, 2.0), ("Ep", 3.0, 2.0), ("Ez", 4.0, 2.5)):
        column = 11 if name == "Ez" else 12
        assert float(eps[name][5, column]) == pytest.approx(inside)
        at_rim = float(eps[name][9 if name == "Er" else 10, column])
        assert at_rim == pytest.approx(rim)
    with pytest.raises(ArgumentError, match=r"Cylindrical\.components"):
        em.rasterise([disk], GRID)


@pytest.mark.slow
def test_results_name_their_axes():
    seen = em.FieldMonitor(("Ez",), at(8, 12), at(6, 6), FREQUENCY)
    flux = em.FluxMonitor("r", at(9, 12), at(0, 6), FREQUENCY)
    source = em.Dipole("Er", at(5, 12), PULSE)
    sim = simulation(sources={"in": source}, monitors={"seen": seen, "flux": flux})
    found = em.simulate(sim).monitors["seen"]
    assert found.axes == ("r", "z")
    assert set(io.to_xarray(found).dims) == {"frequency", "r", "z_half"}
    axes = plot.field(found)
    assert axes.get_xlabel().startswith("r (")
    assert plot.simulation(sim).get_ylabel().startswith("z (")
    text = em.describe(sim)
    assert "in cylindrical coordinates, m = 1" in text
    assert "faces r       CPML of 8 cells" in text
    with pytest.raises(ArgumentError, match=r"must be one of \('r', 'z'\)"):
        simulation(monitors={"flux": em.FluxMonitor("x", at(9, 12), at(0, 6), 2e14)})


def test_default_faces_are_a_metal_can():
    sim = em.Simulation(GRID, cylindrical=em.Cylindrical(0), steps=1)
    assert sim.boundaries.r == (None, em.PEC())
    assert not sim.complex_fields


def block_gradient(sim, values, adjoint):
    def value(values):
        new = eqx.tree_at(lambda s: s.medium.regions[0].permittivity, sim, values)
        return squares(em.simulate(new, adjoint=adjoint))

    return jax.jit(jax.grad(value))(values)


@pytest.mark.slow
@pytest.mark.x64
def test_adjoints_agree_on_a_design_region():
    sim = linear("rz")
    # Outside of the layers, on the axis too.
    box = ((0, 12), (8, 20))
    values = sim.medium.permittivity[:12, 8:20]
    sim = eqx.tree_at(
        lambda s: s.medium,
        sim,
        em.Medium(sim.medium.permittivity, regions=em.DesignRegion(box, values)),
    )
    spectra = {n: m for n, m in sim.monitors.items() if n != "time"}
    sim = eqx.tree_at(lambda s: s.monitors, sim, spectra)
    want = block_gradient(sim, values, em.LinearTape())
    got = block_gradient(sim, values, em.Reversible())
    assert np.linalg.norm(got - want) <= 1e-10 * np.linalg.norm(want)


@pytest.mark.slow
@pytest.mark.x64
def test_frequency_domain_gives_the_gradient_of_the_tape():
    # Once the fields have left; the monitor takes in the axis.
    values = jnp.asarray(np.random.default_rng(3).uniform(1, 4, (5, 6)))
    sim = simulation(
        medium=em.Medium(regions=em.DesignRegion(((0, 5), (9, 15)), values)),
        sources={"in": em.Dipole("Er", at(4.5, 15), em.GaussianPulse(3e14, 5e13))},
        monitors={
            "fields": em.FieldMonitor(("Er", "Ep"), at(3, 12), at(6, 4), [2.8e14]),
            "flux": em.FluxMonitor("r", at(8, 12), at(0, 10), [2.8e14]),
        },
        steps=900,
    )

    def slope(adjoint):
        def value(values):
            new = eqx.tree_at(lambda s: s.medium.regions[0].permittivity, sim, values)
            seen = em.simulate(new, adjoint=adjoint).monitors
            fields = seen["fields"].values
            power = sum(jnp.sum(jnp.abs(x) ** 2) for x in fields.values())
            return seen["flux"].flux[0] / power

        return jax.jit(jax.grad(value))(values)

    want = slope(em.LinearTape())
    gap = np.linalg.norm(slope(em.FrequencyDomain()) - want)
    assert gap <= 1e-5 * np.linalg.norm(want)
