"""homodyne's kernel and its fit, by its documented functions; xpcsjax has the same."""

import os
from importlib import import_module
from importlib.metadata import version

import numpy as np

from ._serve import serve
from ._xpcs_data import CONTRAST, DT, GAP, OFFSET, START, Q, maps


os.environ.setdefault("JAX_ENABLE_X64", "1")
NAMES = (
    "D0",
    "alpha",
    "D_offset",
    "gamma_dot_t0",
    "beta",
    "gamma_dot_t_offset",
    "phi0",
)


def normal_equations(package: str, given):
    """Returns a run of residuals, J^T J and J^T r at the start."""
    kernel = import_module(f"{package}.core.jax_backend").compute_g2_scaled
    jax = import_module("jax")
    jnp = jax.numpy
    times, phi = jnp.asarray(given.times), jnp.asarray(given.phi)
    c2 = jnp.asarray(given.c2)

    def residual(p):
        found = kernel(p, times, times, phi, Q, GAP, CONTRAST, OFFSET, DT)
        return (found - c2).ravel()

    @jax.jit
    def evaluate(p):
        left = residual(p)
        jacobian = jax.jacfwd(residual)(p)
        return jacobian.T @ jacobian, jacobian.T @ left, left @ left

    start = jnp.asarray(START)
    return lambda: [evaluate(start)[2]]


def fit(package: str, given):
    """Returns a run of the fit with contrast and offset of each angle."""
    fitter = import_module(f"{package}.optimization.nlsq.core").fit_nlsq_jax
    parameters = {
        "contrast": CONTRAST,
        "offset": OFFSET,
        **dict(zip(NAMES, START, strict=True)),
    }
    manager = import_module(f"{package}.config.manager").ConfigManager
    config = manager(
        config_override={
            "analysis_mode": "laminar_flow",
            "analyzer_parameters": {
                "dt": DT,
                "geometry": {"stator_rotor_gap": GAP},
                "scattering": {"wavevector_q": Q},
            },
            "initial_parameters": {
                "parameter_names": list(NAMES),
                "values": list(START),
            },
        }
    )
    data = {
        "phi_angles_list": given.phi,
        "c2_exp": given.c2,
        "t1": given.times,
        "t2": given.times,
        "wavevector_q_list": np.array([Q]),
        "L": GAP,
        "dt": DT,
    }

    def run():
        found = fitter(dict(data), config, initial_params=dict(parameters))
        # Contrasts and offsets of the angles come first.
        return np.asarray(found.parameters)[-len(NAMES) :]

    return run


def serve_package(package: str) -> None:
    """Answers requests with one of the two packages."""
    works = {"normal": normal_equations, "fit": fit}
    serve(
        package,
        version(package),
        lambda work, angles, frames: works[work](package, maps(angles, frames)),
    )


if __name__ == "__main__":
    serve_package("homodyne")
