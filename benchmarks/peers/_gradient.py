"""What the tools share when their gradients are timed: all are written in JAX.

The objective is the sum of `|Ez(f0)|^2` over a line (2-D) or plane (3-D) at 4/5 of the
width and half of it long; a dipole of Ez at 1/5 radiates a Gaussian pulse of relative
width 0.4. It is differentiated by the permittivity of each cell of a centred block.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers._protocol import Prepare


FORWARD = "forward"
# Of the difference quotient, in permittivity. Its fourth-order error and the rounding
# of float32 are then both some 1e-5 of the slope.
STEP = 0.01


def block(case: str, n: int, design: int) -> tuple[slice, ...]:
    """Returns where the design cells are, along each axis."""
    low = (n - design) // 2
    return (slice(low, low + design),) * int(case[0])


def permittivity(case: str, design: int) -> np.ndarray:
    """Returns the permittivity of the design cells: uniform in [1, 4)."""
    shape = (design,) * int(case[0])
    return np.random.default_rng(0).uniform(1, 4, shape).astype(np.float32)


def slope_error(value_and_gradient: Callable[..., tuple], x: np.ndarray) -> float:
    """Returns the relative error of a gradient along one direction.

    The direction is random and positive in each cell, so that a wrong cell shows; the
    slope comes from differences of four values.
    """
    direction = np.random.default_rng(1).uniform(size=x.shape)
    gradient = np.asarray(value_and_gradient(x)[1], np.float64)
    slope = np.sum(gradient * direction)

    def at(steps: int) -> float:
        shifted = (x + steps * STEP * direction).astype(x.dtype)
        return float(value_and_gradient(shifted)[0])

    quotient = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)
    return float(abs(slope / quotient - 1))


def differentiated(objective: Callable[..., Callable]) -> Prepare:
    """Returns what `serve` needs for the gradients of a tool.

    Args:
        objective: Given case, n, steps, design and method, makes the function of the
            permittivity of the design cells. The method is `FORWARD`, where only its
            value is wanted, or one by which the tool differentiates.
    """

    def prepare(case: str, n: int, steps: int, design: int, method: str):
        function = objective(case, n, steps, design, method)
        if method != FORWARD:
            function = jax.value_and_grad(function)
        host = permittivity(case, design)
        x = jnp.asarray(host)
        start = time.perf_counter()
        compiled = jax.jit(function).lower(x).compile()
        compile_s = time.perf_counter() - start
        facts = {"temp_mb": compiled.memory_analysis().temp_size_in_bytes / 2**20}
        if method != FORWARD:
            # The program that is timed is the one that is checked.
            facts["error"] = slope_error(compiled, host)
        return lambda: jax.block_until_ready(compiled(x)), compile_s, facts

    return prepare
