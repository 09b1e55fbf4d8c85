"""The benchmarks count, rank and report rightly; no timing is asserted."""

import dataclasses
import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import (
    _rows,
    compare,
    cylindrical,
    gradient,
    graph,
    media,
)
from benchmarks._cpml_cases import CASES, COURANT, LAYERS, nodes, reflection
from benchmarks._physax_fdtd import least_bytes
from benchmarks._rows import Row
from benchmarks._turns import in_turn
from benchmarks.fdtd import fraction_of_bare, of_bandwidth, speed, throughput
from benchmarks.peers import _gradient, _worker, bare_yee, numpy_yee


SPEED = "Mcell-steps/s"
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def row(tool, value, case="a", unit=SPEED):
    return Row(case, tool, "1", value, unit, runs=1)


def test_ratio_is_to_the_best_peer_of_the_same_case_and_unit():
    rows = [
        row("physax", 900.0),
        row("beamz", 300.0),
        row("meep", 100.0),
        row("bare", 5000.0),  # lacks an absorber, so it is no peer
        row("fdtdx", None),
        row("beamz", 2.0, case="b"),
    ]
    ratios = [r.ratio_to_best_peer for r in _rows.ranked(rows)]
    assert ratios == [3.0, 1.0, 100 / 300, 5000 / 300, None, 1.0]


def test_share_of_the_bandwidth_is_that_of_the_least_traffic(monkeypatch):
    n = 40
    # 6 + 3 and 6 + 3 fields and one permittivity; 24 slabs of 10 cells, there and back.
    least = 4 * (19 + 2 * 24 * 10 / n)
    assert least_bytes("3d", n) == pytest.approx(least, rel=1e-4)
    speed = SimpleNamespace(bandwidth=1e9)
    monkeypatch.setattr("benchmarks.fdtd.measure", lambda device: speed)
    rows = of_bandwidth([row("physax", 2.0), row("beamz", 9.0)], "3d", n)
    assert [r.tool for r in rows] == ["machine", "physax"]
    assert rows[1].value == pytest.approx(2e6 * least / 1e9, rel=1e-4)


def test_best_peer_is_the_lowest_where_less_is_better():
    unit = "amplitude reflected"
    rows = [row("physax", 1e-6, unit=unit), row("meep", 1e-5, unit=unit)]
    assert _rows.ranked(rows)[0].ratio_to_best_peer == pytest.approx(0.1)


def test_file_is_a_list_of_rows_and_reads_back(tmp_path):
    rows = [row("physax", 1.5), row("meep", None)]
    _rows.report(rows, "title", str(tmp_path / "rows.json"))
    assert _rows.read(tmp_path / "rows.json") == rows
    names = "case tool version value unit ratio_to_best_peer compile_s peak_mb runs"
    for entry in json.loads((tmp_path / "rows.json").read_text()):
        assert list(entry) == names.split()


@pytest.mark.parametrize(
    ("old", "new", "unit", "status"),
    [
        (100.0, 95.0, SPEED, 0),
        (100.0, 80.0, SPEED, 1),
        (1.0, 1.05, "s", 0),
        (1.0, 1.3, "s", 1),
        (1.0, 0.5, "s", 0),
        (100.0, None, SPEED, 1),
    ],
)
def test_compare_finds_what_became_worse(tmp_path, old, new, unit, status):
    paths = [tmp_path / "old.json", tmp_path / "new.json"]
    for path, value in zip(paths, (old, new), strict=True):
        _rows.write([row("physax", value, unit=unit), row("meep", 1.0)], path)
    assert compare.main([str(path) for path in paths]) == status


def test_compare_cancels_a_slower_machine():
    old = _rows.ranked([row("physax", 900.0), row("beamz", 300.0)])
    new = _rows.ranked([row("physax", 450.0), row("beamz", 150.0)])
    assert [factor for *_, factor in compare.compare(old, new)] == [1.0]


def test_compare_leaves_the_rounding_of_a_right_gradient_out():
    old, new = (row("physax", x, unit=_rows.CHECK) for x in (1e-7, 1e-5))
    assert compare.compare([old], [new]) == []


def test_the_two_plain_loops_agree():
    # Before the wave meets a wall, where they differ. Both are float32, and the sum of
    # some 20 steps rounds to a few units in the last place.
    n, steps = 48, 20
    by_numpy = numpy_yee.prepare("2d", n, steps)[0]()[-1]
    by_jax = bare_yee.prepare("2d", n, steps)[0]()[0][-1]
    assert np.abs(by_numpy).max() > 0.1
    np.testing.assert_allclose(by_jax, by_numpy, atol=2e-6)


