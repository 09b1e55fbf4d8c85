"""Many starts, and searches of the whole of the bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.fit import (
    AdditiveRecurrence,
    DifferentialEvolution,
    LatinHypercube,
    LeastSquares,
    Stream,
    global_search,
    least_squares,
    multistart,
)
from physax.fit._sampling import within_bounds
from physax.runtime import count_compiles, no_recompile


X = np.linspace(0, 4, 100)
TRUE = {"amplitude": 1.5, "frequency": 7.0, "phase": 0.4}
NOISE = 0.05 * np.random.default_rng(0).normal(size=X.size)
Y = TRUE["amplitude"] * np.sin(TRUE["frequency"] * X + TRUE["phase"]) + NOISE
START = {"amplitude": 1.0, "frequency": 3.0, "phase": 0.0}
LIMITS = (
    {"amplitude": 0.1, "frequency": 0.5, "phase": -1.5},
    {"amplitude": 5.0, "frequency": 20.0, "phase": 1.5},
)


def wave(p, data):
    x, y = data
    return p["amplitude"] * jnp.sin(p["frequency"] * x + p["phase"]) - y


def problem(bounds=LIMITS, data=(X, Y)):
    return LeastSquares(wave, START, data, bounds=bounds)


def assert_true(result):
    assert result.success
    pulls = (np.asarray(result.values) - list(TRUE.values())) / result.standard_errors
    assert np.abs(pulls).max() < 4


@pytest.fixture(scope="module")
def found():
    return multistart(problem(), key=jax.random.key(0), starts=32)


def test_the_true_minimum_is_found_where_one_start_fails(found):
    alone = least_squares(problem())
    assert float(alone.chi2) > 10 * float(found.best.chi2)
    assert_true(found.best)


def test_minima_are_distinct_and_sorted_and_counted(found):
    costs = [float(result.chi2) for result in found.minima]
    assert len(costs) > 1
    assert costs == sorted(costs)
    assert len(found.counts) == len(costs)
    assert 1 <= found.reached_best == found.counts[0]
    assert sum(found.counts) <= found.starts == 32
    assert found.not_finite == 0
    assert np.all(np.diff(found.costs) >= 0)
    assert f"{found.reached_best} of 32 starts reached the lowest" in str(found)


def test_starts_that_ended_elsewhere_are_told():
    # A cosine has a minimum for about every period: two fits leave most of them out.
    found = multistart(problem(), key=jax.random.key(0), starts=32, refine=2)
    assert found.elsewhere == 32 - found.not_finite - sum(found.counts) > 0
    assert f"\n  {found.elsewhere} ended elsewhere: " in str(found)
    assert "Raise it, or `budget`" in str(found)


@pytest.mark.slow
def test_screening_is_one_program(found):
    del found  # All is compiled.
    with count_compiles() as compiled:
        multistart(problem(), key=jax.random.key(1), starts=33)
    assert compiled.names.count("jit(search_all)") == 1
    with no_recompile():
        multistart(problem(data=(X, Y + 0.01)), key=jax.random.key(2), starts=33)


def fragile(p, data):
    # Has no value at high frequencies.
    return wave(p, data) + 0 * jnp.sqrt(10 - p["frequency"])


@pytest.mark.slow
def test_starts_without_a_finite_cost_are_counted():
    made = LeastSquares(fragile, START, (X, Y), bounds=LIMITS)
    found = multistart(made, key=jax.random.key(0), starts=32)
    # Half of the bounds: 3 binomial deviations.
    assert abs(found.not_finite - 16) < 9
    assert_true(found.best)


def test_differential_evolution_finds_the_minimum():
    assert_true(global_search(problem(), key=jax.random.key(3)))


@pytest.mark.parametrize("sampling", [LatinHypercube(), AdditiveRecurrence()])
def test_points_fill_the_cube_evenly(sampling):
    points = np.asarray(sampling.points(jax.random.key(4), 64, 3))
    assert points.shape == (64, 3)
    assert points.min() >= 0
    assert points.max() < 1
    # Of 64 points at random, an eighth would hold fewer than 3 or more than 13 in one
    # of three trials; these hold 8 within 5.
    cells = np.floor(points * 2).astype(int) @ [1, 2, 4]
    counts = np.bincount(cells, minlength=8)
    assert counts.min() >= 3
    assert counts.max() <= 13


def test_each_slice_of_a_latin_hypercube_has_one_point():
    points = np.asarray(LatinHypercube().points(jax.random.key(5), 20, 4))
    for column in points.T:
        assert sorted(np.floor(column * 20)) == list(range(20))


def test_bounds_over_decades_are_sampled_in_the_logarithm():
    low, high = jnp.array([1e-3, -1.0, 1.0]), jnp.array([1e3, 1.0, 50.0])
    middle = within_bounds(jnp.full(3, 0.5), low, high)
    np.testing.assert_allclose(middle, [1, 0, 25.5], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(within_bounds(jnp.zeros(3), low, high), low)
    np.testing.assert_allclose(within_bounds(jnp.ones(3), low, high), high)


def test_infinite_bounds_are_refused():
    limits = LIMITS[0], {**LIMITS[1], "frequency": None}
    message = "`bounds` of frequency must be finite .* but are 0.5 and inf"
    with pytest.raises(ArgumentError, match=message):
        multistart(problem(limits), key=jax.random.key(0))
    with pytest.raises(ArgumentError, match=message):
        global_search(problem(limits), key=jax.random.key(0))


def test_numbers_are_checked():
    with pytest.raises(
        ArgumentError, match="`starts` must be an integer .* 1, but is 0"
    ):
        multistart(problem(), key=jax.random.key(0), starts=0)
    for distance in (-1.0, np.nan, np.inf):
        with pytest.raises(ArgumentError, match="`distance` must be finite and at le"):
            multistart(problem(), key=jax.random.key(0), distance=distance)
    with pytest.raises(
        ArgumentError, match="`members` must be an integer .* 1, but is 0"
    ):
        DifferentialEvolution(members=0)


def test_data_from_a_stream_are_refused():
    streamed = problem(data=Stream(lambda: iter([(X, Y)]), X.size))
    with pytest.raises(ArgumentError, match="`problem` must have its data in memory"):
        multistart(streamed, key=jax.random.key(0))


def nowhere(p, data):
    return wave(p, data) * jnp.nan


@pytest.mark.slow
def test_no_finite_start_is_an_error():
    made = LeastSquares(nowhere, START, (X, Y), bounds=LIMITS)
    with pytest.raises(ArgumentError, match="a start with finite residuals, but none"):
        multistart(made, key=jax.random.key(0), starts=32)
