import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import PhysaxError
from physax._loop import divisor_near, divisor_near_root, iterate


def step(x, n):
    """A map whose result depends on the order and the number of every step."""
    return jnp.sin(1.3 * x) + 0.1 * (n + 1) / (n + 2)


def by_hand(x, start, stop):
    for n in range(start, stop):
        x = step(x, n)
    return x


START = jnp.array([0.3, -0.7, 1.1])


@pytest.mark.slow(after=6)
@pytest.mark.parametrize("checkpoint", [None, 1, 3, 5, 12, 13, 50])
@pytest.mark.parametrize(("start", "stop"), [(0, 12), (5, 18), (3, 3), (4, 2)])
def test_checkpoints_change_neither_values_nor_gradients(start, stop, checkpoint):
    def last(x):
        return jnp.sum(iterate(step, x, start, stop, checkpoint=checkpoint)[0])

    value, slope = jax.jit(jax.value_and_grad(last))(START)
    expected = by_hand(START, start, stop)
    tiny = 20 * jnp.finfo(START.dtype).eps
    np.testing.assert_allclose(value, jnp.sum(expected), rtol=tiny)
    by_rule = jax.grad(lambda x: jnp.sum(by_hand(x, start, stop)))(START)
    np.testing.assert_allclose(slope, by_rule, rtol=tiny)


def test_traced_bounds_compile_one_program_for_every_length():
    traces = 0

    @jax.jit
    def run(x, start, stop):
        nonlocal traces
        traces += 1
        return iterate(step, x, start, stop)[0]

    for start, stop in ((0, 12), (5, 18), (3, 3)):
        np.testing.assert_allclose(
            run(START, start, stop), by_hand(START, start, stop), rtol=1e-5
        )
    assert traces == 1


@pytest.mark.parametrize("checkpoint", [None, 2])
@pytest.mark.parametrize(("start", "stop"), [(0, 12), (0, 14), (8, 9), (4, 17)])
def test_records_are_those_of_every_few_steps(start, stop, checkpoint):
    last, records = iterate(
        step,
        START,
        start,
        stop,
        checkpoint=checkpoint,
        save=lambda x, n: {"x": x, "n": n},
        every=4,
    )
    steps = list(range(start, stop + 1, 4))
    assert records["n"].tolist() == steps
    for n, x in zip(steps, records["x"], strict=True):
        np.testing.assert_allclose(x, by_hand(START, start, n), rtol=1e-5)
    # The rest that fills no record is stepped all the same.
    np.testing.assert_allclose(last, by_hand(START, start, stop), rtol=1e-5)


@pytest.mark.parametrize("checkpoint", [None, 2, 5])
@pytest.mark.parametrize(("stop", "expected"), [(4, 4), (11, 10), (12, 10), (30, 10)])
def test_stop_rule_is_asked_at_multiples_only(stop, expected, checkpoint):
    # The rule first holds after step 7, and is next asked after step 10.
    count, _ = iterate(
        lambda x, n: x + 1,
        jnp.asarray(0),
        0,
        stop,
        done=lambda x: x >= 7,
        every=5,
        checkpoint=checkpoint,
    )
    assert count == expected


def test_stop_rule_keeps_both_modes_of_differentiation():
    def last(x):
        options = {"done": lambda s: s[1] >= 7, "every": 5, "checkpoint": 2}
        both = lambda s, n: (step(s[0], n), s[1] + 1)  # noqa: E731
        return iterate(both, (x, 0), 0, 20, **options)[0][0]

    x = START[0]
    forward, reverse = jax.jacfwd(last)(x), jax.grad(last)(x)
    by_rule = jax.grad(lambda x: by_hand(x, 0, 10))(x)
    np.testing.assert_allclose(forward, by_rule, rtol=1e-5)
    np.testing.assert_allclose(reverse, by_rule, rtol=1e-5)


def test_checkpoints_keep_the_memory_of_a_gradient_to_the_root_of_the_steps():
    x = jnp.ones(1000)
    steps, state = 10_000, x.nbytes

    def temporary(checkpoint):
        loss = lambda x: jnp.sum(iterate(step, x, 0, steps, checkpoint=checkpoint)[0])  # noqa: E731
        compiled = jax.jit(jax.grad(loss)).lower(x).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    # A stored step keeps one array or more; with 100 checkpoints two times 100 steps
    # are held at once, each with a few arrays.
    assert temporary(None) >= steps * state
    assert temporary(100) <= 6 * 100 * state


