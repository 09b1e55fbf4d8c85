"""What a peer's process says: one JSON line per request, one run per line.

The process first writes `{"tool": ..., "version": ...}`. Each request line
`{"case": "2d" | "3d", "n": cells along an edge, "steps": ...}` is then answered by
`{"seconds", "compile_s", "setup_s", "peak_mb"}`. A request that adds
`{"design": cells along an edge, "method": ...}` asks for the objective of `_gradient`:
its value for the method `"forward"`, else value and gradient; the answer adds `temp_mb`
and, for gradients, `error`. The first request of a kind also sets up, compiles and
makes one run that is not counted, so that the caller may interleave the runs of several
tools. Errors go to the standard error and end the process.
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
# Of gradients: the pulse's width over its frequency, where the dipole and the observed
# line or plane are along x, and how long the latter is along the other axes.
BAND = 0.4
SOURCE, OBSERVED, LENGTH = 1 / 5, 4 / 5, 1 / 2

# A run does all steps from zero fields and returns when they are done. What a script
# prepares is a run, the seconds spent compiling (`None` where the first run compiles)
# and, if it has any, further entries of the answer.
Prepare = Callable[..., tuple]


def peak_mb() -> float:
    """Returns the largest resident memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(run: Callable[[], object]) -> float:
    """Returns the seconds that a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def serve(
    tool: str, version: str, prepare: Prepare, gradient: Prepare | None = None
) -> None:
    """Answers requests until the input ends.

    Args:
        tool: Name of the tool.
        version: Its version.
        prepare: Sets a case up, given case, n and steps.
        gradient: Sets a gradient up, given design and method too; `None` if the tool
            has none.
    """
    # Some tools print to the C standard output; the answers need it for themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    ready, best = {}, {}
    print(json.dumps({"tool": tool, "version": version}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        key = tuple(request.values())
        if key not in ready:
            start = time.perf_counter()
            make = gradient if "design" in request else prepare
            run, compile_s, *more = make(**request)
            setup_s = time.perf_counter() - start - (compile_s or 0.0)
            ready[key] = run, compile_s, setup_s, dict(*more), timed(run)
            best[key] = math.inf
        run, compile_s, setup_s, more, first = ready[key]
        seconds = timed(run)
        best[key] = min(best[key], seconds)
        if compile_s is None:  # then it is what the first run took longer
            compile_s = max(first - best[key], 0.0)
        answer = {
            "seconds": seconds,
            "compile_s": compile_s,
            "setup_s": setup_s,
            "peak_mb": peak_mb(),
            **more,
        }
        print(json.dumps(answer), file=answers, flush=True)
