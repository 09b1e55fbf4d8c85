"""Turns the signals that end a job into a request to finish."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


# SLURM announces the end of the time with SIGUSR1 or SIGTERM; Ctrl-C is SIGINT.
_NAMES = ("SIGTERM", "SIGINT", "SIGUSR1")


class Interruption:
    """Whether a signal has asked the run to finish.

    Attributes:
        received: The signal, or None.
    """

    def __init__(self):
        self.received: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.received is not None


@contextmanager
def catch_signals() -> Iterator[Interruption]:
    """Records the first SIGTERM, SIGINT or SIGUSR1 instead of dying of it.

    From then on the previous handlers are back, so that a second signal does what it
    always did. Outside the main thread, where Python allows no handlers, nothing is
    caught.

    Yields:
        What says whether a signal has come.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    previous = {}

    def restore() -> None:
        for number, handler in previous.items():
            # None stands for a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def record(number: int, frame: object) -> None:
        del frame
        interruption.received = signal.Signals(number)
        restore()

    try:
        for name in _NAMES:
            if name in signal.Signals.__members__:
                number = signal.Signals[name]
                previous[number] = signal.getsignal(number)
                signal.signal(number, record)
        yield interruption
    finally:
        restore()
