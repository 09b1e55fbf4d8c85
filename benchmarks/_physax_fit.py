"""physax's side of `benchmarks.fit`."""

import jax
import jax.numpy as jnp
import numpy as np

from physax import fit

from ._rows import ours_version
from .peers._fit_data import START, model, serve_fits


jax.config.update("jax_enable_x64", True)


def residual(parameters, data):
    x, y = data
    return model(jnp, x, *parameters) - y


def solve(x, y):
    """Fits, with the covariance that the others compute, too."""
    problem = fit.LeastSquares(residual, np.array(START), (x, y))
    found = fit.least_squares(problem, progress=False)
    np.asarray(found.covariance)
    return found.values


if __name__ == "__main__":
    serve_fits("physax", ours_version(), solve)
