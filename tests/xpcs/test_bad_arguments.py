"""Arguments of another kind are refused by their names, whoever is given them."""

import inspect

import jax
import numpy as np
import pytest

from physax import ArgumentError, xpcs
from physax.fit import least_squares
from physax.xpcs import (
    Constant,
    Diffusion,
    Fourier,
    FrameNoise,
    LaminarFlow,
    Shear,
    Static,
    Stretched,
    TwoTime,
    WhiteNoise,
)


pytestmark = pytest.mark.f32

Q, TIMES = 0.0054, 0.1 * np.arange(8)
MODEL = Static(Diffusion(12000.0))
MAPS = np.asarray(xpcs.two_time(MODEL, TIMES, Q, contrast=0.25))
DATA = TwoTime(MAPS, Q, 0.0, TIMES)
FRAMES, LABELS = np.ones((8, 3)), np.ones(3, int)
X = np.zeros((4, 5, 3))


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch):
    """Users run it without the type checks of the tests, which come first."""
    for kind in (LaminarFlow, TwoTime):
        monkeypatch.setattr(kind, "__init__", inspect.unwrap(kind.__init__))


def raw(function):
    return inspect.unwrap(function)


def problem():
    return xpcs.two_time_problem(DATA, MODEL)


def result():
    return least_squares(problem())


