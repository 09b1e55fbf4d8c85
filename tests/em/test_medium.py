import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid


SHAPE = (6, 5)
POSITIVE = ["permittivity", "permeability"]
LOSSES = ["conductivity", "magnetic_conductivity"]


@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_first_bad_cell_is_named(name, bad):
    values = np.ones(SHAPE)
    values[3, 2] = values[5, 4] = bad
    message = rf"`{name}` must be positive and finite, but is .* in cell \(3, 2\)\."
    with pytest.raises(ArgumentError, match=message):
        em.Medium(**{name: values})


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_conductivity_must_be_finite(name, bad):
    values = np.zeros(SHAPE)
    values[0, 4] = bad
    message = rf"`{name}` must be finite, but is .* in cell \(0, 4\)\."
    with pytest.raises(ArgumentError, match=message):
        em.Medium(**{name: values})


def test_component_and_cell_are_named():
    values = np.ones(SHAPE)
    values[1, 1] = np.nan
    message = r"`permittivity`\['Ey'\] must be positive .* nan in cell \(1, 1\)"
    with pytest.raises(ArgumentError, match=message):
        em.Medium({"Ex": np.ones(SHAPE), "Ey": values})


@pytest.mark.parametrize("name", POSITIVE)
@pytest.mark.parametrize("bad", [0, -2.5])
def test_number_must_be_positive(name, bad):
    with pytest.raises(
        ArgumentError, match=rf"`{name}` must be positive .* is {bad}\."
    ):
        em.Medium(**{name: bad})


@pytest.mark.parametrize("name", POSITIVE + LOSSES)
@pytest.mark.parametrize("mask", [True, np.ones(SHAPE, bool), jnp.ones(SHAPE, bool)])
def test_a_mask_is_no_medium(name, mask):
    with pytest.raises(ArgumentError, match=f"`{name}` must be numbers, but holds boo"):
        em.Medium(**{name: mask})


@pytest.mark.parametrize("name", LOSSES)
def test_gain_is_warned_of(name):
    values = np.zeros(SHAPE)
    values[2, 2] = -3.0
    with pytest.warns(PhysaxWarning, match=rf"`{name}` is negative \(-3\)"):
        medium = em.Medium(**{name: values})
    assert getattr(medium, name)[2, 2] == -3


def test_gain_makes_a_field_grow():
    # A uniform field in a periodic cell: dE/dt = -sigma E / epsilon, exactly.
    grid = Grid.uniform((4,), 1e-8)
    pulse = em.GaussianPulse(1e15, 3e14)
    where = em.Boundaries(x=em.Periodic())
    with pytest.warns(PhysaxWarning, match="negative"):
        medium = em.Medium(conductivity=-1e4)
    final = {}
    for steps in (900, 1000):
        sim = em.Simulation(
            grid,
            medium,
            where,
            sources={"in": em.Dipole("Ez", (1e-8,), pulse)},
            steps=steps,
        )
        final[steps] = np.mean(em.simulate(sim).fields["Ez"])
    rate = 1e4 / 8.8541878e-12
    growth = np.exp(rate * 100 * float(sim.dt))
    # (1 + a) / (1 - a) stands for exp(2 a), with a third of a^3 more; a = 0.019.
    assert final[1000] / final[900] == pytest.approx(growth, rel=1e-3)


@pytest.mark.parametrize("name", POSITIVE + LOSSES)
def test_complex_values_are_refused(name):
    with pytest.raises(ArgumentError, match=rf"`{name}` must be real.*`conductivity`"):
        em.Medium(**{name: np.ones(SHAPE, complex)})
    with pytest.raises(ArgumentError, match=rf"`{name}` must be real.*`conductivity`"):
        jax.jit(lambda x: em.Medium(**{name: x}))(jnp.ones(SHAPE, complex))


@pytest.mark.parametrize("value", [12, np.full(SHAPE, 12), jnp.full(SHAPE, 12)])
def test_integers_become_floats(value):
    permittivity = em.Medium(value).permittivity
    assert isinstance(permittivity, jax.Array)
    assert permittivity.dtype == jnp.zeros(()).dtype
    assert jnp.all(permittivity == 12)


def test_traced_bad_values_become_nan():
    def run(x):
        return em.Medium(x).permittivity

    assert jnp.isnan(jax.jit(run)(jnp.array([1.0, -1.0]))).tolist() == [False, True]
    slope = jax.grad(lambda x: em.Medium(x).permittivity)
    assert slope(2.0) == 1
    assert jnp.isnan(slope(-2.0))


def test_array_of_another_shape_is_refused():
    message = (
        r"`permittivity` must .* shape \(6, 5\) of the grid, but has shape \(5, 6\)"
    )
    with pytest.raises(ArgumentError, match=message):
        em.Simulation(
            Grid.uniform(SHAPE, 1e-8),
            em.Medium(np.ones((5, 6))),
            polarisation="Ez",
            steps=1,
        )


def test_component_that_is_missing_is_named():
    message = r"`permittivity` must have an entry for each of \('Ex', 'Ey'\).*\['Ey'\]"
    with pytest.raises(ArgumentError, match=message):
        em.Simulation(
            Grid.uniform(SHAPE, 1e-8),
            em.Medium({"Ex": 2.0}),
            polarisation="Hz",
            steps=1,
        )


