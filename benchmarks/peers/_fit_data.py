"""The workload of `benchmarks.fit`: the same points and start for every tool."""

import json
import os
import resource
import sys
import time
from collections.abc import Callable

import numpy as np


TRUTH = (2.0, 1.3, 0.7, 0.25, 0.1)
START = (1.0, 1.0, 1.0, 0.1, 0.0)
NOISE = 0.02


def model(xp, x, a, b, c, d, e):
    """Evaluates the model with the arrays of a module."""
    return a * xp.exp(-b * x) + c * xp.exp(-d * x) + e


def points(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions and noisy values."""
    x = np.linspace(0, 10, count)
    noise = np.random.default_rng(0).standard_normal(count)
    return x, model(np, x, *TRUTH) + NOISE * noise


def resident_mb() -> float:
    """Returns the memory of this process now, in MiB."""
    with open("/proc/self/status") as status:
        words = status.read().split()
    return int(words[words.index("VmRSS:") + 1]) / 1024


def serve(tool: str, version: str, fit: Callable) -> None:
    """Answers requests for fits until the input ends.

    Args:
        tool: Name of the tool.
        version: Its version.
        fit: Takes positions and values to five parameters.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    print(json.dumps({"tool": tool, "version": version}), file=answers, flush=True)
    data = {}
    for line in sys.stdin:
        count = json.loads(line)["points"]
        if count not in data:
            data = {count: points(count)}
            before = resident_mb()
        start = time.perf_counter()
        found = [float(value) for value in fit(*data[count])]
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        answer = {"seconds": seconds, "peak_mb": peak - before, "parameters": found}
        print(json.dumps(answer), file=answers, flush=True)
