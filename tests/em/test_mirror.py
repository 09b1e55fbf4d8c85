import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.em import mirror_sign, unfold
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


FREQUENCY = SPEED_OF_LIGHT / MICRO
CELL = 50 * NANO


def run(grid, low, moment, polarisation, component):
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 5)
    monitor = em.FieldMonitor(
        em.Simulation(grid, steps=1, polarisation=polarisation).component_names,
        (0.0, 0.0),
        (float("inf"),) * 2,
        FREQUENCY,
    )
    sim = em.Simulation(
        grid,
        boundaries=em.Boundaries(x=(low, em.CPML(8)), y=em.CPML(8)),
        sources={"dipole": em.Dipole(component, (0.0, 0.0), pulse, moment)},
        monitors={"all": monitor},
        steps=600,
        polarisation=polarisation,
    )
    return sim, em.simulate(sim).monitors["all"]


ON_MIRROR = [
    *(("Ez", "Ez", em.PMC()), ("Ez", "Hx", em.PMC()), ("Hz", "Ey", em.PMC())),
    # These have no samples on the mirror, but half a cell to both sides.
    *(("Ez", "Hy", em.PEC()), ("Hz", "Ex", em.PEC()), ("Hz", "Hz", em.PEC())),
]


@pytest.mark.slow
@pytest.mark.parametrize(("polarisation", "component", "face"), ON_MIRROR)
def test_unfolded_half_is_the_whole(polarisation, component, face):
    # A current on a mirror stands for itself and its image: the moment is the same.
    whole = Grid.uniform((60, 30), CELL, (-30 * CELL, -15 * CELL))
    half = Grid.uniform((30, 30), CELL, (0.0, -15 * CELL))
    _, expected = run(whole, em.CPML(8), 1.0, polarisation, component)
    sim, found = run(half, face, 1.0, polarisation, component)
    found = unfold(found, sim)
    for name, values in found.values.items():
        reference = expected.values[name]
        # The layer at the low face of the whole begins half a cell before node 0: it is
        # its high layer's mirror image about -1/4 cell, so compare far from it.
        x = np.asarray(found.coordinates[name][0])
        y = np.asarray(expected.coordinates[name][0])
        keep = np.abs(x) < 20.2 * CELL
        same = np.abs(y) < 20.2 * CELL
        scale = jnp.max(jnp.abs(reference))
        error = jnp.max(jnp.abs(values[:, keep] - reference[:, same])) / scale
        assert np.allclose(x[keep], y[same], atol=1e-3 * CELL)
        # What is left are the reflections, of 1e-4, of two layers half a cell apart.
        assert error < 2e-3


@pytest.mark.f32
@pytest.mark.parametrize(("polarisation", "component", "face"), ON_MIRROR)
@pytest.mark.parametrize("high", [False, True])
def test_a_dipole_within_a_cell_of_a_mirror_has_an_image(
    polarisation, component, face, high
):
    x, y, steps = 0.3 * CELL, 0.4 * CELL, 12
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 2)

    def fields(cells, start, places, *faces):
        dipoles = {f"{x}": em.Dipole(component, (x, y), pulse) for x in places}
        grid = Grid.uniform((cells, 30), CELL, (start * CELL, -15 * CELL))
        sim = em.Simulation(
            grid,
            boundaries=em.Boundaries(x=faces or em.PEC()),
            sources=dipoles,
            steps=steps,
            polarisation=polarisation,
        )
        return em.simulate(sim).fields[component]

    # No light comes to the other faces.
    whole = fields(60, -30, (x, -x))
    if high:
        half = fields(30, -30, (-x,), em.PEC(), face)
        same = half[:30], whole[:30]
    else:
        same = fields(30, 0, (x,), face, em.PEC()), whole[30:60]
    assert float(jnp.max(jnp.abs(same[1]))) > 0
    assert np.allclose(*same, rtol=0, atol=1e-5 * np.abs(same[1]).max())


@pytest.mark.parametrize("cells", [20, 80, 87, 94, 150])
@pytest.mark.parametrize("low", [0.0, -1.0])
def test_a_mirror_is_found_where_float32_puts_it(cells, low):
    # One node of some is rounded to several 1e-6 cells from where it was asked for.
    cell = 25 * NANO
    place = (1 + low) * cells * cell
    grid = Grid.uniform((cells, 20), cell, (low * cells * cell, 0.0))
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 5)
    sim = em.Simulation(
        grid,
        boundaries=em.Boundaries(x=(em.CPML(8), em.PEC())),
        sources={"dipole": em.Dipole("Ex", (place, 10 * cell), pulse)},
        steps=1,
        polarisation="Hz",
    )
    (own,) = sim.place("dipole")
    assert own.weights[0] == (0.5,)


