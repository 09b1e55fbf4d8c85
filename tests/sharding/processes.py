"""Runs a script as several processes that compute together."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile

from physax.runtime import COORDINATOR, PROCESS, PROCESSES


ROOT = Path(__file__).parents[2]


def start(module, *arguments, count=2, files=(), errors=None):
    """Starts a module in several processes; the output of each goes to its file."""
    # The processes talk to each other within this machine.
    port = 20_000 + os.getpid() % 20_000
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "JAX_NUM_CPU_DEVICES": "1",
        COORDINATOR: f"127.0.0.1:{port}",
        PROCESSES: str(count),
    }
    return [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**environment, PROCESS: str(rank)},
            stdout=file,
            stderr=errors,
            text=True,
        )
        for rank, file in zip(range(count), files, strict=True)
    ]


def together(module, *arguments, count=2):
    """Runs a module in several processes, and returns the last line of each as JSON."""
    with ExitStack() as stack:
        # Not pipes: a process that waits for a reader keeps the others from ending.
        files = [stack.enter_context(TemporaryFile("w+")) for _ in range(count)]
        workers = start(module, *arguments, count=count, files=files)
        try:
            codes = [worker.wait(timeout=300) for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        assert codes == [0] * count
        return [last_line(file) for file in files]


def last_line(file):
    """Reads the last line of a file as JSON."""
    file.seek(0)
    return json.loads(file.read().splitlines()[-1])
