"""States from which a run goes on: whether they fit it, and room for its records."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._checks import ArgumentError
from ._monitors import AbstractMonitor
from ._pole_blocks import STEPS, BlockMemory
from ._state import State
from ._stepper import Arrays
from ._time_monitors import EnergyMonitor, TimeMonitor


def continued(
    state: State, start: int, shapes: State, monitors: Mapping[str, AbstractMonitor]
) -> State:
    """Returns a state with as much room for time series as a run needs.

    Args:
        state: The state from which the run goes on.
        start: Its step.
        shapes: Those of the state with which the run would begin.
        monitors: Those of the run, by name.

    Raises:
        ArgumentError: If `start` is elsewhere in a block than the state, or the state
            is that of another simulation.
    """
    _check_start(start, state)
    records = {
        name: _lengthened(total, shapes.monitors[name])
        if name in shapes.monitors
        and isinstance(monitors[name], TimeMonitor | EnergyMonitor)
        else total
        for name, total in state.monitors.items()
    }
    state = eqx.tree_at(lambda s: s.monitors, state, records)
    ours, theirs = map(_entries, (shapes, state))
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            raise ArgumentError(
                "`state` must come from a run of the same grid, boundaries, media and "
                f"monitors, but its `{name}` is {theirs.get(name, 'missing')}, and "
                f"that of `sim` is {ours.get(name, 'missing')}."
            )
    return state


def _check_start(start: int, state: State) -> None:
    # On the host: an operation on a JAX array would be one more program to compile.
    done, memory = int(state.done), sum(state.poles.values(), ())
    if any(isinstance(one, BlockMemory) for one in memory) and (start - done) % STEPS:
        raise ArgumentError(
            f"`start` must be {done}, the step of `state`, or differ from it by a "
            f"multiple of {STEPS}, as poles remember which of {STEPS} steps comes "
            f"next, but is {start}."
        )


def _lengthened(total: Arrays, shapes: Mapping[str, Any]) -> Arrays:
    """Returns time series with other numbers of records."""

    def one(values, like):
        more = like.shape[0] - values.shape[0]
        if more == 0:
            return values
        pad = [(0, max(more, 0)), *((0, 0) for _ in values.shape[1:])]
        return jnp.pad(values[: like.shape[0]], pad)

    return {
        name: one(values, shapes[name]) if name in shapes else values
        for name, values in total.items()
    }


def _entries(state: State) -> dict[str, str]:
    """Returns type and shape of each array of a state, by its name."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): f"{x.dtype}{[*x.shape]}"
        for path, x in leaves
    }
