"""physax's side of `benchmarks.xpcs`."""

import equinox as eqx
import jax
import numpy as np

from physax import xpcs
from physax.fit._passes import resident_normal
from physax.fit._plan import plan

from ._rows import OURS, ours_version
from .peers._serve import serve
from .peers._xpcs_data import GAP, NOISE, START, Q, maps


jax.config.update("jax_enable_x64", True)


def prepare(work: str, angles: int, frames: int):
    """Returns a run of one of the works."""
    given = maps(angles, frames)
    d0, alpha, d_offset, rate, beta, rate_offset, phi0 = START
    model = xpcs.LaminarFlow(
        xpcs.Diffusion(d0, alpha, d_offset, "trapezoid"),
        xpcs.Shear(rate, beta, rate_offset, np.radians(phi0), "trapezoid"),
        GAP,
        "homodyne",
    )
    data = xpcs.TwoTime(given.c2, Q, np.radians(given.phi), given.times, NOISE)
    if work == "fit":
        return lambda: _numbers(xpcs.fit_two_time(data, model, progress=False))
    problem = xpcs.two_time_problem(data, model)
    chunk = max(plan(data.c2.size, len(START)).chunk // problem.residuals_each(), 1)
    one_pass = eqx.filter_jit(
        lambda p, v: resident_normal(p, v, jax.numpy.asarray(False), chunk=chunk).cost
    )
    return lambda: [float(one_pass(problem, problem.vector()))]


def _numbers(fit: xpcs.TwoTimeFit) -> list[float]:
    *rest, phi0 = (float(x) for x in fit.result.values)
    return [*rest, float(np.degrees(phi0))]


if __name__ == "__main__":
    serve(OURS, ours_version(), prepare)
