"""beamz: JAX, float32, its CPML."""

from importlib.metadata import version

import beamz as bz
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers._gradient import FORWARD, block, differentiated
from benchmarks.peers._protocol import (
    BAND,
    DX,
    LAYER,
    LENGTH,
    LIGHT_SPEED,
    OBSERVED,
    SOURCE,
    WAVELENGTH,
    serve,
)


FREQUENCY = LIGHT_SPEED / WAVELENGTH
# Its `checkpoint_interval`: 0 keeps every step, `None` takes sqrt(steps).
INTERVALS = {FORWARD: 0, "full trajectory": 0, "sqrt(T) checkpoints": None}


def simulation(case: str, n: int, steps: int, x: float, signal, monitors=()):
    """Sets up vacuum with a narrow Gaussian source on the axis.

    Args:
        case: `"2d"` or `"3d"`.
        n: Cells along an edge.
        steps: Time steps.
        x: Where the source is, as a fraction of the width.
        signal: Function of time in seconds.
        monitors: Its monitors.
    """
    dimensions = int(case[0])
    time = 0.5 * DX / LIGHT_SPEED * np.arange(steps + 1)
    source = bz.GaussianSource(
        # of a `domain` the origin is the centre
        position=((x - 0.5) * n * DX,) + (0.0,) * (dimensions - 1),
        width=DX,
        signal=signal(time),
    )
    return bz.Simulation(
        domain=(n * DX,) * dimensions,
        sources=[source],
        monitors=list(monitors),
        boundaries=[bz.PML(thickness=LAYER * DX, formulation="cpml")],
        resolution=DX,
        time=time,
        polarization="tm",
    )


def wave(t: np.ndarray) -> np.ndarray:
    """Returns a plain wave at the given times."""
    return np.sin(2 * np.pi * FREQUENCY * t)


def prepare(case: str, n: int, steps: int):
    """Sets up vacuum with a source at the centre."""
    vacuum = simulation(case, n, steps, 0.5, wave)
    initial = vacuum.initial_state()

    def run():
        out = vacuum.advance(state=initial, num_steps=steps, performance=False)
        return jax.block_until_ready(out.state)

    return run, None


def pulse(t: np.ndarray) -> np.ndarray:
    """Returns the Gaussian pulse at the given times."""
    tau = 1 / (2 * np.pi * BAND * FREQUENCY)
    u = t - 6 * tau
    return np.exp(-((u / tau) ** 2) / 2) * np.cos(2 * np.pi * FREQUENCY * u)


def objective(case: str, n: int, steps: int, design: int, method: str):
    """Makes the objective of `_gradient.py`; samples of E take their own cell's."""
    middle, size = (0.0,) * (int(case[0]) - 1), n * DX
    monitor = bz.FieldMonitor(
        center=((OBSERVED - 0.5) * size, *middle),
        size=(0.0, *(LENGTH * size for _ in middle)),
        freqs=[FREQUENCY],
        fields=("Ez",),
        name="observed",
    )
    solver = simulation(case, n, steps, SOURCE, pulse, [monitor]).differentiable(
        num_steps=steps, checkpoint_interval=INTERVALS[method]
    )
    vacuum = [jnp.asarray(getattr(solver.program.grid, f"eps_{a}")) for a in "xyz"]
    cells = block(case, n, design)

    def value(permittivity):
        # Its axes run z, y, x; in 2-D the components in the plane are of one cell.
        materials = tuple(
            e.at[cells].set(permittivity.T) if min(e.shape) > 1 else e for e in vacuum
        )
        fields = solver.monitor_fields(solver(materials), "observed")
        return jnp.sum(jnp.abs(fields[2]) ** 2)

    return value


if __name__ == "__main__":
    serve("beamz", version("beamz"), prepare, differentiated(objective))
