"""Steps a simulation from given initial fields, for tests that need no source."""

from math import log

import equinox as eqx
import jax
import jax.numpy as jnp

from physax import em
from physax.units import SPEED_OF_LIGHT


def started(sim, fields):
    """Returns a state with E at t = 0 and H at t = -dt / 2; what is missing is zero."""
    state = em.initial_state(sim)
    fields = {n: f.astype(state.fields[n].dtype) for n, f in fields.items()}
    return eqx.tree_at(lambda s: s.fields, state, {**state.fields, **fields})


def advance(sim, fields, steps):
    """Returns the fields after `steps` steps, H half a step before E."""
    return em.advance(sim, started(sim, fields), 0, jnp.asarray(steps)).fields


@eqx.filter_jit
def trace(sim, fields, measure):
    """Returns `measure(fields)` after every step of a simulation."""

    def body(state, n):
        state = em.advance(sim, state, n, n + 1)
        return state, measure(state.fields)

    return jax.lax.scan(body, started(sim, fields), jnp.arange(sim.steps))[1]


@eqx.filter_jit
def yee_energies(sim, fields, every):
    """Returns the conserved energy every few steps of a simulation."""

    def body(state, n):
        before = em.advance(sim, state, n, n + every - 1)
        after = em.advance(sim, before, n + every - 1, n + every)
        return after, em.yee_energy(sim, before, after)

    starts = jnp.arange(0, sim.steps, every)
    return jax.lax.scan(body, started(sim, fields), starts)[1]


def stored_shape(sim):
    """Returns the shape of the field arrays: one longer under a high magnetic wall."""
    return next(iter(em.initial_state(sim).fields.values())).shape


def courant_steps(length, cells, time, courant, ndim):
    """Returns the step number and `dt` that reach a time exactly on cubic cells."""
    dt = courant * length / cells / SPEED_OF_LIGHT / ndim**0.5
    steps = round(time / dt)
    return steps, time / steps


def slope(sizes, errors):
    """Returns the order at which errors fall, from the last two sizes."""
    return log(errors[-2] / errors[-1]) / log(sizes[-2] / sizes[-1])
