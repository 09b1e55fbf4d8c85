"""Correlations of detector frames, beside direct sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, xpcs


X64 = jnp.result_type(float) == jnp.float64
RTOL = 1e-12 if X64 else 1e-5
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 4, size=(9, 11))


def speckles(frames=40, memory=0.8):
    """Counts of a fluctuating intensity: a complex field with memory."""
    kicks = RNG.normal(size=(frames, *LABELS.shape, 2)).view(complex)[..., 0]
    field = [kicks[0]]
    for kick in kicks[1:]:
        field.append(memory * field[-1] + np.sqrt(1 - memory**2) * kick)
    return RNG.poisson(3 * np.abs(field) ** 2).astype(np.uint16)


FRAMES = speckles()


@pytest.mark.parametrize("chunk", [4096, 7])
def test_maps_are_direct_sums_over_pixels(chunk):
    found = jax.jit(lambda f: xpcs.two_time_from_frames(f, LABELS, chunk=chunk))(FRAMES)
    assert found.shape == (3, 40, 40)
    assert found.dtype == jnp.result_type(float)
    for label in (1, 2, 3):
        panel = FRAMES[:, label == LABELS].astype(float)
        norm = np.outer(panel.mean(1), panel.mean(1))
        exact = panel @ panel.T / panel.shape[1] / norm
        np.testing.assert_allclose(found[label - 1], exact, rtol=RTOL)


def test_dark_frame_is_nan_and_the_rest_is_not():
    dark = FRAMES.copy()
    dark[7] = 0
    found = np.asarray(xpcs.two_time_from_frames(dark, LABELS))
    bad = np.isnan(found)
    assert bad[:, 7].all()
    assert bad[:, :, 7].all()
    assert bad.sum() == 3 * 79
    loss = lambda f: jnp.nansum(xpcs.two_time_from_frames(f, LABELS))  # noqa: E731
    slope = jax.jit(jax.grad(loss))(jnp.asarray(dark, float))
    assert bool(jnp.all(jnp.isfinite(slope)))


@pytest.mark.parametrize("chunk", [1024, 7])
def test_multi_tau_is_a_direct_correlation_of_averaged_frames(chunk):
    found = xpcs.multi_tau(FRAMES, LABELS, channels=8, chunk=chunk)
    lags = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32]
    assert found.lags.tolist() == lags
    for column, lag in enumerate(lags):
        level = max(0, int(np.log2(lag)) - 2)
        panel = FRAMES[:, LABELS == 2].astype(float)
        for _ in range(level):
            panel = panel[: len(panel) // 2 * 2].reshape(-1, 2, panel.shape[1]).mean(1)
        k = lag >> level
        early, late = panel[:-k], panel[k:]
        exact = (early * late).mean() / (early.mean() * late.mean())
        np.testing.assert_allclose(found.g2[1, column], exact, rtol=RTOL)


@pytest.mark.x64
def test_multi_tau_states_its_error():
    # Brightness that scatters about 1, without memory: g2 = 1 at all lags.
    many = RNG.gamma(2.0, size=(30, 4000))
    labels = np.repeat(np.arange(1, 101), 40)
    found = xpcs.multi_tau(many, labels, channels=8, levels=2)
    pulls = (np.asarray(found.g2) - 1) / np.asarray(found.sigma)
    assert pulls.std() == pytest.approx(1, abs=0.15)
    assert abs(pulls.mean()) < 0.3


def long_series(kind):
    """Steady readings of a beam that loses a fifth, with a pixel to leave out."""
    rng = np.random.default_rng(1)
    beam = np.linspace(1, 0.8, 16000)[:, None]
    bright = beam * rng.gamma(50.0, 1.0, size=(16000, 30))
    frames = rng.poisson(bright) if kind == "u2" else bright
    labels = np.repeat([1, 2, 0], [11, 18, 1])
    frames[:, -1] = 65535 if kind == "u2" else np.nan
    return frames.astype(kind), labels


@pytest.mark.parametrize("kind", ["u2", "f4"])
def test_errors_of_long_series_are_the_scatter_of_pixels_in_float32_too(kind):
    frames, labels = long_series(kind)
    found = xpcs.multi_tau(frames, labels, channels=4, chunk=7)
    for label in (1, 2):
        panel = frames[:, labels == label].astype(float)
        exact = []
        for steps in xpcs.multi_tau_lags(16000, 4):
            for k in steps:
                early, late = panel[:-k], panel[k:]
                means = (early * late).mean(0), early.mean(0), late.mean(0)
                product, first, last = (x / x.mean() for x in means)
                g2 = means[0].mean() / (means[1].mean() * means[2].mean())
                off = g2 * (product - first - last)
                exact.append((g2, off.std(ddof=1) / np.sqrt(off.size)))
            pairs = panel[: len(panel) // 2 * 2].reshape(-1, 2, panel.shape[1])
            panel = pairs.mean(1)
        # A pixel scatters by 1e-5 or less of its mean, and float32 rounds at 1e-7.
        g2, sigma = np.transpose(exact)
        np.testing.assert_allclose(found.g2[label - 1], g2, rtol=3e-7)
        np.testing.assert_allclose(found.sigma[label - 1], sigma, rtol=1e-2)


@pytest.mark.f32
def test_products_that_are_all_zero_have_no_error():
    # One photon in a frame now and then, in no pixel twice at this lag.
    frames = np.zeros((100, 40), np.float32)
    frames[np.arange(40) * 2, np.arange(40)] = 0.37
    frames[np.arange(40) * 2 + 7, np.arange(40)] = 0.37
    found = xpcs.multi_tau(frames, np.ones(40, int), channels=10, levels=1)
    together = np.asarray(found.lags) == 7
    assert np.array_equal(found.g2[0] > 0, together)
    assert np.array_equal(found.sigma[0] == 0, ~together)


def test_levels_are_limited_as_asked():
    assert [len(k) for k in xpcs.multi_tau_lags(1000, 8, levels=2)] == [7, 4]
    assert np.concatenate(xpcs.multi_tau_lags(3, 16)).tolist() == [1, 2]


@pytest.mark.f32
@pytest.mark.parametrize(
    ("frames", "labels", "options", "message"),
    [
        (FRAMES, LABELS[:5], {}, "`labels` must have the shape of one of the `frames`"),
        (FRAMES[:1], LABELS, {}, "`frames` must hold at least 2 frames, but holds 1"),
        (FRAMES, LABELS - 1, {}, "`labels` must be integers, .* minimum -1"),
        (FRAMES, 0 * LABELS, {}, r"`labels` must hold each .* but lacks \[1\]"),
        (FRAMES, 2 * LABELS, {}, r"`labels` must hold each .* lacks \[1, 3, 5\]"),
        (FRAMES, LABELS, {"chunk": 0}, "`chunk` must be an integer .* 1, but is 0"),
        (FRAMES, LABELS, {"channels": 7}, "`channels` must be an even number .* is 7"),
        (FRAMES, LABELS, {"levels": 0}, "`levels` must be an integer .* 1, but is 0"),
    ],
)
def test_bad_input_is_refused(frames, labels, options, message):
    with pytest.raises(ArgumentError, match=message):
        xpcs.multi_tau(frames, labels, **options)


@pytest.mark.f32
def test_traced_labels_are_refused():
    with pytest.raises(ArgumentError, match="`labels` must be known .* is traced"):
        jax.jit(xpcs.two_time_from_frames)(FRAMES, LABELS)


@pytest.mark.parametrize("correlate", [xpcs.two_time_from_frames, xpcs.multi_tau])
def test_frames_are_read_in_both_orders_of_bytes_and_not_masked(correlate):
    exact = jax.tree.leaves(correlate(FRAMES, LABELS))
    for kind in (">u2", ">f4"):
        found = jax.tree.leaves(correlate(FRAMES.astype(kind), LABELS))
        for one, other in zip(found, exact, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    masked = np.ma.masked_equal(FRAMES, FRAMES.max())
    with pytest.raises(ArgumentError, match="`frames` .* out with the label 0"):
        correlate(masked, LABELS)
    labels = np.ma.masked_equal(LABELS, 2)
    with pytest.raises(ArgumentError, match="`labels` must be known .* the label 0"):
        correlate(FRAMES, labels)


@pytest.mark.parametrize("correlate", [xpcs.two_time_from_frames, xpcs.multi_tau])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_pixel_that_is_not_finite_is_named_unless_it_is_left_out(correlate, value):
    bad, labels = FRAMES.astype(np.float32), np.ones_like(LABELS)
    bad[7:, 0, 0] = bad[:, 3, 5] = value
    labels[0, 0] = 0
    message = rf"frame 0 has {value:g} at pixel \(3, 5\) \(1 such pixels\). Give"
    with pytest.raises(ArgumentError, match=message):
        correlate(bad, labels)
    labels[3, 5] = 0
    # The last chunk is filled up with a pixel that does not count.
    found = jax.tree.leaves(correlate(bad, labels, chunk=7))
    clean = jax.tree.leaves(correlate(FRAMES.astype(np.float32), labels, chunk=7))
    for one, other in zip(found, clean, strict=True):
        assert np.array_equal(one, other)
    assert np.all(np.isfinite(found[-1]))


@pytest.mark.parametrize("correlate", [xpcs.two_time_from_frames, xpcs.multi_tau])
@pytest.mark.parametrize("kind", [np.int16, np.int32])
def test_a_pixel_of_negative_counts_is_named_unless_it_is_left_out(correlate, kind):
    # Detectors mark dead pixels by -1.
    bad, labels = FRAMES.astype(kind), np.ones_like(LABELS)
    bad[4:, 3, 5] = -1
    message = r"must be not negative .* frame 4 has -1 at pixel \(3, 5\) \(1 such"
    with pytest.raises(ArgumentError, match=message):
        correlate(bad, labels)
    labels[3, 5] = 0
    found, clean = (jax.tree.leaves(correlate(x, labels)) for x in (bad, FRAMES))
    np.testing.assert_allclose(found[-1], clean[-1], rtol=1e-5)


@pytest.mark.parametrize("correlate", [xpcs.two_time_from_frames, xpcs.multi_tau])
def test_frames_less_a_dark_image_may_be_negative(correlate):
    dark = FRAMES.astype(np.float32) - 0.1
    assert dark.min() < 0
    found = jax.tree.leaves(correlate(dark, LABELS))
    assert np.all(np.isfinite(found[-1]))
