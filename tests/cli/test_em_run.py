"""Runs of `physax em`: what they write, also when interrupted."""

import json
import signal
from functools import partial

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from physax import em, plot
from physax.cli import ExitCode, main
from physax.cli._em_figures import draw_results
from physax.io import load_npz
from physax.units import FEMTO, MICRO, NANO, SPEED_OF_LIGHT

from .scenes import FLAT, LAMP, TEXT, settings


def scene():
    """The same in Python."""
    waves = jnp.asarray([0.95, 1.0, 1.05]) * MICRO
    f = SPEED_OF_LIGHT / waves
    return em.scene(
        [em.Structure(em.Box(0.2 * MICRO, 0.25 * MICRO), em.Material(4.0))],
        [1.6 * MICRO],
        waves,
        sources={
            "wave": em.PlaneWave(
                "+x", "Ez", (0,), (1.2 * MICRO,), em.band_pulse(f[2], f[0])
            )
        },
        monitors={"back": em.FluxMonitor("x", (-0.7 * MICRO,), (0,), f)},
        spacing=25 * NANO,
        steps=int(np.ceil(160 * FEMTO / (0.99 * 25 * NANO / SPEED_OF_LIGHT))),
    )


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_a_file_gives_what_the_same_scene_gives(tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    # An earlier run was of other monitors; what it does not list is of others.
    earlier = [
        "back.png",
        "gone.png",
        "gone_Ez.gif",
        "../kept.png",
        "kept.h5",
        "not.png",
    ]
    (out / "summary.json").write_text(
        json.dumps({"command": "em run", "pictures": earlier})
    )
    for name in (*earlier[:-1], "kept.png"):
        (out / name).write_bytes(b"old")
    line = ["em", "run", settings(tmp_path), "--output-dir", str(out), "-v"]
    assert main(line) == ExitCode.DONE
    said = capsys.readouterr().out
    assert f"jax {jax.__version__}, float32" in said
    assert f"{out / 'checkpoints'}, every 500 steps; 0 there from before" in said
    assert "steps per second" in said
    assert "permittivity  1 to 4" in said
    assert "did all the steps" in said
    found = load_npz(out / "results.npz")
    sim = scene()
    expected = em.simulate(sim).monitors["back"].flux
    # The same program but for the other monitors: to rounding.
    assert np.allclose(found["back"].flux, expected, rtol=1e-4)
    assert np.all(np.asarray(expected) < 0)
    # Nothing absorbs: as much goes out as comes in.
    flux = found["box"].flux
    assert np.allclose(flux["-x"], -np.asarray(expected), rtol=1e-3)
    assert found["box"].outflow.shape == (3,)
    # What the light loses in momentum: twice that of the reflected 1.7 %. At
    # 1 um, half a wavelength in the plate, nothing comes back but rounding.
    recoil = 2 * np.abs(expected[0]) / SPEED_OF_LIGHT
    assert found["push"].force["x"] == pytest.approx(recoil, rel=3e-3)
    assert found["line"].frequencies == pytest.approx(SPEED_OF_LIGHT / MICRO)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["steps"] == sim.steps
    assert summary["cells"] == list(sim.grid.shape)
    assert summary["status"] == "successful"
    assert {path for path in tmp_path.rglob("*") if path.name.startswith("kept")} == {
        out / "kept.png",
        out / "kept.h5",
        tmp_path / "kept.png",
    }
    assert not list(out.glob("gone*"))
    pictures = {path.name for path in out.glob("*.png")} - {"kept.png"}
    assert sorted(summary["pictures"]) == sorted(pictures)
    assert pictures == {
        "simulation.png",
        "back.png",
        "line_Ez.png",
        "push.png",
        "bell.png",
        "energy.png",
    }
    for name in pictures:
        with Image.open(out / name) as image:
            assert image.size[0] > 500
    assert not (out / "checkpoints").exists()


@pytest.mark.parametrize(
    "waves", [[1.0, 0.9, 1.1, 0.95, 1.05, 1.0], [1.1, 0.9, 1.0], [0.9, 1.1, 1.0]]
)
def test_a_field_is_drawn_at_the_median_wavelength(tmp_path, monkeypatch, waves):
    f = SPEED_OF_LIGHT / (jnp.asarray(waves) * MICRO)
    x = jnp.arange(3) * MICRO
    values = jnp.ones((len(waves), 3)) + 0j
    drawn = []
    draw = plot.field

    def watched(*arguments, **options):
        axes = draw(*arguments, **options)
        drawn.append(axes.get_title())
        return axes

    monkeypatch.setattr(plot, "field", watched)
    seen = em.SpectralFields(f, {"Ez": values}, {"Ez": (x,)})
    draw_results(tmp_path, scene(), {"line": seen}, None)
    assert [title.split(" nm")[0] for title in drawn] == ["1000"]


DECAY = """
size_um: [1.6]
wavelengths_um: [0.95, 1.05]
spacing_nm: 25
sources:
  dot: {type: Dipole, component: Ez, position_um: [0.2]}
monitors:
  bell: {type: TimeMonitor, components: [Ez], centre_um: [0.7], size_um: [0], every: 4}
  energy: {type: EnergyMonitor, every: 8}
run: {steps: 20000, decay: 1.0e-4}
output: {figures: false}
"""


def test_series_of_a_run_that_decays_end_with_it(tmp_path):
    out = tmp_path / "out"
    line = ["em", "run", settings(tmp_path, DECAY), "--output-dir", str(out), "-q"]
    assert main(line) == ExitCode.DONE
    made = json.loads((out / "summary.json").read_text())["steps"]
    assert made < 5000
    found = load_npz(out / "results.npz")
    assert len(found["bell"].values["Ez"]) == -(-made // 4)
    assert len(found["energy"].times) == -(-made // 8)
    assert np.all(np.asarray(found["energy"].energy)[made // 16 :] > 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path, monkeypatch, capsys):
    text = TEXT.replace("output", "") + "output: {results: a.h5, figures: false}\n"
    text = text.replace("time_fs: 160", "steps: 2000")
    path = settings(tmp_path, text)
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert main(["em", "run", path, "--output-dir", str(whole), "-q"]) == ExitCode.DONE
    assert capsys.readouterr().out == ""
    run = em.run
    stop = partial(run, on_chunk=lambda *_: signal.raise_signal(signal.SIGTERM))
    again = ["em", "run", path, "--output-dir", str(out), "-q"]
    with monkeypatch.context() as patch:
        patch.setattr(em, "run", stop)
        assert main(again) == ExitCode.CHECKPOINTED
    assert "Start it again to continue" in capsys.readouterr().err
    assert list((out / "checkpoints").iterdir())
    assert not (out / "a.h5").exists()
    started = []

    def watched(*arguments, **options):
        done = run(*arguments, **options)
        started.append(done.drive.first_step)
        return done

    monkeypatch.setattr(em, "run", watched)
    assert main(again) == ExitCode.DONE
    assert started[0] > 0
    with h5py.File(whole / "a.h5") as one, h5py.File(out / "a.h5") as other:
        assert one["back"].attrs["type"] == "SpectralFlux"
        names = []
        one.visititems(
            lambda name, x: names.append(name) if hasattr(x, "shape") else None
        )
        assert {"back/flux", "line/values/Ez", "line/coordinates/Ez/x"} <= set(names)
        assert {
            "bell/times/Ez",
            "energy/energy",
            "box/flux/-x",
            "box/spacing",
            "push/force/x",
        } <= set(names)
        for name in names:
            assert np.array_equal(one[name], other[name]), name
        assert np.iscomplexobj(one["line/values/Ez"][()])
    assert not list(out.glob("*.png"))


@pytest.mark.slow
def test_the_emission_of_a_dipole_is_what_leaves_a_box_around_it(tmp_path):
    out = tmp_path / "out"
    line = ["em", "run", settings(tmp_path, LAMP), "--output-dir", str(out), "-q"]
    assert main(line) == ExitCode.DONE
    found = load_npz(out / "results.npz")
    assert np.all(found["seen"].power > 0)
    assert np.allclose(found["seen"].power, found["box"].outflow, rtol=1e-4)
    pictures = {path.name for path in out.glob("*.png")}
    assert pictures == {"simulation.png", "seen.png"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`grid` should have cells below")
def test_faces_metals_double_precision_and_a_film(tmp_path):
    out = tmp_path / "out"
    line = ["em", "run", settings(tmp_path, FLAT), "--output-dir", str(out), "-q"]
    assert main(line) == ExitCode.DONE
    with np.load(out / "results.npz") as archive:
        shapes = {archive[k].shape: archive[k].dtype for k in archive if "array" in k}
    # The layer outside of y, the mirror at its low end.
    assert shapes[(3, 41, 28)] == np.float64
    with Image.open(out / "film_Ez.gif") as film:
        assert film.n_frames == 3
    # The precision of the session is as it was.
    assert jnp.result_type(float) == jnp.float32
