"""optimistix' Levenberg-Marquardt, with a covariance by hand, as it has none."""

from importlib.metadata import version

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix

from ._fit_data import START, model, serve_fits


jax.config.update("jax_enable_x64", True)


def residual(parameters, data):
    x, y = data
    return model(jnp, x, *parameters) - y


@eqx.filter_jit
def fitted(data):
    solver = optimistix.LevenbergMarquardt(rtol=1e-8, atol=1e-8)
    found = optimistix.least_squares(
        residual, solver, jnp.array(START), args=data, throw=False, max_steps=500
    ).value
    rows = jax.jacfwd(residual)(found, data)
    return found, jnp.linalg.inv(rows.T @ rows)


def solve(x, y):
    return fitted((jnp.asarray(x), jnp.asarray(y)))[0]


if __name__ == "__main__":
    serve_fits("optimistix", version("optimistix"), solve)