def test_numpy_loop_fills_the_causal_cone_in_3d():
    # A step moves a signal by at most one cell (H, then E) along one axis.
    n, steps = 24, 6
    e = numpy_yee.prepare("3d", n, steps)[0]()
    distance = np.abs(np.indices((n, n, n)) - n // 2).sum(0)
    for component in e:
        assert np.abs(component).max() > 0
        assert np.all(component[distance > steps + 1] == 0)


def test_missing_peer_is_reported_and_the_others_run(tmp_path, monkeypatch):
    monkeypatch.setattr(_worker, "ENVIRONMENTS", tmp_path)
    with pytest.raises(_worker.PeerError, match=r"benchmarks\.peers\.install"):
        _worker.Worker("beamz")
    missing, ran = throughput("2d", 16, 20, ["beamz", "numpy"], rounds=2)
    assert (missing.tool, missing.version, missing.value) == ("beamz", "missing", None)
    assert (ran.tool, ran.version, ran.runs) == ("numpy", np.__version__, 2)
    assert ran.value > 0
    assert ran.peak_mb > 1


def test_peer_that_ends_is_reported_with_its_status(monkeypatch):
    monkeypatch.setitem(_worker.MODULES, "bare", "peers.absent")
    (row,) = throughput("2d", 16, 20, ["bare"], rounds=1)
    assert (row.version, row.value) == ("missing", None)
    worker = _worker.Worker("numpy")
    with pytest.raises(_worker.PeerError, match="numpy ended with status 1"):
        worker.run(case="4d", n=16, steps=20)
    worker.close()


def test_speed_counts_cells_and_steps():
    assert speed("2d", 1000, 500, 1.0) == 500
    assert speed("3d", 100, 10, 2.0) == 5
    rows = [row("physax", 200.0), row("bare", 400.0)]
    assert fraction_of_bare(rows)[0].value == 0.5


def answers(*seconds, error=1e-5):
    rest = {"compile_s": 1.0, "peak_mb": 9.0, "temp_mb": 5.0, "error": error}
    return [{"seconds": s, **rest} for s in seconds]


def test_fastest_right_gradient_counts():
    runs = {
        "forward": answers(2.0, 1.0),
        "wrong": answers(0.1, error=0.3),
        "none": answers(0.1, error=float("nan")),
        "right": answers(9.0, 8.0),
        "slow": answers(9.0),
    }
    rows = gradient.rows_of("a", "beamz", "1", runs)
    found = {r.case: r.value for r in rows}
    assert found["a: forward"] == 1
    assert found["a: value and gradient"] == 8
    assert found["a: value and gradient over forward"] == 8
    assert found["a: by slow"] == 9
    assert found["a: error of wrong"] == 0.3
    assert found["a: error of none"] is None  # JSON has no such number
    assert not {"a: by wrong", "a: by none"} & set(found)

    ours = [r for r in rows if r.case == "a: value and gradient"]
    ours = [dataclasses.replace(r, tool="physax", value=2.0) for r in ours]
    (factor,) = gradient.faster(_rows.ranked(ours + rows))
    assert (factor.value, factor.tool) == (4, "physax")
    wrong = {method: runs[method] for method in ("forward", "none")}
    rows = gradient.rows_of("a", "beamz", "1", wrong)
    assert rows[-1].case == "a: value and gradient"
    assert rows[-1].value is None


def test_gradient_that_is_wrong_in_some_cells_is_found():
    @jax.custom_jvp
    def halved(x):
        return x

    halved.defjvps(lambda t, out, x: t.at[:2].multiply(0.5))

    def error(change):
        def objective(*_):
            return lambda x: jnp.sum(change(x) ** 3)

        return _gradient.differentiated(objective)("2d", 8, 1, 4, "any")[2]["error"]

    # Differences of a sum of 16 cubes of size 30 are good to some 1e-5 in float32.
    assert error(lambda x: x) < 1e-4
    assert error(halved) > 10 * gradient.TOLERANCE


@pytest.mark.slow
def test_our_gradients_are_right_and_a_missing_peer_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(_worker, "ENVIRONMENTS", tmp_path)
    work = gradient.Workload("2d", 60, 120, 10)
    rows = gradient.measured(work, ["beamz", "physax"], rounds=2)
    found = {(r.tool, r.case.split(": ")[1]): r for r in rows}
    for what in ("forward", "value and gradient"):
        missing, ours = found["beamz", what], found["physax", what]
        assert (missing.version, missing.value) == ("missing", None)
        assert ours.value > 0
        assert ours.compile_s > 0
        assert ours.runs == 2
    assert found["physax", "error of LinearTape"].value < gradient.TOLERANCE


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("cells", LAYERS)
def test_nothing_can_return_from_the_long_domain(case, cells):
    short, source, edge = nodes(case, cells, 0)
    long, *same = nodes(case, cells, case.far)
    assert same == [source, edge]
    assert short - edge == long - edge - case.far == cells
    assert short % 2 == long % 2 == 0  # as Meep's centred grid needs it
    # Fastest possible: one cell per 1 / COURANT steps, there and back again.
    assert 2 * case.far > case.steps * COURANT


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pulse_spares_the_cut_off(case):
    # exp(-gap^2 / (2 width^2)) of the spectrum: below 2e-8 of its peak.
    gap = abs(1 - case.k_parallel)
    assert np.exp(-((gap / case.width) ** 2) / 2) < 2e-8


def test_reflection_is_the_ratio_at_the_carrier():
    case = CASES[0]
    t = np.arange(1, case.steps + 1) / 40
    u = t - 6 * case.spread
    pulse = np.exp(-0.5 * (u / case.spread) ** 2) * np.cos(2 * np.pi * u)
    other = np.exp(-0.5 * (u / case.spread) ** 2) * np.cos(4 * np.pi * u)
    # What returns later, or at another frequency, does not change the amplitude.
    echo = np.roll(pulse, 40) * 1e-5 + other * 1e-3
    assert reflection(pulse + echo, pulse) == pytest.approx(1e-5, rel=1e-3)


def test_recorded_figures_of_meep_hold_every_case():
    rows = _rows.read(RESULTS / "cpml_meep.json")
    meep = [r for r in rows if r.tool == "meep"]
    assert len(meep) == len(CASES) * len(LAYERS)
    assert all(0 < r.value < 0.1 for r in meep)
    assert [dataclasses.asdict(r) for r in rows]


@pytest.mark.slow
def test_graphs_are_compared_call_by_call():
    rows = [
        *graph.overhead(rounds=1, calls=3),
        *graph.composition([3], rounds=1),
        *graph.compilation(2, rounds=1),
    ]
    assert [row.tool for row in rows].count("physax") == 6
    assert all(row.value is not None and row.value > 0 for row in rows)
    ratios = [row.ratio_to_best_peer for row in rows if row.tool == "physax"]
    assert ratios.count(None) == 1


@pytest.mark.slow
def test_rings_are_compared_with_2_d():
    flat, ours, turns, again = cylindrical.costs(40, 4, rounds=1)
    assert (flat.tool, ours.tool) == ("Ez and Hz in 2-D", "physax")
    assert ours.ratio_to_best_peer == pytest.approx(ours.value / flat.value)
    assert again.ratio_to_best_peer == pytest.approx(ours.value / turns.value)
    assert cylindrical.simulation("rz", 40, 4).components.m == 3


@pytest.mark.slow
def test_poles_are_compared_with_none():
    plain, ours, full = media.costs("Hz", 40, 4, 20, rounds=1)
    assert (plain.tool, ours.tool) == ("plain medium", "physax")
    assert ours.case == "Hz, 40^2 cells, 4 poles in 25%"
    assert full.case == "Hz, 40^2 cells, full tensors everywhere"
    assert ours.ratio_to_best_peer == pytest.approx(ours.value / plain.value)
    sim = media.simulation("poles", "Hz", 40, 4, 20)
    assert sim.medium.dispersions[0].box == ((10, 30), (10, 30))


@pytest.mark.slow
def test_spectra_are_compared_with_none():
    plain, ours = media.spectra(30, 4, rounds=1)
    assert (plain.tool, ours.tool) == ("no monitors", "physax")
    assert ours.ratio_to_best_peer == pytest.approx(ours.value / plain.value)


def test_runs_are_taken_in_turn():
    seen = []
    found = in_turn({n: partial(seen.append, n) for n in ("a", "b")}, 2)
    assert seen == ["a", "b", "a", "b"]
    assert found == {"a": [None, None], "b": [None, None]}
