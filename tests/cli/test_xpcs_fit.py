import csv
import dataclasses
import json
import os
import signal

import equinox as eqx
import h5py
import jax.numpy as jnp
import numpy as np
import pytest

from physax._status import Status
from physax.cli import ExitCode, _xpcs_fit, _xpcs_job, _xpcs_sample, main
from physax.fit import Strategy
from physax.io import read_two_time, write_two_time
from physax.xpcs import TwoTime


# Small, and of one shape, so that there is little to compile.
SIZE = ["--frames", "24", "--angles", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Simulated data, and a first report on them."""
    place = tmp_path_factory.mktemp("xpcs")
    out = place / "run1.hdf"
    assert main(["xpcs", "simulate", "-o", str(out), *SIZE]) == ExitCode.DONE
    line = ["xpcs", "fit", str(out), "--output-dir", str(place / "out")]
    assert main([*line, "--figures", "1"]) == ExitCode.DONE
    return place


def static_fit(data, output, *more):
    line = ["xpcs", "fit", str(data), "--output-dir", str(output), "--figures", "0"]
    return main([*line, "--mode", "static_anisotropic", "--starts", "1", *more])


def load(path):
    return json.loads(path.read_text())


@pytest.mark.slow
def test_float64_is_off_again_after_a_command(folder):
    del folder
    assert jnp.result_type(float) == jnp.float32


@pytest.mark.slow
def test_simulated_data_have_the_layout_of_aps_u(folder):
    data = read_two_time(folder / "run1.hdf")
    assert data.c2.shape == (3, 24, 24)
    assert np.degrees(data.phi) == pytest.approx([-90, -30, 30], abs=1e-4)
    assert data.times[1] == pytest.approx(0.1)


def test_a_first_report_needs_no_settings(folder):
    with (folder / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    modes = [row["mode"] for row in rows]
    assert sorted(modes) == ["laminar_flow", "static_anisotropic"]
    # As in the file; the mean of three equal numbers is 0.005399999999999999.
    assert [row["q"] for row in rows] == ["0.0054", "0.0054"]
    made = {m: {p.name for p in (folder / "out" / m).iterdir()} for m in modes}
    results = {
        "parameters.json",
        "analysis_results_nlsq.json",
        "convergence_metrics.json",
        "fitted_data.npz",
    }
    pictures = {
        "cuts.png",
        "parameters.png",
        "correlation.png",
        "map_001_phi-90.0.png",
    }
    # Drawn is the model that describes the data better.
    assert made["laminar_flow"] == results | pictures
    assert made["static_anisotropic"] == results


def test_parameters_are_named_with_unit_error_and_convention(folder):
    found = load(folder / "out" / "laminar_flow" / "parameters.json")
    assert set(found["D0"]) >= {"value", "uncertainty", "unit"}
    assert found["phi0"]["unit"] == "degree"
    assert found["shear_rate"]["convention"] == "physical"
    # Degrees: the truth is -4, and radians would be -0.07.
    error = found["phi0"]["uncertainty"]
    assert 0 < error < 0.5
    assert found["phi0"]["value"] == pytest.approx(-4, abs=5 * error)
    for name in ("analysis_results_nlsq.json", "convergence_metrics.json"):
        content = load(folder / "out" / "laminar_flow" / name)
        assert content["convention"] == "physical"
        assert content["mode"] == "laminar_flow"


def test_reported_cost_is_that_of_the_written_residuals(folder):
    # chi-square from what was written, not from what the fit says of itself.
    for mode in ("laminar_flow", "static_anisotropic"):
        place = folder / "out" / mode
        with np.load(place / "fitted_data.npz", allow_pickle=False) as fitted:
            left = fitted["c2_exp"].astype(float) - fitted["c2_fit"]
            scaling = fitted["per_angle_scaling"]
            curves = scaling[:, 1, None, None] + (
                scaling[:, 0, None, None] * fitted["c2_theory"]
            )
            assert curves == pytest.approx(fitted["c2_fit"], abs=1e-6)
            assert fitted["residuals"] == pytest.approx(left, abs=1e-6)
            assert fitted["phi_angles"] == pytest.approx([-90, -30, 30])
            assert fitted["t1"] == pytest.approx(fitted["t2"])
            assert str(fitted["mode"]) == mode
            upper = np.triu_indices(24, 1)
            chi2 = np.sum((left[:, *upper] / fitted["sigma"]) ** 2)
        reported = load(place / "convergence_metrics.json")
        assert chi2 == pytest.approx(reported["chi2"], rel=1e-6)
        assert reported["converged"]


@pytest.mark.slow
def test_results_are_drawn_again(folder, tmp_path, capsys):
    line = ["xpcs", "plot", str(folder / "out"), "--output-dir", str(tmp_path)]
    assert main([*line, "--figures", "0"]) == ExitCode.DONE
    made = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.png")}
    assert "laminar_flow/correlation.png" in made
    assert "static_anisotropic/parameters.png" in made
    assert "cuts.png" in capsys.readouterr().out


def test_data_are_drawn(folder, tmp_path):
    line = ["xpcs", "plot", str(folder / "run1.hdf"), "--output-dir", str(tmp_path)]
    assert main([*line, "--figures", "1"]) == ExitCode.DONE
    assert {p.name for p in tmp_path.iterdir()} == {
        "data_001_phi-90.0.png",
        "cuts.png",
        "quality.png",
    }


def test_a_folder_without_results_is_named(tmp_path, capsys):
    assert main(["xpcs", "plot", str(tmp_path)]) == ExitCode.REFUSED
    assert "must hold results of a fit (fitted_data.npz)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["fitted_data.npz", "parameters.json"])
def test_a_damaged_result_is_named(name, folder, tmp_path, capsys):
    for path in (folder / "out" / "laminar_flow").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:40])
    assert main(["xpcs", "plot", str(tmp_path)]) == ExitCode.REFUSED
    assert f"{tmp_path / name}: It is" in capsys.readouterr().err


@pytest.mark.slow
def test_settings_from_a_file_and_from_the_line(folder, tmp_path, capsys):
    path = tmp_path / "fit.yaml"
    path.write_text(
        "mode: static_anisotropic\n"
        f"data: {{file: {folder / 'run1.hdf'}, sigma: 0.01}}\n"
        "parameters:\n  D_offset: {start: 0, fixed: true}\n"
        "  alpha: {start: 0.1, bounds: [-0.5, 0.5]}\n"
    )
    line = ["xpcs", "fit", "--config", str(path), "--output-dir", str(tmp_path / "o")]
    assert main([*line, "--set", "D0=3e4", "--figures", "0", "-q"]) == ExitCode.DONE
    assert capsys.readouterr().out == ""
    found = load(tmp_path / "o" / "parameters.json")
    assert found["D_offset"]["fixed"]
    assert found["D_offset"]["value"] == 0
    assert -0.5 <= found["alpha"]["value"] <= 0.5
    # With sigma given, errors are those of sigma.
    assert load(tmp_path / "o" / "analysis_results_nlsq.json")["absolute_sigma"]


def test_a_batch_goes_on_where_it_was_stopped(folder, tmp_path, monkeypatch, capsys):
    for name in ("a1.hdf", "a2.hdf", "a10.hdf"):
        (tmp_path / name).write_bytes((folder / "run1.hdf").read_bytes())
    fits = []
    fit_data = _xpcs_fit.fit_data

    def stopped_after_the_first(*arguments):
        fits.append(arguments)
        if len(fits) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return fit_data(*arguments)

    monkeypatch.setattr(_xpcs_fit, "fit_data", stopped_after_the_first)
    out = tmp_path / "out"
    assert static_fit(tmp_path, out) == ExitCode.CHECKPOINTED
    assert "interrupted after 1 of 3 fits" in capsys.readouterr().err
    assert static_fit(tmp_path, out) == ExitCode.DONE
    assert len(fits) == 3
    rows = [json.loads(x) for x in (out / "results.jsonl").read_text().splitlines()]
    assert [row["file"] for row in rows] == ["a1.hdf", "a2.hdf", "a10.hdf"]
    assert (out / "a10" / "parameters.json").exists()
    # Nothing is left to do, unless the settings or a file change.
    assert static_fit(tmp_path, out, "-v") == ExitCode.DONE
    assert "a2.hdf:0.0054:static_anisotropic: done before" in capsys.readouterr().out
    assert len(fits) == 3
    os.utime(tmp_path / "a2.hdf", ns=(0, 0))
    assert static_fit(tmp_path, out) == ExitCode.DONE
    assert len(fits) == 4


def test_a_bad_file_does_not_stop_a_batch(folder, tmp_path, capsys):
    (tmp_path / "a1.hdf").write_bytes(b"no HDF5")
    (tmp_path / "a2.hdf").write_bytes((folder / "run1.hdf").read_bytes())
    out = tmp_path / "out"
    assert static_fit(tmp_path, out) == ExitCode.REFUSED
    assert "a1.hdf" in capsys.readouterr().err
    with (out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert "a1.hdf" in rows[0]["error"]
    assert rows[1]["status"] == "converged"


def test_without_sigma_the_noise_is_told_and_no_chi_square(folder, tmp_path, capsys):
    data = read_two_time(folder / "run1.hdf")
    plain = dataclasses.replace(data, sigma=None, sigma_is_known=None)
    for name in ("a1.hdf", "a2.hdf"):
        write_two_time(tmp_path / name, plain)
    out = tmp_path / "out"
    assert static_fit(tmp_path, out, "--set", "D0=12000") == ExitCode.DONE
    told = capsys.readouterr().out
    with (out / "results.csv").open() as file:
        row = next(csv.DictReader(file))
    assert row["reduced_chi2"] == ""
    noise = float(row["noise"])
    assert f"noise of one value {noise:.3g} (sigma not known)" in told
    assert "chi-square" not in told
    for name in ("analysis_results_nlsq.json", "convergence_metrics.json"):
        (found, _) = (load(path) for path in sorted(out.rglob(name)))
        assert found["reduced_chi2"] is None
        assert found["noise"] == noise
    with np.load(next(out.rglob("fitted_data.npz"))) as fitted:
        left = fitted["residuals"][:, *np.triu_indices(24, 1)]
    assert noise == pytest.approx(np.sqrt(np.mean(left**2)), rel=0.01)


def test_a_damaged_table_is_named(folder, tmp_path, capsys):
    for name in ("a1.hdf", "a2.hdf"):
        (tmp_path / name).write_bytes((folder / "run1.hdf").read_bytes())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.jsonl").write_text("{}\n")
    assert static_fit(tmp_path, tmp_path / "out") == ExitCode.REFUSED
    assert "Line 1 is not a row of results" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.INTERRUPTED, ExitCode.CHECKPOINTED),
        (Status.DIVERGED, ExitCode.DIVERGED),
        (Status.MAX_STEPS, ExitCode.DONE),
    ],
)
def test_how_a_fit_ends_is_the_exit_code(status, code, folder, tmp_path, monkeypatch):
    least_squares = _xpcs_job.least_squares

    def ended(*arguments, **options):
        result = least_squares(*arguments, **options)
        return eqx.tree_at(lambda r: r.status, result, jnp.asarray(int(status)))

    monkeypatch.setattr(_xpcs_job, "least_squares", ended)
    assert static_fit(folder / "run1.hdf", tmp_path / "out") == code


def test_a_failed_first_start_does_not_hide_a_good_one(folder, tmp_path, monkeypatch):
    two_time_fit, costs = _xpcs_job.two_time_fit, []

    def first_failed(problem, result):
        fit = two_time_fit(problem, result)
        costs.append(float(fit.result.chi2))
        if len(costs) == 1:
            fit = eqx.tree_at(lambda f: f.result.chi2, fit, jnp.asarray(jnp.nan))
        return fit

    monkeypatch.setattr(_xpcs_job, "two_time_fit", first_failed)
    out = tmp_path / "out"
    static_fit(folder / "run1.hdf", out, "--starts", "2")
    found = load(out / "analysis_results_nlsq.json")
    assert len(costs) == 2
    assert found["chi2"] == pytest.approx(costs[1])


def test_a_fit_block_by_block_keeps_checkpoints(folder, tmp_path, monkeypatch):
    def block_by_block(problem, method, *, plan, checkpoint, progress):
        del method, plan, progress
        assert checkpoint.folder == tmp_path / "out" / "checkpoints"
        assert (checkpoint.every, checkpoint.keep) == (10, 2)
        raise MemoryError

    plan_for = _xpcs_job.plan_for

    def driven(problem):
        return dataclasses.replace(plan_for(problem), strategy=Strategy.CHUNKED)

    monkeypatch.setattr(_xpcs_job, "plan_for", driven)
    monkeypatch.setattr(_xpcs_job, "least_squares", block_by_block)
    code = static_fit(folder / "run1.hdf", tmp_path / "out")
    assert code == ExitCode.RESOURCES


def test_too_little_memory_is_said_before_the_fit(
    folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("PHYSAX_MEMORY_LIMIT", "1M")
    code = static_fit(folder / "run1.hdf", tmp_path / "out")
    assert code == ExitCode.RESOURCES
    assert "must fit into the memory that is free" in capsys.readouterr().err


def test_an_output_folder_that_cannot_be_written_is_said_first(tmp_path, capsys):
    (tmp_path / "out").touch()
    # The data are not even looked for.
    assert static_fit(tmp_path / "none.hdf", tmp_path / "out") == ExitCode.REFUSED
    assert "must be a folder to which files can be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["fit", "{run}", "--phi", "500", "600"], "must lie within -360 and 360, but"),
        (["plot", "{run}", "--phi", "500", "600"], "must lie within -360 and 360, but"),
        (["fit", "{run}", "--phi", "20", "21"], "(20 to 21 degrees), but has"),
        (["plot", "{run}", "--phi", "20", "21"], "(20 to 21 degrees), but has"),
        (["fit", "none.hdf"], "There is no file or folder 'none.hdf'."),
        (["plot", "none.hdf"], "There is no file or folder 'none.hdf'."),
        (
            ["fit", "{run}", "--mode", "static_isotropic", "--set", "alpha=9"],
            "`--set alpha` or `parameters.alpha.start` must lie within [-0.99, 3], but",
        ),
        (["fit", "{empty}"], "must hold files '*.hdf', but has none."),
    ],
)
def test_a_refused_command_leaves_no_folder(more, message, folder, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    places = {"run": folder / "run1.hdf", "empty": tmp_path / "empty"}
    words = [word.format(**places) for word in more]
    line = ["xpcs", *words, "--output-dir", str(tmp_path / "a" / "b")]
    assert main(line) == ExitCode.REFUSED
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_sampler_that_is_missing_is_said_first(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_xpcs_sample, "find_spec", lambda name: None)
    code = static_fit(tmp_path / "none.hdf", tmp_path / "out", "--method", "nuts")
    assert code == ExitCode.REFUSED
    assert "`--method nuts` needs numpyro" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["PerAngle", "Constant, contrast: 0.25"])
def test_the_posterior_is_sampled_around_the_fit(scaling, folder, tmp_path):
    pytest.importorskip("numpyro")
    path = tmp_path / "fit.yaml"
    path.write_text(
        "mode: static_anisotropic\n"
        "parameters: {D_offset: {start: 0, fixed: true}}\n"
        "sampling: {warmup: 100, samples: 100, chains: 2}\n"
        f"scaling: {{type: {scaling}}}\n"
    )
    out = tmp_path / "out"
    line = ["xpcs", "fit", str(folder / "run1.hdf"), "--config", str(path)]
    line += ["--output-dir", str(out), "--figures", "1", "--method", "both"]
    assert main(line) == ExitCode.DONE
    fitted = load(out / "parameters.json")["D0"]
    drawn = load(out / "analysis_results_nuts.json")["parameters"]["D0"]
    # 200 draws: the mean is known to a tenth of a deviation, the deviation to 5 %.
    off = abs(drawn["mean"] - fitted["value"]) / fitted["uncertainty"]
    assert off < 0.5
    assert drawn["deviation"] == pytest.approx(fitted["uncertainty"], rel=0.3)
    with np.load(out / "samples.npz", allow_pickle=False) as samples:
        assert samples["samples"].shape == (200, 2)
        assert list(samples["names"]) == ["D0", "alpha"]
    assert (out / "corner.png").exists()


def test_a_dead_frame_is_left_out(folder, tmp_path, capsys):
    data = read_two_time(folder / "run1.hdf")
    c2 = np.array(data.c2)
    c2[:, 4] = c2[:, :, 4] = np.nan
    mask = np.ones(c2.shape[1:], bool)
    mask[4] = mask[:, 4] = False
    path = tmp_path / "dead.hdf"
    write_two_time(path, TwoTime(c2, data.q, data.phi, data.times, mask=mask))
    with h5py.File(path, "a") as file:
        del file["physax/mask"]
    line = ["xpcs", "plot", str(path), "--figures", "0"]
    assert main(line) == ExitCode.REFUSED
    assert "finite, but is nan at frames 1 and 5" in capsys.readouterr().err
    assert main([*line, "--without", "5"]) == ExitCode.DONE
    settings = tmp_path / "fit.yaml"
    settings.write_text("mode: static_anisotropic\ndata: {without: [5]}\n")
    for name, more in (("a", ["--without", "5"]), ("b", ["--config", str(settings)])):
        assert static_fit(path, tmp_path / name, *more) == ExitCode.DONE
        found = load(tmp_path / name / "analysis_results_nlsq.json")
        assert found["points"] == 3 * 23 * 22 // 2
    assert static_fit(path, tmp_path / "c", "--without", "25") == ExitCode.REFUSED
    assert "`without` must be numbers of frames from 1 to 24" in capsys.readouterr().err


@pytest.mark.slow
def test_frames_keep_their_times_where_asked(folder, tmp_path):
    data = folder / "run1.hdf"
    settings = tmp_path / "fit.yaml"
    settings.write_text(
        "mode: static_anisotropic\ndata: {frames: [9, 24], keep_times: true}\n"
    )
    part = ["--frames", "9", "24"]
    for name, more, first in (
        ("a", part, 0.0),
        ("b", [*part, "--keep-times"], 0.8),
        ("c", ["--config", str(settings)], 0.8),
    ):
        assert static_fit(data, tmp_path / name, *more) == ExitCode.DONE
        with np.load(tmp_path / name / "fitted_data.npz") as stored:
            assert stored["t1"].ravel()[0] == pytest.approx(first, abs=1e-6)


def test_flow_needs_two_directions(folder, tmp_path, capsys):
    line = ["xpcs", "fit", str(folder / "run1.hdf"), "--output-dir", str(tmp_path)]
    code = main([*line, "--mode", "laminar_flow", "--phi", "-31", "-29"])
    assert code == ExitCode.REFUSED
    assert "must have maps of at least 2 directions" in capsys.readouterr().err
