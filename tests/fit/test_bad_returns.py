"""What functions return, and what does not fit to it, is refused by its name."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.fit import (
    LeastSquares,
    Separable,
    Tie,
    curve_fit,
    least_squares,
    profile_likelihood,
    target_of,
)
from tests.fit.decays import START, X, Y, problem as decays


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch):
    """Users run it without the type checks of the tests, which come first."""
    for kind in (LeastSquares, Separable, Tie):
        monkeypatch.setattr(kind, "__init__", inspect.unwrap(kind.__init__))


def raw(function):
    return inspect.unwrap(function)


def decay(p, x):
    return jnp.exp(-p["b"] * x)


def apart(basis=decay, **options):
    return Separable(basis, {"b": 2.0}, X, Y, **options)


def fitted():
    return least_squares(decays())


def line(p, data):
    return p["m"] * data[0] - data[1]


def one_array(name, given):
    """What is said where a function returns something else."""
    return f"`{name}` must return one array of numbers, but returns {given}. Join"


WHOLE = "must return floating point numbers, but returns int64: these have no"
OTHER = "`result` must be of `problem`, whose parameters are m, but has a, b, c"


def in_line():
    return LeastSquares(line, {"m": 1.0}, (X, Y))


def both(p, x):
    return jnp.stack([decay(p, x), x], axis=-1)


def solved(made):
    return raw(least_squares)(made)


RETURNED = [
    (one_array("f", "a tuple"), lambda: raw(curve_fit)(lambda x, a: (a * x,), X, Y)),
    (one_array("f", "None"), lambda: raw(curve_fit)(lambda x, a: None, X, Y)),
    (
        f"`f` {WHOLE}",
        lambda: raw(curve_fit)(lambda x, a: (a * x).astype(int), X, Y),
    ),
    (
        one_array("residual", "None"),
        lambda: solved(LeastSquares(lambda p, d: None, START, (X, Y))),
    ),
    (
        one_array("residual", "a dict"),
        lambda: solved(LeastSquares(lambda p, d: {"r": d[0]}, START, (X, Y))),
    ),
    (
        f"`residual` {WHOLE}",
        lambda: solved(LeastSquares(lambda p, d: d[0].astype(int), START, (X, Y))),
    ),
    (one_array("basis", "a list"), lambda: solved(apart(lambda p, x: [x]))),
    (f"`basis` {WHOLE}", lambda: solved(apart(lambda p, x: x.astype(int)))),
    (
        one_array("penalty", "a dict"),
        lambda: solved(decays(penalty=lambda p: {"a": p["a"]})),
    ),
    (
        "`value` must take parameters like `start`, which are a, b, c, .*KeyError 'd'",
        lambda: solved(decays(ties=Tie(lambda p: p["c"], lambda p: p["d"]))),
    ),
    (
        r"`weights` must have one number for each point, but has shape \(200, 1\)",
        lambda: decays(weights=np.ones((X.size, 1))),
    ),
    (
        "`weights` must be an array of one number for each point, but is a list",
        lambda: decays(weights=[1.0] * X.size),
    ),
    (
        r"`mask` must have one number for each point, but has shape \(200, 1\)",
        lambda: decays(mask=np.ones((X.size, 1), bool)),
    ),
    (
        "`functions` must be different names, but has a twice",
        lambda: apart(both, functions=["a", "a"]),
    ),
    (
        "`functions` must be different names, but has offset twice",
        lambda: apart(functions=["offset"], offset=True),
    ),
    (
        r"`xdata` must be numbers, but has dtype datetime64\[D\]. For seconds",
        lambda: raw(curve_fit)(line, np.arange(9).astype("datetime64[D]"), Y[:9]),
    ),
    (OTHER, lambda: raw(target_of)(in_line(), fitted())),
    (OTHER, lambda: raw(profile_likelihood)(in_line(), fitted(), "a")),
    (
        r"`values` must be finite numbers, at least one, but are \[ 1. nan\]",
        lambda: raw(profile_likelihood)(decays(), fitted(), "a", [np.nan, 1.0]),
    ),
    (
        r"`values` must be finite numbers, at least one, but are \[\]",
        lambda: raw(profile_likelihood)(decays(), fitted(), "a", []),
    ),
]


@pytest.mark.parametrize(("message", "call"), RETURNED, ids=[m for m, _ in RETURNED])
def test_what_functions_return_and_what_does_not_fit_is_refused(message, call):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_long_list_is_not_shown_whole():
    with pytest.raises(ArgumentError, match="`ydata` must be numbers") as caught:
        raw(curve_fit)(decay, X, [*Y.tolist(), None])
    assert len(str(caught.value)) < 150
