"""What a compiled run holds beside its state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em._program import build_program
from physax.em._state import rest
from physax.grid import Grid


CELL = 20e-9
LINES = tuple(em.Lorentz(0.3, f, 4e13) for f in (5e14, 6e14, 8e14, 9e14))


def bytes_of(tree):
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("shape", "poles", "most"),
    # Of poles, coefficients are prepared; a copy of their states makes it 1.6.
    [((400, 400), (), 1.15), ((64, 64, 64), (), 1.15), ((400, 400), LINES, 1.25)],
)
def test_run_holds_little_more_than_its_state(shape, poles, most):
    random = np.random.default_rng(0)
    middle = tuple(CELL * cells / 2 for cells in shape)
    pulse = em.GaussianPulse(2e14, 2e14)
    sim = em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(
            jnp.asarray(random.uniform(1.0, 4.0, shape), float),
            dispersions=em.Dispersion(((20, 380),) * 2, poles) if poles else (),
        ),
        em.Boundaries.all(em.CPML(10)),
        polarisation="Ez" if len(shape) == 2 else None,
        steps=20,
        sources={"dipole": em.Dipole("Ez", middle, pulse)},
        monitors={"time": em.TimeMonitor(("Ez",), middle, (0.0,) * len(shape))},
    )
    arrays, static = eqx.partition(sim, eqx.is_array)

    @jax.jit
    def run(arrays):
        return em.simulate(eqx.combine(arrays, static))

    use = run.lower(arrays).compile().memory_analysis()
    state = bytes_of(jax.eval_shape(lambda: rest(build_program(sim))))
    # The carry of the loop is the state; XLA lets the results lie in it.
    assert use.temp_size_in_bytes + use.output_size_in_bytes <= most * state
