"""Runs a script as two processes that compute together."""

import json
import os
import subprocess
import sys
from pathlib import Path


ROOT = Path(__file__).parents[2]


def in_two(module, *arguments):
    """Runs a module with rank and port, and returns the last line of each as JSON."""
    # The processes talk to each other within this machine.
    port = str(20_000 + os.getpid() % 20_000)
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_NUM_CPU_DEVICES": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", module, str(rank), port, *arguments],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        found = [worker.communicate(timeout=300)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0]
    return [json.loads(text.splitlines()[-1]) for text in found]
