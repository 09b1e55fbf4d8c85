"""Makes a data set: light through many random gratings, on all devices.

`python -m examples.fdtd_dataset [--samples N] [--batch N] [--seed N] [--out FOLDER]`
draws the widths of ten blocks in a waveguide, simulates them in batches that are spread
over all devices of all processes, and writes `dataset.h5`: the complex transmission of
each grating at thirteen wavelengths. Sample `i` is drawn from the seed and `i` alone.
Kill it at any time and start it again: it goes on with the next batch, and the file
will be the same. `physax launch -n 2 -- examples/fdtd_dataset.py` shares the work of
one data set between two processes.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import h5py
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Complex, Float, Int

from physax import PhysaxError, em, runtime
from physax.grid import Grid
from physax.units import MICRO, NANO, SPEED_OF_LIGHT, TERA


CORE = 6.0  # relative permittivity
LAYER, PORT, OFFSET, MARGIN = 8, 12, 3, 20  # cells; places from the ends
LINE = 1.4 * MICRO  # what is between the layers at the sides


class Grating(eqx.Module):
    """A waveguide of permittivity 6 in air, interrupted by blocks of other widths.

    Attributes:
        blocks: How many.
        length: Of a block along the guide, in metres.
        narrowest: Least width of a block, in metres.
        widest: Largest width.
        guide: Width of the guide on both sides, in metres.
        wavelengths: In vacuum, in metres.
        cell: Size of a grid cell, in metres; a divisor of `length`.
        path: How far a run goes on, in metres, of which each step makes a cell.
    """

    blocks: int = eqx.field(static=True, default=10)
    length: float = eqx.field(static=True, default=200 * NANO)
    narrowest: float = eqx.field(static=True, default=200 * NANO)
    widest: float = eqx.field(static=True, default=600 * NANO)
    guide: float = eqx.field(static=True, default=400 * NANO)
    wavelengths: tuple[float, ...] = eqx.field(
        static=True, default=tuple(nm * NANO for nm in range(1400, 1701, 25))
    )
    cell: float = eqx.field(static=True, default=50 * NANO)
    path: float = eqx.field(static=True, default=60 * MICRO)

    def cells(self, length: float) -> int:
        """Returns a length in cells."""
        return round(length / self.cell)


def permittivity(
    grating: Grating, widths: Float[Array, " blocks"]
) -> Float[Array, "x y"]:
    """Returns the relative permittivity of each cell; cells on an edge are mixed."""
    beside = jnp.full(MARGIN, grating.guide)
    inside = jnp.repeat(widths, grating.cells(grating.length))
    line = jnp.concatenate([beside, inside, beside])
    rows = np.arange(2 * LAYER + grating.cells(LINE)) + 0.5
    away = np.abs(rows - rows.size / 2)
    filled = jnp.clip(line[:, None] / (2 * grating.cell) - away + 0.5, 0, 1)
    return 1 + (CORE - 1) * filled


def transmission(
    grating: Grating, widths: Float[Array, " blocks"]
) -> tuple[Complex[Array, " wavelengths"], Float[Array, ""]]:
    """Simulates one grating.

    Args:
        grating: What is the same for all.
        widths: Of its blocks, in metres.

    Returns:
        The S-parameter from the first end to the second, and the energy that was left
        at the end of the run, over its largest value.
    """
    filled, cell = permittivity(grating, widths), grating.cell
    nx, ny = filled.shape
    sim = em.Simulation(
        Grid.uniform((nx, ny), cell),
        em.Medium(filled),
        em.Boundaries.all(em.CPML(LAYER)),
        polarisation="Ez",
        steps=grating.cells(grating.path),
    )
    ports = {
        name: em.Port((x * cell, ny * cell / 2), LINE, way, offset=OFFSET * cell)
        for name, x, way in (("in", PORT, "+x"), ("out", nx - PORT, "-x"))
    }
    waves = np.asarray(grating.wavelengths)
    # Twice as broad as the band needs, and so over in half the time.
    pulse = em.GaussianPulse(
        frequency=SPEED_OF_LIGHT / np.mean(waves), bandwidth=40 * TERA
    )
    found = em.s_parameters(sim, ports, waves, inputs=["in"], pulse=pulse)
    return found("out", "in"), found.results["in"].residual


class Rows(NamedTuple):
    """What is stored of all samples, done or not.

    Attributes:
        widths: Of the blocks, in metres.
        transmission: Amplitude at the far end over that which came in.
        residual: Energy left when the run ended, over its largest value.
    """

    widths: Float[Array, "samples blocks"]
    transmission: Complex[Array, "samples wavelengths"]
    residual: Float[Array, " samples"]


def sample(grating: Grating, seed: Int[Array, ""], number: Int[Array, ""]) -> Rows:
    """Draws one grating from the seed and its number, and simulates it."""
    key = jax.random.fold_in(jax.random.key(seed), number)
    low, high = grating.narrowest, grating.widest
    widths = jax.random.uniform(key, (grating.blocks,), minval=low, maxval=high)
    return Rows(widths, *transmission(grating, widths))


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=4)
def advance(
    grating: Grating,
    batch: int,
    mesh: Mesh,
    seed: Int[Array, ""],
    rows: Rows,
    start: Int[Array, ""],
    stop: Int[Array, ""],
) -> Rows:
    """Fills in the samples from `start` to `stop`, at most `batch` of them."""
    numbers = start + jnp.arange(batch)
    found = jax.shard_map(
        jax.vmap(partial(sample, grating, seed)),
        mesh=mesh,
        in_specs=PartitionSpec("x"),
        out_specs=PartitionSpec("x"),
        check_vma=False,
    )(numbers)
    # Each device keeps all rows: they are few, and process 0 stores them.
    whole = NamedSharding(mesh, PartitionSpec())
    found = jax.lax.with_sharding_constraint(found, whole)
    places = jnp.where(numbers < stop, numbers, len(rows.residual))
    return jax.tree.map(
        lambda old, new: old.at[places].set(new, mode="drop"), rows, found
    )


def generate(
    grating: Grating,
    folder: Path,
    samples: int,
    batch: int,
    seed: int,
    mesh: Mesh | None = None,
) -> runtime.DriveResult:
    """Computes a data set, or what is missing of it, and writes it.

    Args:
        grating: What is the same for all samples.
        folder: Where to; the file is `dataset.h5`, beside it lie checkpoints.
        samples: How many.
        batch: How many at once, on all devices together; rounded up to fill them.
        seed: Where the widths come from.
        mesh: The devices; by default all.

    Returns:
        How it went; nothing is written if the status is `INTERRUPTED`.

    Raises:
        CheckpointError: If the folder belongs to other options, or cannot be written.
    """
    mesh = runtime.mesh() if mesh is None else mesh
    batch = runtime.round_up(batch, mesh.size)
    whole, count = NamedSharding(mesh, PartitionSpec()), len(grating.wavelengths)
    rows = Rows(
        jnp.zeros((samples, grating.blocks), device=whole),
        jnp.zeros((samples, count), complex, device=whole),
        jnp.zeros(samples, device=whole),
    )
    mark = runtime.fingerprint(
        (grating, sample, transmission, permittivity),
        seed=seed,
        samples=samples,
        precision=rows.widths.dtype.name,
    )
    result = runtime.drive(
        partial(advance, grating, batch, mesh, jnp.asarray(seed)),
        rows,
        stop=samples,
        chunk=batch,
        checkpoint=runtime.Checkpointing(
            folder / "checkpoints", every=batch, fingerprint=mark
        ),
        progress=runtime.Progress("data set"),
    )
    runtime.raise_for(result.status, result.detail)
    if jax.process_index() == 0:
        write(folder / "dataset.h5", grating, result.state, seed)
    return result


def write(path: Path, grating: Grating, rows: Rows, seed: int) -> None:
    """Writes a data set as one HDF5 file, whole or not at all."""
    arrays = {
        "widths": (rows.widths, "m", "width of each block, in the order of the light"),
        "transmission": (
            rows.transmission,
            "1",
            "amplitude of the mode that leaves over that which enters; exp(-i w t)",
        ),
        "residual": (rows.residual, "1", "energy left in the end over its maximum"),
        "wavelengths": (np.asarray(grating.wavelengths), "m", "in vacuum"),
    }
    draft = path.with_suffix(".tmp")
    with h5py.File(draft, "w") as file:
        file.attrs["description"] = "2-D FDTD of random gratings in a waveguide, Ez"
        file.attrs["seed"] = seed
        file.attrs["permittivity"] = CORE
        for name in ("length", "narrowest", "widest", "guide", "cell", "path"):
            file.attrs[f"{name} (m)"] = getattr(grating, name)
        for name, (values, units, description) in arrays.items():
            made = file.create_dataset(name, data=np.asarray(values))
            made.attrs.update(units=units, description=description)
    draft.replace(path)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64, help="on all devices together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--cell", type=int, default=50, choices=(25, 50, 100), help="nm"
    )
    parser.add_argument("--out", type=Path, default=Path("output/gratings"))
    chosen = parser.parse_args(arguments)
    for name, least in {"samples": 1, "batch": 1, "seed": 0}.items():
        if not least <= getattr(chosen, name) < 2**31:
            parser.error(
                f"--{name} must be at least {least} and less than 2^31, but is "
                f"{getattr(chosen, name)}."
            )
    me = runtime.initialize()
    grating = Grating(cell=chosen.cell * NANO)
    try:
        result = generate(
            grating, chosen.out, chosen.samples, chosen.batch, chosen.seed
        )
    except runtime.RunError as error:
        # With 4 a job asks to be queued again: see the guide to clusters.
        interrupted = error.status is runtime.Status.INTERRUPTED
        sys.exit(4 if interrupted else str(error))
    except PhysaxError as error:
        sys.exit(str(error))
    if me.first:
        print(
            f"{chosen.samples} samples, {chosen.samples - result.first_step} of them "
            f"now, in {result.seconds:.0f} s on {len(runtime.devices())} devices; at "
            f"most {float(np.max(result.state.residual)):.0e} of the light was left"
        )
        print(f"wrote {chosen.out / 'dataset.h5'}")


if __name__ == "__main__":
    main()
