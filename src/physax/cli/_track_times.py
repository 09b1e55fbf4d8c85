"""When `physax track` records particles, and how long its steps are."""

import math
from typing import NamedTuple

import numpy as np

from .._checks import ArgumentError
from ..em._simulation import MOST_STEPS
from ..io import StoredField
from ._track_cells import soonest_crossed
from ._track_settings import Timing


DAY = 86_400.0
# Recorded times, where the settings do not say.
_ROWS = 40
# A step leads through this part of a cell at most, at the highest speed of the data.
_PART = 0.25
# What is no speed, such as a fill value, asks for more.
_MOST_STEPS = 1_000_000


class Plan(NamedTuple):
    """The recorded times and the steps between them.

    Attributes:
        times: In seconds.
        steps: In all.
        reason: What bounds the length of a step.
    """

    times: np.ndarray
    steps: int
    reason: str

    @property
    def step(self) -> float:
        """Length of a step, in seconds."""
        return float(abs(self.times[-1] - self.times[0])) / self.steps

    def sentence(self) -> str:
        """Says which steps were chosen, and why."""
        every = float(abs(self.times[1] - self.times[0]))
        return (
            f"{self.steps} steps of {self.step:g} s, {self.reason}; recorded every "
            f"{every:g} s"
        )


def plan_times(timing: Timing, flow: StoredField, period: float | None = None) -> Plan:
    """Finds the times that are recorded and the steps between them.

    A step leads through a quarter of a cell at most along each axis, as
    `soonest_crossed` counts, and not over an interval between instants, unless its
    length is given.

    Args:
        timing: What the settings say.
        flow: The velocity.
        period: The time after which it repeats, in seconds.

    Raises:
        ArgumentError: If the times reach beyond those of the data, if steps would be
            too many to find or to count, or if `record_every` is longer than the
            duration that was found.
    """
    instants = np.zeros(1) if flow.times is None else np.asarray(flow.times, float)
    begin = instants[-1] if timing.backward else instants[0]
    begin = float(begin) if timing.start is None else timing.start
    # Along the ground, in m/s.
    speed = float(np.max(flow.largest[:2]))
    duration = timing.duration or _duration(timing, flow, instants, begin, speed)
    rows = round(duration / (timing.record_every or duration / _ROWS))
    every = duration / rows
    step, reason = _step(timing, flow, _interval(instants, period), every)
    # No number of steps is infinite.
    stride = max(math.ceil(min(every / step, 1e18) * (1 - 1e-9)), 1)
    if timing.step is None and stride * rows > _MOST_STEPS:
        raise ArgumentError(
            f"`step` must be given for more than {_MOST_STEPS} steps, but there are "
            f"{stride * rows} of {step:.3g} s, {reason}. If that speed is not "
            "real, mark missing data in the files by their `_FillValue` or NaN."
        )
    if stride * rows > MOST_STEPS:
        raise ArgumentError(
            f"`step` and `record_every` must make at most {MOST_STEPS} steps, but make "
            f"{stride * rows}. Without a unit they are in seconds: write "
            "`step_minutes`."
        )
    sign = -1.0 if timing.backward else 1.0
    times = begin + sign * every * np.arange(rows + 1)
    _check_span(times, flow)
    return Plan(times, stride * rows, reason)


def _extent(flow: StoredField) -> np.ndarray:
    """Returns the lengths of the data along the ground, in metres."""
    extent = np.asarray(flow.high - flow.low, float)[:2]
    if flow.spherical:
        extent = np.radians(extent) * float(flow.field.radius)  # pyright: ignore
    return extent


def _duration(
    timing: Timing, flow: StoredField, instants: np.ndarray, begin: float, speed: float
) -> float:
    """Returns how long to follow particles where the settings do not say.

    It is 5 days on the globe, elsewhere what crosses the data at the highest speed, not
    beyond the last instant, and a whole number of `record_every`.
    """
    found = 5 * DAY if flow.spherical else float(_extent(flow).max()) / (speed or 1.0)
    if flow.times is not None and math.isfinite(float(flow.span()[1])):
        room = begin - instants[0] if timing.backward else instants[-1] - begin
        found = min(found, room) if room > 0 else found
    every = timing.record_every
    if every is None:
        return found
    rows = math.floor(found / every * (1 + 1e-9))
    if not rows:
        raise ArgumentError(
            f"`record_every` must be at most the duration, which is {found:g} s where "
            f"it is left out, but is {every:g} s. Give a `duration`, too."
        )
    return min(found, rows * every)


def _step(
    timing: Timing, flow: StoredField, interval: float, every: float
) -> tuple[float, str]:
    """Returns the longest step, in seconds, and what bounds it."""
    if timing.step is not None:
        reason = f"at most {timing.step:g} s by the settings"
        if min(timing.step, every) > interval:
            reason += f", though instants are {interval:g} s apart"
        return timing.step, reason
    step, reason = every, "one for each recorded time"
    if interval < step:
        step, reason = interval, f"at most the {interval:g} s between two instants"
    crossing = soonest_crossed(flow)
    if crossing is not None and _PART * crossing.width / crossing.speed < step:
        width, speed, unit, place = crossing
        step = _PART * width / speed
        reason = (
            f"at most {_PART:g} of a cell of {width:.3g} {unit} at the highest speed"
            f"{place}, {speed:.3g} {unit}/s"
        )
    return step, reason


def _interval(instants: np.ndarray, period: float | None) -> float:
    """Returns the shortest time between two instants, infinite of a steady flow."""
    gaps = np.diff(instants)
    if gaps.size and period is not None:
        gaps = np.append(gaps, period - (instants[-1] - instants[0]))
    return float(gaps[gaps > 0].min(initial=np.inf))


def _check_span(times: np.ndarray, flow: StoredField) -> None:
    """Refuses times without data, in the words of the settings."""
    low, high = (float(end) for end in flow.span())
    first, last = float(times.min()), float(times.max())
    slack = 4 * np.finfo(float).eps * max(abs(first), abs(last))
    if first < low - slack or last > high + slack:
        worth, unit = (DAY, "days") if last - first >= 0.1 * DAY else (1.0, "s")
        raise ArgumentError(
            f"`times` must lie within those of the data, {low / worth:g} to "
            f"{high / worth:g} {unit}, but reach from {first / worth:g} to "
            f"{last / worth:g} {unit}. Change `start` or `duration` (`--days`), or set "
            "`hold: true` or `period_days` under `velocity`."
        )
