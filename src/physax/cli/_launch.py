"""The command `physax launch`: several processes of one script on this computer."""

import argparse
import os
import socket
import subprocess
import sys
import threading
import time

from ..runtime import COORDINATOR, PROCESS, PROCESSES
from ._exit import ExitCode
from ._options import not_negative, whole


_POLL = 0.1


def add_launch_command(commands: argparse._SubParsersAction) -> None:
    """Adds `launch` to the commands of a parser."""
    command = commands.add_parser(
        "launch",
        help="run a script in several processes that compute together",
        description="Runs a script in several processes on this computer. Each calls "
        "physax.runtime.initialize() and sees the devices of all. Ends when all have "
        "ended, or some time after the first has failed.",
    )
    command.add_argument("-n", type=whole(1), required=True, help="number of processes")
    command.add_argument(
        "--grace",
        type=not_negative,
        default=60.0,
        help="seconds that the others have after one has failed (60)",
    )
    command.add_argument("script", help="the Python script")
    words = command.add_argument(
        "words", nargs=argparse.REMAINDER, help="its arguments"
    )
    words.required = False  # Else argparse asks for them, too, without a script.
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> ExitCode:
    with open(options.script, "rb"):  # An absent script is said once, not n times.
        pass
    address = f"127.0.0.1:{_free_port()}"
    processes = [_start(options, address, number) for number in range(options.n)]
    printers = [
        threading.Thread(target=_show, args=(number, process), daemon=True)
        for number, process in enumerate(processes)
    ]
    for printer in printers:
        printer.start()
    try:
        failed = _wait(processes, options.grace)
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            process.wait()
    for printer in printers:
        printer.join()
    if failed is None:
        return ExitCode.DONE
    number, code = failed
    how = f"by signal {-code}" if code < 0 else f"with {code}"
    print(
        f"physax: process {number} of {options.n} ended {how}; the others were ended. "
        "Start the job again: a run with checkpoints goes on.",
        file=sys.stderr,
    )
    return ExitCode.REFUSED


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
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _show(number: int, process: subprocess.Popen) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.write(f"[{number}] {line}")
        sys.stdout.flush()


def _wait(processes: list[subprocess.Popen], grace: float) -> tuple[int, int] | None:
    """The first process that failed and its exit code, or None."""
    failed, since = None, 0.0
    while any(process.poll() is None for process in processes):
        if failed is None:
            failed, since = _failure(processes), time.monotonic()
        elif time.monotonic() - since > grace:
            break
        time.sleep(_POLL)
    return failed or _failure(processes)


def _failure(processes: list[subprocess.Popen]) -> tuple[int, int] | None:
    for number, process in enumerate(processes):
        if process.poll():
            return number, process.returncode
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
