"""fdtdx: JAX, float32, its CPML; a 2-D case is one periodic cell along z."""

from importlib.metadata import version

import fdtdx
import jax
import jax.numpy as jnp

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
    timed,
)


PERIODIC_Z = {"min_z": "periodic", "max_z": "periodic"}
WAVE = fdtdx.WaveCharacter(wavelength=WAVELENGTH)


def scene(case: str, n: int, steps: int, add, gradient=None):
    """Places vacuum and what `add` puts into it.

    Args:
        case: `"2d"` or `"3d"`.
        n: Cells along an edge.
        steps: Time steps.
        add: Given the volume, returns objects and their constraints.
        gradient: Its gradient configuration.

    Returns:
        Its arrays, objects and configuration.
    """
    config = fdtdx.SimulationConfig(
        time=1e-15,
        grid=fdtdx.UniformGrid(spacing=DX),
        courant_factor=0.99,
        gradient_config=gradient,
    )
    config = config.aset("time", steps * config.time_step_duration)
    volume = fdtdx.SimulationVolume(partial_grid_shape=(n, n, n if case == "3d" else 1))
    layers = fdtdx.BoundaryConfig.from_uniform_bound(
        thickness=LAYER, override_types=None if case == "3d" else PERIODIC_Z
    )
    boundaries, constraints = fdtdx.boundary_objects_from_config(layers, volume)
    added, where = add(volume)
    objects, arrays, parameters, config, _ = fdtdx.place_objects(
        [volume, *boundaries.values(), *added], config, [*constraints, *where]
    )
    arrays, objects, _ = fdtdx.apply_params(arrays, objects, parameters)
    if config.time_steps_total != steps:
        raise ValueError(f"fdtdx makes {config.time_steps_total} steps, not {steps}")
    return arrays, objects, config


def prepare(case: str, n: int, steps: int):
    """Compiles vacuum with a dipole along z at the centre."""

    def add(volume):
        dipole = fdtdx.PointDipoleSource(
            partial_grid_shape=(1, 1, 1), wave_character=WAVE, polarization=2
        )
        return [dipole], [dipole.place_at_center(volume)]

    arrays, objects, config = scene(case, n, steps, add)

    @jax.jit
    def simulate(arrays):
        return fdtdx.run_fdtd(arrays, objects, config, show_progress=False)[1].fields

    lowered = simulate.lower(arrays)
    box = []
    compile_s = timed(lambda: box.append(lowered.compile()))
    return lambda: jax.block_until_ready(box[0](arrays)), compile_s


def objective(case: str, n: int, steps: int, design: int, method: str):
    """Makes the objective of `_gradient.py`.

    The reversible method records the faces of its layers at every step, uncompressed:
    what it makes of fewer or rounded records is no gradient here.
    """

    def add(volume):
        spectrum = fdtdx.WaveCharacter(frequency=BAND * LIGHT_SPEED / WAVELENGTH)
        dipole = fdtdx.PointDipoleSource(
            partial_grid_shape=(1, 1, 1),
            wave_character=WAVE,
            polarization=2,
            temporal_profile=fdtdx.GaussianPulseProfile(
                center_wave=WAVE, spectral_width=spectrum
            ),
        )
        length = round(LENGTH * n)
        detector = fdtdx.PhasorDetector(
            name="observed",
            partial_grid_shape=(1, length, length if case == "3d" else 1),
            wave_characters=(WAVE,),
            components=("Ez",),
            exact_interpolation=False,
            scaling_mode="pulse",
            plot=False,
        )
        placed = {SOURCE: dipole, OBSERVED: detector}
        where = [
            constraint
            for x, thing in placed.items()
            for constraint in (
                thing.place_at_center(volume, axes=(1, 2)),
                thing.set_grid_coordinates(0, "-", round(x * n)),
            )
        ]
        return list(placed.values()), where

    gradient = None
    if method != FORWARD:
        every = fdtdx.LinearReconstructEveryK(k=1)
        gradient = fdtdx.GradientConfig(
            method=method, recorder=fdtdx.Recorder(modules=[every])
        )
    arrays, objects, config = scene(case, n, steps, add, gradient)
    vacuum = arrays.inv_permittivities
    cells = (slice(None), *block(case, n, design))

    def value(permittivity):
        inverse = vacuum.at[cells].set((1 / permittivity).reshape(vacuum[cells].shape))
        start = arrays.aset("inv_permittivities", inverse)
        out = fdtdx.run_fdtd(start, objects, config, show_progress=False)[1]
        return jnp.sum(jnp.abs(out.detector_states["observed"]["phasor"]) ** 2)

    return value


if __name__ == "__main__":
    serve("fdtdx", version("fdtdx"), prepare, differentiated(objective))
