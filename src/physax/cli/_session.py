"""What a long command sets up first: processors, and how much it says."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._checks import ArgumentError, PhysaxWarning
from ._machine import devices, versions


class Talk(NamedTuple):
    """How much a command says.

    Attributes:
        level: -1 only warnings, 0 results, 1 everything.
    """

    level: int = 0

    def say(self, text: str) -> None:
        """Prints a result."""
        if self.level >= 0:
            print(text, flush=True)

    def detail(self, text: str) -> None:
        """Prints details, if they were asked for."""
        if self.level >= 1:
            print(text, flush=True)

    def warn(self, text: str) -> None:
        """Prints what should not be missed, on the error stream."""
        print(f"physax: {text}", file=sys.stderr, flush=True)


def limit_threads(count: int | None) -> None:
    """Keeps this process on some of the processors it may use.

    JAX has no setting for the number of threads: it starts as many as there are
    processors that the process may use, when its backend starts. Threads that exist
    already, as those of NumPy's linear algebra, are moved, too.

    Args:
        count: How many processors; `None` for all.

    Raises:
        ArgumentError: If there are not so many, or the system cannot do it.
    """
    if count is None:
        return
    if not sys.platform.startswith("linux"):
        raise ArgumentError(
            f"`--threads` needs Linux, but this is {sys.platform}: leave it out."
        )
    there = sorted(os.sched_getaffinity(0))
    if not 1 <= count <= len(there):
        raise ArgumentError(
            f"`--threads` must lie between 1 and {len(there)}, the processors that "
            f"this process may use, but is {count}."
        )
    for task in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(task.name), there[:count])


def tell_machine(talk: Talk) -> None:
    """Says with what and on what a command computes, if details were asked for."""
    if talk.level < 1:
        return
    found = devices()
    packages = ", ".join(f"{name} {versions()[name]}" for name in ("physax", "jax"))
    talk.detail(f"with          {packages}, {jnp.result_type(float)}")
    talk.detail(f"on            {len(found)} x {found[0].device_kind}")


@contextmanager
def double_precision(wanted: bool = True) -> Iterator[None]:
    """Switches float64 on or off while the block runs, in all threads."""
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", wanted)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Prints warnings of physax as sentences, without a line of code, in the block."""
    before = warnings.formatwarning

    def sentence(message, category, filename, lineno, line=None):
        if issubclass(category, PhysaxWarning):
            return f"physax: warning: {message}\n"
        return before(message, category, filename, lineno, line)

    warnings.formatwarning = sentence
    try:
        yield
    finally:
        warnings.formatwarning = before
