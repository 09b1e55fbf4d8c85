"""Full tensors: what they keep, and what their derivatives are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em import _tilt
from physax.em._boxes import cells_of
from physax.em._program import build_program
from physax.em._state import rest
from physax.em._tilt import (
    allowed,
    average_to_nodes,
    coupled_half_step,
    coupling_terms,
    scatter_from_nodes,
)
from physax.grid import Grid
from physax.units import ETA_0, FEMTO, SPEED_OF_LIGHT
from tests.em.scenes import CELL, PULSE, at, enclosed, skewed
from tests.em.test_linear_tape import check, gradient
from tests.validation.stepping import advance


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
    # They end long before a wave could grow.
    pytest.mark.filterwarnings("ignore:Dispersion 1 should end before the abs"),
]


@pytest.mark.x64
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("low", [em.PEC(), em.PMC()], ids=["PEC", "PMC"])
@pytest.mark.parametrize("box", [((0, 7), (0, 6), (0, 5)), ((2, 6), (0, 6), (1, 2))])
def test_a_step_adds_the_means_of_means(box, low, platform, monkeypatch):
    monkeypatch.setattr(_tilt, "default_platform", lambda: platform)
    random = np.random.default_rng(0)
    entries = {}
    for pair in ("xy", "xz", "yz"):
        entries[pair] = random.uniform(-0.1, 0.1, [high - low for low, high in box])
        # Nothing is known of neighbours below the box.
        for axis in pair:
            np.moveaxis(entries[pair], "xyz".index(axis), 0)[0] = 0
    medium = em.Medium(2.0, off_diagonals=em.OffDiagonal(box, entries))
    sim = em.Simulation(
        Grid.uniform((7, 6, 5), CELL),
        medium,
        em.Boundaries(y=(low, em.PMC())),
        steps=1,
    )
    program = build_program(sim)
    stepper, (one,) = program.stepper, program.tilts
    blank = {name: jnp.zeros([n - m for m, n in one.box]) for name in one.names}
    # Both pairs of a component are one kernel but for Ex and Ez on a magnetic wall.
    kernels = 3 if isinstance(low, em.PEC) else 5
    assert len(coupling_terms(one, stepper.block, blank)) == (
        kernels if all(one.spans) else 6
    )
    fields, curls = (
        {
            name: jnp.asarray(random.normal(size=value.shape))
            for name, value in rest(program).fields.items()
            if name[0] == "E"
        }
        for _ in range(2)
    )

    @jax.jit
    def both(fields, curls):
        new, _ = coupled_half_step(program.tilts, stepper, fields, curls)
        here = cells_of(one.here(stepper.block))
        pushes = {name: curl[here] for name, curl in curls.items()}
        more = scatter_from_nodes(
            one, stepper.block, average_to_nodes(one, stepper.block, pushes)
        )
        want = {
            name: stepper.rows[name].update(fields[name], curl).at[here].add(more[name])
            for name, curl in curls.items()
        }
        return new, want

    new, want = both(fields, curls)
    for name, value in want.items():
        np.testing.assert_allclose(new[name], value, rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize(
    ("scene", "poles"), [("walls", False), ("walls", True), ("3-D", True)]
)
def test_tape_agrees_with_the_loop_itself(scene, poles):
    sim = skewed(scene, poles=poles)
    want = gradient(sim, em.Direct())
    assert "xy 0" in want
    check(gradient(sim, em.LinearTape()), want)
    if scene == "walls":
        check(gradient(sim, em.LinearTape(every=7)), want)


@pytest.mark.x64
@pytest.mark.slow
def test_tape_agrees_where_a_wave_meets_poles_and_tensors():
    sim = enclosed()
    want = gradient(sim, em.Direct())
    names = {"amplitude", "strength 0", "fraction 1", "xy 0", "xy 1"}
    assert all(np.any(want[name]) for name in names)
    check(gradient(sim, em.LinearTape()), want)


@pytest.mark.x64
def test_losses_and_poles_of_a_turned_crystal_are_those_of_one_along_the_grid():
    cells, steps, turn = 40, 400, 0.6
    box, shape = ((0, 2), (0, 2), (0, cells)), (2, 2, cells)
    c, s = np.cos(turn), np.sin(turn)
    turned = np.array([[c, -s], [s, c]])
    inverse = turned @ np.diag([1 / 2.0, 1 / 3.5]) @ turned.T
    wave = np.sin(2 * np.pi * np.arange(cells) / cells)

    def last(permittivity, start, tensor):
        sim = em.Simulation(
            Grid.uniform(shape, CELL),
            em.Medium(
                permittivity,
                conductivity=5e3,
                dispersions=em.Dispersion(box, em.Lorentz(0.8, 3e14, 2e13)),
                off_diagonals=tensor,
            ),
            em.Boundaries.all(em.Periodic()),
            dt=0.4 * CELL / SPEED_OF_LIGHT,
            steps=steps,
        )
        own = {
            name: jnp.broadcast_to(jnp.asarray(x * wave), shape)
            for name, x in zip(("Ex", "Ey"), start, strict=True)
        }
        fields = advance(sim, own, steps)
        return np.array([fields["Ex"], fields["Ey"]])

    want = last({"Ex": 2.0, "Ey": 3.5, "Ez": 2.0}, (1.0, 0.5), ())
    found = last(
        {"Ex": 1 / inverse[0, 0], "Ey": 1 / inverse[1, 1], "Ez": 2.0},
        turned @ (1.0, 0.5),
        em.OffDiagonal(box, {"xy": np.full(shape, inverse[0, 1])}),
    )
    back = np.tensordot(turned.T, found, 1)
    scale = np.max(np.abs(want))
    assert scale > 0.01
    np.testing.assert_allclose(back, want, rtol=0, atol=1e-11 * scale)


def tilted(entry, sigma):
    """Entries and inertias that a run in 2-D steps, over those that are given."""
    box = tuple((0, n) for n in entry.shape)
    medium = em.Medium(
        2.0,
        conductivity={"Ex": sigma, "Ey": np.zeros_like(sigma)},
        off_diagonals=em.OffDiagonal(box, {"xy": entry}),
    )
    grid = Grid.uniform(entry.shape, CELL)
    sim = em.Simulation(grid, medium, polarisation="Hz", steps=1)
    program = build_program(sim)
    rows = program.stepper.rows
    inertias = [np.broadcast_to(rows[n].inertia, entry.shape) for n in ("Ex", "Ey")]
    return [np.asarray(program.tilts[0].entries["xy"]), *inertias]


@pytest.mark.x64
def test_losses_and_tensors_meet_where_they_lie_side_by_side():
    here, nothing = (4, 5), np.zeros((8, 9))
    entry, sigma = nothing.copy(), np.full(nothing.shape, 1e4)
    entry[here] = 0.2
    _, _, y = tilted(entry, sigma)
    # Losses along x change what a node does to the samples beside it along y.
    want = nothing.copy()
    want[4, 4:6] = 1
    np.testing.assert_allclose(y > 2 + 1e-6, want)
    assert y[4, 4] == y[4, 5]
    entry, sigma = np.full(nothing.shape, 0.2), nothing.copy()
    entry[0], entry[:, 0] = 0, 0
    sigma[here] = 1e4
    found, *_ = tilted(entry, sigma)
    # Nodes 4 and 5 lie beside sample 4, and share with the others what they change.
    changed = np.abs(found - entry) > 1e-6
    assert changed[4:6, 5].all()
    assert not changed[:, :4].any()
    assert not changed[:, 7:].any()
    assert not changed[:4].any()
    assert not changed[6:].any()


@pytest.mark.x64
def test_waves_in_a_turned_crystal_have_the_index_of_their_direction():
    # Along (1, 1) in a crystal of the principal permittivities 2 and 3.5.
    cells, turn = 24, np.deg2rad(30)
    turned = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    inverse = turned @ np.diag([1 / 2.0, 1 / 3.5]) @ turned.T
    entries = np.full((cells, cells), inverse[0, 1])
    sim = em.Simulation(
        Grid.uniform((cells, cells), CELL),
        em.Medium(
            {"Ex": 1 / inverse[0, 0], "Ey": 1 / inverse[1, 1]},
            off_diagonals=em.OffDiagonal(((0, cells),) * 2, {"xy": entries}),
        ),
        em.Boundaries.all(em.Periodic()),
        steps=600,
        polarisation="Hz",
        sources={"in": em.Dipole("Hz", at(5.5, 7.5), em.GaussianPulse(3e14, 2e14))},
        monitors={"out": em.TimeMonitor(("Hz",), at(12, 12), (np.inf, np.inf))},
    )
    series = np.asarray(em.simulate(sim).monitors["out"].values["Hz"])[-400:]
    wave = np.fft.fft2(series, axes=(1, 2))[:, 1, 1]
    # A wave of one frequency: its second difference is proportional to it.
    middle = wave[1:-1]
    cosine = np.vdot(middle, wave[2:] + wave[:-2]).real / 2 / np.vdot(middle, middle)
    found = np.arccos(cosine.real) / float(sim.dt)
    k = 2 * np.pi / (cells * CELL)
    # The averages between nodes make it the square of a cosine here.
    beside = inverse[0, 1] * np.cos(k * CELL / 2) ** 2
    square = inverse[0, 0] + inverse[1, 1] - 2 * beside
    sine = SPEED_OF_LIGHT * float(sim.dt) / CELL * np.sin(k * CELL / 2) * square**0.5
    assert found == pytest.approx(2 * np.arcsin(sine) / float(sim.dt), rel=1e-9)
    across = np.array([1, -1]) / np.sqrt(2)
    exact = np.sqrt(2) * k * SPEED_OF_LIGHT * np.sqrt(across @ inverse @ across)
    assert found == pytest.approx(exact, rel=5e-3)


@pytest.mark.slow
@pytest.mark.x64
def test_box_inside_a_period_ends_as_at_a_wall():
    # Its first nodes lack a neighbour: entries there are refused, or end as NaN.
    shape, box = (14, 12), ((6, 10), (2, 9))
    random = np.random.default_rng(4)
    entry = random.uniform(-0.3, 0.3, (4, 7))

    def slopes(entry, adjoint):
        def value(entry, eps):
            one = em.OffDiagonal(box, {"xy": entry})
            sim = em.Simulation(
                Grid.uniform(shape, CELL),
                em.Medium(eps, off_diagonals=one),
                em.Boundaries(x=em.Periodic(), y=em.PEC()),
                steps=60,
                polarisation="Hz",
                sources={"in": em.Dipole("Hz", at(3.5, 5.5), PULSE, 1e-6)},
            )
            found = em.simulate(sim, adjoint=adjoint)
            return sum(jnp.sum(x**2) for x in found.fields.values())

        eps = jnp.full(shape, 2.5)
        return jax.jit(jax.value_and_grad(value, (0, 1)))(jnp.asarray(entry), eps)

    assert np.isnan(slopes(entry, em.LinearTape())[0])
    entry[0], entry[:, 0] = 0, 0
    _, (one, two) = slopes(entry, em.LinearTape())
    _, want = slopes(entry, em.Direct())
    assert np.abs(np.asarray(one)[1:, 1:]).min() > 0
    for found, right in zip((one, two), want, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-10 * np.abs(right).max())


@pytest.mark.x64
def test_entries_are_scaled_until_any_field_has_energy():
    # The quadratic form of the energy, assembled column by column.
    rng = np.random.default_rng(2)
    shape = (6, 5)
    eps = {name: rng.uniform(1.0, 12.0, shape) for name in ("Ex", "Ey")}
    entry = np.zeros(shape)
    entry[1:, 1:] = rng.uniform(-0.9, 0.9, (5, 4))
    whole = ((0, 6), (0, 5))
    eps = jax.tree.map(jnp.asarray, eps)
    factor = np.asarray(allowed(em.OffDiagonal(whole, {"xy": entry}), eps))
    assert factor.min() < 0.5
    entry = entry * factor
    # d_x lies between the nodes (i, j) and (i + 1, j), d_y beside it.
    means = [np.eye(30).reshape(6, 5, 30) for _ in range(2)]
    for axis in range(2):
        before = np.roll(means[axis], 1, axis)
        first = [slice(None)] * 3
        first[axis] = slice(0, 1)
        before[tuple(first)] = 0
        means[axis] = ((means[axis] + before) / 2).reshape(30, 30)
    cross = means[0].T @ np.diag(entry.ravel()) @ means[1]
    matrix = np.block(
        [
            [np.diag(1 / eps["Ex"].ravel()), cross],
            [cross.T, np.diag(1 / eps["Ey"].ravel())],
        ]
    )
    assert np.linalg.eigvalsh(matrix).min() > 0


@pytest.mark.x64
def test_power_balances_in_a_crystal_whose_axes_are_oblique():
    # In a plane scaled along its axes the crystal is isotropic, and a magnetic line
    # emits k / (4 eta) |K|^2 / 2 of a medium with the root of the determinant.
    frequency, cell = 3e14, SPEED_OF_LIGHT / 3e14 / 30
    pulse = em.GaussianPulse(frequency, frequency / 5)
    turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    inverse = turn @ np.diag([1 / 2, 1 / 3]) @ turn.T
    entries = np.full((56, 56), inverse[0, 1])
    # On the walls behind the layers nothing couples.
    entries[0] = entries[:, 0] = 0
    medium = em.Medium(
        {"Ex": 1 / inverse[0, 0], "Ey": 1 / inverse[1, 1], "Ez": 1.0},
        off_diagonals=em.OffDiagonal(((0, 56), (0, 56)), {"xy": entries}),
    )
    boxes = {
        str(cells): em.NearFieldMonitor((0.0, 0.0), (cells * cell,) * 2, frequency)
        for cells in (12, 28)
    }
    sim = em.Simulation(
        Grid.centred((56, 56), cell),
        medium,
        em.Boundaries.all(em.CPML(10)),
        sources={"line": em.Dipole("Hz", (cell / 2, cell / 2), pulse)},
        monitors=boxes,
        polarisation="Hz",
        steps=900,
    )
    near, far = em.simulate(sim).monitors.values()
    spectrum = np.sqrt(np.pi / 2) / (2 * np.pi * frequency / 5) / FEMTO
    k = 2 * np.pi * frequency / SPEED_OF_LIGHT
    exact = np.sqrt(6) * k / (4 * ETA_0) * spectrum**2 / 2
    # Of second order: 1.1 % here, 0.28 % at twice the cells; the balance of third.
    assert float(far.outflow[0]) == pytest.approx(exact, rel=0.015)
    assert float(near.outflow[0]) == pytest.approx(float(far.outflow[0]), rel=1e-4)
