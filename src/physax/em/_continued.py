"""States to continue a run from: checks, and room for time series."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._checks import ArgumentError
from ._monitors import AbstractMonitor
from ._state import State
from ._stepper import Arrays
from ._time_monitors import EnergyMonitor, TimeMonitor


def continued(
    state: State, shapes: State, monitors: Mapping[str, AbstractMonitor]
) -> State:
    """Returns a state with as much room for time series as a run needs.

    Args:
        state: The state from which the run goes on.
        shapes: Those of the state with which the run would begin.
        monitors: Those of the run, by name.

    Raises:
        ArgumentError: If the state is that of another simulation.
    """
    # On the host: an operation on a JAX array would be one more program to compile.
    done, records = int(state.done), dict(state.monitors)
    for name in records.keys() & shapes.monitors.keys():
        monitor = monitors[name]
        if isinstance(monitor, TimeMonitor | EnergyMonitor):
            least = -(-done // monitor.every)
            what = f"`every` of the monitor {name!r}"
            records[name] = _lengthened(
                records[name], shapes.monitors[name], least, what
            )
    state = eqx.tree_at(lambda s: s.monitors, state, records)
    check_entries(state, shapes)
    return state


def check_entries(state: State, shapes: State) -> None:
    """Raises if the arrays of a state are not those that a run has.

    Args:
        state: The state.
        shapes: One of the run, or its shapes.

    Raises:
        ArgumentError: If it is the state of another simulation.
    """
    ours, theirs = map(_entries, (shapes, state))
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            raise ArgumentError(
                "`state` must come from a run of the same grid, boundaries, media, "
                f"monitors and layout, but its `{name}` is "
                f"{theirs.get(name, 'missing')}, and that of `sim` is "
                f"{ours.get(name, 'missing')}."
            )


def _lengthened(
    total: Arrays, shapes: Mapping[str, Any], least: int, what: str
) -> Arrays:
    """Returns time series with other numbers of records.

    Args:
        total: The series.
        shapes: Those that the run needs.
        least: How many records a run up to the state has made.
        what: What says how many, for the message.
    """

    def one(values, like):
        room = values.shape[0]
        # What is beyond the records that are due was made with a smaller `every`.
        more = room > least and bool(np.asarray(values)[least:].any())
        if room < least or more:
            raise ArgumentError(
                f"{what} must be that of the run that `state` comes from, but up to "
                f"there it asks for {least} records, and there are "
                f"{'more' if more else room}."
            )
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
