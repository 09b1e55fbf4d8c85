"""What the process of a tool says: one JSON line per request, one run per line.

The process first writes `{"tool": ..., "version": ...}`, then answers each request (the
arguments of what it prepares) with `{"seconds", "peak_mb", "values"}`. Memory counts
from what the process had when the data were there. Errors go to standard error and
end the process.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence


def resident_mb() -> float:
    """Returns the memory of this process now, in MiB."""
    with open("/proc/self/status") as status:
        words = status.read().split()
    return int(words[words.index("VmRSS:") + 1]) / 1024


def serve(
    tool: str, version: str, prepare: Callable[..., Callable[[], Sequence[float]]]
) -> None:
    """Answers requests until the input ends.

    Args:
        tool: Name of the tool.
        version: Its version.
        prepare: Takes a request to a run, which returns the numbers it found.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # What tools print must not get between the answers.
    os.dup2(2, 1)
    print(json.dumps({"tool": tool, "version": version}), file=answers, flush=True)
    last, run, before = None, None, 0.0
    for line in sys.stdin:
        request = json.loads(line)
        if request != last:
            run, last, before = prepare(**request), request, resident_mb()
        assert run is not None
        start = time.perf_counter()
        values = [float(value) for value in run()]
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        answer = {"seconds": seconds, "peak_mb": peak - before, "values": values}
        print(json.dumps(answer), file=answers, flush=True)
