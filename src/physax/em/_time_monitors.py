"""Monitors of the time dependence: samples and energy, step by step."""

import dataclasses
from functools import partial
from numbers import Integral
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._checks import ArgumentError, instance, refuse_traced
from ..grid import AXES
from ._frame import Point, as_point
from ._monitors import (
    AbstractMonitor,
    Read,
    as_names,
    region_reads,
    sample_coordinates,
)


class TimeSeries(eqx.Module):
    """Samples of field components on a region over time.

    Behind the last step of a run that `Decay` stopped the values from `simulate` are 0,
    as shapes are fixed under `jit`; `recorded` leaves them out. `run` does so itself.

    Attributes:
        values: By component, shape (time, x, y, z); E in V/m, H as `eta0 H`.
        times: By component, in seconds; H is known half a step before E.
        coordinates: By component, the positions of its samples along each axis, in m.
        axes: Names of the axes, `("r", "z")` in cylindrical coordinates.
    """

    values: dict[str, Array]
    times: dict[str, Float[Array, " times"]]
    coordinates: dict[str, tuple[Float[Array, "..."], ...]]
    axes: tuple[str, ...] = eqx.field(static=True, default=AXES)


def _records(steps: int, every: int) -> int:
    return -(-steps // every)


def _every(every: Any) -> int:
    if not isinstance(every, Integral):
        raise ArgumentError(
            f"`every` must be a whole number of steps, but is {every!r}. Round it."
        )
    if every < 1:
        raise ArgumentError(f"`every` must be at least 1, but is {every}.")
    return int(every)


def _store(total, read, step, every):
    """Writes the samples of a step to their place in the series."""
    values = read()

    def write(total):
        return {
            key: lax.dynamic_update_index_in_dim(
                total[key], samples.astype(total[key].dtype), step // every, 0
            )
            for key, samples in values.items()
        }

    if every == 1:
        return write(total)
    return lax.cond(step % every == 0, write, lambda t: t, total)


class TimeMonitor(AbstractMonitor):
    """Components in a region every few steps: a time trace, or a series of snapshots.

    Records of steps that were not made, as `Decay` stopped the run, are 0 in results of
    `simulate`; see `recorded`.

    Attributes:
        components: Which, for example `("Ez",)`.
        centre: Middle of the region in metres.
        size: Its lengths in metres; 0 takes the nearest samples, `inf` all.
        every: Steps between records; the first is taken after the first step.
    """

    components: tuple[str, ...] = eqx.field(static=True, converter=as_names)
    centre: Point = eqx.field(static=True, converter=partial(as_point, name="centre"))
    size: Point = eqx.field(static=True, converter=partial(as_point, name="size"))
    every: int = eqx.field(static=True, converter=_every, default=1)

    def locate(self, frame, what):
        return region_reads(frame, self.components, self.centre, self.size, what)

    def start(self, reads, setup, dtype):
        count = _records(setup.steps, self.every)
        return {
            read.key: jnp.zeros((count, *(high - low for low, high in read.box)), dtype)
            for read in reads
        }

    def update(self, total, read, step, sampling):
        del sampling
        return _store(total, read, step, self.every)

    def finish(self, total, reads, setup):
        steps = jnp.arange(_records(setup.steps, self.every)) * self.every
        times = {
            read.key: (steps + (1.0 if read.component[0] == "E" else 0.5)) * setup.dt
            for read in reads
        }
        where = {read.key: sample_coordinates(read, setup) for read in reads}
        return TimeSeries(total, times, where, setup.components.axes)


class EnergySeries(eqx.Module):
    """Electromagnetic energy in the grid over time.

    Behind the last step of a run that `Decay` stopped it is 0, as in a `TimeSeries`.

    Attributes:
        times: In seconds.
        energy: In J (3-D), J/m (2-D) or J/m^2 (1-D).
    """

    times: Float[Array, " times"]
    energy: Float[Array, " times"]


class EnergyMonitor(AbstractMonitor):
    r"""The energy $\frac12 \int \epsilon E^2 + \mu H^2$ of the whole grid.

    E is taken at the end of a step and H half a step before, so that the sum of a
    standing wave ripples at twice the frequency by $\sin(\omega \Delta t / 2)$ of its
    mean: 6 % at 50 cells per wavelength. See `yee_energy` for the sum that the scheme
    conserves. Records of steps that were not made are 0, as in a `TimeMonitor`.

    Attributes:
        every: Steps between records; the first is taken after the first step.
    """

    every: int = eqx.field(static=True, converter=_every, default=1)

    def locate(self, frame, what):
        del frame, what
        return (Read("energy", "energy", ()),)

    def start(self, reads, setup, dtype):
        del reads
        count = _records(setup.steps, self.every)
        return {"energy": jnp.zeros(count, jnp.finfo(dtype).dtype)}

    def update(self, total, read, step, sampling):
        del sampling
        return _store(total, read, step, self.every)

    def finish(self, total, reads, setup):
        del reads
        steps = jnp.arange(_records(setup.steps, self.every)) * self.every
        return EnergySeries((steps + 1.0) * setup.dt, total["energy"])


_Series = TypeVar("_Series", TimeSeries, EnergySeries)


def first_records(series: _Series, count: int) -> _Series:
    """Returns a series up to a number of its records."""

    def one(x):
        # On the host, where slicing compiles nothing.
        cut = np.array(np.asarray(x)[:count])
        return jnp.asarray(cut) if isinstance(x, jax.Array) else cut

    new = {
        name: jax.tree.map(one, getattr(series, name))
        for name in ("times", _recorded_in(series))
    }
    return dataclasses.replace(series, **new)


def recorded(series: _Series) -> _Series:
    """Leaves out the zeros at the end of a series, of steps that were not made.

    For results of `simulate` with `until=Decay(...)`; those of `run` end with the run.
    Runs on the host. A series of nothing but zeros stays whole.

    Args:
        series: What a `TimeMonitor` or an `EnergyMonitor` recorded in one run.

    Returns:
        The series up to the last record with a value that is not 0.

    Raises:
        ArgumentError: If `series` is something else, of a batch of runs, or traced.
    """
    instance(
        series, "series", (TimeSeries, EnergySeries), "Pass one entry of `monitors`."
    )
    refuse_traced(series, "series", "Call `recorded` outside.")
    return recorded_part(series, "series")


def recorded_part(series: _Series, name: str) -> _Series:
    """Does what `recorded` does, for an argument of a name that is not traced."""
    shape = np.shape(jax.tree.leaves(series.times)[0])
    if len(shape) != 1:
        raise ArgumentError(
            f"`{name}` must be from one run, but its times have shape {shape}. Pass "
            "one of a batch."
        )
    used = np.zeros(shape, bool)
    for values in jax.tree.leaves(getattr(series, _recorded_in(series))):
        used |= np.any(np.asarray(values).reshape(*shape, -1) != 0, axis=1)
    last = np.flatnonzero(used)[-1] if used.any() else len(used) - 1
    return first_records(series, int(last) + 1)


def _recorded_in(series: TimeSeries | EnergySeries) -> str:
    return "energy" if isinstance(series, EnergySeries) else "values"
