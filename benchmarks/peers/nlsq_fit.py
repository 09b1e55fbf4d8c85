"""nlsq's `curve_fit` with its defaults."""

from importlib.metadata import version

import jax.numpy as jnp
from nlsq import curve_fit

from ._fit_data import START, model, serve_fits


def function(x, a, b, c, d, e):
    return model(jnp, x, a, b, c, d, e)


def solve(x, y):
    found, _ = curve_fit(function, x, y, p0=list(START))
    return found


if __name__ == "__main__":
    serve_fits("nlsq", version("nlsq"), solve)
