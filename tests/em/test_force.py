"""Forces of light: balances of the discrete fields, Maxwell's stress."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em._force import _weights
from physax.grid import Grid
from physax.units import EPSILON_0, FEMTO, MICRO, SPEED_OF_LIGHT
from tests.em.force_scenes import (
    CELL,
    COMPONENT,
    FREE,
    FREQUENCY,
    PULSE,
    block,
    box,
    of,
    scene,
)


def stress(fields, low, high):
    """Integrates Maxwell's stress tensor over a box of nodes, Ez polarisation."""
    e, hx, hy = (np.asarray(fields.values[n])[0] / FEMTO for n in ("Ez", "Hx", "Hy"))
    # To the nodes, by cubics; H is stored times eta0.
    hx = (9 * (hx + np.roll(hx, 1, 1)) - np.roll(hx, -1, 1) - np.roll(hx, 2, 1)) / 16
    hy = (9 * (hy + np.roll(hy, 1, 0)) - np.roll(hy, -1, 0) - np.roll(hy, 2, 0)) / 16
    mean = (np.abs(e) ** 2 + np.abs(hx) ** 2 + np.abs(hy) ** 2) / 2
    xx, yy = np.abs(hx) ** 2 - mean, np.abs(hy) ** 2 - mean
    xy = np.real(hx * np.conj(hy))
    (x0, y0), (x1, y1) = low, high

    def along(values):
        return (np.sum(values) - (values[0] + values[-1]) / 2) * CELL

    x, y = slice(x0, x1 + 1), slice(y0, y1 + 1)
    force = (
        along(xx[x1, y]) - along(xx[x0, y]) + along(xy[x, y1]) - along(xy[x, y0]),
        along(xy[x1, y]) - along(xy[x0, y]) + along(yy[x, y1]) - along(yy[x, y0]),
    )
    return np.array(force) * EPSILON_0 / 2


@pytest.mark.slow
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_every_box_around_a_body_has_one_force_and_an_empty_one_none(polarisation):
    monitors = {
        "near": box(3, 3),
        "far": box(6, 8),
        "empty": em.ForceMonitor((28 * CELL, 14 * CELL), (0.3 * MICRO,) * 2, FREQUENCY),
    }
    if polarisation == "Ez":
        monitors["all"] = em.FieldMonitor(
            ("Ez", "Hx", "Hy"), (0, 0), (FREE,) * 2, FREQUENCY
        )
    found = em.simulate(scene(polarisation, monitors)).monitors
    near, far, empty = (of(found[name]) for name in ("near", "far", "empty"))
    # Not the discretisation, but what the monitor leaves out between samples.
    assert np.max(np.abs(near - far)) < 1e-7 * np.max(np.abs(near))
    assert np.max(np.abs(empty)) < 1e-7 * np.max(np.abs(near))
    if polarisation == "Ez":
        want = stress(found["all"], (26, 14), (44, 38))
        # Both are of second order; 24 cells per wavelength.
        assert np.max(np.abs(near - want)) < 0.02 * np.max(np.abs(want))


def test_force_on_a_film_is_what_it_reflects_and_absorbs():
    grid = Grid.uniform((120,), CELL)
    eps = jnp.ones(120).at[55:62].set(4.0)
    sigma = jnp.zeros(120).at[55:62].set(4e3)
    wave = em.PlaneWave("+x", "Ez", (60 * CELL,), (60 * CELL,), PULSE)

    def run(medium):
        sim = em.Simulation(
            grid,
            medium,
            em.Boundaries.all(em.CPML(20)),
            sources={"wave": wave},
            monitors={
                "in": em.FluxMonitor("x", (40 * CELL,), (0.0,), FREQUENCY),
                "out": em.FluxMonitor("x", (75 * CELL,), (0.0,), FREQUENCY),
                "force": em.ForceMonitor((58 * CELL,), (20 * CELL,), FREQUENCY),
            },
            steps=1500,
        )
        found = em.simulate(sim).monitors
        flux = {n: float(found[n].flux[0]) for n in ("in", "out")}
        return flux, float(found["force"].force["x"][0]) * SPEED_OF_LIGHT

    flux, force = run(em.Medium(eps, conductivity=sigma))
    empty, none = run(em.Medium())
    reflected = 1 - flux["in"] / empty["in"]
    assert 0.1 < reflected < 0.9
    assert (flux["in"] - flux["out"]) / empty["in"] > 0.05
    want = 1 + reflected - flux["out"] / empty["in"]
    # 2 R + A, up to the fourth power of a cell's phase, 0.02 * 0.26^4.
    assert force / empty["in"] == pytest.approx(want, rel=2e-4)
    assert abs(none) < 1e-7 * empty["in"]


