"""Orders, limits and error bars of sequences whose limits are known."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError


RESOLUTIONS = (10, 15, 25)


def sequence(order, limit=2.0, factor=7.0, resolutions=RESOLUTIONS):
    return limit + factor * np.asarray(resolutions, float) ** -order


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 3.7])
@pytest.mark.parametrize("factor", [7.0, -7.0, 3.0 - 4.0j])
def test_powers_are_extrapolated_exactly(order, factor):
    found = em.extrapolate(RESOLUTIONS, sequence(order, factor=factor))
    # The last difference of 1e-4 of the values, at order 3.7, has twelve digits left.
    assert found.order == pytest.approx(order, rel=1e-9)
    assert found.limit == pytest.approx(2.0, rel=1e-9)
    assert found.orders.shape == (1,)
    # The index of Roache with the smaller one of both orders.
    last = abs(np.diff(sequence(order, factor=factor))[-1])
    expected = 1.25 * last / ((25 / 15) ** min(order, 2) - 1)
    assert found.error == pytest.approx(expected, rel=1e-9)
    assert found.error >= abs(found.values[-1] - 2.0) * (1.0 if order > 2 else 1.2499)


def test_entries_have_orders_of_their_own_whatever_the_order_of_runs():
    r = (40, 10, 20)
    values = np.stack([sequence(1, 1.0, 3.0, r), sequence(3, -1.0, 2.0, r)], axis=-1)
    found = em.extrapolate(r, values[:, None])
    assert found.resolutions.tolist() == [10, 20, 40]
    assert found.order == pytest.approx(np.array([[1.0, 3.0]]))
    assert found.limit == pytest.approx(np.array([[1.0, -1.0]]))
    assert "shape (1, 2)" in str(found)


def test_error_bar_holds_where_the_next_power_is_left_out():
    r = np.array([10, 20, 40, 80])
    values = 1 + 3 / r**2 + 40 / r**4
    found, coarse = em.extrapolate(r, values), em.extrapolate(r[:3], values[:3])
    # Orders approach 2 from above, and limits 1 as the fourth power.
    assert 2 < found.orders[1] < found.orders[0] < 2.3
    assert 0 < abs(found.limit - 1) < abs(coarse.limit - 1) / 10
    for study in (found, coarse):
        assert abs(study.limit - 1) < study.error
    # What the limit has moved by is less than the index here, and more if the order
    # of the finest three is lucky.
    assert found.error < coarse.error
    lucky = np.array([1.0, 0.5, 0.3, 0.2999])
    study = em.extrapolate(r, lucky)
    before = em.extrapolate(r[:3], lucky[:3])
    assert study.orders[1] > 10
    assert study.error == pytest.approx(abs(study.limit - before.limit))


def test_a_known_order_wants_two_resolutions():
    r, values = RESOLUTIONS[1:], sequence(2, resolutions=RESOLUTIONS[1:])
    found = em.extrapolate(r, values, order=2)
    assert found.limit == pytest.approx(2.0, rel=1e-12)
    assert found.orders.tolist() == [2.0]
    # Two resolutions show no order: the bar is three times the way to the limit.
    assert found.error == pytest.approx(3 * abs(values[-1] - 2.0))
    assert "2.00" in str(found).splitlines()[2]
    more = em.extrapolate(RESOLUTIONS, sequence(2), order=2)
    assert more.orders.tolist() == [2.0, 2.0]
    assert more.error == pytest.approx(1.25 * abs(values[-1] - 2.0))


@pytest.mark.parametrize("observed", [0.1, 1.0, 2.0, 3.5])
@pytest.mark.parametrize("runs", [3, 4])
@pytest.mark.parametrize("given", [1, 2, 4])
def test_the_bar_of_a_given_order_holds_the_limit_that_the_runs_show(
    observed, runs, given
):
    r = np.array([10, 15, 22.5, 33])[-runs:]
    values = sequence(observed, resolutions=r)
    found = em.extrapolate(r, values, order=given)
    assert abs(found.limit - 2.0) <= found.error
    assert found.orders.tolist() == [given] * (runs - 1)
    # Where the runs show the given order the bar is that of Roache.
    if observed == given:
        assert found.error == pytest.approx(1.25 * abs(values[-1] - 2.0))


def test_a_given_order_has_no_bar_where_runs_part():
    # One entry parts as a logarithm does, or faster, and has no limit.
    r, values = [10, 20, 40], [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [2.1, 2.0, 1.25]]
    found = em.extrapolate(r, values, order=2)
    assert found.error[:2].tolist() == [np.inf, np.inf]
    assert found.limit[2] == pytest.approx(4 / 3)
    assert found.error[2] == pytest.approx(1.25 / 12)


def test_trapezoidal_rule_converges_to_the_integral_with_order_2():
    def compute(cells):
        x = np.linspace(0.0, 1.0, cells + 1)
        y = np.exp(x)
        return (y.sum() - (y[0] + y[-1]) / 2) / cells

    found = em.converge(compute, [8, 12, 18], progress=False)
    assert found.order == pytest.approx(2, abs=0.01)
    assert abs(found.limit - (np.e - 1)) < 1e-6 < found.error < 1e-2
    assert "order" in str(found)
    assert "±" in str(found)


@pytest.mark.parametrize(
    ("resolutions", "values", "message"),
    [
        ([10, 20], [1.0, 2.0], "at least 3 different positive numbers"),
        ([10, 20, 20], [1.0, 2.0, 3.0], "at least 3 different"),
        ([0, 10, 20], [1.0, 2.0, 3.0], "positive"),
        ([10, 20, 40], [1.0, 2.0], "one entry for each of the 3 resolutions"),
        (
            [10, 20, 40],
            [1.0, 2.0, 1.5],
            "one direction only .* are 1, 2, 1.5. Leave",
        ),
        ([10, 20, 40], [1.0, 2.0, 2.0], "must change from each resolution"),
        ([10, 20, 40], [1.0, 2.0, np.nan], "must be finite"),
        ([10, 20, 40], [1.0, 2.0, 4.0], "must come closer to each other"),
        ([10, 20, np.inf], [1.0, 2.0, 2.5], "at least 3 different positive numbers"),
        (["a", 20, 40], [1.0, 2.0, 2.5], "`resolutions` must be numbers"),
        ([10, 20, 40], [[1.0], [2.0, 3.0], 2.5], "`values` must be .* numbers"),
        ([10, 20, 40], [1.0, None, 2.5], "`values` must be numbers"),
        ([10, 20, 30], [1.0, 2.0, 2.6], "must come closer"),  # the logarithm
        ([10, 20, 40], [1.0, 2.0, 2.0 + 1j], "one direction only"),
        ([10, 20, 40], [[1.0, 0.0], [1.5, 1.0], [1.7, 0.5]], r"\(entry 1\) must"),
    ],
)
def test_what_has_no_order_is_refused(resolutions, values, message):
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(em.extrapolate)(resolutions, values)


def test_too_few_or_unlike_runs_are_refused_before_and_after_them():
    with pytest.raises(
        ArgumentError, match=r"as two do not determine the order \(or give `order`"
    ):
        em.converge(lambda r: pytest.fail("ran"), [10, 20])
    with pytest.raises(ArgumentError, match="at least 2 different positive numbers"):
        em.converge(lambda r: pytest.fail("ran"), [10], order=2)
    with pytest.raises(
        ArgumentError, match="`order` must be a positive number, but is 0"
    ):
        em.extrapolate(RESOLUTIONS, sequence(2), order=0)
    with pytest.raises(ArgumentError, match="a positive number, but is inf"):
        em.extrapolate(RESOLUTIONS, sequence(2), order=np.inf)
    with pytest.raises(ArgumentError, match="must be known here.* Call `extrapolate`"):
        jax.jit(lambda v: em.extrapolate(RESOLUTIONS, v))(sequence(2))
    with pytest.raises(ArgumentError, match="arrays of one shape"):
        em.converge(lambda r: np.ones(r), [1, 2, 3], progress=False)
    with pytest.raises(ArgumentError, match="`safety` at least 1"):
        em.extrapolate(RESOLUTIONS, sequence(2), safety=0.5)
    with pytest.raises(ArgumentError, match=r"`compute\(resolution\)` must be .* list"):
        em.converge(lambda r: [[r], [r, 1]], [1, 2, 3], progress=False)
    with pytest.raises(ArgumentError, match="`compute` must be a function"):
        inspect.unwrap(em.converge)(0.5, [1, 2, 3])


@pytest.mark.parametrize("two", [np.int64(2), np.float32(2), jnp.asarray(2.0)])
def test_an_order_may_be_a_number_of_an_array(two):
    given = inspect.unwrap(em.extrapolate)(RESOLUTIONS, sequence(2), order=two)
    assert given.limit == em.extrapolate(RESOLUTIONS, sequence(2), order=2).limit
    with pytest.raises(ArgumentError, match="`order` must be numbers"):
        em.extrapolate(RESOLUTIONS, sequence(2), order=True)