NOT_DATA = "`data` must be a `TwoTime`, but is a ndarray. Make one of arrays, or read"
NOT_A_MODEL = "`model` must be an `AbstractCorrelation`, but is a dict. Take `Static`"
TABLE = [
    (NOT_DATA, lambda: raw(xpcs.one_time)(MAPS)),
    (NOT_DATA, lambda: raw(xpcs.select)(MAPS, [(0.0, 1.0)])),
    (NOT_DATA, lambda: raw(xpcs.frame_range)(MAPS, 1, 3)),
    (NOT_DATA, lambda: raw(xpcs.check_quality)(MAPS)),
    (NOT_DATA, lambda: raw(xpcs.initial_models)(MAPS)),
    (NOT_DATA, lambda: raw(xpcs.two_time_problem)(MAPS, MODEL)),
    (NOT_A_MODEL, lambda: raw(xpcs.two_time_problem)(DATA, {})),
    (NOT_A_MODEL, lambda: raw(xpcs.two_time)({}, TIMES, Q)),
    (
        r"`scaling` must be an `AbstractScaling`, but is a str. Take `PerAngle\(\)`",
        lambda: raw(xpcs.two_time_problem)(DATA, MODEL, scaling="shared"),
    ),
    (
        "`bounds` must be a pair, the lower and the upper bound .* but is None",
        lambda: raw(xpcs.two_time_problem)(DATA, MODEL, bounds=None),
    ),
    (
        "`absolute_sigma` must be True or False, but is 'no'",
        lambda: raw(xpcs.two_time_problem)(DATA, MODEL, absolute_sigma="no"),
    ),
    (
        "`problem` must be a `TwoTimeProblem`, but is a `?TwoTime",
        lambda: raw(xpcs.two_time_fit)(DATA, result()),
    ),
    (
        "`result` must be a `FitResult`, but is None",
        lambda: raw(xpcs.two_time_fit)(problem(), None),
    ),
    (
        "`fit` must be a `TwoTimeFit`, but is a Static",
        lambda: raw(xpcs.fitted_two_time)(MODEL, DATA),
    ),
    (
        "`problem` must be a `TwoTimeProblem`, but is a",
        lambda: raw(xpcs.frame_covariance)(DATA, result()),
    ),
    (
        "`shared` must be True or False, but is 'no'",
        lambda: raw(xpcs.frame_covariance)(problem(), result(), shared="no"),
    ),
    (
        "`problem` must be a `TwoTimeProblem`, but is a",
        lambda: raw(xpcs.speckle_covariance)(DATA, result()),
    ),
    (
        "`result` must be a `FitResult`, but is None",
        lambda: raw(xpcs.speckle_covariance)(problem(), None),
    ),
    (
        "`count` must be an integer .* is 1.5",
        lambda: raw(xpcs.initial_models)(DATA, count=1.5),
    ),
    ("`mode` must be one of .* but is 3", lambda: raw(xpcs.initial_models)(DATA, 3)),
    (
        "`convention` must be .* but is 3",
        lambda: raw(xpcs.initial_models)(DATA, convention=3),
    ),
    (
        "`convention` must be .* but is 'foo'",
        lambda: raw(xpcs.initial_models)(DATA, "static_isotropic", convention="foo"),
    ),
    (
        "`gap` must be positive, but is -3",
        lambda: raw(xpcs.initial_models)(DATA, "static_isotropic", gap=-3),
    ),
    (
        "`convention` must be .* but is 2",
        lambda: LaminarFlow(Diffusion(1.0), Shear(1.0), 1.0, 2),
    ),
    (
        "`source` must be .* but is 2",
        lambda: raw(xpcs.convert_rate)(1.0, 2, "physical"),
    ),
    (
        "`age` must be a lower and an upper bound, .* is 5",
        lambda: raw(xpcs.one_time)(DATA, 5.0),
    ),
    (
        "`age` must be a number, but is 'a'",
        lambda: raw(xpcs.one_time)(DATA, ("a", "b")),
    ),
    (
        "`start` must be an integer .* is 1.5",
        lambda: raw(xpcs.frame_range)(DATA, 1.5, 3),
    ),
    ("`end` must be an integer .* is '3'", lambda: raw(xpcs.frame_range)(DATA, 1, "3")),
    (
        r"`c2` must have shape \(..., frames, frames\)",
        lambda: raw(xpcs.neighbour_diagonal)(TIMES),
    ),
    (
        "`phi` must be a number, but is 'a'",
        lambda: raw(xpcs.in_ranges)("a", [(0.0, 1.0)]),
    ),
    (
        "`mask` must be booleans, .* dtype float",
        lambda: TwoTime(MAPS, Q, 0.0, TIMES, 0.01, MAPS[0]),
    ),
    (
        "`mask` must be booleans, .* dtype <U3",
        lambda: TwoTime(MAPS, Q, 0.0, TIMES, 0.01, "all"),
    ),
    ("`times` must be real, but has", lambda: TwoTime(MAPS, Q, 0.0, TIMES * 1j)),
    ("`times` must be real, but has", lambda: raw(xpcs.two_time)(MODEL, TIMES * 1j, Q)),
    (
        r"`times` must have shape \(frames,\), .* \(\)",
        lambda: raw(Diffusion.cumulative)(Diffusion(1.0), 1.0),
    ),
    (
        "`contrast` must be real, but has",
        lambda: raw(xpcs.c2)(MODEL, 0.0, 1.0, Q, contrast=1j),
    ),
    ("`lags` must be real, but has", lambda: raw(xpcs.g2)(MODEL, 1j, Q)),
    (
        "`phi` must be in radians, .* but is 90",
        lambda: raw(xpcs.g1)(MODEL, 0.0, 1.0, Q, 90),
    ),
    ("`D0` must be real, but has", lambda: Diffusion(1j)),
    ("`D0` must be a number, but is nan", lambda: Diffusion(np.nan)),
    ("`offset` must be a number, but is nan", lambda: Shear(1.0, 0.0, np.nan)),
    (
        r"`diffusion` must be a rate of diffusion, but is a Shear. Write `Diffusion",
        lambda: Static(Shear(1e-3)),
    ),
    (
        r"`diffusion` must be a rate of diffusion, but is a Shear. Write `Diffusion",
        lambda: LaminarFlow(Shear(1e-3), Shear(1e-3)),
    ),
    (
        "`fixed` must pick .*, which are diffusion.D0, diffusion.alpha, diffusion.D_off"
        "set, but fails: AttributeError .* no attribute 'D'.$",
        lambda: raw(xpcs.two_time_problem)(DATA, MODEL, fixed=lambda m: m.diffusion.D),
    ),
    ("`rate` must be real, but has", lambda: Shear(1j)),
    ("`gamma` must be real, but has", lambda: Stretched(1.0, 1j)),
    ("`contrast` must be real, but has", lambda: Constant(1j)),
    ("`order` must be an integer of at least 0, but is 1.5", lambda: Fourier(1.5)),
    ("`order` must be an integer of at least 0, but is -1", lambda: Fourier(-1)),
    ("`shared` must be True or False, but is 'no'", lambda: FrameNoise(0.1, "no")),
    (
        "`key` must be an `Array`, but is an int",
        lambda: raw(xpcs.simulate_two_time)(
            MODEL, TIMES, Q, key=3, noise=WhiteNoise(0.1)
        ),
    ),
    (
        "`noise` must be an `AbstractNoise`, but is a float",
        lambda: raw(xpcs.simulate_two_time)(
            MODEL, TIMES, Q, key=jax.random.key(0), noise=0.1
        ),
    ),
    (
        "`frames` must be real numbers, but have dtype <U1",
        lambda: raw(xpcs.two_time_from_frames)(np.full((8, 3), "a"), LABELS),
    ),
    (
        "`frames` must be real numbers, but have dtype complex",
        lambda: raw(xpcs.multi_tau)(FRAMES * 1j, LABELS),
    ),
    (
        "`chunk` must be an integer of at least 1, but is 1.5",
        lambda: raw(xpcs.multi_tau)(FRAMES, LABELS, chunk=1.5),
    ),
    (
        "`levels` must be an integer of at least 1, but is '2'",
        lambda: raw(xpcs.multi_tau_lags)(100, levels="2"),
    ),
    (
        "`channels` must be an integer .* is 8.0",
        lambda: raw(xpcs.multi_tau_lags)(100, 8.0),
    ),
    ("`frames` must be an integer .* is 1.5", lambda: raw(xpcs.multi_tau_lags)(1.5)),
    (
        "`x` must be real, but has dtype complex",
        lambda: raw(xpcs.field_correlation_from_positions)(X * 1j, X[0, 0]),
    ),
    (
        "`chunk` must be an integer of at least 1, but is 1.5",
        lambda: raw(xpcs.field_correlation_from_positions)(X, X[0, 0], chunk=1.5),
    ),
    (
        "`unbiased` must be True or False, but is 'no'",
        lambda: raw(xpcs.two_time_from_positions)(X, X[0, 0], unbiased="no"),
    ),
    ("`data` must be an? `OneTime`, but is a `?Two", lambda: raw(xpcs.fit_g2)(DATA)),
    (
        "`rate` must be numbers, but is",
        lambda: raw(xpcs.power_law)(TIMES[1:], ["a"], TIMES),
    ),
    (
        r"`q`, `rate` and `error` must have one shape, but have \(7,\), \(7,\), \(6,\)",
        lambda: raw(xpcs.power_law)(TIMES[1:], TIMES[1:], TIMES[2:]),
    ),
    (
        r"`q` must be real numbers of shape \(curves,\), but has .* shape \(\)",
        lambda: raw(xpcs.power_law)(1.0, 1.0, 1.0),
    ),
]


@pytest.mark.parametrize(("message", "call"), TABLE, ids=[m for m, _ in TABLE])
def test_what_is_of_another_kind_is_refused_by_its_name(message, call):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_numbers_that_say_yes_and_no_are_a_mask():
    given = np.ones((8, 8), np.uint8)
    given[2, 3] = 0
    mask = TwoTime(MAPS, Q, 0.0, TIMES, 0.01, given).mask
    assert mask is not None
    assert np.array_equal(mask, given == 1)