@pytest.mark.slow
def test_force_in_a_period_is_the_momentum_of_its_orders():
    level = np.ones((36, 100))
    level[:14, 50:58] = 2.25
    level[14:20, 50:54] = 2.25  # without a mirror plane
    shift = 0.7 / MICRO
    # Narrow, so that little is sent at the onset of an order.
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 20)
    wave = em.PlaneWave(
        "+y", "Ez", (0.0, 50 * CELL), (FREE, 60 * CELL), pulse, exit=False
    )
    planes = {
        name: em.NearFieldMonitor((0.0, at * CELL), (FREE, 0.0), FREQUENCY, face)
        for name, at, face in (("in", 30, "-y"), ("sent", 75, "+y"))
    }
    sim = em.Simulation(
        Grid.uniform((36, 100), CELL),
        em.Medium(jnp.asarray(level)),
        em.Boundaries(x=em.Bloch(shift), y=em.CPML(14)),
        sources={"wave": wave},
        monitors=planes
        | {"force": em.ForceMonitor((0.0, 54 * CELL), (FREE, 20 * CELL), FREQUENCY)},
        steps=6000,
        polarisation="Ez",
    )
    found = em.simulate(sim, until=em.Decay(1e-9, 500)).monitors
    k = 2 * np.pi * FREQUENCY / SPEED_OF_LIGHT
    flow = np.zeros(2)
    # Momentum in, less that which leaves on either side: k over omega per energy.
    for near, incoming, way, sign in (
        ("in", True, 1, 1),
        ("in", False, -1, -1),
        ("sent", False, 1, -1),
    ):
        orders = em.diffraction_orders(found[near], incoming=incoming)
        along = shift + 2 * np.pi * np.asarray(orders.orders[0]) / (36 * CELL)
        power = np.asarray(orders.power)[0]
        power = power.reshape(len(along), -1).sum(axis=1)
        keep = np.abs(along) < k
        across = way * np.sqrt(np.where(keep, k**2 - along**2, 0))
        each = np.stack([along, across]) * np.where(keep, power, 0)
        flow += sign * each.sum(axis=1) / (2 * np.pi * FREQUENCY)
    got = of(found["force"])
    # The cells are coarse for what is known of each order's direction: 1 %.
    assert np.max(np.abs(got - flow)) < 0.01 * np.max(np.abs(flow))
    assert abs(got[0]) > 0.02 * abs(got[1])


