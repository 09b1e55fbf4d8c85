"""A plain JAX Yee loop, float32, no absorber: the bound for a fused loop.

Differences of equal shape by padding, an optimisation barrier between H and E; unit
cell, fields E and eta0 H, permittivity random per cell. Outside the grid all is zero.
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers._protocol import DX, WAVELENGTH, serve, timed
from benchmarks.peers.numpy_yee import COURANT, TERMS


def difference(f, axis, forward):
    """Returns f[i + 1] - f[i] if forward, else f[i] - f[i - 1]; zero outside."""
    n, pad = f.shape[axis], [(0, 0)] * f.ndim
    pad[axis] = (0, 1) if forward else (1, 0)
    wide = jnp.pad(f, pad)
    cut = jax.lax.slice_in_dim
    return cut(wide, 1, n + 1, axis=axis) - cut(wide, 0, n, axis=axis)


def curl(fields, terms, outputs, forward):
    """Returns the curl, one array per output component."""
    out = [0.0] * outputs
    for write, axis, read, sign in terms:
        out[write] = out[write] + sign * difference(fields[read], axis, forward)
    return out


def prepare(case: str, n: int, steps: int):
    """Compiles a box with a point source of Ez at the centre."""
    dimensions = int(case[0])
    shape, centre = (n,) * dimensions, (n // 2,) * dimensions
    terms_h, terms_e = TERMS[case]
    permittivity = np.random.default_rng(0).uniform(1, 4, shape).astype("f4")
    coefficient = jnp.asarray(np.float32(COURANT) / permittivity)
    phase = 2 * np.pi * DX / WAVELENGTH * COURANT
    signal = jnp.asarray(np.sin(phase * np.arange(steps)), "f4")

    @jax.jit
    def simulate(coefficient, signal):
        def step(fields, s):
            e, h = fields
            e[-1] = e[-1].at[centre].add(s)
            new = curl(e, terms_h, len(h), True)
            h = [f + COURANT * c for f, c in zip(h, new, strict=True)]
            h = jax.lax.optimization_barrier(h)
            new = curl(h, terms_e, len(e), False)
            e = [f + coefficient * c for f, c in zip(e, new, strict=True)]
            return (e, h), None

        zero = jnp.zeros(shape, "f4")
        fields = [zero] * (2 * dimensions - 3), [zero] * dimensions
        return jax.lax.scan(step, fields, signal)[0]

    lowered = simulate.lower(coefficient, signal)
    box = []
    compile_s = timed(lambda: box.append(lowered.compile()))
    return lambda: jax.block_until_ready(box[0](coefficient, signal)), compile_s


if __name__ == "__main__":
    serve("bare", jax.__version__, prepare)
