"""Shows how far an optimisation is, with the objective it has reached."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
from rich.console import Console
from rich.progress import BarColumn, Progress as Bar, TextColumn

from ..runtime import Progress


LiveReport = Callable[[int, float, str], None]


@contextmanager
def live_progress(progress: Progress | bool | None, stop: int) -> Iterator[LiveReport]:
    """Shows progress while the block runs, as `runtime.drive` does.

    Args:
        progress: How; True is `Progress("design")`, False or None shows nothing.
        stop: The last step.

    Yields:
        A function to call with the step reached, the rate in steps per second, and a
        note.
    """
    shown = Progress("design") if progress is True else progress
    off = os.environ.get("PHYSAX_PROGRESS") == "0" or jax.process_index() != 0
    if not isinstance(shown, Progress) or off:
        yield lambda step, rate, note: None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(shown, stop)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
    )
    with Bar(*columns, console=console, refresh_per_second=4) as bar:
        task = bar.add_task(shown.label, total=stop, text="")

        def report(step: int, rate: float | int, note: str) -> None:
            bar.update(task, completed=step, text=describe(step, stop, rate, note))

        yield report


def _lines(progress: Progress, stop: int) -> LiveReport:
    last = -float("inf")

    def report(step: int, rate: float | int, note: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= progress.line_every or step == stop:
            last = now
            sys.stderr.write(f"{progress.label}: {describe(step, stop, rate, note)}\n")
            sys.stderr.flush()

    return report


def describe(step: int, stop: int, rate: float | int, note: str) -> str:
    """Says how far a run is, what it has reached, and how long it will take."""
    parts = [f"{step}/{stop}", note]
    if rate > 0:
        minutes, seconds = divmod(round((stop - step) / rate), 60)
        hours, minutes = divmod(minutes, 60)
        parts.append(f"{hours}:{minutes:02}:{seconds:02} left")
    return ", ".join(parts)
