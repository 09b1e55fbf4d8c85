"""A step in cylindrical coordinates beside steps in 2-D, their runs interleaved.

`python -m benchmarks.cylindrical [--json FILE] [--quick]` steps a random permittivity
with layers on all open faces: the six components of m = 3, and on as many cells the
three of Ez and of Hz, which together are as many. It compares the least times of a
step: with the two runs in 2-D one after the other, and step by step in turn, so that
as many values wait in the cache as around an axis.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from physax import em
from physax.grid import Grid

from ._command import Command
from ._rows import OURS, Row, console, ours_version, report
from ._turns import least_seconds


CELL = 20e-9
# Cells along an edge, steps.
WORKLOADS, QUICK = [(500, 400), (1000, 200)], [(40, 4)]


def simulation(kind: str, cells: int, steps: int) -> em.Simulation:
    """Returns a run of the kind `"Ez"`, `"Hz"` or `"rz"`."""
    shape, middle = (cells, cells), (cells * CELL / 2,) * 2
    eps = np.random.default_rng(0).uniform(1, 4, shape)
    layer, ring = em.CPML(10), kind == "rz"
    pulse = em.GaussianPulse(3e14, 1e14)
    return em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(jnp.asarray(eps, jnp.float32)),
        em.Boundaries(r=layer, z=layer) if ring else em.Boundaries.all(layer),
        polarisation=None if ring else kind,
        cylindrical=em.Cylindrical(m=3) if ring else None,
        steps=steps,
        sources={
            "in": em.Dipole(
                component="Ez" if ring else kind, position=middle, pulse=pulse
            )
        },
    )


@jax.jit
def alternating(sims: list[em.Simulation]) -> list:
    """Returns the last fields of runs that make their steps in turn."""

    def one(n, states):
        pairs = zip(sims, states, strict=True)
        return [em.advance(sim, state, n, n + 1) for sim, state in pairs]

    states = [em.initial_state(sim) for sim in sims]
    return [state.fields for state in lax.fori_loop(0, sims[0].steps, one, states)]


def costs(cells: int, steps: int, rounds: int) -> list[Row]:
    """Milliseconds of a step of each kind."""
    run = jax.jit(lambda sim: em.simulate(sim).fields)
    sims = {kind: simulation(kind, cells, steps) for kind in ("Ez", "Hz", "rz")}
    runs = {kind: partial(run, sim) for kind, sim in sims.items()}
    runs["in turn"] = partial(alternating, [sims["Ez"], sims["Hz"]])
    spent = least_seconds(runs, rounds)
    least = {kind: seconds / steps * 1e3 for kind, seconds in spent.items()}
    case, version = f"six components, {cells}^2 cells", ours_version()
    ours, rows = least["rz"], []
    for how, flat in (
        ("one after the other", least["Ez"] + least["Hz"]),
        ("in turn", least["in turn"]),
    ):
        own = f"{case}, 2-D {how}"
        rows += [
            Row(own, "Ez and Hz in 2-D", version, flat, "ms", runs=rounds),
            Row(own, OURS, version, ours, "ms", ours / flat, runs=rounds),
        ]
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, (), rounds=8, quick=1)
    options = command.options(arguments)
    rows = []
    for cells, steps in QUICK if options.quick else WORKLOADS:
        rows += costs(cells, steps, options.rounds)
    report(rows, "a step around an axis and in 2-D, float32", options.json)
    console().print(
        "The column '/ best peer' is cylindrical over the sum of both in 2-D: per "
        "component."
    )


if __name__ == "__main__":
    main()
