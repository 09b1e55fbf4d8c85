"""Which numbers are parameters, and which of them move."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError, check_picker
from physax.fit import LeastSquares, least_squares
from tests.fit.decays import START, TRUE, X, Y, problem, residual


class Line(eqx.Module):
    slope: jax.Array
    more: dict
    label: str = eqx.field(static=True)


def test_names_are_no_function_that_picks_parameters():
    with pytest.raises(ArgumentError, match=r"`fixed` must be a .* but is \['a'\]"):
        check_picker(["a"])


def test_names_are_paths_in_the_tree():
    tree = Line(jnp.zeros(2), {"b": 1.0, "a": jnp.zeros((1, 2))}, "text")
    made = LeastSquares(residual, tree, (X, Y)).parameters
    assert made.names == (
        "slope[0]",
        "slope[1]",
        "more.a[0,0]",
        "more.a[0,1]",
        "more.b",
    )


def test_a_bare_number_is_a_parameter():
    assert LeastSquares(residual, 1.0, (X, Y)).parameters.names == ("p",)


def test_integers_in_arrays_are_no_parameters():
    tree = {"a": 1.0, "order": np.arange(3)}
    assert LeastSquares(residual, tree, (X, Y)).parameters.names == ("a",)


def test_fixed_parameters_stay_and_the_rest_answers_to_them():
    result = least_squares(problem(fixed=lambda p: p["b"]), throw=True)
    assert result.names == ("a", "c")
    assert float(result.parameters["b"]) == START["b"]
    # With b given the problem is linear.
    columns = np.stack([np.exp(-START["b"] * X), np.ones_like(X)], axis=1)
    expected = np.linalg.lstsq(columns, Y, rcond=None)[0]
    np.testing.assert_allclose(result.values, expected, rtol=1e-12)


def test_constants_that_are_picked_with_parameters_fix_no_others():
    law = {"rate": 3.0, "orders": np.arange(2), "odd": True, "shape": jnp.sin}
    start = {"a": 1.0, "b": 2.0, "law": law}
    for fixed, free in (
        (lambda p: p["law"], ("a", "b")),
        (lambda p: (p["a"], p["law"]["orders"]), ("b", "law.rate")),
    ):
        made = LeastSquares(residual, start, (X, Y), fixed=fixed)
        assert made.parameters.names == free


PICKS = {
    "nothing": (lambda p: None, ("a", "b", "x[0]", "x[1]", "x[2]")),
    "none of several": (lambda p: (), ("a", "b", "x[0]", "x[1]", "x[2]")),
    "an entry": (lambda p: (p["b"], p["x"][1]), ("a", "x[0]", "x[2]")),
    "entries": (lambda p: p["x"][np.array([True, False, True])], ("a", "b", "x[1]")),
    "a part": (lambda p: [p["x"][1:], p["x"][1:]], ("a", "b", "x[0]")),
}


@pytest.mark.parametrize("name", PICKS)
def test_parameters_that_are_picked_are_fixed_and_no_others(name):
    start = {"a": 1.0, "b": 2.0, "x": np.array([1.0, 2.0, 3.0])}
    fixed, free = PICKS[name]
    made = LeastSquares(residual, start, (X, Y), fixed=fixed)
    assert made.parameters.names == free


NO_PICKS = {
    "which are floating point .* but picks str": lambda p: "c",
    "numbers and entries of arrays of such, but picks str": lambda p: ["c", p["a"]],
    "but picks bool": lambda p: p["odd"],
    "but fails: TypeError parameters are picked by their place": lambda p: (
        p["c"] == 0.1
    ),
    "but fails: TypeError .* not by their value": lambda p: p["a"] and p["b"],
    "by their place, not by their type or value, but picks 3 of .* and 0 of marks": (
        lambda p: eqx.filter(p, eqx.is_inexact_array)
    ),
    "picks 2 of the numbers and 1 of marks": lambda p: (
        p["a"],
        eqx.filter(p["b"], eqx.is_inexact_array),
    ),
    "but picks float, float": lambda p: {"a": 1.0, "b": 2.0},
    "of `start`, which are a, b, c, odd, but fails: TypeError .* /": lambda p: (
        p["c"] / 4
    ),
    r"but fails: TypeError .* \+": lambda p: p["a"] + p["b"],
    "but fails: TypeError .* unary -": lambda p: -p["b"],
    "but fails: TypeError": lambda p: jnp.stack([p["a"], p["b"]]),
    "but fails: TypeError .* missing 1": lambda p, q: p["b"],
    "but fails: KeyError 'd'": lambda p: p["d"],
}


@pytest.mark.parametrize("message", NO_PICKS)
def test_what_picks_no_parameter_is_refused(message):
    start = {"a": 1.0, "b": 2.0, "c": 0.1, "odd": True}
    with pytest.raises(ArgumentError, match=f"`fixed` must pick parameters.*{message}"):
        LeastSquares(residual, start, (X, Y), fixed=NO_PICKS[message])


def test_equal_bounds_fix_a_parameter():
    limits = {"a": -9.0, "b": 2.0, "c": -9.0}, {"a": 9.0, "b": 2.0, "c": 9.0}
    made = problem(bounds=limits)
    assert made.parameters.names == ("a", "c")
    assert float(made.parameters.tree(made.vector())["b"]) == 2


def test_bounds_may_be_numbers_for_all_or_trees():
    low, high = problem(bounds=(0, {"a": 3.0, "b": None, "c": 1.0})).bounds()
    assert list(low) == [0, 0, 0]
    assert list(high) == [3, np.inf, 1]


ERRORS = {
    r"`bounds` of b must be in increasing order, but are 3 and 2": {
        "bounds": ({"a": None, "b": 3.0, "c": None}, {"a": None, "b": 2.0, "c": None})
    },
    r"`start` must lie within `bounds`, but c is 0, outside \[1, inf\]": {
        "bounds": ({"a": None, "b": None, "c": 1.0}, None)
    },
    r"`bounds` must be a pair of numbers or of trees like `start`, but the upper": {
        "bounds": (None, {"a": 1.0})
    },
    r"`start` must have a free parameter, but all are fixed": {
        "fixed": lambda p: (p["a"], p["b"], p["c"])
    },
    r"`start` must be finite, but b is nan": {
        "start": {"a": 1.0, "b": np.nan, "c": 0.0}
    },
    r"`start` must hold real numbers, but has a complex": {
        "start": {"a": jnp.ones(2) * 1j}
    },
    r"`start` must hold at least one number": {"start": {"name": "a"}},
}


def test_traced_bounds_are_refused():
    def cost(high):
        return least_squares(problem(bounds=(0.0, high))).cost

    for transformed in (jax.jit(cost), jax.grad(cost)):
        with pytest.raises(ArgumentError, match="`bounds` must be known"):
            transformed(3.0)


@pytest.mark.parametrize("message", ERRORS)
def test_what_cannot_be_fitted_is_refused(message):
    with pytest.raises(ArgumentError, match=message):
        problem(**ERRORS[message])


def test_the_true_parameters_are_found():
    result = least_squares(problem(), throw=True)
    pulls = (np.asarray(result.values) - TRUE) / np.asarray(result.standard_errors)
    assert np.abs(pulls).max() < 4
