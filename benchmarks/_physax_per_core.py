"""The workloads of `benchmarks.fdtd` cut along x over one CPU device per core."""

import os

import jax

from physax.grid import Layout
from physax.runtime import mesh

from ._physax_fdtd import physax_runner
from ._rows import PER_CORE, ours_version
from .peers._protocol import serve


def prepare(case: str, n: int, steps: int):
    """Answers the protocol of the peers."""
    layout = Layout(mesh(), x="x")
    prepared = physax_runner(case, n, steps, layout=layout)
    return prepared.run, prepared.compile_s


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    serve(PER_CORE, ours_version(), prepare)
