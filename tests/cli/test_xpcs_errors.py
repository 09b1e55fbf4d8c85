"""Uncertainties of `physax xpcs fit` for the noise of speckles."""

import inspect
import itertools
import json
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from physax.cli import ExitCode, _xpcs_fit, _xpcs_job, main
from physax.fit import least_squares
from physax.io import write_two_time
from physax.xpcs import (
    Diffusion,
    Shared,
    Static,
    TwoTime,
    WhiteNoise,
    simulate_two_time,
    speckle_covariance,
    two_time_from_frames,
    two_time_problem,
)


FRAMES, MAPS, PIXELS, STEP, Q = 24, 2, 400, 0.1, 0.005
PHI = np.array([0.0, 1.0])
TIMES = STEP * np.arange(FRAMES)
MODEL = Static(Diffusion(40000.0, 0.0))


@pytest.fixture(scope="module")
def speckles():
    """Maps of speckles whose field decays as exp(-0.5 t), and of white noise."""
    rng = np.random.default_rng(5)
    memory = np.exp(-0.5 * STEP)
    drawn = rng.normal(size=(FRAMES, MAPS, PIXELS, 2)) @ [1, 1j] / np.sqrt(2)
    fields = [drawn[0]]
    for new in drawn[1:]:
        fields.append(memory * fields[-1] + np.sqrt(1 - memory**2) * new)
    labels = np.repeat(np.arange(1, MAPS + 1), PIXELS).reshape(MAPS, PIXELS)
    with jax.enable_x64(True):
        c2 = two_time_from_frames(np.abs(fields) ** 2, labels)
        return TwoTime(np.asarray(c2), Q, PHI, TIMES)


def fit(data, place, *more):
    write_two_time(place / "a.npz", data)
    line = ["xpcs", "fit", str(place / "a.npz"), "--output-dir", str(place / "out")]
    path = place / "fit.yaml"
    path.write_text(
        "mode: static_isotropic\n"
        "parameters:\n"
        "  D0: {start: 4.0e4}\n"
        "  alpha: {start: 0}\n"
        "  D_offset: {start: 0, fixed: true}\n"
    )
    return main([*line, "--config", str(path), "--figures", "0", *more])


def load(place, name):
    return json.loads((place / "out" / name).read_text())


def expected(data):
    """The covariance of offset, contrast, D0 and alpha by the function of Python."""
    with jax.enable_x64(True):
        data = TwoTime(data.c2, data.q, data.phi, TIMES)
        problem = two_time_problem(
            data, MODEL, scaling=Shared(), fixed=lambda m: m.diffusion.D_offset
        )
        result = least_squares(problem)
        return np.asarray(speckle_covariance(problem, result)), result.linear_names


def correlation_of_neighbours(left):
    """Of all residuals above the diagonal with the next one to the right or below."""
    pairs = list(itertools.combinations(range(FRAMES), 2))
    ahead = [(i, j, i, j + 1) for i, j in pairs if j + 1 < FRAMES]
    ahead += [(i, j, i + 1, j) for i, j in pairs if i + 1 < j]
    products = [np.mean([m[a, b] * m[c, d] for a, b, c, d in ahead]) for m in left]
    squares = [np.mean([m[i, j] ** 2 for i, j in pairs]) for m in left]
    return np.mean(products) / np.mean(squares)


def test_small_correlations_have_two_digits():
    said = []
    settings = SimpleNamespace(fit=SimpleNamespace(errors="pairs"))
    run: Any = SimpleNamespace(
        neighbours={"out": (0.00834, 0.000331)},
        request=SimpleNamespace(settings={"mode": settings}),
        talk=SimpleNamespace(warn=said.append),
    )
    job: Any = SimpleNamespace(folder="out", mode="mode", key="a")
    inspect.unwrap(_xpcs_fit._Run.doubt)(run, job)
    assert "pairs correlate by 0.0083, more than 5 standard" in said[0]
    assert "of independent ones (0.0017)" in said[0]


def test_uncertainties_are_those_of_speckle_covariance(speckles, tmp_path, capsys):
    assert fit(speckles, tmp_path, "--errors", "speckles") == ExitCode.DONE
    assert "correlate" not in capsys.readouterr().err
    covariance, linear = expected(speckles)
    found = load(tmp_path, "parameters.json")
    names = [*linear, "D0", "alpha"]
    errors = [found[name]["uncertainty"] for name in names]
    np.testing.assert_allclose(errors, np.sqrt(np.diagonal(covariance)), rtol=1e-3)
    about = load(tmp_path, "analysis_results_nlsq.json")
    assert about["errors"] == "speckles"
    between = covariance[-2, -1] / np.sqrt(covariance[-2, -2] * covariance[-1, -1])
    assert about["correlation"]["matrix"][0][1] == pytest.approx(between, rel=1e-3)
    with np.load(tmp_path / "out" / "fitted_data.npz") as stored:
        seen = correlation_of_neighbours(stored["residuals"])
    assert about["neighbour_correlation"] == pytest.approx(seen, rel=1e-9)


def test_uncertainties_that_are_too_small_are_warned_of(speckles, tmp_path, capsys):
    assert fit(speckles, tmp_path) == ExitCode.DONE
    said = capsys.readouterr().err
    seen = load(tmp_path, "analysis_results_nlsq.json")["neighbour_correlation"]
    assert f"residuals of neighbouring pairs correlate by {seen:.2f}" in said
    assert "use --errors speckles" in said


def test_independent_noise_is_not_warned_of(tmp_path, capsys):
    with jax.enable_x64(True):
        data = simulate_two_time(
            MODEL, TIMES, Q, PHI, noise=WhiteNoise(0.01), key=jax.random.key(2)
        )
        mask = np.ones((FRAMES, FRAMES), bool)
        mask[3] = mask[:, 3] = False
        data = TwoTime(data.c2, Q, PHI, TIMES, mask=mask)
    assert fit(data, tmp_path) == ExitCode.DONE
    assert "correlate" not in capsys.readouterr().err
    about = load(tmp_path, "analysis_results_nlsq.json")
    assert abs(about["neighbour_correlation"]) < 0.15


def test_samples_are_for_independent_pairs_only(speckles, tmp_path, capsys):
    line = ["--errors", "speckles", "--method", "nuts"]
    assert fit(speckles, tmp_path, *line) == ExitCode.REFUSED
    assert "`errors` must be pairs where `method` is nuts" in capsys.readouterr().err


def test_memory_for_errors_is_checked_before_the_fit(
    speckles, tmp_path, monkeypatch, capsys
):
    asked = []
    monkeypatch.setattr(
        _xpcs_job, "check_memory", lambda needed, what: asked.append((needed, what))
    )
    assert fit(speckles, tmp_path, "--errors", "speckles") == ExitCode.DONE
    (_, first), (needed, second) = asked
    assert (first, second) == ("The fit", "The setting `errors: speckles`")
    # Two linear coefficients, two parameters, the data.
    assert needed >= 5 * FRAMES**2 * 8
