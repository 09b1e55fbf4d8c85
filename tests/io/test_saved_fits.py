"""Results of fits in files: all of them comes back."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import fit
from physax._checks import ArgumentError
from physax._status import Status
from physax.io import load_npz, save_npz
from physax.io._encoding import EncodingError, decode
from physax.xpcs import (
    Diffusion,
    LaminarFlow,
    OneTime,
    Shear,
    Simple,
    Static,
    WhiteNoise,
    check_quality,
    fit_g2,
    fit_two_time,
    power_law,
    simulate_two_time,
)


pytestmark = pytest.mark.x64


@pytest.fixture
def again(tmp_path):
    def through_a_file(results):
        save_npz(tmp_path / "fit.npz", results)
        return load_npz(tmp_path / "fit.npz")

    return through_a_file


def same(a, b):
    (leaves, structure), (others, another) = map(jax.tree.flatten, (a, b))
    assert structure == another
    for x, y in zip(leaves, others, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)


def decay(x, a, b):
    return a * jnp.exp(-b * x)


X = np.linspace(0, 3, 50)


def test_a_fit_is_the_same_and_says_the_same(again):
    found = fit.curve_fit(decay, X, np.exp(-X) + 0.01 * np.sin(9 * X)).result
    kept = again(found)
    same(kept, found)
    assert str(kept) == str(found)
    assert kept.plan == found.plan
    np.testing.assert_array_equal(kept.covariance, found.covariance)


def test_what_is_known_of_a_fit_is_kept(again):
    y = np.exp(-X) + 0.01 * np.sin(9 * X)
    problem = fit.LeastSquares(
        lambda p, x: p["a"] * jnp.exp(-p["b"] * x[0]) - x[1],
        {"a": 1.0, "b": 2.0},
        (X, y),
        bounds=({"a": 0.5, "b": 0.5}, {"a": 2.0, "b": 3.0}),
    )
    found = fit.least_squares(problem)
    draws = np.random.default_rng(0).normal(size=(2, 5, 2))
    rows, numbers = draws[..., 0], draws[0, 0]
    known = {
        "interval": fit.confidence_intervals(found),
        "identifiability": fit.identifiability(found),
        "profile": fit.profile_likelihood(problem, found, "a"),
        "multistart": fit.multistart(problem, key=jax.random.key(0), starts=8),
        "posterior": fit.Posterior(
            samples=draws,
            names=("a", "b"),
            linear=draws[..., :0],
            linear_names=(),
            sigma=None,
            divergences=rows > 9,
            acceptance=rows,
            steps=np.ones((2, 5), int),
            r_hat=numbers,
            bulk_ess=numbers,
            tail_ess=numbers,
            status=Status.SUCCESSFUL,
            refined=False,
        ),
    }
    kept = again(known)
    same(kept, known)
    assert kept["posterior"].status is Status.SUCCESSFUL
    for name, one in known.items():
        assert str(kept[name]) == str(one)


def test_curves_and_a_power_law_are_kept(again):
    lags, q = np.geomspace(0.01, 100, 40), np.array([0.003, 0.005, 0.008])
    clean = np.stack([1 + 0.2 * np.exp(-2 * lags * x**2 / 1e-5) for x in q])
    noise = 1e-3 * np.random.default_rng(0).standard_normal(clean.shape)
    curves = OneTime(lags, clean + noise, 1e-3, q)
    found = fit_g2(curves, Simple())
    law = power_law(found.q, found.rate, found.rate_error)
    kept = again({"curves": curves, "fit": found, "law": law})
    same(kept, {"curves": curves, "fit": found, "law": law})
    assert str(kept["fit"]) == str(found)
    np.testing.assert_array_equal(kept["fit"].tau_error, found.tau_error)


@pytest.mark.parametrize(
    "model",
    [
        Static(Diffusion(12000.0, 0.0, 0.0)),
        LaminarFlow(
            Diffusion(12000.0, 0.0, 0.0),
            Shear(2e-3, 0.0, 0.0, -0.07),
            convention="homodyne",
        ),
    ],
)
def test_models_of_two_time_maps_are_kept(again, model):
    kept = again({"model": model})["model"]
    same(kept, model)
    assert type(kept) is type(model)
    if isinstance(model, LaminarFlow):
        assert kept.convention == "homodyne"


def test_a_fit_of_maps_is_kept(again):
    model = Static(Diffusion(12000.0, 0.0, 0.0))
    data = simulate_two_time(
        model,
        0.1 * np.arange(12),
        0.0054,
        contrast=0.2,
        key=jax.random.key(0),
        noise=WhiteNoise(0.01),
    )
    found = fit_two_time(
        data,
        model,
        fixed=lambda m: (m.diffusion.alpha, m.diffusion.D_offset),
        progress=False,
    )
    report = check_quality(data)
    kept = again({"fit": found, "quality": report})
    same(kept["fit"], found)
    same(kept["quality"], report)
    assert str(kept["fit"]) == str(found)
    assert str(kept["quality"]) == str(report)


def test_what_curve_fit_returns_is_not_saved_as_a_pair(tmp_path):
    found = fit.curve_fit(decay, X, np.exp(-X))
    with pytest.raises(
        ArgumentError, match="which would be saved as a plain pair. Save its"
    ):
        save_npz(tmp_path / "fit.npz", {"fit": found})
    assert not list(tmp_path.iterdir())


def test_a_model_of_the_users_own_is_refused(tmp_path):
    class Mine(eqx.Module):
        a: float = 1.0

    with pytest.raises(ArgumentError, match=r"`results\['m'\]` must be .* is a Mine"):
        save_npz(tmp_path / "fit.npz", {"m": Mine()})


@pytest.mark.parametrize(
    "choice", ["LARGE", ["Strategy"], ["Strategy", "HUGE"], ["Path", "LARGE"], [1, 2]]
)
def test_an_unknown_choice_is_refused(choice):
    with pytest.raises(EncodingError, match="is not known"):
        decode({"enum": choice}, [])
