"""A driven run of light for tests that kill its process: `driven_light.py FOLDER STOP`.

Prints a line when it begins, and at the end its status and the digest of its state.
"""

import sys

from physax import em
from physax.grid import Grid
from physax.runtime import Checkpointing, RunError, fingerprint


CELL = 20e-9


def light(steps):
    """A dipole in a closed box with a lossy medium: fields that never settle."""
    return em.Simulation(
        Grid.uniform((200, 200), CELL),
        em.Medium(2.0),
        em.Boundaries(x=em.CPML(10)),
        sources={
            "in": em.Dipole(
                "Ez", (100 * CELL, 90 * CELL), em.ContinuousWave(2e14), 1e-6
            )
        },
        monitors={"out": em.FieldMonitor(("Ez",), (2e-6, 2e-6), (1e-6, 1e-6), 2e14)},
        polarisation="Ez",
        steps=steps,
    )


def main(folder, stop):
    started = False

    def on_chunk(step, state, info):
        nonlocal started
        if not started:
            print("started", flush=True)
            started = True

    try:
        result = em.run(
            light(int(stop)),
            chunk=20,
            checkpoint=Checkpointing(folder, 40),
            progress=False,
            on_chunk=on_chunk,
        )
    except RunError as error:
        print(error.status.name, flush=True)
        return
    print(result.drive.status.name, fingerprint(result.state).digest, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
