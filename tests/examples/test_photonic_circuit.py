"""A simulated coupler in circuits, against theory, formulas and linear algebra."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from examples import photonic_circuit as circuits
from examples.directional_coupler import (
    ARMS,
    FIRST,
    INDEX,
    OXIDE,
    SILICON,
    WIDTH,
    asymmetry,
    chip,
    crossing,
    even_gap,
    judged,
    slab_index,
    solvers,
)
from physax import em, graph
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


# Nearly all of the time is compilation.
pytestmark = [pytest.mark.x64, pytest.mark.slow]

GAP, LENGTH, BEND = 0.2, 1.5, 2.0
TASKS = [circuits.INTERFEROMETER, circuits.RING]


@pytest.fixture(scope="module")
def place():
    return chip(44 * NANO, BEND, LENGTH)


@pytest.fixture(scope="module")
def solve(place):
    return solvers(place)


@pytest.fixture(scope="module")
def medium(solve):
    return solve.medium(jnp.asarray(GAP, float), jnp.asarray(LENGTH, float))


@pytest.fixture(scope="module")
def part(solve, medium):
    return solve.light(medium)


@pytest.fixture(scope="module")
def program(solve):
    # The arm is not tuned. Edges lie inside cells.
    start = {"gap": GAP, "length": LENGTH, "arm": 44.0}
    backend = graph.Backend("float64")
    return circuits.compiled(circuits.INTERFEROMETER, solve, start, backend)


@pytest.fixture(scope="module")
def differentiated(program):
    return program.evaluate(program.params, {}, {"loss": True})


def directly(task, part, guides):
    """Solves for all waves of a circuit at once, by its joins."""
    named = {name: guides.get(name, part) for name in task.circuit.terminals}
    ports = [f"{name}.{port}" for name, one in named.items() for port in one.ports]
    whole = np.zeros((len(part.values), len(ports), len(ports)), complex)
    start = 0
    for one in named.values():
        stop = start + len(one.ports)
        whole[:, start:stop, start:stop] = one.values
        start = stop
    swap = np.zeros((len(ports), len(ports)))
    for pair in task.circuit.joins:
        one, other = map(ports.index, pair)
        swap[one, other] = swap[other, one] = 1
    shown = dict(task.circuit.ports)
    entry = np.zeros(len(ports))
    entry[ports.index(shown.pop("in"))] = 1
    waves = np.linalg.solve(np.eye(len(ports)) - whole @ swap, whole @ entry[:, None])
    return {name: waves[:, ports.index(port), 0] for name, port in shown.items()}


def guides_of(task, arm):
    lengths = {"arm": arm, **dict(task.others)}
    make = partial(circuits.guide, amplitude=task.amplitude)
    return {name: make(length) for name, length in lengths.items()}


@pytest.mark.parametrize(("gap", "order"), [(50.0, 1), (0.2, 1), (0.2, 2)])
def test_indices_are_those_of_the_mode_solver(gap, order):
    # A cell of 2 nm, and edges of guides between its points: an error of some 1e-4.
    cell = 0.002
    y = (np.arange(1500) + 0.5) * cell - 1.5
    inside = abs(abs(y) - (gap + WIDTH) / 2) < WIDTH / 2
    if gap > 1:
        inside = abs(y) < WIDTH / 2
    one = np.ones(len(y))
    mode = em.slab_mode(
        jnp.asarray(np.where(inside, SILICON**2, OXIDE**2)),
        *map(jnp.asarray, (one, one, cell * MICRO * one, cell * MICRO * one)),
        SPEED_OF_LIGHT / (1.55 * MICRO),
        polarisation="Ez",
        order=order,
    )
    expected = slab_index(1.55, gap, odd=order == 2)
    assert float(mode.effective_index) == pytest.approx(expected, abs=2e-4)
    assert expected == INDEX if gap > 1 else abs(expected - INDEX) > 0.01


def test_the_gap_splits_evenly_in_theory():
    assert crossing(even_gap(4.0), 4.0) == pytest.approx(0.5, abs=0.01)
    # More length is more coupling, and so are bends.
    assert even_gap(5.0) > even_gap(4.0)
    assert crossing(even_gap(4.0), 4.0, 3.0) > 0.65


def test_the_coupler_loses_little_and_splits_as_theory_says(part):
    power = np.abs(part.values) ** 2
    lost = 1 - power.sum(axis=1)
    assert np.all((lost > 0) & (lost < 0.03))
    verdict = judged(part)
    assert verdict.lost == pytest.approx(lost[FIRST, 0])
    # Ten cells in a wavelength: waves in the grid are some percent too short.
    assert verdict.crossed == pytest.approx(crossing(GAP, LENGTH, BEND), abs=0.1)
    assert verdict.reflected < 1e-3


def test_the_coupler_is_reciprocal_with_a_scatterer_on_one_side(solve, medium, part):
    x, y = (np.arange(n) / n for n in medium.shape)
    bump = np.exp(-((x[:, None] - 0.4) ** 2 + (y - 0.6) ** 2) / 0.1**2)
    there = solve.light(medium * (1 + 0.1 * bump))
    # Turned around, light from `in0` enters where `out1` was.
    back = solve.light((medium * (1 + 0.1 * bump))[::-1, ::-1])
    assert np.min(np.abs(there("out1", "in0") - part("out1", "in0"))) > 0.01
    np.testing.assert_allclose(there("out1", "in0"), back("out1", "in0"), atol=1e-3)
    assert np.max(np.abs(there("out0", "in0") - back("out0", "in0"))) > 0.01


def test_a_column_that_does_not_fit_the_others_is_told(part):
    column = jnp.stack([part(port, "out1") for port in part.ports], -1)[..., None]
    driven = partial(em.SParameters, ports=part.ports, inputs=("out1",), results={})
    assert asymmetry(part, driven(column, jnp.ones(17))) == 0
    changed = column.at[3, 1].add(0.01)
    assert asymmetry(part, driven(changed, jnp.ones(17))) == pytest.approx(0.01)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.circuit.label)
def test_circuits_agree_with_linear_algebra(task, part):
    found = circuits.joined(task, part, 31.4)
    for name, expected in directly(task, part, guides_of(task, 31.4)).items():
        np.testing.assert_allclose(found(name, "in"), expected, atol=1e-12)


def test_without_reflections_both_ways_of_the_interferometer_add(part):
    straight, arm = circuits.one_way(part), 43.21
    guides = guides_of(circuits.INTERFEROMETER, arm)
    through = (guides[name]("out", "in") for name in ("arm", "short"))
    expected = circuits.interferometer_formula(straight, *through)
    found = circuits.joined(circuits.INTERFEROMETER, straight, arm)
    np.testing.assert_allclose(found("bar", "in"), expected[0], atol=1e-12)
    np.testing.assert_allclose(found("cross", "in"), expected[1], atol=1e-12)


def lossless(part):
    """The coupler next to a given one whose supermodes lose nothing."""
    straight, across = part("out0", "in0"), part("out1", "in0")
    even, odd = (m / jnp.abs(m) for m in (straight + across, straight - across))
    straight, across = (even + odd) / 2, (even - odd) / 2
    there = {"in0": straight, "in1": across}
    entries = {(name, "out0"): value for name, value in there.items()}
    entries |= {(ARMS[name], "out1"): value for name, value in there.items()}
    entries |= {(out, name): value for (name, out), value in entries.items()}
    return graph.from_sax(entries)


@pytest.mark.parametrize("arm", [60.0, 60.1, 60.3])
def test_without_reflections_turns_of_the_ring_add(part, arm):
    turn = guides_of(circuits.RING, arm)["arm"]("out", "in")
    straight = circuits.one_way(part)
    found = circuits.joined(circuits.RING, straight, arm)("out", "in")
    expected = circuits.ring_formula(straight, turn)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    # Yariv (2000), with the phase of the coupler in the turn.
    ideal = lossless(part)
    t = ideal("out0", "in0")
    phase = t / jnp.abs(t)
    expected = phase * (jnp.abs(t) - turn * phase) / (1 - jnp.abs(t) * turn * phase)
    found = circuits.joined(circuits.RING, ideal, arm)("out", "in")
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_dictionaries_of_sax_go_both_ways(part):
    back = graph.from_sax(graph.to_sax(part))
    assert back.ports == part.ports
    assert jnp.array_equal(back.values, part.values)


def test_the_gradient_from_loss_to_geometry_passes_the_taylor_test(
    program, differentiated
):
    direction = {"gap": 0.01, "length": -0.1, "arm": 0.02}
    outputs, slopes = differentiated
    slope = sum(float(slopes[name]) * direction[name] for name in direction)
    assert all(abs(float(slopes[name]) * direction[name]) > 1e-4 for name in direction)

    def loss(t):
        moved = {k: program.params[k] + t * direction[k] for k in direction}
        return float(program.evaluate(moved, {})["loss"])

    # An edge that is nearly level crosses a border of cells within a nanometre.
    steps = np.array([4e-3, 2e-3, 1e-3])
    rests = np.array([loss(t) - float(outputs["loss"]) - t * slope for t in steps])
    orders = np.log2(np.abs(rests[:-1] / rests[1:]))
    assert np.all(np.abs(orders - 2) < 0.05)
    # Not by chance: the slope is not small beside what it leaves.
    assert abs(rests[-1]) < 0.1 * steps[-1] * abs(slope)


def test_a_search_lowers_the_loss(solve):
    task = circuits.RING
    first = circuits.begun(task, solve, GAP, LENGTH, 60.0)
    # The arm is tuned: a length a little off is worse.
    for off in (-0.01, 0.01):
        arm = first.params["arm"] + off
        assert task.loss(circuits.joined(task, first.part, arm)) > first.course[0]
    best = circuits.search(task, solve, first, 1)
    assert best.course[0] == pytest.approx(first.course[0], rel=1e-3)
    assert min(best.course) < 0.8 * first.course[0]
    again = task.loss(circuits.joined(task, best.part, best.params["arm"]))
    assert float(again) == pytest.approx(min(best.course), rel=1e-6)


def test_the_script_draws_and_tells(place, solve, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(circuits, "LENGTH", LENGTH)
    monkeypatch.setattr(circuits, "chip", lambda *args: place)
    monkeypatch.setattr(circuits, "solvers", lambda place: solve)
    circuits.main(["--small", "--output", str(tmp_path)])
    assert (tmp_path / "photonic_circuit.png").stat().st_size > 10_000
    assert "of the power crosses" in capsys.readouterr().out
