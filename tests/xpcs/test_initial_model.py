import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.xpcs import (
    Diffusion,
    LaminarFlow,
    Shear,
    Static,
    TwoTime,
    WhiteNoise,
    initial_model,
    initial_models,
    simulate_two_time,
    two_time,
)


pytestmark = pytest.mark.f32

TIMES = 0.1 * np.arange(60)
PHI = np.radians([-90.0, -54.0, -18.0, 18.0, 54.0])
DIFFUSION = Diffusion(12000.0, -0.35, 150.0)


def measured(model):
    return simulate_two_time(
        model,
        TIMES,
        0.0054,
        PHI,
        contrast=0.25,
        key=jax.random.key(0),
        noise=WhiteNoise(0.01),
    )


def deviation(model, data):
    """Deviation of the best curves of a model, in standard deviations of a value."""
    factor = np.asarray(two_time(model, data.times, data.q, data.phi, offset=0.0))
    upper = np.triu_indices(data.frames, 1)
    total = 0.0
    for f, c2 in zip(factor, np.asarray(data.c2), strict=True):
        basis = np.stack([f[upper], np.ones(upper[0].size)], axis=1)
        left = c2[upper] - basis @ np.linalg.lstsq(basis, c2[upper])[0]
        total += np.mean((left / 0.01) ** 2) / len(factor)
    return np.sqrt(total)


def test_the_static_start_is_within_a_step_of_the_grid():
    data = measured(Static(DIFFUSION))
    start = initial_model(data, "static_anisotropic")
    # Noise alone is 1; neighbours of the grid differ by 1.5 in the decay time, which
    # is less than a fifth of the contrast: 5 standard deviations at the very most.
    assert deviation(start, data) < 2


@pytest.mark.parametrize("convention", ["physical", "homodyne"])
def test_the_start_with_flow_finds_rate_and_direction(convention):
    shear = Shear(3e-3, -0.2, 2e-4, np.radians(-4.0))
    data = measured(LaminarFlow(DIFFUSION, shear, 2e6, convention))
    start = initial_model(data, "laminar_flow", convention=convention)
    assert start.convention == convention
    assert abs(float(start.shear.phi0 - shear.phi0)) < np.radians(15)
    # The rate in the middle of the run, to a factor 2.
    ratio = start.shear(jnp.array(3.0)) / shear(jnp.array(3.0))
    assert 0.5 < float(ratio) < 2
    assert deviation(start, data) < 2


def test_several_starts_differ_and_the_first_is_the_best():
    data = measured(LaminarFlow(DIFFUSION, Shear(3e-3)))
    starts = initial_models(data, "laminar_flow", 3)
    assert len(starts) == 3
    places = {(float(s.shear.rate), float(s.shear.phi0)) for s in starts}
    assert len(places) == 3


def test_frames_that_are_masked_do_not_matter():
    data = measured(Static(DIFFUSION))
    mask = np.ones((60, 60), bool)
    mask[20:25] = mask[:, 20:25] = False
    spoiled = np.where(mask, np.asarray(data.c2), 5.0)
    bad = TwoTime(spoiled, data.q, data.phi, data.times, 0.01, mask)
    good = TwoTime(data.c2, data.q, data.phi, data.times, 0.01, mask)
    assert float(initial_model(bad).diffusion.D0) == pytest.approx(
        float(initial_model(good).diffusion.D0)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "shear"}, "`mode` must be one of .* but is 'shear'"),
        ({"count": 0}, "`count` must be an integer of at least 1, but is 0"),
        ({"convention": "foo"}, "`convention` must be .* but is 'foo'"),
        ({"gap": -3.0}, "`gap` must be positive, but is -3"),
    ],
)
def test_wrong_options_are_refused(options, message):
    data = measured(Static(DIFFUSION))
    with pytest.raises(ArgumentError, match=message):
        initial_models(data, **options)


def test_a_mask_without_pairs_is_refused():
    mask = np.zeros((60, 60), bool)
    c2 = np.ones((1, 60, 60))
    with pytest.raises(ArgumentError, match="must leave a pair of frames"):
        initial_model(TwoTime(c2, 0.01, 0.0, TIMES, 0.01, mask))
    with pytest.raises(ArgumentError, match="must have at least 2 frames"):
        initial_model(TwoTime(c2[:, :1, :1], 0.01, 0.0, TIMES[:1]))
