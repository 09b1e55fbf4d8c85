"""Steps a simulation from given initial fields, for tests that need no source."""

from functools import partial

import equinox as eqx
import jax.numpy as jnp

from physax._loop import iterate
from physax.em._state import build_program, energy, rest, step
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT


def _started(sim, fields):
    """Returns the program, and its state with E at t = 0 and H at t = -dt / 2."""
    program = build_program(sim)
    state = rest(program)
    fields = {n: f.astype(state.fields[n].dtype) for n, f in fields.items()}
    return program, eqx.tree_at(lambda s: s.fields, state, {**state.fields, **fields})


@eqx.filter_jit
def advance(sim, fields, steps):
    """Returns the fields after `steps` steps, H half a step before E."""
    program, state = _started(sim, fields)
    # A traced number of steps: one program for every length.
    steps = jnp.asarray(steps, jnp.int32)
    return iterate(partial(step, program), state, 0, steps)[0].fields


@eqx.filter_jit
def trace(sim, fields, measure, every=1):
    """Returns `measure(fields)` after every few of the steps of a simulation."""
    program, state = _started(sim, fields)
    return iterate(
        partial(step, program),
        state,
        0,
        sim.steps,
        save=lambda s, n: measure(s.fields),
        save_every=every,
    )[1]


@eqx.filter_jit
def yee_energies(sim, fields, every):
    """Returns the conserved energy, E(n) E(n + 1) and H(n + 1/2)^2, along a run."""
    program, state = _started(sim, fields)

    def measure(state, n):
        later = step(program, state, n).fields
        now = {k: state.fields[k] if k[0] == "E" else later[k] for k in later}
        return energy(program, now, later)

    body = partial(step, program)
    return iterate(body, state, 0, sim.steps, save=measure, save_every=every)[1]


def stored_shape(sim):
    """Returns the shape of the field arrays: one longer under a high magnetic wall."""
    return next(iter(rest(build_program(sim)).fields.values())).shape


def courant_steps(length, cells, time, courant, ndim):
    """Returns the step number and `dt` that reach a time exactly on cubic cells."""
    dt = courant * length / cells / SPEED_OF_LIGHT / ndim**0.5
    steps = round(time / dt)
    return steps, time / steps


def slope(sizes, errors):
    """Returns the order at which errors fall, from the last two refinements."""
    return float(
        jnp.log(errors[-2] / errors[-1]) / jnp.log(sizes[-2] / sizes[-1])
    )


def mapped_grid(mappings, cells):
    """Makes a grid whose edges are smooth functions of a uniform coordinate in 0..1."""
    return Grid.graded([m(jnp.linspace(0.0, 1.0, cells + 1)) for m in mappings])
