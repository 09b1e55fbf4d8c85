"""What a peer's process says: one JSON line per request, one run per line.

The process first writes `{"tool": ..., "version": ...}`. Each request line
`{"case": "2d" | "3d", "n": cells along an edge, "steps": ...}` is then answered by
`{"seconds", "compile_s", "setup_s", "peak_mb"}`. The first request of a kind also sets
up, compiles and makes one run that is not counted, so that the caller may interleave
the runs of several tools. Errors go to the standard error and end the process.
"""

import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable


# The workload: cells of 50 nm, light of 1 um, an absorber of 10 cells inside the grid.
DX = 50e-9
WAVELENGTH = 1e-6
LAYER = 10
LIGHT_SPEED = 299792458.0

# A run does all steps from zero fields and returns when they are done.
Prepare = Callable[[str, int, int], tuple[Callable[[], object], float | None]]


def peak_mb() -> float:
    """Returns the largest resident memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(run: Callable[[], object]) -> float:
    """Returns the seconds that a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def serve(tool: str, version: str, prepare: Prepare) -> None:
    """Answers requests until the input ends.

    Args:
        tool: Name of the tool.
        version: Its version.
        prepare: Sets a case up, given case, n and steps; returns a run and the seconds
            spent compiling, or `None` where the first run compiles.
    """
    # Some tools print to the C standard output; the answers need it for themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    ready, best = {}, {}
    print(json.dumps({"tool": tool, "version": version}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        key = request["case"], request["n"], request["steps"]
        if key not in ready:
            start = time.perf_counter()
            run, compile_s = prepare(*key)
            setup_s = time.perf_counter() - start - (compile_s or 0.0)
            ready[key] = run, compile_s, setup_s, timed(run)
            best[key] = math.inf
        run, compile_s, setup_s, first = ready[key]
        seconds = timed(run)
        best[key] = min(best[key], seconds)
        if compile_s is None:  # then it is what the first run took longer
            compile_s = max(first - best[key], 0.0)
        answer = {
            "seconds": seconds,
            "compile_s": compile_s,
            "setup_s": setup_s,
            "peak_mb": peak_mb(),
        }
        print(json.dumps(answer), file=answers, flush=True)
