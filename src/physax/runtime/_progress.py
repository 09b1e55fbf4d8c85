"""Shows how far a run is."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax
from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn

from .._checks import ArgumentError, instance, kind_of
from .._known_number import known_number


def _text(name: str) -> Callable[[Any], str]:
    return lambda x: instance(x, name, (str,))


def _size(name: str) -> Callable[[Any], float]:
    def convert(x):
        number = known_number(x, name)
        if not number >= 0:
            raise ArgumentError(f"`{name}` must be at least 0, but is {number:g}.")
        return number

    return convert


class Progress(eqx.Module):
    """How the progress of a run is shown.

    On a terminal it is a bar, elsewhere (a log file) a plain line now and then, both on
    the error stream. The environment variable `PHYSAX_PROGRESS=0` switches it off.

    Attributes:
        label: What runs.
        unit: The second unit of the rate, after steps: `"Mcell-steps"`; empty for none.
        per_step: How many of that unit one step makes.
        line_every: Seconds between two plain lines; 0 for one at each report.

    Raises:
        ArgumentError: If a text or a number is none, or a number is negative.
    """

    label: str = eqx.field(static=True, converter=_text("label"), default="run")
    unit: str = eqx.field(static=True, converter=_text("unit"), default="")
    per_step: float | int = eqx.field(
        static=True, converter=_size("per_step"), default=1.0
    )
    line_every: float | int = eqx.field(
        static=True, converter=_size("line_every"), default=30.0
    )


def check_progress(progress: Any) -> None:
    """Raises unless an argument says how to show progress."""
    if not isinstance(progress, Progress | bool | None):
        raise ArgumentError(
            "`progress` must be True, False, None or a `Progress`, but is "
            f"{kind_of(progress)}"
        )


Report = Callable[[int, float], None]


@contextmanager
def show_progress(
    progress: Progress | bool | None, start: int, stop: int
) -> Iterator[Report]:
    """Shows progress while the block runs.

    Args:
        progress: How; True is `Progress()`, False or None shows nothing.
        start: The first step.
        stop: The last step.

    Yields:
        A function to call with the step reached and the rate in steps per second; NaN
        where that is not known yet.
    """
    shown = Progress() if progress is True else progress
    off = os.environ.get("PHYSAX_PROGRESS") == "0" or jax.process_index() != 0
    if not isinstance(shown, Progress) or off:
        yield lambda step, rate: None
        return
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(shown, console, start, stop) as report:
            yield report
    else:
        yield _lines(shown, stop)


@contextmanager
def _bar(
    progress: Progress, console: Console, start: int, stop: int
) -> Iterator[Report]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[text]}"),
    )
    # Few redraws: the thread that draws takes time from the computation.
    with Bar(*columns, console=console, refresh_per_second=4) as bar:
        task = bar.add_task(progress.label, total=stop, completed=start, text="")

        def report(step: int, rate: float | int) -> None:
            text = describe_progress(progress, step, stop, rate)
            bar.update(task, completed=step, text=text)

        yield report


def _lines(progress: Progress, stop: int) -> Report:
    last = time.monotonic()

    def report(step: int, rate: float | int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= progress.line_every:
            last = now
            text = describe_progress(progress, step, stop, rate)
            sys.stderr.write(f"{progress.label}: {text}\n")
            sys.stderr.flush()

    return report


def describe_progress(progress: Progress, step: int, stop: int, rate: float) -> str:
    """Says how far a run is, how fast, and how long it will take."""
    parts = [f"{step}/{stop} steps"]
    if rate > 0:
        parts.append(f"{_number(rate)} steps/s")
        if progress.unit:
            parts.append(f"{_number(rate * progress.per_step)} {progress.unit}/s")
        parts.append(f"{_duration((stop - step) / rate)} left")
    return ", ".join(parts)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
