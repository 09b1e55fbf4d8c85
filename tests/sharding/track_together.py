"""One of some processes that track together: `track_together FILE`."""

import json
import sys

import jax


jax.config.update("jax_enable_x64", True)

from physax import runtime  # noqa: E402


me = runtime.initialize()

from physax.io import TrackFile  # noqa: E402
from physax.particles import run  # noqa: E402
from tests.particles.flows import gridded_gyre, seeds  # noqa: E402
from tests.sharding.test_particles_sharding import COUNT, OPTIONS, TIMES  # noqa: E402


sink = TrackFile(sys.argv[1], TIMES.size, COUNT, 2, "float64")
found = run(
    gridded_gyre(nodes=8),
    seeds(COUNT),
    TIMES,
    mesh=runtime.mesh(me.count),
    sink=sink,
    progress=False,
    **OPTIONS,
)
print(json.dumps(found.drive.step))
