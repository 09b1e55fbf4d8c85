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
