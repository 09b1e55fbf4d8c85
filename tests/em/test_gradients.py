"""Derivatives of runs are right: Taylor, transposes, differences, both modes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from tests.em.scenes import CELL, at, random_permittivity


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


SHAPE = (26, 22)
FREQUENCIES = jnp.array([2.5e14, 3e14])


def base():
    """Lossy, absorbing on all faces, with cells of their own width along x."""
    eps = random_permittivity(SHAPE)
    widths = (CELL * jnp.ones(SHAPE[0]), jnp.asarray(CELL))
    grid = Grid(widths, (jnp.zeros(()), jnp.zeros(())), SHAPE)
    return em.Simulation(
        grid,
        em.Medium(eps, conductivity=2e3 * eps),
        em.Boundaries.all(em.CPML(5)),
        polarisation="Ez",
        steps=100,
        courant=0.9,
        sources={
            "dipole": em.Dipole("Ez", at(11, 9.4), em.GaussianPulse(3e14, 3e14), 1e-6)
        },
        monitors={
            "time": em.TimeMonitor(("Ez", "Hx"), at(14, 12), at(3, 0), every=3),
            "fields": em.FieldMonitor(("Hy",), at(15, 12), at(4, 4), FREQUENCIES),
        },
    )


LEAVES = {
    "permittivity": lambda s: s.medium.permittivity,
    "conductivity": lambda s: s.medium.conductivity,
    "amplitude": lambda s: s.sources["dipole"].moment,
    "frequency": lambda s: s.sources["dipole"].pulse.frequency,
    "bandwidth": lambda s: s.sources["dipole"].pulse.bandwidth,
    "dt": lambda s: s.dt,
    "widths": lambda s: s.grid.widths[0],
    "monitor": lambda s: s.monitors["fields"].frequencies,
}


def moved(sim, amounts):
    """Scales each leaf by one plus an amount times a direction of its own."""
    random = np.random.default_rng(3)
    for name, where in LEAVES.items():
        leaf = where(sim)
        direction = jnp.asarray(random.uniform(0.3, 1.0, leaf.shape), leaf.dtype)
        new = leaf * (1 + amounts[name] * direction)
        sim = eqx.tree_at(where, sim, new)
    return sim


def objective(result):
    """A number of order one."""
    fields, time = result.monitors["fields"].values, result.monitors["time"].values
    spectral = jnp.sum(jnp.abs(fields["Hy"] * 1e11) ** 2)
    return spectral + jnp.sum((time["Ez"] / 1e4) ** 2 + time["Hx"] / 1e4)


@pytest.fixture(scope="module")
def problem():
    sim = base()

    def value(amounts):
        # The time step, the grid and a monitor's frequencies: what a tape refuses.
        return objective(em.simulate(moved(sim, amounts), adjoint=em.Checkpointed()))

    zero = {name: jnp.zeros(()) for name in LEAVES}
    forward = jax.jit(value)
    slopes = jax.jit(jax.grad(value))(zero)

    def along(name, h):
        # Of the type of the others, or every name would compile its own program.
        return forward(zero | {name: jnp.full((), h)})

    return forward(zero), slopes, along


# The largest change from which a remainder falls cleanly: the pulse turns by many
# radians, while the loss is a small part of the whole.
LARGEST = dict.fromkeys(LEAVES, 1e-3) | {"conductivity": 1e-1, "bandwidth": 3e-4}


@pytest.mark.x64
@pytest.mark.parametrize("name", LEAVES)
def test_taylor_remainder_is_of_second_order(problem, name):
    value, slopes, along = problem
    sizes = LARGEST[name] * np.array([1.0, 0.1, 0.01])
    left = [abs(along(name, h) - value - h * slopes[name]) for h in sizes]
    orders = np.diff(np.log10(left)) / np.diff(np.log10(sizes))
    np.testing.assert_allclose(orders, 2.0, atol=0.05)


@pytest.mark.slow(after=2)
@pytest.mark.x64
@pytest.mark.parametrize("name", LEAVES)
def test_gradient_agrees_with_central_differences(problem, name):
    _, slopes, along = problem
    # Richardson's combination of two: error h^4, rounding 1e-16 / h.
    h = 1e-4
    wide, narrow = (
        (along(name, k * h) - along(name, -k * h)) / (2 * k * h) for k in (2, 1)
    )
    np.testing.assert_allclose((4 * narrow - wide) / 3, slopes[name], rtol=1e-8)


@pytest.mark.f32
@pytest.mark.slow
@pytest.mark.parametrize("name", LEAVES)
def test_single_precision_gradient_agrees_with_central_differences(problem, name):
    _, slopes, along = problem
    h = 1e-2
    wide, narrow = (
        (along(name, k * h) - along(name, -k * h)) / (2 * k * h) for k in (2, 1)
    )
    np.testing.assert_allclose((4 * narrow - wide) / 3, slopes[name], rtol=1e-3)


@pytest.mark.slow
def test_gradient_by_a_conductivity_of_zero_is_finite_and_right():
    sim = base()
    nothing = jnp.zeros(SHAPE)
    where = lambda s: s.medium.conductivity  # noqa: E731
    value = jax.jit(lambda c: objective(em.simulate(eqx.tree_at(where, sim, c))))
    slope = jax.jit(jax.grad(lambda c: value(c)))(nothing)
    assert jnp.all(jnp.isfinite(slope))
    h = 10.0
    expected = (value(nothing + h) - value(nothing - h)) / (2 * h)
    np.testing.assert_allclose(jnp.sum(slope), expected, rtol=1e-3)


@pytest.mark.parametrize(
    "adjoint",
    [em.Checkpointed(), pytest.param(em.Direct(), marks=pytest.mark.slow)],
    ids=["checkpointed", "direct"],
)
def test_second_derivatives_are_those_of_a_square(adjoint):
    pulse = em.GaussianPulse(8e14, 6e14)

    def energy(moments):
        sources = {
            name: em.Dipole("Ez", at(cell), pulse, moment=1e-6 * moment)
            for name, cell, moment in zip("ab", (11, 13), moments, strict=True)
        }
        sim = em.Simulation(
            Grid.uniform((30,), CELL),
            em.Medium(jnp.linspace(2.0, 3.0, 30)),
            em.Boundaries.all(em.CPML(8)),
            steps=40,
            sources=sources,
            monitors={"film": em.TimeMonitor(("Ez",), at(15), (0.0,), every=3)},
        )
        film = em.simulate(sim, adjoint=adjoint).monitors["film"]
        return jnp.sum((film.values["Ez"] * 1e5) ** 2)

    # Fields are linear in the moments.
    a, b, both = map(energy, jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    mixed = both - a - b
    second = jax.hessian(energy)(jnp.array([0.7, -0.4]))
    wanted = jnp.array([[2 * a, mixed], [mixed, 2 * b]])
    assert abs(mixed) > 1e-3 * a
    np.testing.assert_allclose(second, wanted, rtol=1e-9)
