"""A scene that many driven runs share, and what interrupts and compares them."""

import jax
import jax.numpy as jnp
import numpy as np

from physax import em
from physax.grid import Grid, Layout
from physax.runtime import mesh


CELL = 20e-9
PULSE = em.GaussianPulse(2.1e14, 0.7e14)
# Without a static part, which leaves a layer slowly.
NARROW = em.GaussianPulse(2.1e14, 0.3e14)
FREQUENCIES = jnp.array([2.0e14, 2.2e14])


def at(*cells):
    return tuple(CELL * cell for cell in cells)


def line(steps=230, **changes):
    """A one-dimensional scene whose monitor knows no length."""
    options = {
        "boundaries": em.Boundaries.all(em.CPML(10)),
        "sources": {"dipole": em.Dipole("Ez", at(20.4), NARROW)},
        "monitors": {"flux": em.FluxMonitor("x", at(28), at(0), FREQUENCIES)},
        "steps": steps,
        **changes,
    }
    return em.Simulation(Grid.uniform((48,), CELL), **options)


def check_same_bits(got, want):
    leaves = zip(
        jax.tree_util.tree_leaves_with_path(want), jax.tree.leaves(got), strict=True
    )
    for (path, a), b in leaves:
        assert a.dtype == b.dtype
        message = jax.tree_util.keystr(path)
        np.testing.assert_array_equal(b, a, err_msg=message)


class Crash(Exception):
    pass


def crash_at(step):
    def on_chunk(now, state, info):
        if now >= step:
            raise Crash

    return on_chunk


def cut(*sizes):
    made = mesh(**dict(zip("xy", sizes, strict=False)))
    return Layout(made, **{name: name for name in "xy"[: len(sizes)]})


def check_close(got, want):
    """Compares fields, which may be padded, and what the monitors have summed."""
    # In float32 the roundings of 230 steps, in sum their root times 1.2e-7.
    tolerance = 2e-6 if jnp.result_type(float) == jnp.float32 else 1e-12
    pairs = zip(
        jax.tree.leaves((want.fields, want.monitors)),
        jax.tree.leaves((got.fields, got.monitors)),
        strict=True,
    )
    for a, b in pairs:
        inside = np.asarray(b)[tuple(map(slice, a.shape))]
        assert np.max(np.abs(inside - a)) <= tolerance * np.max(np.abs(a))
