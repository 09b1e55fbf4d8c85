"""Monitors of the time dependence: samples and energy, step by step."""

from functools import partial
from numbers import Integral
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._checks import ArgumentError
from ..grid import AXES
from ._frame import Point, as_point
from ._monitors import AbstractMonitor, Read, region_reads, sample_coordinates


class TimeSeries(eqx.Module):
    """Samples of field components on a region over time.

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

    Attributes:
        components: Which, for example `("Ez",)`.
        centre: Middle of the region in metres.
        size: Its lengths in metres; 0 takes the nearest samples, `inf` all.
        every: Steps between records; the first is taken after the first step.
    """

    components: tuple[str, ...] = eqx.field(static=True)
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

    Attributes:
        times: In seconds.
        energy: In J (3-D), J/m (2-D) or J/m^2 (1-D).
    """

    times: Float[Array, " times"]
    energy: Float[Array, " times"]


class EnergyMonitor(AbstractMonitor):
    r"""The energy $\frac12 \int \epsilon E^2 + \mu H^2$ of the whole grid.

    E is taken at the end of a step and H half a step before, so that the sum ripples at
    twice the frequency by about $(\omega \Delta t)^2 / 8$; see `yee_energy` for the sum
    that the scheme conserves.

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
