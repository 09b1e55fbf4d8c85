import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.xpcs import TwoTime, check_quality


pytestmark = pytest.mark.f32

FRAMES, DT, SIGMA, CONTRAST = 150, 0.1, 0.02, 0.25
TIMES = DT * np.arange(FRAMES)
LAG = np.abs(np.subtract.outer(TIMES, TIMES))


def maps(noise=SIGMA, seed=0):
    """Two maps that decay within a sixth of the run, with a peak of shot noise."""
    random = np.random.default_rng(seed)
    c2 = np.stack([1 + CONTRAST * np.exp(-LAG / tau) for tau in (2.0, 1.0)])
    upper = np.triu(noise * random.normal(size=c2.shape), 1)
    c2 = c2 + upper + upper.transpose(0, 2, 1)
    c2[:, np.arange(FRAMES), np.arange(FRAMES)] = 1.8
    return c2


def report(c2, sigma=SIGMA, mask=None):
    q = np.array([0.01, 0.02])
    return check_quality(TwoTime(c2.astype(np.float32), q, 0.0, TIMES, sigma, mask))


def test_a_good_measurement_has_no_problems():
    found = report(maps())
    assert found.good
    assert found.warnings == ()
    # 2 % of the pairs are at long lags, a twentieth of them independent: 1e-3.
    assert found.baseline == pytest.approx(1.0, abs=0.01)
    # The shortest lag is one frame: exp(-0.05) and exp(-0.1) of the contrast.
    assert found.contrast == pytest.approx(
        CONTRAST * np.exp([-DT / 2, -DT / 1]), abs=0.01
    )
    # 10,000 pairs: the median is known to 1 %; curvature adds less.
    assert found.sigma == pytest.approx(SIGMA, rel=0.04)
    assert found.signal_to_noise == pytest.approx(found.contrast / found.sigma)
    assert (found.used, found.monotone) == (1.0, True)
    assert not found.finite.min() < 1
    text = str(found)
    assert text.startswith("2 maps of 150 x 150 frames, 100.0% of the pairs used")
    assert text.endswith("No problems found.")
    assert len(text.splitlines()) == 5


@pytest.mark.parametrize("noise", [0.0, 0.005, 0.1])
def test_the_noise_is_found_whatever_it_is(noise):
    # Without noise what is left is the curvature of the signal.
    assert report(maps(noise)).sigma == pytest.approx(noise, rel=0.04, abs=2e-3)


def test_dead_frames_are_found_and_no_others():
    c2 = maps()
    c2[:, 40] = c2[:, :, 40] = 1.0
    c2[1, 90] *= 1.2
    c2[1, :, 90] *= 1.2
    found = report(c2)
    assert found.dead_frames == (41, 91)
    message = "Frames 41, 91 are constant or far from their neighbours"
    assert any(message in text for text in found.warnings)
    mask = np.ones((FRAMES, FRAMES), bool)
    mask[[40, 90]] = mask[:, [40, 90]] = False
    assert report(c2, mask=mask).good


def test_ageing_is_not_taken_for_dead_frames():
    # The decay slows down by a factor of ten during the run.
    tau = 0.3 * np.exp(2.3 * TIMES / TIMES[-1])
    c2 = 1 + CONTRAST * np.exp(-LAG / np.sqrt(np.outer(tau, tau)))
    random = np.random.default_rng(1)
    upper = np.triu(SIGMA * random.normal(size=c2.shape), 1)
    assert report(np.stack([c2 + upper + upper.T] * 2)).dead_frames == ()


def test_values_out_of_range_are_counted():
    c2 = maps()
    c2[1, 3, 7] = c2[1, 7, 3] = 5.0
    found = report(c2)
    pairs = FRAMES * (FRAMES - 1) / 2
    assert found.outside == pytest.approx([0, 1 / pairs])
    assert any(text.startswith("map 2: up to 0.01%") for text in found.warnings)


def test_a_map_that_is_not_symmetric_is_named():
    c2 = maps()
    c2[0, 7, 3] += 0.5
    found = report(c2)
    assert found.asymmetry == pytest.approx([0.5, 0], abs=1e-6)
    assert any("map 1: not symmetric, by up to 0.5" in t for t in found.warnings)


def test_values_that_are_missing_are_counted():
    c2 = maps()
    mask = np.ones((FRAMES, FRAMES), bool)
    mask[5, 9] = False
    c2[0, 5, 9] = np.nan
    found = report(c2, mask=mask)
    assert found.finite == pytest.approx(1)
    assert found.used < 1


def test_what_was_traced_when_it_was_made_is_examined():
    # A program cannot raise: `TwoTime` lets values through, and makes bad times NaN.
    c2 = maps()
    c2[0, 5, 9] = np.nan
    make = jax.jit(lambda c2, times: TwoTime(c2, 0.01, 0.0, times, SIGMA))
    found = check_quality(make(c2, TIMES[::-1].copy()))
    assert not found.monotone
    assert found.finite == pytest.approx([1 - 2 / FRAMES / (FRAMES - 1), 1])
    assert found.warnings[:2] == (
        "The times do not increase.",
        "map 1: 0.01% not finite.",
    )


def test_a_baseline_that_is_off_is_named():
    text = "map 1, 2: the baseline at long lags is not near 1"
    assert any(text in t for t in report(maps() + 0.3).warnings)


def test_a_contrast_below_the_noise_is_named():
    flat = np.where(LAG == 0, 1.8, np.ones((2, 1, 1)))
    text = "the contrast is less than 3 standard deviations"
    assert any(text in t for t in report(flat + _noise()).warnings)


def _noise():
    upper = np.triu(
        SIGMA * np.random.default_rng(2).normal(size=(2, FRAMES, FRAMES)), 1
    )
    return upper + upper.transpose(0, 2, 1)


@pytest.mark.parametrize("sigma", [0.2, np.full((2, FRAMES, FRAMES), 0.2)])
def test_stated_errors_that_do_not_fit_are_named(sigma):
    found = report(maps(), sigma)
    assert found.stated_sigma == pytest.approx(0.2)
    assert any("the stated `sigma` is 10 times" in t for t in found.warnings)


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
def test_a_tiny_map_has_a_report(frames):
    data = TwoTime(jnp.ones((1, frames, frames)), 0.01, 0.0, jnp.arange(1.0 * frames))
    assert str(check_quality(data))


def test_of_errors_that_are_not_stated_nothing_is_said():
    plain = report(maps() + _noise(), None)
    assert np.isnan(plain.stated_sigma).all()
    assert not any("stated" in text for text in plain.warnings)
