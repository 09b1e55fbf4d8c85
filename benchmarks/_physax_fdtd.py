"""physax's side of `benchmarks.fdtd`: the public `em.simulate` on the workloads."""

import dataclasses
from collections.abc import Callable

from ._rows import OURS, ours_version
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


def physax_runner(case: str, n: int, steps: int, *, monitors: bool = False) -> Prepared:
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
    """
    raise NotImplementedError("physax's FDTD is not measured yet")


def physax_advance(case: str, n: int, steps: int) -> Prepared:
    """Compiles the same workload as `advance` with its state donated."""
    raise NotImplementedError("physax's FDTD is not measured yet")


def prepare(case: str, n: int, steps: int):
    """Answers the protocol of the peers, from a process like theirs."""
    prepared = physax_runner(case, n, steps)
    return prepared.run, prepared.compile_s


if __name__ == "__main__":
    serve(OURS, ours_version(), prepare)
