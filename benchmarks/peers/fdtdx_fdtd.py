"""fdtdx: JAX, float32, its CPML; a 2-D case is one periodic cell along z."""

from importlib.metadata import version

import fdtdx
import jax

from benchmarks.peers._protocol import DX, LAYER, WAVELENGTH, serve, timed


PERIODIC_Z = {"min_z": "periodic", "max_z": "periodic"}


def prepare(case: str, n: int, steps: int):
    """Compiles vacuum with a dipole along z at the centre."""
    grid = (n, n, n if case == "3d" else 1)
    config = fdtdx.SimulationConfig(
        time=1e-15, grid=fdtdx.UniformGrid(spacing=DX), courant_factor=0.99
    )
    config = config.aset("time", steps * config.time_step_duration)
    volume = fdtdx.SimulationVolume(partial_grid_shape=grid)
    layers = fdtdx.BoundaryConfig.from_uniform_bound(
        thickness=LAYER, override_types=None if case == "3d" else PERIODIC_Z
    )
    boundaries, constraints = fdtdx.boundary_objects_from_config(layers, volume)
    dipole = fdtdx.PointDipoleSource(
        partial_grid_shape=(1, 1, 1),
        wave_character=fdtdx.WaveCharacter(wavelength=WAVELENGTH),
        polarization=2,
    )
    constraints = [*constraints, dipole.place_at_center(volume)]
    objects, arrays, parameters, config, _ = fdtdx.place_objects(
        [volume, *boundaries.values(), dipole], config, constraints
    )
    arrays, objects, _ = fdtdx.apply_params(arrays, objects, parameters)
    if config.time_steps_total != steps:
        raise ValueError(f"fdtdx makes {config.time_steps_total} steps, not {steps}")

    @jax.jit
    def simulate(arrays):
        return fdtdx.run_fdtd(arrays, objects, config, show_progress=False)[1].fields

    lowered = simulate.lower(arrays)
    box = []
    compile_s = timed(lambda: box.append(lowered.compile()))
    return lambda: jax.block_until_ready(box[0](arrays)), compile_s


if __name__ == "__main__":
    serve("fdtdx", version("fdtdx"), prepare)
