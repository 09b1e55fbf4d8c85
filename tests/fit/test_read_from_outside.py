"""Derivatives by what functions of a fit read from outside, without `jit`."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax._status import Status
from physax.fit import LeastSquares, Separable, Tie, least_squares, plan
from physax.runtime import mesh


Y = np.array([1.0, 2.0, 4.0, 5.0])
X = np.array([0.0, 0.5, 1.0, 2.0])


def proportional(q, start, **options):
    made = LeastSquares(lambda p, y: q * p - y, start, Y)
    return least_squares(made, **options)


def tied(q, start):
    tie = Tie(lambda p: p["b"], lambda p: q * p["a"])
    start = {"a": start, "b": 0.0}
    made = LeastSquares(lambda p, y: p["a"] + p["b"] - y, start, Y, ties=tie)
    return least_squares(made)


def penalised(q, start):
    penalty = lambda p: 3 * (p - q)  # noqa: E731
    return least_squares(LeastSquares(lambda p, y: p - y, start, Y, penalty=penalty))


def eliminated(q, start):
    made = Separable(lambda p, x: jnp.exp(-q * p * x), start, X, 2 * np.exp(-X))
    return least_squares(made)


def on_a_mesh(q, start):
    return proportional(q, start, mesh=mesh())


# Where each has its minimum.
MINIMA = {
    "residual": (proportional, lambda q: 3 / q),
    "tie": (tied, lambda q: 3 / (1 + q)),
    "penalty": (penalised, lambda q: (12 + 9 * q) / 13),
    "basis": (eliminated, lambda q: 1 / q),
    "mesh": (on_a_mesh, lambda q: 3 / q),
}


@pytest.mark.slow(after=4)
@pytest.mark.parametrize("name", MINIMA)
@pytest.mark.parametrize("transformed", [jax.jacrev, jax.jacfwd])
def test_derivatives_need_no_compilation(name, transformed):
    fit, minimum = MINIMA[name]
    # Where the search has nothing to do, it has no derivative of its own.
    (value,) = fit(1.5, 1.0).values
    found = transformed(lambda q: fit(q, float(value)).values[0])(1.5)
    np.testing.assert_allclose(found, jax.grad(minimum)(1.5), rtol=1e-7)


def test_the_fit_is_the_one_without_derivatives():
    results = []

    def value(q):
        results.append(proportional(q, 1.0, throw=True))
        return results[-1].values

    (tangent,) = jax.jvp(value, (1.5,), (1.0,))[1]
    moved, still = results[0], proportional(1.5, 1.0)
    np.testing.assert_allclose(tangent, -3 / 1.5**2, rtol=1e-12)
    assert moved.success
    assert int(moved.evaluations) == int(still.evaluations)


def test_a_start_that_is_not_finite_is_told_with_derivatives_as_well():
    results = []

    def value(q):
        results.append(proportional(q * math.inf, 1.0))
        return results[-1].values

    jax.jvp(value, (1.5,), (1.0,))
    assert results[0].status == Status.INVALID
    assert "not finite at the start" in results[0].message


BLOCKS = dataclasses.replace(plan(4, 1, resident=False), block=2, chunk=2)


def with_fixed(q):
    start = {"a": 1.0, "q": q}
    residual = lambda p, y: p["a"] * p["q"] - y  # noqa: E731
    return LeastSquares(residual, start, Y, fixed=lambda p: p["q"])


def with_penalty(q):
    return LeastSquares(lambda p, y: p - y, 1.0, Y, penalty=lambda p: p - q)


READING = {
    "residual": lambda q: LeastSquares(lambda p, y: q * p - y, 1.0, Y),
    "penalty": with_penalty,
    "fixed": with_fixed,
}


@pytest.mark.parametrize("transformed", [jax.jacfwd, jax.jacrev, jax.jit])
@pytest.mark.parametrize("name", READING)
def test_block_by_block_what_is_traced_is_refused(name, transformed):
    def values(q):
        made = READING[name](q)
        return least_squares(made, plan=BLOCKS, progress=False).values

    with pytest.raises(ArgumentError, match="`problem` must be known here, but is tra"):
        transformed(values)(1.5)
