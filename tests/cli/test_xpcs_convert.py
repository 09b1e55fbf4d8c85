import math
import re

import pytest

from physax.cli import ExitCode, main
from physax.cli._xpcs_settings import numbers, read_settings


OLD = """
metadata: {config_version: "2.0"}
analysis_mode: laminar_flow
analyzer_parameters:
  dt: 0.1
  start_frame: 3
  end_frame: 60
  scattering: {wavevector_q: 0.0054}
  geometry: {stator_rotor_gap: 2000000}
experimental_data:
  data_folder_path: runs
  data_file_name: run1.hdf
phi_filtering:
  target_ranges:
    - {min_angle: -10, max_angle: 10, description: along the flow}
  fallback_to_all_angles: true
initial_parameters:
  parameter_names: [D0, alpha, D_offset, gamma_dot_t0, beta, gamma_dot_t_offset, phi0]
  values: [10000, -0.3, 10, 0.003, -0.2, 0.0001, -3]
  fixed_parameters: {gamma_dot_t_offset: 0.0}
  active_parameters: [D0, alpha, gamma_dot_t0, beta, phi0]
parameter_space:
  bounds:
    - {name: D0, min: 100, max: 1.0e5, type: TruncatedNormal}
    - {name: phi0, min: -30, max: 30}
    - {name: contrast, min: 0, max: 1}
optimization:
  method: mcmc
  nlsq:
    max_iterations: 100
    loss: soft_l1
    anti_degeneracy:
      per_angle_mode: fourier
      fourier_order: 1
      shear_weighting: {enable: true}
    hybrid_streaming: {enable: true}
    multi_start: {enable: false, n_starts: 8}
  streaming: {checkpoint_frequency: 7, min_success_rate: 0.5}
  mcmc: {num_warmup: 200, num_samples: 300, num_chains: 2, sharding: auto}
"""


def convert(text, folder, capsys):
    old, new = folder / "old.yaml", folder / "new.yaml"
    old.write_text(text)
    code = main(["xpcs", "convert", str(old), "-o", str(new)])
    out = capsys.readouterr()
    return code, out.out + out.err, new


def test_what_has_a_counterpart_is_kept(tmp_path, capsys):
    code, _, new = convert(OLD, tmp_path, capsys)
    assert code == ExitCode.DONE
    settings = read_settings(str(new))
    assert (settings.mode, settings.convention) == ("laminar_flow", "homodyne")
    assert settings.gap == 2e6
    data = settings.data
    assert (data.file, data.q, data.dt, data.frames) == (
        "runs/run1.hdf",
        0.0054,
        0.1,
        (3, 60),
    )
    assert data.phi_ranges_degrees == [(-10, 10)]
    found = numbers(settings)
    assert found["D0"].start == 10000
    assert found["D0"].bounds == (100, 1e5)
    assert found["shear_rate"].start == 0.003
    assert found["shear_offset"].start == 0
    assert found["phi0"].start == pytest.approx(math.radians(-3))
    assert found["phi0"].bounds == pytest.approx((-math.pi / 6, math.pi / 6))
    fixed = {name for name, number in found.items() if number.fixed}
    assert fixed == {"D_offset", "shear_offset"}
    assert settings.contrast_bounds is None
    assert settings.scaling.order == 1
    assert settings.fit.method == "nuts"
    assert (settings.fit.starts, settings.fit.max_evaluations) == (1, 100)
    assert settings.checkpoint.every == 7
    sampling = settings.sampling
    assert (sampling.warmup, sampling.samples, sampling.chains) == (200, 300, 2)


@pytest.mark.parametrize(
    "notice",
    [
        "line 2: metadata.config_version is left out",
        "fallback_to_all_angles is left out: ranges without any map are an error",
        "optimization.nlsq.loss is left out: two-time fits are least squares",
        "anti_degeneracy.shear_weighting is left out: the five layers",
        "nlsq.hybrid_streaming is left out: one exact algorithm serves data of any",
        "streaming.min_success_rate is left out: data are never left out in silence",
        "mcmc.sharding is left out: one pass over all data is fast enough",
        "convention is homodyne, as the old numbers are",
        "line 26: bounds of the contrast are left out: the scaling Fourier takes none",
    ],
)
def test_what_has_none_is_listed_with_the_reason(notice, tmp_path, capsys):
    _, text, _ = convert(OLD, tmp_path, capsys)
    assert notice in text