def test_odd_number_of_steps_is_checkpointed_too():
    # 9973 is prime: 99 blocks of 100 steps and a rest of 73.
    x = jnp.ones(1000)
    loss = lambda x: jnp.sum(iterate(step, x, 0, 9973, checkpoint=100)[0])  # noqa: E731
    compiled = jax.jit(jax.grad(loss)).lower(x).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= 6 * 100 * x.nbytes


def test_vmap_stops_each_lane_by_its_own_rule():
    def count(limit):
        return iterate(
            lambda x, n: x + 1,
            jnp.asarray(0),
            0,
            20,
            done=lambda x: x >= limit,
            every=2,
        )[0]

    assert jax.vmap(count)(jnp.array([3, 8, 99])).tolist() == [4, 8, 20]


@pytest.mark.parametrize(
    ("steps", "divisor"), [(0, 1), (1, 1), (36, 6), (40, 5), (13, 1), (24_000, 150)]
)
def test_divisor_near_root(steps, divisor):
    assert divisor_near_root(steps) == divisor


@pytest.mark.parametrize(
    ("steps", "about", "near"),
    [(30, 8, 6), (1, 1, 1), (24_000, 100, 100), (306, 100, 102), (307, 100, 100)],
)
def test_divisor_near(steps, about, near):
    assert divisor_near(steps, about) == near


@pytest.mark.parametrize(("start", "stop"), [(0, 13), (3, 15), (6, 9), (3, 4), (5, 5)])
@pytest.mark.parametrize("mode", ["scan", "blocks", "traced", "stop rule"])
def test_between_runs_at_multiples_counted_from_step_zero(start, stop, mode):
    options = {
        "scan": {},
        "traced": {},
        "blocks": {"checkpoint": 2},
        "stop rule": {"done": lambda s: s[0] > 99},
    }[mode]
    bounds = (start, stop) if mode != "traced" else map(jnp.asarray, (start, stop))
    state = (jnp.asarray(start), jnp.asarray(0), jnp.asarray(0))
    (n, calls, total), _ = iterate(
        lambda s, n: (s[0] + 1, s[1], s[2]),
        state,
        *bounds,
        every=3,
        between=lambda s: (s[0], s[1] + 1, s[2] + s[0]),
        **options,
    )
    expected = [k for k in range(start + 1, stop + 1) if k % 3 == 0]
    assert (n, calls, total) == (stop, len(expected), sum(expected))


def test_stop_rule_of_a_resumed_run_stops_at_the_same_step():
    def count(start):
        state = jnp.asarray(start)
        rule = lambda x: x >= 7  # noqa: E731
        return iterate(lambda x, n: x + 1, state, start, 40, done=rule, every=5)[0]

    assert [int(count(start)) for start in (0, 3, 5, 8)] == [10, 10, 10, 10]


@pytest.mark.parametrize("every", [0, None])
@pytest.mark.parametrize(
    "option",
    [
        {"done": lambda x: x[0] > 0},
        {"save": lambda x, n: x},
        {"between": lambda x: x},
    ],
)
def test_cadence_must_be_given_and_positive(option, every):
    with pytest.raises(PhysaxError, match=f"`every` must be at least 1.*is {every}"):
        iterate(step, START, 0, 3, every=every, **option)


def test_records_need_a_start_that_is_a_multiple():
    with pytest.raises(PhysaxError, match="`start` must be a multiple of `every`, 3"):
        iterate(step, START, 1, 5, every=3, save=lambda x, n: x)


@pytest.mark.slow
@pytest.mark.parametrize(
    "option",
    [
        {"done": lambda x: x[0] > 0, "every": 2},
        {"save": lambda x, n: x, "every": 2},
        {"checkpoint": 3},
    ],
)
def test_traced_bounds_take_no_options(option):
    with pytest.raises(PhysaxError, match="`start` and `stop` must be integers with"):
        iterate(step, START, 0, jnp.asarray(3), **option)
