import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, xpcs


pytestmark = pytest.mark.f32

KEY = jax.random.key(0)
TIMES = jnp.arange(60) * 0.1
MODEL = xpcs.Static(xpcs.Diffusion(1e4))
Q = np.full(20, 0.0054)
CLEAN = xpcs.two_time(MODEL, TIMES, Q, contrast=0.3)
NOISES = [
    xpcs.WhiteNoise(0.02),
    xpcs.ShotNoise(0.05, 1e5),
    xpcs.FrameNoise(0.02),
    xpcs.FrameNoise(0.02, shared=True),
]


def simulate(noise, key=KEY, contrast=0.3):
    return xpcs.simulate_two_time(
        MODEL, TIMES, Q, contrast=contrast, key=key, noise=noise
    )


def unchecked(noise, key=KEY):
    # Users run it without the type checks of the tests, which come first.
    return inspect.unwrap(xpcs.simulate_two_time)(MODEL, TIMES, Q, key=key, noise=noise)


@pytest.mark.parametrize("noise", NOISES, ids=lambda n: type(n).__name__)
def test_noise_is_symmetric_and_has_the_width_it_states(noise):
    data = simulate(noise)
    assert bool(jnp.all(data.c2 == data.c2.swapaxes(1, 2)))
    off = (np.asarray(data.c2) - np.asarray(CLEAN)) / np.asarray(data.sigma)
    off = off[:, *np.triu_indices(60, 1)]
    # 20 maps of 60 frames: 1200 (or 60) numbers behind the noise of frames, whose
    # variance has a standard deviation of sqrt(2 / 1200) = 0.04.
    few = getattr(noise, "shared", False)
    assert off.var() == pytest.approx(1, abs=0.6 if few else 0.16)
    assert abs(off.mean()) < (1 if few else 0.2)
    assert data.c2.dtype == CLEAN.dtype


def test_pairs_with_a_common_frame_share_half_of_the_noise_of_frames():
    off = np.asarray(simulate(xpcs.FrameNoise(0.02)).c2 - CLEAN) / 0.02
    # E[(a + b)(a + c)] / 2 = 1/2 for three frames, over 20 maps and 20 of each.
    common = np.mean(off[:, :20, 20:40] * off[:, :20, 40:])
    apart = np.mean(off[:, :15, 15:30] * off[:, 30:45, 45:])
    assert common == pytest.approx(0.5, abs=0.15)
    assert apart == pytest.approx(0.0, abs=0.15)


def test_shot_noise_peaks_on_the_diagonal():
    data = simulate(xpcs.ShotNoise(0.05, 1e5))
    diagonal = np.diagonal(data.c2 - CLEAN, axis1=1, axis2=2)
    assert diagonal.mean() == pytest.approx(1 / 0.05, rel=1e-3)


def test_kinds_of_noise_add_up():
    data = simulate([xpcs.WhiteNoise(0.03), xpcs.FrameNoise(0.04)])
    assert float(data.sigma) == pytest.approx(0.05, rel=1e-6)


def test_simulation_repeats_with_its_key_also_under_jit():
    first = simulate(xpcs.WhiteNoise(0.02)).c2
    again = jax.jit(lambda key: simulate(xpcs.WhiteNoise(0.02), key).c2)(KEY)
    np.testing.assert_allclose(again, first, rtol=1e-6)


def test_a_traced_contrast_below_0_spoils_its_map():
    c2 = jax.jit(lambda x: simulate(NOISES, contrast=x).c2)(jnp.array([0.3, -0.3] * 10))
    assert np.isnan(c2).all((1, 2)).tolist() == [False, True] * 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xpcs.WhiteNoise(0.0), "`sigma` must be positive, but is 0"),
        (lambda: xpcs.FrameNoise(-1.0), "`sigma` must be positive, but is -1"),
        (lambda: xpcs.ShotNoise(0.0, 1.0), "`counts` must be positive, but is 0"),
        (lambda: xpcs.ShotNoise(1.0, -1.0), "`pixels` must be positive, but is -1"),
        (
            lambda: simulate(NOISES, contrast=-0.2),
            "`contrast` must be at least 0, but is -0.2",
        ),
        (
            lambda: simulate(NOISES, contrast=10**400),
            "`contrast` must be a number or an array .*, but is of the type int",
        ),
        (
            lambda: simulate(NOISES, contrast=0.3 + 0j),
            "`contrast` must be real, but has dtype complex",
        ),
        (lambda: simulate(()), "`noise` must hold at least one kind of noise"),
        (
            lambda: unchecked(0.01),
            "`noise` must be an `AbstractNoise`, .* Write `W",
        ),
        (
            lambda: unchecked(NOISES, 0),
            "`key` must be an `Array`, but is an int. Write",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
