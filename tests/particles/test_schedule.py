"""Which steps a run makes, and that contradictions are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.particles._schedule import plan_steps


X64 = jnp.result_type(float) == jnp.float64
RTOL = 1e-14 if X64 else 1e-6


def ends_of(plan):
    """Where each step of a plan ends."""
    starts, widths = jax.vmap(plan.step)(jnp.arange(plan.steps))
    return np.asarray(starts), np.asarray(starts + widths)


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    ("times", "dt", "steps", "expected"),
    [
        ([0.0, 1.0, 2.0], None, None, 2),
        ([0.0, 1.0, 2.0], 0.1, None, 20),
        ([0.0, 1.0, 2.0], None, 8, 8),
        ([0.0, 1.0, 2.0], 0.25, 8, 8),
        ([0.0, 0.2, 1.0, 1.1], 0.1, None, 11),
        ([2.0, 1.0, -0.5], 0.25, None, 10),
        ([0.0, 0.4, 0.5, 2.0], None, None, 3),
        ([1e6, 1e6 + 3600], 60.0, None, 60),
    ],
)
def test_steps_join_and_end_on_the_recorded_times(times, dt, steps, expected):
    plan = plan_steps(times, dt, steps)
    starts, ends = ends_of(plan)
    assert plan.steps == expected
    assert np.allclose(starts[1:], ends[:-1], rtol=RTOL, atol=0)
    records = np.arange(plan.every, plan.steps + 1, plan.every)
    rows = records if plan.rows is None else records[list(plan.rows)]
    assert np.allclose(ends[rows - 1], times[1:], rtol=RTOL, atol=0)
    assert starts[0] == np.float32(times[0])


@pytest.mark.slow
def test_times_do_not_drift():
    # Steps of 0.1 s, summed up in float32, would be off by 0.3 s after 100,000.
    plan = plan_steps(np.array([0.0, 1e4]), 0.1, None)
    starts, _ = ends_of(plan)
    assert np.abs(starts - np.arange(100_000) * 0.1).max() < (1e-10 if X64 else 1e-3)


def test_steps_may_be_counted_for_traced_times():
    last = jax.jit(lambda t: plan_steps(t, None, 4).step(jnp.asarray(3))[0])
    assert np.allclose(last(jnp.array([0.0, 2.0])), 1.5)


BAD = [
    ([0.0, 1.0], None, 0, "`steps` must be an integer of at least 1, but is 0"),
    ([0.0], None, None, r"`times` must be a one-dimensional array .* shape \(1,\)"),
    ([0.0, np.nan], None, None, "`times` must be finite, but entry 1 is nan"),
    (
        [0.0, 1.0, 1.0],
        None,
        None,
        "`times` must increase, or decrease .* entries 1 and 2 are 1 and 1 s",
    ),
    ([0.0, 0.0], None, None, "`times` must increase, .* entries 0 and 1 are 0 and 0 s"),
    (
        [0.0, 1.0],
        0.0,
        None,
        "`dt` must be positive, also where `times` decrease, .* 0 s",
    ),
    (
        [1.0, 0.0],
        -0.1,
        None,
        "`dt` must be positive, also where `times` decrease, .* -0.1",
    ),
    (
        [0.0, 1.0, 2.0],
        0.3,
        None,
        "`dt` must divide the intervals .* from 0 to 1 s is 3.33.* nearest .* 0.333",
    ),
    (
        [0.0, 1.0],
        5.0,
        None,
        "`dt` must divide the intervals .* nearest that does is 1 s",
    ),
    # The example that went 7.5 s instead of 4.
    (
        [0.0, 4.0],
        0.005,
        1500,
        "`dt`, `steps` and `times` must agree, but 1500 steps of 0.005 s are 7.5 s and "
        "`times` span 4 s",
    ),
    ([0.0, 1.0, 2.0], None, 3, "`steps` must be a multiple of the 2 intervals .* is 3"),
    (
        [0.0, 1.0, 3.0],
        None,
        4,
        "`times` must be evenly spaced with `steps`, here 4 in all, .* 1 to 2 s",
    ),
]


@pytest.mark.parametrize(("times", "dt", "steps", "message"), BAD)
def test_plans_that_contradict_themselves_are_refused(times, dt, steps, message):
    with pytest.raises(ArgumentError, match=message):
        plan_steps(np.array(times), dt, steps)


def test_a_traced_length_of_a_step_is_refused():
    with pytest.raises(ArgumentError, match="`dt` must be known, and `times` with it"):
        jax.jit(lambda dt: plan_steps(np.array([0.0, 1.0]), dt, None).widths)(0.1)
