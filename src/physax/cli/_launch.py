"""The command `physax launch`: several processes of one script on this computer."""

import argparse
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..runtime import COORDINATOR, PROCESS, PROCESSES
from ._exit import ExitCode
from ._options import not_negative, whole


_POLL = 0.1
_ENDING = ("SIGINT", "SIGTERM")
_PASSED_ON = (*_ENDING, "SIGHUP", "SIGUSR1")
# Seconds within which two equal signals are one.
_AT_ONCE = 0.5
# Shells add the number of the signal to this.
_BY_SIGNAL = 128


def add_launch_command(commands: argparse._SubParsersAction) -> None:
    """Adds `launch` to the commands of a parser."""
    command = commands.add_parser(
        "launch",
        help="run a script in several processes that compute together",
        description="Runs a script in several processes on this computer. Each calls "
        "physax.runtime.initialize() and sees the devices of all. Ends when all have "
        "ended, or some time after the first has failed. Passes on Ctrl-C and other "
        "signals, on which runs with checkpoints save and end.",
    )
    command.add_argument("-n", type=whole(1), required=True, help="number of processes")
    command.add_argument(
        "--grace",
        type=not_negative,
        default=60.0,
        help="seconds that the others have to end after one has failed, and all after "
        "Ctrl-C or SIGTERM (60)",
    )
    command.add_argument("script", help="the Python script")
    words = command.add_argument(
        "words", nargs=argparse.REMAINDER, help="its arguments"
    )
    words.required = False  # Else argparse asks for them, too, without a script.
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    with open(options.script, "rb"):  # An absent script is said once, not n times.
        pass
    address = f"127.0.0.1:{_free_port()}"
    processes: list[subprocess.Popen] = []
    printers = []
    with _passed_on(processes) as request:
        try:
            for number in range(options.n):
                process = _start(options, address, number)
                processes.append(process)
                shown = (number, process)
                printers.append(threading.Thread(target=_show, args=shown, daemon=True))
                printers[-1].start()
            failed = _wait(processes, options.grace, request)
        finally:
            left = _end(processes, options.grace)
    for printer in printers:
        printer.join()
    failed = failed or _failure(processes)
    if failed is None:
        return ExitCode.DONE
    number, code = failed
    how = f"by signal {-code}" if code < 0 else f"with {code}"
    if all(process.returncode == code for process in processes):
        print(f"physax: {options.n} of {options.n} ended {how}.", file=sys.stderr)
        return code if code > 0 else _BY_SIGNAL - code
    others = "; the others were ended" if left else ""
    print(
        f"physax: process {number} of {options.n} ended {how}{others}. Start the job "
        "again: a run with checkpoints goes on.",
        file=sys.stderr,
    )
    return ExitCode.REFUSED


class _Request:
    """When the launcher was asked to end the job, if it was."""

    def __init__(self):
        self.since: float | None = None


@contextmanager
def _passed_on(processes: list[subprocess.Popen]) -> Iterator[_Request]:
    """Passes signals on to processes, which are in groups of their own.

    A terminal, and `timeout`, signal the whole group of a job. Of a process that has
    both that signal and ours the second would end what the first lets save.
    """
    request = _Request()
    last: dict[int, float] = {}

    def pass_on(number: int, frame: object) -> None:
        del frame
        now = time.monotonic()
        if now - last.get(number, -math.inf) < _AT_ONCE:
            return  # `timeout` signals the launcher, and then its group.
        last[number] = now
        if signal.Signals(number).name in _ENDING and request.since is None:
            request.since = now
        for process in processes:
            process.send_signal(number)

    known = [signal.Signals[n] for n in _PASSED_ON if n in signal.Signals.__members__]
    before = {number: signal.getsignal(number) for number in known}
    # What the caller has ignored, as `nohup` does, stays so, here and in the processes.
    taken = {n: handler for n, handler in before.items() if handler != signal.SIG_IGN}
    if threading.current_thread() is not threading.main_thread():
        taken = {}  # Python allows no handlers here.
    for number in taken:
        signal.signal(number, pass_on)
    try:
        yield request
    finally:
        for number, handler in taken.items():
            # None stands for a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _start(options: argparse.Namespace, address: str, number: int) -> subprocess.Popen:
    variables = os.environ | {
        COORDINATOR: address,
        PROCESSES: str(options.n),
        PROCESS: str(number),
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.Popen(  # noqa: S603
        [sys.executable, options.script, *options.words],
        env=variables,
        stdin=subprocess.DEVNULL,  # Another group than the terminal's can't read it.
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
    )


def _show(number: int, process: subprocess.Popen) -> None:
    assert process.stdout is not None
    # Closed if our own output is: no process waits for ever to write.
    with process.stdout as lines:
        for line in lines:
            sys.stdout.write(f"[{number}] {line}")
            sys.stdout.flush()


def _wait(
    processes: list[subprocess.Popen], grace: float, request: _Request
) -> tuple[int, int] | None:
    """Waits until all have ended, or some time after one has failed or was to end.

    Returns:
        The process that was seen to fail first and its exit code, or None.
    """
    failed, since = None, math.inf
    while any(process.poll() is None for process in processes):
        if failed is None:
            failed = _failure(processes)
            since = time.monotonic() if failed else math.inf
        asked = math.inf if request.since is None else request.since
        if time.monotonic() - min(since, asked) > grace:
            break
        time.sleep(_POLL)
    return failed


def _end(processes: list[subprocess.Popen], grace: float) -> bool:
    """Ends what has not ended, at first in a way that it can answer.

    Returns:
        Whether there was any.
    """
    left = [process for process in processes if process.poll() is None]
    for process in left:
        process.terminate()
    end = time.monotonic() + grace
    for process in left:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return bool(left)


def _failure(processes: list[subprocess.Popen]) -> tuple[int, int] | None:
    for number, process in enumerate(processes):
        if process.poll():
            return number, process.returncode
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
