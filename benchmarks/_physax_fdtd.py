"""physax's side of `benchmarks.fdtd`: the public `em.simulate` on the workloads."""

import dataclasses
import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from physax import em
from physax.grid import Grid, Layout
from physax.units import MICRO, NANO, SPEED_OF_LIGHT

from ._physax_gradient import objective
from ._rows import OURS, ours_version
from .peers._gradient import differentiated
from .peers._protocol import serve


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A compiled workload.

    Attributes:
        run: Makes all steps from zero fields, waits for them, returns the seconds.
        compile_s: Seconds that XLA took.
        temp_bytes: Temporary memory of the compiled program.
        state_bytes: Size of the state that the loop carries.
    """

    run: Callable[[], float]
    compile_s: float
    temp_bytes: int
    state_bytes: int


def physax_runner(
    case: str,
    n: int,
    steps: int,
    *,
    monitors: bool = False,
    layout: Layout | None = None,
) -> Prepared:
    """Compiles a workload of `peers/_protocol.py`.

    Float32, cells of 50 nm, a CPML of 10 cells on all faces inside the n cells, Courant
    number 0.5 of the cell's own, permittivity uniform in [1, 4) and random per cell
    (`numpy.random.default_rng(0)`), dipole Ez at the centre.

    Args:
        case: `"2d"` (Ez, n x n) or `"3d"` (n x n x n).
        n: Cells along an edge.
        steps: Time steps.
        monitors: Whether a mode source takes the dipole's place and two DFT monitors
            record 20 frequencies each.
        layout: How devices cut the grid.
    """
    sim = workload(case, n, steps, monitors=monitors)
    began = time.perf_counter()
    simulate = partial(em.simulate, layout=layout)
    compiled = jax.jit(simulate).lower(sim).compile()
    compile_s = time.perf_counter() - began

    def run() -> float:
        clock = time.perf_counter()
        jax.block_until_ready(simulate(sim))
        return time.perf_counter() - clock

    run()
    temp = temporary_bytes(compiled)
    return Prepared(run, compile_s, temp, em.state_bytes(sim))


def physax_advance(case: str, n: int, steps: int) -> Prepared:
    """Compiles the same workload as `advance` with its state donated."""
    sim = workload(case, n, steps, monitors=False)
    bounds = jnp.int32(0), jnp.int32(steps)
    state = em.initial_state(sim)
    began = time.perf_counter()
    compiled = em.advance.lower(sim, state, *bounds).compile()
    compile_s = time.perf_counter() - began

    def run() -> float:
        state = jax.block_until_ready(em.initial_state(sim))
        clock = time.perf_counter()
        jax.block_until_ready(em.advance(sim, state, *bounds))
        return time.perf_counter() - clock

    temp = temporary_bytes(compiled)
    return Prepared(run, compile_s, temp, em.state_bytes(sim))


def least_bytes(case: str, n: int) -> float:
    """Returns the bytes of memory that a step has to move for each cell.

    Each half reads all fields and writes its own, the electric one reads the
    permittivity, and the memory of the layers is read and written once.
    """
    sim = workload(case, n, 1, monitors=False)
    cells, item = n**sim.grid.ndim, jnp.dtype(sim.precision.storage).itemsize
    fields = len(sim.components.names) * item
    layers = em.state_bytes(sim) / cells - fields
    return 3 * fields + item + 2 * layers


def temporary_bytes(compiled) -> int:
    """Returns the temporary memory of a compiled program."""
    return compiled.memory_analysis().temp_size_in_bytes


def workload(case: str, n: int, steps: int, *, monitors: bool) -> em.Simulation:
    """Builds the simulation of a workload."""
    ndim, cell = int(case[0]), 50 * NANO
    grid = Grid.centred((n,) * ndim, cell)
    epsilon = np.random.default_rng(0).uniform(1, 4, (n,) * ndim).astype(np.float32)
    frequency = SPEED_OF_LIGHT / (1 * MICRO)
    pulse = em.GaussianPulse(frequency, frequency / 10)
    sources: dict = {
        "dipole": em.Dipole(component="Ez", position=(0.0,) * ndim, pulse=pulse)
    }
    watched = {}
    half = n * cell / 2
    if monitors:
        port = em.Port((-half / 2, 0.0), 4 * MICRO, "+x")
        sources = {"mode": em.ModeSource(port=port, pulse=pulse)}
        band = frequency * np.linspace(0.9, 1.1, 20, dtype=np.float32)
        watched = {
            str(x): em.FieldMonitor(
                components=("Ez", "Hy"),
                centre=(x * half, 0.0),
                size=(0.0, half),
                frequencies=jnp.asarray(band),
            )
            for x in (0.0, 0.5)
        }
    return em.Simulation(
        grid,
        em.Medium(permittivity=jnp.asarray(epsilon)),
        em.Boundaries.all(em.CPML(10)),
        sources=sources,
        monitors=watched,
        dt=0.5 * cell / SPEED_OF_LIGHT,
        steps=steps,
        polarisation="Ez" if ndim == 2 else None,
    )


def prepare(case: str, n: int, steps: int):
    """Answers the protocol of the peers, from a process like theirs."""
    prepared = physax_runner(case, n, steps)
    return prepared.run, prepared.compile_s


if __name__ == "__main__":
    serve(OURS, ours_version(), prepare, differentiated(objective))
