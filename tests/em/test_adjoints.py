"""All adjoints give the gradient of the discrete equations, each where it is valid."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.em._simulation import with_steps
from physax.grid import Grid


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]

CELL = 20e-9
FREQUENCIES = jnp.array([2.7e14, 3e14])


def at(cells, *, shape):
    return tuple(CELL * n * part for n, part in zip(shape, cells, strict=True))


def scene(
    kind, steps, loss=2e3, bandwidth=1.2e14, more_monitors=None, moment=1e-6, faces=None
):
    """A region of random permittivity and conductivity between source and monitors.

    The cells of `Hz` have a width of their own along x.
    """
    shape = {"1-D": (60,), "3-D": (20, 16, 18)}.get(kind, (30, 26))
    ndim = len(shape)
    cells = 5 if ndim < 3 else 4
    out = {"1-D": "Ez", "Hz": "Hz", "3-D": "Ez"}.get(kind, "Ez")
    inner = "Hy" if out == "Ez" else "Ey"
    box = tuple((int(0.35 * n), int(0.6 * n)) for n in shape)
    sizes = [high - low for low, high in box]
    random = np.random.default_rng(0)
    region = em.DesignRegion(
        box,
        jnp.asarray(random.uniform(1.5, 4.0, sizes)),
        conductivity=jnp.asarray(random.uniform(0.5, 1.0, sizes) * loss),
    )
    layer = em.CPML(cells, kappa_max=2.0)
    faces = em.Boundaries.all(layer) if faces is None else faces
    widths = [jnp.asarray(CELL)] * ndim
    if kind == "Hz":
        x = jnp.arange(shape[0])
        # Uniform in the layers.
        bump = jnp.where((x > 6) & (x < 23), 0.2 * jnp.sin((x - 6) * jnp.pi / 17), 0)
        widths[0] = CELL * (1 + bump)
    if kind == "bloch":
        wavevector = 0.3 * 2 * np.pi / (shape[1] * CELL)
        faces = em.Boundaries(x=layer, y=em.Bloch(wavevector))
    grid = Grid(tuple(widths), (jnp.zeros(()),) * ndim, shape)
    pulse = em.GaussianPulse(2.85e14, bandwidth)
    here, there = (at((p,) + (0.45,) * (ndim - 1), shape=shape) for p in (0.27, 0.7))
    span = (0, *(0.3 * n * CELL for n in shape[1:]))
    polarisation = {} if ndim == 3 else {"polarisation": out}
    if ndim == 1:
        polarisation = {}
    return em.Simulation(
        grid,
        em.Medium(1.2, conductivity=0.1 * loss, regions=(region,)),
        faces,
        steps=steps,
        sources={"dipole": em.Dipole(out, here, pulse, moment=moment)},
        monitors={
            "flux": em.FluxMonitor("x", there, span, FREQUENCIES),
            "field": em.FieldMonitor((out, inner), there, span, FREQUENCIES[:1]),
            **(more_monitors or {}),
        },
        **polarisation,
    )


def leaves_of(sim):
    region, dipole = sim.medium.regions[0], sim.sources["dipole"]
    return {
        "permittivity": region.permittivity,
        "conductivity": region.conductivity,
        "moment": dipole.moment,
        "frequency": dipole.pulse.frequency,
        "phase": dipole.pulse.phase,
    }


def with_leaves(sim, leaves):
    names = list(leaves)
    return eqx.tree_at(
        lambda s: [leaves_of(s)[name] for name in names], sim, list(leaves.values())
    )


def scales(sim, result=None):
    """Returns the sizes of what the monitors see: the objective is of order 1."""
    found = (em.simulate(sim) if result is None else result).monitors
    rms = {k: float(jnp.linalg.norm(v)) for k, v in found["field"].values.items()}
    return float(jnp.max(jnp.abs(found["flux"].flux))), rms


def value(sim, adjoint, size, leaves, layout=None):
    result = em.simulate(with_leaves(sim, leaves), adjoint=adjoint, layout=layout)
    return objective(result.monitors, size)


def objective(found, size):
    """Several frequencies and monitors: linear, quadratic, and bent."""
    flux, fields = found["flux"].flux / size[0], found["field"].values
    total = jnp.tanh(flux[0]) - 0.3 * flux[1] ** 2
    for name, field in fields.items():
        field = field / size[1][name]
        total = total + jnp.sum(jnp.abs(field) ** 2) + jnp.sum(field.real)
    return total


def value_and_gradient(sim, adjoint, layout=None, size=None):
    size = scales(sim) if size is None else size
    run = partial(value, sim, adjoint, size, layout=layout)
    return jax.jit(jax.value_and_grad(run))(leaves_of(sim))


def gradient(sim, adjoint, layout=None, size=None):
    return value_and_gradient(sim, adjoint, layout, size)[1]


def gaps(got, want):
    def gap(name):
        off = np.linalg.norm(np.asarray(got[name] - want[name]))
        return off / np.linalg.norm(np.asarray(want[name]))

    return {name: gap(name) for name in want}


KINDS = ["1-D", "Ez", "Hz", "bloch", "3-D"]


def check_taylor(sim, forward, start, slopes):
    """The remainder of ten random directions falls as the square of the step."""
    leaves, random = leaves_of(sim), np.random.default_rng(5)
    sizes = 5 * 10.0 ** np.arange(-3, -8, -1)
    for _ in range(10):
        # The pulse turns by many radians: its frequency moves less than the rest.
        to = {
            name: jnp.asarray(
                random.normal(size=x.shape) * np.abs(x if name != "phase" else 1.0)
            )
            * (0.01 if name == "frequency" else 1)
            for name, x in leaves.items()
        }
        first = sum(float(jnp.sum(slopes[name] * to[name])) for name in leaves)
        left = []
        for h in sizes:
            moved = {name: x + h * to[name] for name, x in leaves.items()}
            left.append(abs(float(forward(moved) - start) - h * first))
        order = np.polyfit(np.log10(sizes), np.log10(left), 1)[0]
        assert 1.95 < order < 2.05, left


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", KINDS)
def test_exact_adjoints_agree_and_taylor_remainders_are_of_second_order(kind):
    sim = scene(kind, 90)
    # One program of the run serves the scales and all remainders.
    run = jax.jit(lambda leaves: em.simulate(with_leaves(sim, leaves)))
    size = scales(sim, run(leaves_of(sim)))
    figure = jax.jit(partial(objective, size=size))
    start, want = value_and_gradient(sim, em.LinearTape(), size=size)
    others = [em.Direct(), em.Reversible()]
    if kind == "1-D":
        others += [em.LinearTape(every=17), em.Checkpointed()]
    for adjoint in others:
        found = gaps(gradient(sim, adjoint, size=size), want)
        assert max(found.values()) <= 1e-10, (adjoint, found)
    check_taylor(sim, lambda leaves: figure(run(leaves).monitors), start, want)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("kind", KINDS)
def test_frequency_domain_agrees_once_the_fields_have_left(kind):
    # A narrow pulse leaves no static fields; under Bloch faces a mode is trapped.
    steps = {"bloch": 2000, "3-D": 1200}.get(kind, 1500)
    sim = scene(kind, steps, 5e4 if kind == "bloch" else 6e3, bandwidth=5e13)
    result = em.simulate(sim)
    assert result.residual < 1e-12
    size = scales(sim, result)
    want = gradient(sim, em.LinearTape(), size=size)
    found = gaps(gradient(sim, em.FrequencyDomain(), size=size), want)
    assert max(found.values()) <= 1e-6, found


def disc(sim, radius, centre):
    """Puts a disc of a radius and a place into the region of a scene."""
    shape = em.Circle(centre, radius)
    box = sim.medium.regions[0].box
    cells = tuple(slice(*span) for span in box)
    fill = em.fill_fraction(shape, sim.grid, (0.0, 0.0))[cells]
    return eqx.tree_at(
        lambda s: s.medium.regions[0].permittivity, sim, 1.2 + 2.5 * fill
    )


@pytest.mark.slow
def test_gradient_reaches_the_parameters_of_a_shape():
    sim = scene("Ez", 1500, 1e3, bandwidth=5e13)
    size = scales(sim)
    start = jnp.array([3.1 * CELL, 14.2 * CELL, 12.3 * CELL])

    def figure(p, adjoint):
        here = disc(sim, p[0], (p[1], p[2]))
        return value(here, adjoint, size, {})

    def compiled(adjoint):
        return jax.jit(jax.value_and_grad(partial(figure, adjoint=adjoint)))

    def slope(adjoint):
        return compiled(adjoint)(start)[1]

    # One program gives the gradient and the differences.
    run = compiled(em.LinearTape())
    want = np.asarray(run(start)[1])
    h = 1e-4 * CELL
    steps = h * np.eye(3)
    found = [float(run(start + d)[0] - run(start - d)[0]) / (2 * h) for d in steps]
    np.testing.assert_allclose(found, want, rtol=1e-5)
    for adjoint, near in ((em.Reversible(), 1e-10), (em.FrequencyDomain(), 1e-6)):
        np.testing.assert_allclose(slope(adjoint), want, rtol=near)


@pytest.mark.slow
def test_gradient_of_two_ports_and_wavelengths_agrees():
    eps = np.ones((60, 44))
    eps[:, 17:27] = 6.0
    random = np.random.default_rng(1).uniform(1.0, 6.0, (12, 16))
    region = em.DesignRegion(((24, 36), (14, 30)), jnp.asarray(random))
    sim = em.Simulation(
        Grid.uniform(eps.shape, CELL),
        em.Medium(jnp.asarray(eps), regions=(region,)),
        em.Boundaries.all(em.CPML(8)),
        polarisation="Ez",
        steps=1400,
    )
    ports = {
        "west": em.Port((11 * CELL, 22 * CELL), 30 * CELL, "+x", offset=4 * CELL),
        "east": em.Port((49 * CELL, 22 * CELL), 30 * CELL, "-x", offset=4 * CELL),
    }

    def figure(values, adjoint):
        here = eqx.tree_at(lambda s: s.medium.regions[0].permittivity, sim, values)
        waves = jnp.array([1e-6, 1.1e-6])
        s = em.s_parameters(here, ports, waves, inputs=["west"], adjoint=adjoint)
        return jnp.sum(s.power[:, 1, 0]) + jnp.sum(s.values[:, 0, 0].imag)

    def compiled(adjoint):
        return jax.jit(jax.value_and_grad(partial(figure, adjoint=adjoint)))

    run = compiled(em.LinearTape())
    want = run(region.permittivity)[1]
    # Central differences: h^2 from the third derivative, 1e-16 / h from rounding.
    bump = 1e-4 * jnp.asarray(np.random.default_rng(2).normal(size=random.shape))
    change = run(random + bump)[0] - run(random - bump)[0]
    assert float(change) == pytest.approx(float(jnp.sum(2 * bump * want)), rel=1e-6)
    other = compiled(em.FrequencyDomain(1e-6))(region.permittivity)[1]
    gap = np.linalg.norm(other - want)
    assert gap <= 1e-4 * np.linalg.norm(want)


def test_reversible_refuses_losses_that_amplify_rounding():
    sim = scene("Ez", 400, loss=2e5)
    with pytest.raises(ArgumentError, match=r"at most 100000 times .* but is \d"):
        em.simulate(sim, adjoint=em.Reversible())


@pytest.mark.slow
def test_reversible_refuses_cells_in_a_layer():
    sim = scene("Ez", 20)
    everywhere = eqx.tree_at(
        lambda s: s.medium, sim, em.Medium(jnp.full((30, 26), 2.0))
    )
    inside = em.DesignRegion(((2, 9), (8, 12)), jnp.full((7, 4), 2.0))
    reaching = eqx.tree_at(lambda s: s.medium, sim, em.Medium(2.0, regions=(inside,)))

    def slope(sim, where):
        def flux(values):
            here = eqx.tree_at(where, sim, values)
            found = em.simulate(here, adjoint=em.Reversible())
            return found.monitors["flux"].flux[0]

        return jax.grad(flux)(where(sim))

    with pytest.raises(ArgumentError, match="Make what changes a `DesignRegion`"):
        slope(everywhere, lambda s: s.medium.permittivity)
    with pytest.raises(ArgumentError, match="cells 2 to 9 along x, and the layers end"):
        slope(reaching, lambda s: s.medium.regions[0].permittivity)


@pytest.mark.slow
def test_frequency_domain_refuses_waves_that_have_not_left():
    sim = scene("1-D", 60)
    leaves = leaves_of(sim)
    size = 1.0, {"Ez": 1.0, "Hy": 1.0}
    run = partial(value, sim, em.FrequencyDomain(), size)
    with pytest.raises(ArgumentError, match=r"must be at most 1e-08, but is \d"):
        run(leaves)
    with pytest.raises(ArgumentError, match=r"must be at most 1e-08, but is \d"):
        jax.grad(run)(leaves)
    slopes = jax.jit(jax.grad(run))(leaves)
    assert jnp.all(jnp.isnan(slopes["permittivity"]))


@pytest.mark.slow
def test_frequency_domain_refuses_what_is_of_the_time_domain():
    sim = scene("1-D", 900, 6e3, bandwidth=5e13)
    time = em.TimeMonitor(("Ez",), (30 * CELL,), (0,), every=9)
    timed = scene("1-D", 900, 6e3, 5e13, more_monitors={"time": time})
    with pytest.raises(ArgumentError, match="'time' is a TimeMonitor"):
        em.simulate(timed, adjoint=em.FrequencyDomain())

    def last_field(epsilon):
        here = with_leaves(sim, {"permittivity": epsilon})
        return em.simulate(here, adjoint=em.FrequencyDomain()).fields["Ez"][30]

    slopes = jax.jit(jax.grad(last_field))(leaves_of(sim)["permittivity"])
    assert jnp.all(jnp.isnan(slopes))


@pytest.mark.slow
def test_memory_of_the_frequency_domain_does_not_grow_with_the_steps():
    sim = scene("1-D", 1000)

    def bytes_of(steps):
        here = with_steps(sim, steps)
        size = 1.0, {"Ez": 1.0, "Hy": 1.0}
        run = jax.jit(jax.grad(partial(value, here, em.FrequencyDomain(), size)))
        compiled = run.lower(leaves_of(here)).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert bytes_of(10_000) <= 1.01 * bytes_of(1_000)


@pytest.mark.slow
def test_derivative_by_a_source_alone_of_a_simulation_made_on_the_spot():
    # Its monitors are not in the order of the alphabet, and no cell is differentiated.
    def figure(moment, adjoint):
        sim = scene("1-D", 900, 1e3, 5e13, moment=moment)
        assert list(sim.monitors) == ["flux", "field"]
        found = em.simulate(sim, adjoint=adjoint).monitors
        field = found["field"].values["Ez"]
        return 1e24 * jnp.sum(jnp.abs(field) ** 2) + found["flux"].flux[1] * 1e20

    def slope(adjoint):
        return float(jax.grad(partial(figure, adjoint=adjoint))(jnp.asarray(1e-6)))

    want = slope(em.Direct())
    assert slope(em.LinearTape()) == pytest.approx(want, rel=1e-10)
    assert slope(em.Reversible()) == pytest.approx(want, rel=1e-10)
    assert slope(em.FrequencyDomain()) == pytest.approx(want, rel=1e-6)


@pytest.mark.slow
def test_reversible_between_walls_needs_no_record():
    sim = scene("1-D", 90, faces=em.Boundaries.all(em.PEC()))
    want = gradient(sim, em.LinearTape())
    assert max(gaps(gradient(sim, em.Reversible()), want).values()) <= 1e-10


@pytest.mark.slow
def test_reversible_gives_nan_where_it_cannot_refuse():
    sim = scene("1-D", 400, loss=2e5)
    size = 1.0, {"Ez": 1.0, "Hy": 1.0}
    run = jax.jit(jax.grad(partial(value, sim, em.Reversible(), size)))
    assert jnp.all(jnp.isnan(run(leaves_of(sim))["permittivity"]))


@pytest.mark.slow
def test_residual_has_no_derivative():
    sim = scene("1-D", 60)

    def residual(leaves):
        return em.simulate(with_leaves(sim, leaves)).residual

    assert not jnp.any(jax.grad(residual)(leaves_of(sim))["permittivity"])
