"""Bounds of contrasts and offsets, and which scalings take them."""

import jax
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.xpcs import (
    Constant,
    Diffusion,
    Fourier,
    Static,
    WhiteNoise,
    fit_two_time,
    simulate_two_time,
    two_time_problem,
)


pytestmark = pytest.mark.x64

MODEL = Static(Diffusion(12000.0, -0.2))
PHI = np.deg2rad([-80.0, -10.0, 40.0])
# Around contrasts and offsets, but not around the amplitudes of their harmonics.
INSIDE = {"contrast_bounds": (0.0, 0.5), "offset_bounds": (0.5, 1.5)}


@pytest.fixture(scope="module")
def data():
    return simulate_two_time(
        MODEL,
        0.1 * np.arange(40),
        0.0054,
        PHI,
        contrast=0.25 - 0.08 * np.cos(PHI),
        key=jax.random.key(1),
        noise=WhiteNoise(0.01),
    )


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("scaling", [Fourier(1), Constant(0.25)])
def test_bounds_are_refused_where_no_coefficient_is_a_contrast(name, scaling, data):
    low, high = INSIDE[name]
    message = (
        f"`{name}` must be left out with the scaling `{type(scaling).__name__}`, but "
        f"are {low:g} and {high:g}: .* or take `PerAngle` or `Shared`"
    )
    with pytest.raises(ArgumentError, match=message):
        two_time_problem(data, MODEL, scaling=scaling, **{name: (low, high)})


@pytest.mark.slow
def test_bounds_of_each_map_leave_a_negative_amplitude_alone(data):
    def hold(model):
        return model.diffusion.D_offset

    waves = fit_two_time(data, MODEL, scaling=Fourier(1), fixed=hold)
    assert waves.result.linear[1] < 0
    # One wave suits any three contrasts.
    bounded = fit_two_time(data, MODEL, fixed=hold, **INSIDE)
    assert waves.result.success
    assert bounded.result.success
    assert np.allclose(bounded.contrast, waves.contrast, rtol=1e-7)


@pytest.mark.parametrize("order", [0, 1])
def test_infinite_bounds_suit_every_scaling(order, data):
    options = {"contrast_bounds": (None, np.inf), "offset_bounds": (-np.inf, None)}
    made = two_time_problem(data, MODEL, scaling=Fourier(order), **options)
    assert not made.may_violate_bounds


def test_a_mean_alone_takes_bounds(data):
    mean = two_time_problem(data, MODEL, scaling=Fourier(0), **INSIDE)
    assert list(zip(mean.low, mean.high, strict=True)) == list(INSIDE.values())
