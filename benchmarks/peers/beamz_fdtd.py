"""beamz: JAX, float32, its CPML."""

from importlib.metadata import version

import beamz as bz
import jax
import numpy as np

from benchmarks.peers._protocol import DX, LAYER, LIGHT_SPEED, WAVELENGTH, serve


def prepare(case: str, n: int, steps: int):
    """Sets up vacuum with a narrow Gaussian source at the centre."""
    dimensions = int(case[0])
    size = n * DX
    time = 0.5 * DX / LIGHT_SPEED * np.arange(steps + 1)
    source = bz.GaussianSource(
        position=(0.0,) * dimensions,  # of a `domain` the origin is the centre
        width=DX,
        signal=np.sin(2 * np.pi * LIGHT_SPEED / WAVELENGTH * time),
    )
    simulation = bz.Simulation(
        domain=(size,) * dimensions,
        sources=[source],
        boundaries=[bz.PML(thickness=LAYER * DX, formulation="cpml")],
        resolution=DX,
        time=time,
        polarization="tm",
    )
    initial = simulation.initial_state()

    def run():
        out = simulation.advance(state=initial, num_steps=steps, performance=False)
        return jax.block_until_ready(out.state)

    return run, None


if __name__ == "__main__":
    serve("beamz", version("beamz"), prepare)
