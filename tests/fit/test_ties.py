"""Parameters that follow from others, whatever the order in which that is said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.fit import LeastSquares, Separable, Tie, least_squares
from tests.fit.decays import X, Y, host_model, problem


# The columns of a parabola, of which only the slope `a` is free in a chain of ties.
COLUMNS = np.stack([X, X**2, np.ones_like(X)], axis=1)
START = {"a": 0.3, "b": 0.0, "c": 0.0}
B = Tie(lambda p: p["b"], lambda p: p["c"] + 1)
C = Tie(lambda p: p["c"], lambda p: -2 * p["a"])


def parabola(parameters, data):
    columns, y = data
    return columns @ jnp.stack([parameters[name] for name in "abc"]) - y


def chained(ties, start=None):
    start = START if start is None else start
    return LeastSquares(parabola, start, (COLUMNS, Y), ties=ties)


def test_ties_hold_at_the_solution():
    tie = Tie(lambda p: p["c"], lambda p: p["a"] / 4)
    result = least_squares(problem(ties=tie), throw=True)
    assert result.names == ("a", "b")
    a, b = map(float, result.values)
    assert float(result.parameters["c"]) == a / 4
    # The optimum in the two that are left: both derivatives vanish.
    x, rest = X, host_model(X, a, b, a / 4) - Y
    slopes = np.stack([np.exp(-b * x) + 0.25, -a * x * np.exp(-b * x)])
    assert np.abs(slopes @ rest).max() < 1e-10


def test_several_values_are_tied_at_once():
    tie = Tie(lambda p: (p["a"], p["c"]), lambda p: (2 * p["b"], p["b"] / 2))
    made = problem(ties=[tie])
    tree = made.parameters.tree(jnp.array([3.0]))
    assert {k: float(v) for k, v in tree.items()} == {"a": 6.0, "b": 3.0, "c": 1.5}


@pytest.mark.parametrize("ties", [(B, C), (C, B)])
def test_ties_hold_in_any_order(ties):
    found = least_squares(chained(ties), throw=True).parameters
    # With c = -2 a and b = c + 1 the data are linear in a alone.
    column = COLUMNS @ [1, -2, -2]
    rest = Y - COLUMNS[:, 1]
    a = column @ rest / (column @ column)
    expected = {"a": a, "b": 1 - 2 * a, "c": -2 * a}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)


@pytest.mark.parametrize("ties", [(B, C), (C, B)])
def test_ties_hold_in_any_order_under_transformations(ties):
    def of(a):
        return least_squares(chained(ties, START | {"a": a})).parameters

    for found in (jax.jit(of)(0.3), jax.vmap(of)(jnp.array([0.3, 5.0]))):
        np.testing.assert_allclose(found["b"], found["c"] + 1, rtol=1e-12)
        np.testing.assert_allclose(found["c"], -2 * found["a"], rtol=1e-12)


def test_a_tie_follows_another_of_which_it_has_no_derivative_at_the_start():
    # From a = 0: neither c = a^2 nor b = c^2 moves at first.
    square = Tie(lambda p: p["c"], lambda p: p["a"] ** 2)
    fourth = Tie(lambda p: p["b"], lambda p: p["c"] ** 2)
    made = chained([fourth, square], START | {"a": 0.0}).parameters
    tree = made.tree(jnp.array([3.0]))
    assert {k: float(v) for k, v in tree.items()} == {"a": 3.0, "b": 81.0, "c": 9.0}


def test_functions_of_the_whole_tree_follow_from_what_they_use():
    @jax.jit
    def doubled(p):
        return 2 * p["a"] + jnp.zeros_like(p["c"])

    made = chained([B, Tie(lambda p: p["c"], doubled)]).parameters
    tree = made.tree(jnp.array([3.0]))
    assert {k: float(v) for k, v in tree.items()} == {"a": 3.0, "b": 7.0, "c": 6.0}


def test_ties_of_separable_problems_hold_in_any_order():
    def functions(p, x):
        return jnp.stack([jnp.exp(-p["a"] * x), jnp.exp(-p["b"] * x)], axis=-1)

    def found(ties):
        start = {"a": 1.5, "b": 9.0, "c": 9.0}
        made = Separable(functions, start, X, Y, functions=["u", "v"], ties=ties)
        return least_squares(made, throw=True).parameters

    third = Tie(lambda p: p["c"], lambda p: p["a"] / 3)
    half = Tie(lambda p: p["b"], lambda p: p["c"] / 2)
    one, other = found([third, half]), found([half, third])
    np.testing.assert_allclose(one["b"], one["a"] / 6, rtol=1e-12)
    assert one == other


REFUSED = {
    "`ties` must not go in a circle, but the tie of a reads c, and the tie of c reads a"
    ".": [C, Tie(lambda p: p["a"], lambda p: p["c"])],
    "`ties` must not go in a circle, but the tie of c reads c.": [
        Tie(lambda p: p["c"], lambda p: p["c"] + p["a"])
    ],
    "`ties` must not go in a circle, but the tie of a, c reads c.": [
        Tie(lambda p: (p["a"], p["c"]), lambda p: (p["c"], 2 * p["b"]))
    ],
    "`ties` must tie a parameter once, but tie c twice.": [C, B, C],
    "`ties` must tie a parameter once, but tie b twice.": [
        Tie(lambda p: (p["b"], p["b"]), lambda p: (p["a"], 2 * p["a"]))
    ],
    "`value` must not need a value as a Python number": [
        Tie(lambda p: p["c"], lambda p: float(p["a"]))
    ],
}


@pytest.mark.parametrize("message", REFUSED)
def test_parameters_that_follow_from_themselves_are_refused(message):
    with pytest.raises(ArgumentError, match=message):
        chained(REFUSED[message])


def test_parameters_may_be_picked_under_other_names():
    tie = Tie(lambda p: {"x": p["c"], "y": p["b"]}, lambda p: {"x": 2 * p["a"], "y": 3})
    tree = chained(tie).parameters.tree(jnp.array([3.0]))
    assert {k: float(v) for k, v in tree.items()} == {"a": 3.0, "b": 3.0, "c": 6.0}


def test_groups_of_parameters_and_their_members_are_not_tied_both():
    start = {"a": 1.0, "more": {"b": 2.0, "c": 3.0}}
    tie = Tie(
        lambda p: (p["more"], p["more"]["c"]),
        lambda p: ({"b": p["a"], "c": p["a"]}, p["a"]),
    )
    with pytest.raises(ArgumentError, match="but tie more.c twice"):
        LeastSquares(lambda p, d: p["a"] * d, start, Y, ties=tie)


def test_starts_of_tied_parameters_are_not_used():
    expected = least_squares(chained([B, C])).values
    found = least_squares(chained([B, C], START | {"c": np.nan}), throw=True)
    assert float(found.values[0]) == float(expected[0])
    assert np.isfinite(found.parameters["c"])


@pytest.mark.parametrize(
    ("message", "functions"),
    [
        (r"`where` must be a function `where\(p\)`, .* takes \(\)", (lambda: 1, len)),
        (r"`value` must be .* takes \(p, q\)", (lambda p: p, lambda p, q: p)),
    ],
)
def test_functions_of_a_tie_take_the_parameters_alone(message, functions):
    with pytest.raises(ArgumentError, match=message):
        Tie(*functions)


def test_constants_beside_tied_parameters_stay():
    tie = Tie(lambda p: p["one"], lambda p: p["other"])
    start = {
        "one": {"a": 1.0, "n": np.arange(2)},
        "other": {"a": 4.0, "n": np.ones(2, int)},
    }
    made = LeastSquares(lambda p, d: p["one"]["a"] * d, start, Y, ties=tie)
    one = made.parameters.tree(jnp.array([3.0]))["one"]
    assert float(one["a"]) == 3
    assert one["n"].tolist() == [0, 1]


UNLIKE = {
    r"whole arrays .* but picks float\d\d\[\]\. Make": Tie(
        lambda p: p["x"][0], lambda p: p["a"]
    ),
    r"but picks nothing\. Make": Tie(lambda p: None, lambda p: p["a"]),
    r"but picks int\d\d\[3\]\. Make constants such": Tie(
        lambda p: p["n"], lambda p: p["a"]
    ),
    r"what `where` picks, .*\*, \*": Tie(
        lambda p: (p["x"], p["b"]), lambda p: [p["a"], p["a"]]
    ),
    "but returns PyTreeDef.None": Tie(lambda p: p["b"], lambda p: None),
    r"one number or what broadcasts to the shape \(\)": Tie(
        lambda p: p["b"], lambda p: p["x"]
    ),
    r"`value\(...\)` must be real": Tie(lambda p: p["b"], lambda p: 1j * p["a"]),
    r"`value\(...\)` must be a number": Tie(lambda p: p["b"], lambda p: "2"),
}


@pytest.mark.parametrize("message", UNLIKE)
def test_values_unlike_what_is_tied_are_refused(message):
    start = {"a": 1.0, "b": 2.0, "x": jnp.ones(3), "n": jnp.arange(3)}
    with pytest.raises(ArgumentError, match=message):
        LeastSquares(lambda p, d: p["a"] * d, start, Y, ties=UNLIKE[message])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fixed": lambda p: p["c"]}, "`fixed` must not pick tied .* c is tied"),
        ({"bounds": (None, 3.0)}, r"tied parameters .* but c has \[-inf, 3\]"),
        (
            {"bounds": ({"a": None, "b": None, "c": -0.1}, None)},
            r"`bounds` of tied parameters must be None, but c has \[-0.1, inf\]",
        ),
    ],
)
def test_tied_parameters_are_neither_fixed_nor_bounded(options, message):
    with pytest.raises(ArgumentError, match=message):
        problem(ties=C, **options)


def test_what_a_tied_parameter_follows_from_is_bounded():
    limits = ({"a": 0.0, "b": None, "c": None}, None)
    assert problem(ties=C, bounds=limits).parameters.names == ("a", "b")
