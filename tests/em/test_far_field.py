"""Far fields: theorems of the discrete fields, gradients, and projection."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import hankel1

from physax import ArgumentError, em
from physax.em._hankel import hankel
from physax.grid import Grid
from physax.units import FEMTO, SPEED_OF_LIGHT

from .dipoles import CELL, FREQUENCY, PHI, PULSE, block, scene


FREE = float("inf")


def wide():
    return jnp.result_type(float) == jnp.float64


@pytest.mark.slow
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_outflow_is_that_of_any_closed_box_and_of_the_far_field(polarisation):
    larger = em.NearFieldMonitor((0.0, CELL), (22 * CELL, 18 * CELL), FREQUENCY)
    sim = scene(polarisation, block(2.2), others={"larger": larger})
    found = em.simulate(sim).monitors
    near, larger = found["near"], found["larger"]
    assert near.closed
    assert set(near.faces) == {"-x", "+x", "-y", "+y"}
    # Poynting's theorem of the discrete fields.
    power = float(near.outflow[0])
    rounding = 1e-8 if wide() else 1e-4
    assert float(larger.outflow[0]) == pytest.approx(power, rel=rounding)
    assert float(em.radiated_power(near)[0]) == pytest.approx(power, rel=0.02)
    # 15 cells per wavelength: the waves between the boxes travel 0.4 % too slowly.
    one, other = (em.far_field(n, em.direction(PHI)) for n in (near, larger))
    a, b = one.values[polarisation], other.values[polarisation]
    assert np.max(np.abs(a - b)) < 0.02 * np.max(np.abs(a))


@pytest.mark.slow
def test_empty_box_absorbs_and_radiates_nothing():
    aside = em.NearFieldMonitor((-6 * CELL, 0.0), (8 * CELL, 10 * CELL), FREQUENCY)
    near = em.simulate(scene("Ez", monitor=aside)).monitors["near"]
    through = float(jnp.max(jnp.abs(jnp.stack(list(near.flux.values())))))
    # What the monitor leaves out between samples aliases by 3e-9; with all steps 2e-12.
    limit = 1e-8 if wide() else 1e-5
    assert abs(float(em.absorbed_power(near)[0])) < limit * through
    # What enters on one side leaves on the other, so that no direction gets anything
    # but errors of the grid, of (k dx)^2 / 24.
    found = em.far_field(near, em.direction(PHI)).intensity
    whole = scene("Ez")
    full = em.far_field(em.simulate(whole).monitors["near"], em.direction(PHI))
    assert np.max(found) < 1e-3 * np.max(full.intensity)


def test_absorbed_power_is_what_the_conductivity_takes():
    middle = -3.5 * CELL, 0.5 * CELL
    box = em.NearFieldMonitor(middle, (7 * CELL, 9 * CELL), FREQUENCY)
    # The nodes of the cells that conduct.
    inside = em.FieldMonitor(
        ("Ez",), (-2.5 * CELL, 0.0), (4 * CELL, 5 * CELL), FREQUENCY
    )
    sigma = jnp.zeros((42, 40)).at[17:21, 18:23].set(2e4)
    medium = block(2.2, conductivity=sigma)
    sim = scene("Ez", medium, box, others={"inside": inside})
    found = em.simulate(sim).monitors
    field = np.asarray(found["inside"].values["Ez"])[0] / FEMTO
    # The loss is taken at the middle of a step, of the mean of E at its ends.
    middle = np.cos(np.pi * FREQUENCY * float(sim.dt))
    taken = 2e4 * middle * np.sum(np.abs(field) ** 2) * CELL**2 / 2
    absorbed = float(em.absorbed_power(found["near"])[0])
    assert absorbed == pytest.approx(taken, rel=1e-7 if wide() else 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("wall", [em.PEC(), em.PMC()])
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_half_a_scene_has_the_far_field_of_the_whole(polarisation, wall):
    # The image of the dipole about y = 0 is one at -y of the sign of its wall.
    component = "Ez" if polarisation == "Ez" else "Ey"
    sign = em.mirror_sign(component, 1, wall)
    box = em.NearFieldMonitor((0.0, 0.0), (16 * CELL, 14 * CELL), FREQUENCY)

    def run(grid, low, places):
        sources = {
            str(y): em.Dipole(component, (2 * CELL, y * CELL), PULSE, moment)
            for y, moment in places.items()
        }
        sim = em.Simulation(
            grid,
            boundaries=em.Boundaries(x=em.CPML(8), y=(low, em.CPML(8))),
            sources=sources,
            monitors={"near": box},
            steps=700,
            polarisation=polarisation,
        )
        return em.simulate(sim).monitors["near"]

    at = 3.5 if component == "Ey" else 3.0
    origin = (-21 * CELL, -20 * CELL)
    places = {at: 1.0, -at: float(sign)}
    whole = run(Grid.uniform((42, 40), CELL, origin), em.CPML(8), places)
    half = run(Grid.uniform((42, 20), CELL, (-21 * CELL, 0.0)), wall, {at: 1.0})
    assert set(half.faces) == {"-x", "+x", "+y"}
    assert half.closed
    one, other = (em.far_field(n, em.direction(PHI)) for n in (whole, half))
    a, b = one.values[polarisation], other.values[polarisation]
    # The layers below are not each other's images to half a cell: 1e-4.
    assert np.max(np.abs(a - b)) < 1e-3 * np.max(np.abs(a))
    assert float(em.radiated_power(half)[0]) == pytest.approx(
        float(em.radiated_power(whole)[0]) / 2, rel=2e-3
    )


@pytest.mark.x64
@pytest.mark.slow
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_gradient_of_an_intensity(polarisation):
    sim = scene(polarisation, block(1.2))

    def intensity(density):
        here = eqx.tree_at(lambda s: s.medium, sim, block(1.2 + density))
        near = em.simulate(here).monitors["near"]
        found = em.far_field(near, em.direction(jnp.asarray([0.3])))
        return 1e20 * found.intensity[0, 0]

    x = jnp.asarray(np.random.default_rng(0).uniform(0, 0.8, (4, 5)))
    step = jnp.asarray(np.random.default_rng(1).normal(size=(4, 5)))
    # One program gives the gradient and the remainders.
    run = jax.jit(jax.value_and_grad(intensity))
    value, slope = run(x)
    along = float(jnp.sum(slope * step))
    sizes = 0.02 * 0.5 ** np.arange(4)
    errors = [abs(float(run(x + h * step)[0] - value) - h * along) for h in sizes]
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert orders[-1] == pytest.approx(2.0, abs=0.05)


@pytest.mark.slow
def test_far_field_is_the_same_under_jit_and_vmap():
    near = em.simulate(scene("Ez")).monitors["near"]
    units = em.direction(PHI)
    expected = em.far_field(near, units).values["Ez"]
    tolerance = 1e-10 if wide() else 1e-5
    scale = np.max(np.abs(expected))
    found = jax.jit(lambda n, u: em.far_field(n, u).values["Ez"])(near, units)
    assert np.max(np.abs(found - expected)) < tolerance * scale
    one = jax.vmap(lambda u: em.far_field(near, u).values["Ez"], out_axes=-1)(units)
    assert np.max(np.abs(one - expected)) < tolerance * scale
    # Directions by cosines are the same as by angles.
    up = em.k_direction("+y", np.cos(np.array([0.4, 1.9])))
    assert np.asarray(up) == pytest.approx(
        np.asarray(em.direction(np.array([0.4, 1.9]))), abs=1e-6
    )
    # An evanescent one has no far field.
    gone = em.far_field(near, em.k_direction("-x", np.array([1.5, 0.5]))).intensity[0]
    assert list(np.isnan(gone)) == [True, False]


def test_hankel_functions():
    x = np.array([0.3, 0.7, 1.0, 4.0, 50.0, 400.0])
    zeroth, first = (np.asarray(v) for v in hankel(jnp.asarray(x)))
    turn = np.exp(1j * x)
    tolerance = 2e-7 if wide() else 2e-6
    assert zeroth == pytest.approx(hankel1(0, x) / turn, rel=tolerance)
    assert first == pytest.approx(hankel1(1, x) / turn, rel=tolerance)


@pytest.mark.slow
def test_open_surfaces_have_no_balance():
    monitor = em.NearFieldMonitor((0.0, 6 * CELL), (FREE, 0.0), FREQUENCY, "+y")
    near = em.simulate(scene("Ez", monitor=monitor)).monitors["near"]
    assert not near.closed
    # From layer to layer, not through them.
    assert len(near.coordinates["Ez +y"][0]) == 42 - 16 + 1
    with pytest.raises(ArgumentError, match="must be a closed surface"):
        em.absorbed_power(near)
    # The aperture sends most of half the power up.
    up, down = em.far_field(near, em.direction(np.array([1.6, -1.6]))).intensity[0]
    assert up > 50 * down


@pytest.fixture(scope="module")
def around():
    return em.simulate(scene("Ez")).monitors["near"]


# Beyond 0.1 mm the amplitude is that of the far field to its next term, 1 / kr.
@pytest.mark.parametrize("distance", [1e-4, 1e-2, 1.0, 100.0])
def test_projection_to_a_distant_point_is_the_far_field(around, distance):
    units = np.stack([np.cos(PHI), np.sin(PHI)], axis=-1)
    far = np.asarray(em.far_field(around, units).values["Ez"][0])
    k = 2 * np.pi * np.asarray(around.frequencies, np.float64)[0] / SPEED_OF_LIGHT
    expected = far * np.exp(1j * k * distance) / np.sqrt(distance)
    found = np.asarray(em.project_fields(around, distance * units).values["Ez"][0])
    # Phases of both are known to a few roundings of float64.
    rounding = (1e-9 if wide() else 1e-5) + 2 * k * distance * 2.2e-16
    # Of a box of 8 cells to each side: (k r)^2 / 2 k R.
    limit = (k * 11 * CELL) ** 2 / (2 * k * distance) + rounding
    assert np.max(np.abs(found - expected)) < limit * np.max(np.abs(expected))


@pytest.mark.slow
@pytest.mark.f32
def test_traced_points_too_far_for_single_precision_give_nan(around):
    run = jax.jit(lambda p: em.project_fields(around, p).values["Ez"][0])
    points = np.array([[1e-3, 0.0], [0.1, 0.0]])
    found = np.asarray(run(points))
    assert list(np.isnan(found)) == [False, True]
    expected = np.asarray(em.project_fields(around, points).values["Ez"][0])
    assert abs(found[0] / expected[0] - 1) < 1e-2
    assert np.all(np.isfinite(expected))


@pytest.mark.slow
def test_a_point_on_a_sample_has_no_field(around):
    x, y = (np.asarray(v) for v in around.coordinates["Ez +x"])
    points = np.array([[x[0], y[3]], [x[0] + 0.2 * CELL, y[3]], [x[0] + CELL, y[3]]])
    found = np.asarray(em.project_fields(around, points).values["Ez"][0])
    assert list(np.isnan(found)) == [True, True, False]


@pytest.mark.slow
def test_a_projection_is_differentiable_by_its_point(around):
    def size(x):
        found = em.project_fields(around, jnp.stack([x, 0 * x]))
        return jnp.abs(found.values["Ez"][0]) * 1e15

    run = jax.jit(jax.value_and_grad(size))
    here, step = 3e-6, 1e-8
    slope = float(run(here + step)[0] - run(here - step)[0]) / (2 * step)
    tolerance = 1e-4 if wide() else 0.1
    assert float(run(here)[1]) == pytest.approx(slope, rel=tolerance)
    assert np.isfinite(run(0.0)[1])


def test_directions_at_the_poles_are_those_of_the_axis():
    poles = em.direction(np.array([0.0, 0.0, 0.7, 0.7]), np.array([0.0, np.pi] * 2))
    expected = np.array([[0, 0, 1], [0, 0, -1]] * 2)
    np.testing.assert_array_equal(poles, expected)
    # The derivative by theta is that of the arc.
    slope = jax.jit(jax.jacobian(lambda t: em.direction(jnp.asarray(0.7), t)))(0.0)
    np.testing.assert_allclose(slope, [np.cos(0.7), np.sin(0.7), 0], rtol=1e-6)


@pytest.mark.x64
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
@pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells")
def test_the_intensity_around_a_pole_is_smooth():
    sim = em.Simulation(
        Grid.centred((20, 20, 20), CELL),
        None,
        em.Boundaries.all(em.CPML(4)),
        sources={
            "one": em.Dipole("Ex", (0.0, 0.0, 0.0), PULSE),
            "other": em.Dipole("Ez", (CELL, -CELL, 0.0), PULSE),
        },
        monitors={"near": em.NearFieldMonitor((0.0,) * 3, (8 * CELL,) * 3, FREQUENCY)},
        steps=150,
    )
    near = em.simulate(sim).monitors["near"]
    scale = float(em.far_field(near, np.array([0.0, 0.0, 1.0])).intensity[0])

    for side in ("+z", "-z"):

        def intensity(cosines, side=side):
            to = em.k_direction(side, *cosines)
            return em.far_field(near, to).intensity[0] / scale

        found = jax.grad(intensity)(jnp.zeros(2))
        for axis, step in enumerate(1e-4 * np.eye(2)):
            slope = (intensity(step) - intensity(-step)) / 2e-4
            assert abs(slope) > 0.1
            assert found[axis] == pytest.approx(float(slope), rel=1e-6)
