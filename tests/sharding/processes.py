"""Runs a script as several processes that compute together."""

import json
import os
import subprocess
import sys
from pathlib import Path

from physax.runtime import COORDINATOR, PROCESS, PROCESSES


ROOT = Path(__file__).parents[2]


def together(module, *arguments, count=2):
    """Runs a module in several processes, and returns the last line of each as JSON."""
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
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**environment, PROCESS: str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        found = [worker.communicate(timeout=300)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0] * count
    return [json.loads(text.splitlines()[-1]) for text in found]
