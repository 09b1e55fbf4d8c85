"""One of two local processes that `benchmarks.scaling` times: link and FDTD steps."""

import json
import sys

from physax import runtime


me = runtime.initialize()

from benchmarks.scaling import seconds_per_step  # noqa: E402


case, n, steps, rounds = sys.argv[1], *map(int, sys.argv[2:])
link = runtime.measure_link(runtime.mesh())
ndim = int(case[0])
spent = seconds_per_step(case, n, steps, (me.count,) + (1,) * (ndim - 1), rounds)
if me.first:
    print(json.dumps({"latency": link.latency, "rate": link.rate, "seconds": spent}))
