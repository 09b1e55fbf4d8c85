"""Meep: float64, one core in Debian's build, a quadratic UPML."""

import math

import meep as mp

from benchmarks.peers._protocol import DX, LAYER, WAVELENGTH, serve


def prepare(case: str, n: int, steps: int):
    """Sets up vacuum with a point source of Ez at the centre."""
    size = mp.Vector3(n, n, n if case == "3d" else 0)  # the cell is the unit of length
    frequency = DX / WAVELENGTH
    simulation = mp.Simulation(
        size,
        1,
        sources=[mp.Source(mp.ContinuousSource(frequency), mp.Ez, mp.Vector3())],
        boundary_layers=[mp.PML(LAYER)],
        Courant=0.5,
        eps_averaging=False,
    )
    simulation.init_sim()
    for _ in range(3):
        simulation.fields.step()

    def run():
        # Meep has no cheap way back to zero fields; a step costs the same anyway.
        for _ in range(steps):
            simulation.fields.step()
        if not math.isfinite(abs(simulation.get_field_point(mp.Ez, mp.Vector3()))):
            raise FloatingPointError("the fields diverged")

    return run, 0.0


if __name__ == "__main__":
    mp.verbosity(0)
    serve("meep", mp.__version__, prepare)