def test_the_wall_of_a_cylinder_is_no_mirror():
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 5)
    sim = em.Simulation(
        Grid.uniform((20, 20), CELL),
        boundaries=em.Boundaries(r=em.PEC(), z=em.CPML(8)),
        sources={"dipole": em.Dipole("Er", (20 * CELL, 10 * CELL), pulse)},
        cylindrical=em.Cylindrical(0),
        steps=1,
    )
    (own,) = sim.place("dipole")
    assert own.weights[0] == (1.0,)


@pytest.mark.parametrize(("polarisation", "component", "face"), ON_MIRROR)
def test_a_dipole_that_a_wall_cancels_is_refused(polarisation, component, face):
    other = em.PEC() if isinstance(face, em.PMC) else em.PMC()
    least = {"PEC": 1.0, "PMC": 0.5}[type(other).__name__] * CELL
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 5)

    def build(x):
        return em.Simulation(
            Grid.uniform((20, 20), CELL),
            boundaries=em.Boundaries(x=other),
            sources={"dipole": em.Dipole(component, (x, 10 * CELL), pulse)},
            steps=1,
            polarisation=polarisation,
        )

    for off in (0.0, 0.9 * least):
        for x in (off, 20 * CELL - off):
            with pytest.raises(
                ArgumentError, match=f"{component} is zero on that wall"
            ):
                build(x)
    build(least)
    build(20 * CELL - least)


def test_signs_are_those_of_images():
    assert mirror_sign("Ez", 0, em.PMC()) == 1
    assert mirror_sign("Ex", 0, em.PMC()) == -1
    assert mirror_sign("Hx", 0, em.PMC()) == 1
    assert mirror_sign("Hz", 0, em.PMC()) == -1
    assert mirror_sign("Ez", 0, em.PEC()) == -1


def test_nothing_to_unfold_is_refused():
    grid = Grid.uniform((20, 20), CELL, (-10 * CELL, -10 * CELL))
    sim, fields = run(grid, em.CPML(8), 1.0, "Ez", "Ez")
    with pytest.raises(ArgumentError, match="must have a PEC or PMC at a low face"):
        unfold(fields, sim)


def test_a_series_is_unfolded_at_each_of_its_times():
    # Ez is even about the PMC and has a sample on it, Hy is odd and has none there.
    grid = Grid.uniform((3, 2), CELL)
    faces = em.Boundaries(x=(em.PMC(), em.PEC()), y=em.Periodic())
    sim = em.Simulation(grid, boundaries=faces, polarisation="Ez", steps=1)
    values = jnp.arange(12.0).reshape(2, 3, 2)
    times, nodes = jnp.arange(2.0), jnp.arange(3.0) * CELL
    across = nodes[:2]
    series = em.TimeSeries(
        {"Ez": values, "Hy": values},
        {"Ez": times, "Hy": times},
        {"Ez": (nodes, across), "Hy": (nodes + CELL / 2, across)},
    )
    found = unfold(series, sim)
    assert isinstance(found, em.TimeSeries)
    even = np.concatenate([values[:, :0:-1], values], axis=1)
    odd = np.concatenate([-values[:, ::-1], values], axis=1)
    assert np.array_equal(found.values["Ez"], even)
    assert np.array_equal(found.values["Hy"], odd)
    assert np.allclose(found.coordinates["Ez"][0], CELL * np.arange(-2, 3))
    assert np.allclose(found.coordinates["Hy"][0], CELL * (np.arange(-3, 3) + 0.5))


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
@pytest.mark.parametrize("low", [0.0, CELL])
def test_fields_are_unfolded_under_jit_too(low):
    grid = Grid.uniform((24, 24), CELL)
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 5)
    size = (float("inf"), 24 * CELL - low)
    sim = em.Simulation(
        grid,
        em.Medium(permittivity=2.0),
        em.Boundaries(x=em.CPML(8), y=(em.PMC(), em.CPML(8))),
        sources={"dipole": em.Dipole("Ez", (12 * CELL, 0.0), pulse)},
        monitors={"ez": em.FieldMonitor(("Ez",), (0, size[1] / 2 + low), size, 2e14)},
        steps=20,
        polarisation="Ez",
    )

    def run(permittivity):
        here = eqx.tree_at(lambda s: s.medium.permittivity, sim, permittivity)
        return unfold(em.simulate(here).monitors["ez"], here).values["Ez"]

    level = jnp.asarray(2.0)
    found = jax.jit(run)(level)
    if low:
        assert np.all(np.isnan(found))
        with pytest.raises(ArgumentError, match="must reach the low face along y"):
            run(level)
    else:
        np.testing.assert_allclose(found, run(level), rtol=0, atol=1e-6)
        assert np.max(np.abs(found)) > 0
