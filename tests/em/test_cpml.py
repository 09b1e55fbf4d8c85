from itertools import product

import jax
import jax.numpy as jnp
import pytest

from physax._checks import PhysaxError
from physax.em import CPML, Boundaries, Simulation, _step, cpml_coefficients
from physax.em._program import build_program
from physax.em._state import rest
from physax.em._step import half_step
from physax.em._transpose import transposed_half_step
from physax.grid import Grid
from physax.units import EPSILON_0, ETA_0, MICRO, NANO, SPEED_OF_LIGHT


SPACING = jnp.array(20 * NANO)
DT = jnp.array(4e-17)


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("reflection", [1e-4, 1e-8])
def test_round_trip_loss_is_the_requested_reflection(order, reflection):
    # A wave crosses the layer twice, so exp(-2 eta * integral(sigma dx)) = R. With
    # alpha = 0 and kappa = 1 we can read sigma back off b = exp(-sigma dt / epsilon).
    cells = 2000
    spacing = jnp.array(1 * MICRO / cells)
    depth = jnp.linspace(0.5 / cells, 1 - 0.5 / cells, cells)
    layer = CPML(cells, order=order, reflection=reflection, alpha_max=0.0)
    sigma = -jnp.log(cpml_coefficients(layer, depth, spacing, DT).b) * EPSILON_0 / DT
    loss = -2 * ETA_0 * jnp.sum(sigma) * spacing
    assert jnp.allclose(loss, jnp.log(reflection), rtol=1e-5)


def test_inner_edge_is_transparent():
    layer = CPML(8, alpha_max=0.0)
    out = cpml_coefficients(layer, jnp.array([0.0, 0.5]), SPACING, DT)
    assert out.b[0] == 1
    assert out.c[0] == 0
    assert out.c[1] < 0


@pytest.mark.x64  # a finite difference
def test_gradient_is_right_and_finite_at_the_inner_edge():
    def absorption(log_r):
        layer = CPML(8, reflection=jnp.exp(log_r), alpha_max=0.0)
        return jnp.sum(cpml_coefficients(layer, jnp.array([0.0, 0.5]), SPACING, DT).c)

    x, eps = jnp.array(-12.0), 1e-5
    slope = (absorption(x + eps) - absorption(x - eps)) / (2 * eps)
    assert jnp.allclose(jax.jit(jax.grad(absorption))(x), slope, rtol=1e-6)


@pytest.mark.parametrize("cells", [5, 10, 20])
def test_default_layers_lose_as_much_in_every_cell(cells):
    # R = 10^(-0.6 cells): then sigma times the spacing at the outer edge is one number,
    # 5 * 0.6 ln(10) / (2 eta), for every thickness and spacing.
    for spacing in (SPACING, 3 * SPACING):
        out = cpml_coefficients(CPML(cells), jnp.ones(1), spacing, DT)
        sigma = -jnp.log(out.b[0]) * EPSILON_0 / DT
        expected = 5 * 0.6 * jnp.log(10.0) / (2 * ETA_0)
        assert jnp.allclose(sigma * spacing, expected, rtol=1e-4)


def test_default_shift_is_a_small_part_of_the_frequency():
    out = cpml_coefficients(CPML(8), jnp.zeros(1), SPACING, DT)
    alpha = -jnp.log(out.b[0]) * EPSILON_0 / DT
    omega = 2 * jnp.pi * SPEED_OF_LIGHT / (20 * SPACING)
    assert jnp.allclose(alpha, omega * EPSILON_0 / 30, rtol=0.06)
    assert out.c[0] == 0


@pytest.mark.parametrize("bad", [0.0, 1.0, -1.0, float("nan")])
def test_reflection_is_checked(bad):
    with pytest.raises(ValueError, match=r"`reflection` must lie in \(0, 1\), but is"):
        CPML(8, reflection=bad)


def test_thin_layer_is_refused():
    with pytest.raises(
        PhysaxError, match="`cells` must be an integer of at least 4, but"
    ):
        CPML(3)


def test_bad_time_step_is_refused_on_the_host_and_poisons_under_jit():
    def run(dt):
        return cpml_coefficients(CPML(8), jnp.ones(8), SPACING, dt).b

    with pytest.raises(PhysaxError, match="`dt` must be positive, but is -1"):
        run(jnp.array(-1.0))
    assert jnp.all(jnp.isnan(jax.jit(run)(jnp.array(-1.0))))


def test_python_numbers_and_arrays_compile_once():
    traces = 0

    @jax.jit
    def run(layer):
        nonlocal traces
        traces += 1
        return layer.reflection * 2

    run(CPML(8, reflection=1e-5))
    run(CPML(8, reflection=jnp.asarray(1e-5, float)))
    assert traces == 1


def test_large_blocks_are_stepped_like_small_ones(monkeypatch):
    # On a CPU, along the last axis layers are added in other ways, for the speed alone.
    monkeypatch.setattr(_step, "default_platform", lambda: "cpu")
    grid = Grid.uniform((20, 18, 17), float(SPACING))
    sim = Simulation(grid, boundaries=Boundaries.all(CPML(8, kappa_max=2.0)), steps=1)
    program = build_program(sim)
    state = rest(program)
    keys = iter(jax.random.split(jax.random.key(0), 100))
    noise = lambda x: jax.random.normal(next(keys), x.shape, x.dtype)  # noqa: E731
    fields, psi = jax.tree.map(noise, (state.fields, state.psi))

    def stepped(way, electric):
        step = lambda *x: way(program.stepper, *x, electric=electric)  # noqa: E731
        return str(jax.make_jaxpr(step)(fields, psi)), jax.jit(step)(fields, psi)

    for way in product((half_step, transposed_half_step), (False, True)):
        with monkeypatch.context() as patch:
            small = stepped(*way)
            patch.setattr(_step, "_CACHED", 0)
            large = stepped(*way)
        assert small[0] != large[0]
        pairs = zip(*map(jax.tree.leaves, (small[1], large[1])), strict=True)
        assert all(jnp.allclose(a, b, atol=1e-12) for a, b in pairs)
