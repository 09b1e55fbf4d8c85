"""A decay with offset and noisy data of it: one program serves many tests."""

import jax.numpy as jnp
import numpy as np

from physax.fit import LeastSquares


TRUE = np.array([2.0, 1.3, 0.5])
START = {"a": 1.0, "b": 2.0, "c": 0.0}
SIGMA = 0.02


def model(parameters, x):
    return parameters["a"] * jnp.exp(-parameters["b"] * x) + parameters["c"]


def residual(parameters, data):
    x, y = data
    return model(parameters, x) - y


def host_model(x, a, b, c):
    return a * np.exp(-b * x) + c


def points(count=200, seed=0):
    x = np.linspace(0, 3, count)
    noise = np.random.default_rng(seed).normal(size=count)
    return x, host_model(x, *TRUE) + SIGMA * noise


X, Y = points()


def problem(start=None, data=(X, Y), **options):
    return LeastSquares(residual, START if start is None else start, data, **options)