@pytest.mark.slow
@pytest.mark.parametrize(("polarisation", "wall"), [("Ez", em.PEC()), ("Hz", em.PMC())])
def test_half_a_scene_has_half_the_force_along_its_mirror(polarisation, wall):
    body = em.Structure(
        em.Box((35 * CELL, 0.0), (6 * CELL, 8 * CELL)), em.Material(4.0)
    )
    names = ("Ez", "Hx", "Hy") if polarisation == "Ez" else ("Hz", "Ex", "Ey")
    at = 6.5 if polarisation == "Hz" else 6.0

    def force(cells, low, places):
        grid = Grid.uniform((56, cells), CELL, (0.0, (26 - cells) * CELL))
        sources = {
            str(y): em.Dipole(
                COMPONENT[polarisation], (20 * CELL, y * CELL), PULSE, sign
            )
            for y, sign in places.items()
        }
        monitor = em.ForceMonitor((35 * CELL, 0.0), (14 * CELL, 16 * CELL), FREQUENCY)
        sim = em.Simulation(
            grid,
            em.rasterise([body], grid, components=names),
            em.Boundaries(x=em.CPML(8), y=(low, em.CPML(8))),
            sources=sources,
            monitors={"force": monitor},
            steps=900,
            polarisation=polarisation,
        )
        return em.simulate(sim).monitors["force"].force

    # The image of the dipole has the sign of its wall.
    sign = em.mirror_sign(COMPONENT[polarisation], 1, wall)
    whole = force(52, em.CPML(8), {at: 1.0, -at: float(sign)})
    half = force(26, wall, {at: 1.0})
    assert set(half) == {"x"}
    # The layers below are not each other's images to half a cell.
    assert float(half["x"][0]) == pytest.approx(float(whole["x"][0]) / 2, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", [em.LinearTape(), em.FrequencyDomain()])
def test_gradient_of_a_force(adjoint):
    sim = scene("Ez", {"force": box(4, 4)}, steps=1200)

    def force(density, how):
        here = eqx.tree_at(lambda s: s.medium, sim, block(2.0 + density))
        found = em.simulate(here, adjoint=how).monitors["force"]
        return 1e20 * (found.force["x"][0] + 2 * found.force["y"][0])

    rng = np.random.default_rng(1)
    point, way = rng.uniform(0, 1, (2, 6, 8))
    # One program gives the gradient and the differences.
    run = jax.jit(jax.value_and_grad(partial(force, how=adjoint)))
    slope = np.sum(np.asarray(run(point)[1]) * way)
    one, other = (float(run(point + s * way)[0]) for s in (1e-4, -1e-4))
    assert float(slope) == pytest.approx((one - other) / 2e-4, rel=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_boxes_and_beams_beside_a_body_with_poles_whose_radius_is_traced():
    grid = Grid.centred((44, 44), CELL)
    gold = em.Material(2.0, poles=[em.Drude(2 * FREQUENCY, 0.3 * FREQUENCY)])
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 4)
    port = em.Port((-12 * CELL, 0.0), 26 * CELL, "+x")

    def force(radius):
        disc = em.Structure(em.Circle((1 * CELL, 0.5 * CELL), radius), gold)
        names = ("Ez", "Hx", "Hy")
        medium = em.rasterise([disc], grid, components=names, averaging="volume")
        sim = em.Simulation(
            grid,
            medium,
            em.Boundaries.all(em.CPML(8)),
            sources={"beam": em.GaussianBeam(port, pulse, 6 * CELL)},
            monitors={"force": em.ForceMonitor((0, 0), (18 * CELL,) * 2, FREQUENCY)},
            steps=400,
            polarisation="Ez",
        )
        found = em.simulate(sim).monitors["force"].force
        return 1e20 * (found["x"][0] + 2 * found["y"][0])

    radius, step = jnp.asarray(3.3 * CELL), 1e-4 * CELL
    run = jax.jit(jax.value_and_grad(force))
    value, slope = run(radius)
    one, other = (float(run(radius + s)[0]) for s in (step, -step))
    assert float(slope) == pytest.approx((one - other) / (2 * step), rel=1e-5)
    assert float(force(radius)) == pytest.approx(float(value), rel=1e-10)
    with pytest.raises(ValueError, match="all faces of .* must be the same"):
        force(11.5 * CELL)
    assert np.isnan(float(run(jnp.asarray(11.5 * CELL))[0]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_adjoints_of_a_force_agree_on_graded_cells():
    x = np.arange(56.0)
    # Uniform in the layers.
    inner = (x > 12) & (x < 44)
    widths = CELL * (1 + 0.15 * inner * np.sin(2 * np.pi * (x - 12) / 8))
    grid = Grid(
        (jnp.asarray(widths), jnp.asarray(CELL)), (jnp.zeros(()),) * 2, (56, 52)
    )
    sim = scene("Hz", {"force": box(5, 4)}, steps=60, grid=grid)

    def force(density, how):
        here = eqx.tree_at(lambda s: s.medium, sim, block(2.0 + density))
        found = em.simulate(here, adjoint=how).monitors["force"]
        return 1e20 * (found.force["x"][0] + 2 * found.force["y"][0])

    density = jnp.asarray(np.random.default_rng(1).uniform(0, 1, (6, 8)))
    slope = jax.jit(jax.grad(force), static_argnames="how")
    want = slope(density, how=em.Direct())
    scale = np.max(np.abs(want))
    assert scale > 0
    for adjoint in (em.LinearTape(), em.Checkpointed(), em.Reversible()):
        got = slope(density, how=adjoint)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * scale)


@pytest.mark.slow
def test_force_on_graded_cells_approaches_what_a_film_reflects():
    def errors(fine):
        """Of the force on a film and on nothing, over that of the light sent."""
        at = (np.arange(120 * fine) + 0.5) / fine
        wave = np.sin((at - 24) * np.pi / 18) * np.sin((at - 24) * np.pi / 72) ** 2
        bump = np.where((at > 24) & (at < 96), wave, 0)
        widths = CELL / fine * (1 + 0.3 * bump)
        node = np.concatenate([[0], np.cumsum(widths)])[::fine]
        faces = {name: (node[k],) for name, k in (("in", 40), ("out", 75))}
        between = lambda a, b: (((node[a] + node[b]) / 2,), (node[b] - node[a],))  # noqa: E731

        def run(level):
            sim = em.Simulation(
                Grid((jnp.asarray(widths),), (jnp.zeros(()),), (120 * fine,)),
                em.Medium(jnp.ones(120 * fine).at[55 * fine : 62 * fine].set(level)),
                em.Boundaries.all(em.CPML(20 * fine)),
                sources={"wave": em.PlaneWave("+x", "Ez", *between(30, 90), PULSE)},
                monitors={
                    name: em.FluxMonitor("x", at, (0.0,), FREQUENCY)
                    for name, at in faces.items()
                }
                | {"force": em.ForceMonitor(*between(48, 68), FREQUENCY)},
                steps=1500 * fine,
            )
            found = em.simulate(sim).monitors
            force = float(found["force"].force["x"][0]) * SPEED_OF_LIGHT
            return force, *(float(found[name].flux[0]) for name in faces)

        (force, inward, out), (none, sent, _) = run(4.0), run(1.0)
        return abs(force - (2 * sent - inward - out)) / sent, abs(none) / sent

    (film, empty), (finer_film, finer_empty) = errors(1), errors(2)
    assert film < 1e-3
    assert finer_film < film / 4
    # What the monitor adds is of the fourth order.
    assert finer_empty < empty / 12


@pytest.mark.slow
def test_slopes_on_cells_of_any_width():
    gaps = jnp.asarray([[1.0, 1.2, 0.9, 1.1], [1.0, 1.0, 1.0, 1.0]]) * 0.1
    before, last, next_, behind = np.asarray(gaps).T
    at = np.stack([-before - last, -last, 0 * last, next_, next_ + behind], axis=-1)
    slope = np.sum(np.asarray(_weights(gaps)) * np.exp(1j * at), axis=-1)
    # Of the grid's own difference, with cells as wide as the mean.
    unit = np.mean(gaps, axis=-1)
    want = 2j / unit * np.sin(unit / 2)
    assert np.max(np.abs(slope - want)) < 2e-5
    assert np.allclose(_weights(gaps[1]), _weights(gaps)[1], rtol=1e-6)
