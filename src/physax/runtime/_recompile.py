"""Counts compilations, and refuses more than are allowed."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax.monitoring

from .._checks import PhysaxError, whole


# Fires once for each program handed to XLA, also where the persistent cache has it.
_COMPILED = "/jax/core/compile/backend_compile_duration"
# Ours, to every count that is open.
_EXPLAINED = "/physax/compile_explained"


_REMEDY = (
    "Call the function as `watched(function)` to see which argument changed; Python "
    "floats in static fields and weakly typed numbers are the usual reasons."
)


class RecompileError(PhysaxError, RuntimeError):
    """A block compiled more programs than it may."""


class CompileCount:
    """What was compiled while a `count_compiles` block ran.

    Attributes:
        names: The compiled functions in order, `"jit(f)"`.
        seconds: What compiling each of them took.
        reasons: Why functions under `watched` compiled: sentences that name the
            function, and the arguments that changed.
    """

    def __init__(self):
        self.names: list[str] = []
        self.seconds: list[float] = []
        self.reasons: list[str] = []

    def __len__(self) -> int:
        return len(self.names)


@contextmanager
def count_compiles() -> Iterator[CompileCount]:
    """Counts what JAX compiles in the block, in all threads.

    A small operation outside `jit`, such as `jnp.ones(3)`, is a program too.

    Yields:
        The count; `len(count)` is the number of programs so far.
    """
    count = CompileCount()

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _COMPILED:
            count.names.append(str(kwargs.get("fun_name", "?")))
            count.seconds.append(duration_secs)
        elif event == _EXPLAINED:
            count.reasons.append(str(kwargs["reason"]))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield count
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def tell_reason(reason: str, seconds: float) -> None:
    """Tells all open counts why something compiled."""
    jax.monitoring.record_event_duration_secs(_EXPLAINED, seconds, reason=reason)


@contextmanager
def no_recompile(allow: int = 0) -> Iterator[CompileCount]:
    """Refuses that a block compiles more than `allow` programs.

    Args:
        allow: How many programs it may compile.

    Yields:
        The count.

    Raises:
        ArgumentError: If `allow` is negative.
        RecompileError: At the end of the block, if it compiled more. The message names
            the functions, and for those under `watched` the arguments that changed.
    """
    allow = whole(allow, "allow", 0)
    with count_compiles() as count:
        yield count
    if len(count) > allow:
        raise RecompileError(
            f"The block must compile at most {allow} programs, but compiled "
            f"{len(count)}: {', '.join(count.names)}. "
            + (" ".join(count.reasons) or _REMEDY)
        )
