"""The scripts of the gallery, at a small size."""

import numpy as np
import pytest

from examples import (
    band_structure,
    convergence,
    gold_film,
    grating_coupler,
    holey_cavity,
    layout_splitter,
    mie_sphere,
    oblique_grating,
    purcell,
    ring_resonator,
    strip_modes,
    taper,
    third_harmonic,
    trapped_bead,
)
from physax import io


# Nearly all of the time is compilation. Few cells.
pytestmark = [
    pytest.mark.f32,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`grid` should have cells below"),
]


@pytest.fixture
def run(tmp_path, capsys):
    """Runs a script; returns the numbers in its picture and what it printed."""

    def run(script, *arguments):
        script.main([*map(str, arguments), "--output", str(tmp_path)])
        name = script.__name__.rpartition(".")[2]
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        return io.load_npz(tmp_path / f"{name}.npz"), capsys.readouterr().out

    return run


def test_ring_resonator(run):
    made, told = run(ring_resonator, "--cells", 10, "--modes", 1)
    # A root that is known: `tests/validation/test_cylindrical.py`.
    assert made["exact"][0] == pytest.approx(0.1181916937 - 0.000764941335j, abs=1e-10)
    assert made["found"].real == pytest.approx(made["exact"].real, rel=1e-3)
    assert "Q = 7" in told


def test_convergence_tells_the_truth_about_its_error(run):
    made, _ = run(convergence, "--cells", 6)
    assert made["order"] > 1.5
    assert abs(made["limit"] - made["exact"]) < made["error"]


def test_holey_cavity(run):
    made, _ = run(holey_cavity, "--cells", 10)
    assert made["frequency"] == pytest.approx(holey_cavity.EXACT, rel=0.01)
    assert made["quality"] == pytest.approx(holey_cavity.QUALITY, rel=0.2)


def test_band_structure(run):
    made, _ = run(band_structure, "--cells", 12, "--points", 1)
    # Gamma twice, X and M: bands that touch there count once.
    assert len(made["errors"]) >= 12
    assert made["errors"].max() < 0.02
    # Joannopoulos and others, Photonic Crystals (2008): 0.32 to 0.44.
    assert made["gap"] == pytest.approx([0.32, 0.44], abs=0.005)


def test_purcell(run):
    made, _ = run(purcell, "--cells", 16)
    for name in ("Ez", "Hz"):
        expected = purcell.exact(name, made["frequencies"])
        assert made[name] == pytest.approx(expected, abs=0.03)


def test_gold_film(run):
    made, _ = run(gold_film, "--cells", 10)
    # The fit alone is off by 0.8 %.
    assert made["found"] == pytest.approx(made["exact"], abs=0.03)
    assert made["found"].sum(axis=0) == pytest.approx(np.ones(12))


def test_oblique_grating(run):
    made, _ = run(oblique_grating, "--cells", 20)
    assert made["found"] == pytest.approx(made["exact"], abs=0.04)
    assert made["found"].sum(axis=(1, 2)) == pytest.approx(np.ones(9), abs=3e-3)


def test_mie_sphere(run):
    made, _ = run(mie_sphere, "--cells", 7)
    assert made["found"] == pytest.approx(made["exact"], rel=0.05)
    peak = made["expected"].max()
    assert made["sent"] == pytest.approx(made["expected"], abs=0.05 * peak)


def test_series_of_mie_has_known_values():
    # `tests/validation/data/em_analytic.json`: size 1.
    assert mie_sphere.efficiency(1.0) == pytest.approx(0.2150975960, rel=1e-9)
    # The optical theorem: nothing is absorbed.
    _, a, b = mie_sphere.coefficients(2.0)
    assert abs(a - 0.5) == pytest.approx(0.5, rel=1e-9)
    assert abs(b - 0.5) == pytest.approx(0.5, rel=1e-9)
    # Over all directions: Q = (2 / x^2) sum of both planes; forward both are equal.
    n, a, b = mie_sphere.coefficients(2.0)
    forward = np.sum((2 * n + 1) * (a + b)) / 2
    assert mie_sphere.pattern(2.0, np.zeros(1)) == pytest.approx(forward, rel=1e-9)
    assert 4 / 2.0**2 * forward.real == pytest.approx(mie_sphere.efficiency(2.0))


def test_third_harmonic(run):
    made, _ = run(third_harmonic, "--cells", 40)
    assert made["third"] == pytest.approx(1, abs=0.05)
    assert made["kerr"] == pytest.approx(1, abs=0.05)


@pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")
def test_strip_modes(run):
    made, _ = run(strip_modes, "--cells", 50, "--points", 3)
    assert made["indices"][1, :2] == pytest.approx(strip_modes.FEMWELL, abs=0.03)
    assert np.all(np.diff(made["indices"][:, 0]) > 0)
    # What is measured on such strips at 1550 nm.
    assert made["group"][1] == pytest.approx(4.2, abs=0.1)


@pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")
def test_grating_coupler(run):
    made, _ = run(grating_coupler, "--cells", 60, "--points", 3)
    # By reciprocity; what is typical for such gratings.
    assert made["efficiency"][1] == pytest.approx(made["back"], abs=0.01)
    assert 0.35 < made["efficiency"][1] < 0.6


@pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")
def test_taper(run):
    made, _ = run(taper, "--cells", 100, "--lengths", 2)
    assert made["through"][0] == pytest.approx(made["joint"], abs=0.02)
    assert made["through"][1] > 0.97


def test_layout_splitter(run):
    pytest.importorskip("gdstk")
    made, _ = run(layout_splitter, "--cells", 70, "--points", 3)
    _, upper, lower = made["power"].T
    assert upper == pytest.approx(lower, abs=1e-3)
    assert np.all(made["power"].sum(axis=1) < 1.005)
    assert upper[1] + lower[1] > 0.8


def test_trapped_bead(run):
    made, told = run(trapped_bead, "--cells", 16, "--particles", 400)
    largest = np.abs(made["exact"]).max()
    assert np.abs(made["force"] - made["exact"]).max() < 0.06 * largest
    # 400 beads, of which some 5 are independent in time: 1.6 %, and the softer flanks.
    assert 0.96 < float(told.split(" nm, ")[1].split()[0]) < 1.08