@pytest.mark.parametrize(
    "scaling", ["individual", "auto", "fourier\n      fourier_order: 0"]
)
def test_bounds_of_the_contrast_stay_where_the_scaling_takes_them(
    scaling, tmp_path, capsys
):
    old = "fourier\n      fourier_order: 1"
    code, text, new = convert(OLD.replace(old, scaling), tmp_path, capsys)
    assert code == ExitCode.DONE
    assert "line 26: bounds of the contrast are kept" in text
    assert read_settings(str(new)).contrast_bounds == (0, 1)


def test_bounds_of_a_known_contrast_are_left_out(tmp_path, capsys):
    old = "fourier\n      fourier_order: 1"
    code, text, new = convert(OLD.replace(old, "constant"), tmp_path, capsys)
    assert code == ExitCode.DONE
    assert "line 26: bounds of the contrast are left out: the scaling Constant" in text
    assert read_settings(str(new)).contrast_bounds is None


@pytest.mark.parametrize("order", ["two", "-1", "1.5", "true"])
def test_an_order_that_is_no_number_is_refused_with_its_line(order, tmp_path, capsys):
    old = OLD.replace("fourier_order: 1", f"fourier_order: {order}")
    code, text, _ = convert(old, tmp_path, capsys)
    assert code == ExitCode.REFUSED
    assert "line 34: " in text
    assert "fourier_order` must be an integer of at least 0" in text


def test_plain_static_is_taken_as_anisotropic(tmp_path, capsys):
    _, text, new = convert("analysis_mode: static\n", tmp_path, capsys)
    assert "static is taken as static_anisotropic" in text
    assert read_settings(str(new)).mode == "static_anisotropic"


def test_constant_scaling_asks_for_the_numbers(tmp_path, capsys):
    text = (
        "analysis_mode: static_isotropic\noptimization:\n  nlsq:\n"
        "    anti_degeneracy: {per_angle_mode: constant}\n"
    )
    code, said, _ = convert(text, tmp_path, capsys)
    assert code == ExitCode.DONE
    assert "per_angle_mode constant: give the numbers" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "analysis_mode: static\nanalyzer_parameters:\n  start_frme: 1\n",
            "line 3: .*unknown key `start_frme`. The nearest known one is "
            "`analyzer_parameters.start_frame`",
        ),
        ("zzzz: 1\nanalysis_mode: static\n", "line 1: .*unknown key `zzzz`"),
        ("metadata: {}\n", "must have the key `analysis_mode`"),
        ("analysis_mode: both\n", "line 1: .*must be one of static, .*'both'"),
        ("- 1\n", "line 1: .*must be a mapping"),
        (
            "analysis_mode: static\ninitial_parameters:\n"
            "  parameter_names: [D0, alpha]\n  values: [1]\n",
            "line 4: .*one number for each of 2 names, but has 1",
        ),
        (
            "analysis_mode: static\ninitial_parameters:\n"
            "  parameter_names: [D0, alfa]\n  values: [1, 2]\n",
            "line 3: .*unknown parameter 'alfa'. The nearest known one is `alpha`",
        ),
        (
            "analysis_mode: static\nphi_filtering:\n"
            "  target_ranges: [{min_angle: 1}]\n",
            "line 3: .*must have numbers `min_angle` and `max_angle`",
        ),
        (
            "analysis_mode: static\noptimization:\n  nlsq:\n"
            "    anti_degeneracy: {per_angle_mode: mine}\n",
            "line 4: .*must be one of individual, .* but is 'mine'",
        ),
        (
            "analysis_mode: static\ninitial_parameters:\n"
            "  parameter_names: [D0]\n  values: [1]\nparameter_space:\n"
            "  bounds: [{name: D0, min: 2, max: 3}]\n",
            r"`start` must lie within \[2, 3\], but is 1",
        ),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(text, message, tmp_path, capsys):
    code, said, new = convert(text, tmp_path, capsys)
    assert code == ExitCode.REFUSED
    assert re.search(message, said), said
    assert not new.exists()


def test_the_old_file_is_not_overwritten(tmp_path, capsys):
    path = tmp_path / "old.yaml"
    path.write_text("analysis_mode: static\n")
    code = main(["xpcs", "convert", str(path), "-o", str(path)])
    assert code == ExitCode.REFUSED
    assert "`--output` must be a new file, but" in capsys.readouterr().err
    assert path.read_text() == "analysis_mode: static\n"