def test_region_at_a_magnetic_wall_is_the_array_up_to_the_wall():
    # On the wall itself lies one more node, which has the value of the last cell.
    eps = jnp.linspace(2.0, 4.0, 50)
    region = em.DesignRegion(((30, 50),), eps[30:])

    def field(medium):
        sim = em.Simulation(
            Grid.uniform((50,), 2e-8),
            medium,
            em.Boundaries(x=(em.CPML(10), em.PMC())),
            steps=300,
            sources={"in": em.Dipole("Ez", (4e-7,), em.GaussianPulse(3e14, 1e14))},
        )
        return em.simulate(sim).fields["Ez"]

    whole = field(em.Medium(eps))
    assert jnp.max(jnp.abs(whole)) > 0
    hidden = field(em.Medium(eps.at[30:].set(1.0), regions=region))
    np.testing.assert_array_equal(hidden, whole)


def line_of(eps, regions):
    """Returns the power that a mode sends through a guide, and the mode's index."""
    medium = em.Medium(eps, regions=regions)
    port = em.Port((2e-7, 6e-7), 8e-7, "+x", offset=2e-7)
    sim = em.Simulation(
        Grid.uniform((30, 30), 4e-8),
        medium,
        em.Boundaries.all(em.CPML(8)),
        steps=40,
        polarisation="Ez",
        sources={"in": em.ModeSource(port, em.GaussianPulse(2e14, 1e14))},
        monitors={"out": em.ModeMonitor(port, 2e14)},
    )
    found = em.simulate(sim)
    return found.fields["Ez"], found.monitors["out"].effective_index


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
@pytest.mark.filterwarnings("ignore:.*lies in")
def test_modes_see_the_regions_that_their_lines_meet():
    eps = jnp.full((30, 30), 2.0).at[:, 12:18].set(9.0)
    want = line_of(eps, ())
    # One lies on both lines, one on none, one reaches from the guide to the end.
    for box in (((2, 14), (10, 16)), ((16, 20), (11, 19)), ((4, 30), (14, 30))):
        part = tuple(slice(*span) for span in box)
        got = line_of(eps.at[part].set(5.0), em.DesignRegion(box, eps[part]))
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_regions_and_media_may_have_entries_that_the_other_has_not():
    region = em.DesignRegion(((1, 3), (2, 4)), {"Ez": jnp.full((2, 2), 3.0)})
    base = {name: np.full(SHAPE, 2.0) for name in ("Ex", "Ey", "Ez")}
    medium = em.Medium(base, regions=region)
    sim = em.Simulation(Grid.uniform(SHAPE, 1e-8), medium, steps=1, polarisation="Ez")
    painted = sim.medium.merged(SHAPE).permittivity
    assert list(painted) == ["Ez"]
    assert float(painted["Ez"].sum()) == 2 * 30 + 4


def test_unknown_components_and_regions_are_refused():
    box = ((1, 3), (2, 4))
    values = {"Ez": jnp.ones((2, 2)), "Eq": jnp.ones((2, 2))}
    with pytest.raises(ArgumentError, match=r"must be keyed by .* \['Eq'\]"):
        em.DesignRegion(box, values)
    for bad in ("abc", None, jnp.ones(3)):
        with pytest.raises(ArgumentError, match="`regions` must be a `DesignRegion`"):
            em.Medium(2.0, regions=bad)


def test_an_array_may_be_reused_by_its_owner():
    # XLA takes memory that begins at a multiple of 64 as it is.
    room = np.zeros(464, np.uint8)
    start = -room.ctypes.data % 64
    given = room[start : start + 400].view(np.float32).reshape(10, 10)
    given[:] = 2.0
    medium = em.Medium(given)
    given[:] = -3.0
    np.testing.assert_array_equal(medium.permittivity, 2.0)


BOX = (1, 4), (1, 4)
SKEW = np.pad(np.full((2, 2), 0.1), ((1, 0), (1, 0)))


@pytest.mark.parametrize(
    ("medium", "found"),
    [
        ({"dispersions": em.Dispersion(BOX, em.Drude(1e15, 1e13))}, "poles"),
        ({"nonlinearities": em.Nonlinearity(BOX, chi3=1e-20)}, "nonlinear suscept"),
        ({"off_diagonals": em.OffDiagonal(BOX, {"xy": SKEW})}, "off-diagonal entries"),
    ],
)
def test_energy_and_cost_of_what_is_not_counted_are_refused(medium, found):
    def build(**options):
        grid = Grid.uniform(SHAPE, 1e-8)
        medium_ = em.Medium(2.0, **medium)
        return em.Simulation(grid, medium_, steps=2, polarisation="Hz", **options)

    sim = build()
    state = em.initial_state(sim)
    with pytest.raises(ArgumentError, match=f"has {found}.*, whose energy is not"):
        em.yee_energy(sim, state, state)
    with pytest.raises(ArgumentError, match=f"has {found}.*, whose steps are not"):
        em.step_cost(sim, (1, 1))
    with pytest.raises(ArgumentError, match=f"energy in a medium with {found}"):
        build(monitors={"all": em.EnergyMonitor()})


def test_leaves_that_are_numbers_of_python_are_named():
    sim = em.Simulation(Grid.uniform((16, 16), 40e-9), polarisation="Ez", steps=2)
    sim = eqx.tree_at(lambda s: s.medium.permittivity, sim, 2.25)
    with pytest.raises(ArgumentError, match=r"by `jnp.asarray\(2.25\)`"):
        em.simulate(sim)
