"""Designs a lens twice by gradient: by a network, and pixel by pixel.

`python -m examples.neural_design [--steps N] [--seeds N] [--small] [--output FOLDER]`.
Both are one graph: filter, projection, FDTD and the gain in the focus of `metalens`,
at a smaller size. Its input is either a network of Fourier features of the
coordinates, or one number for each cell. Each gets the same number of simulations
from each seed. It prints the results, and saves lenses and a picture.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jaxtyping import Array, Float

from physax import PhysaxWarning, design, graph, io
from physax.graph import MLP, FourierFeatures, Graph, op
from physax.units import MICRO, NANO

from . import lenses, metalens


WIDTH, LENGTH = 6 * MICRO, 150 * NANO  # of the lens; asked of parts and gaps
BINARY = float("inf")
# Fraction of the light's path simulated in the design and for the final figures.
SHORT, LONG = 0.3, 1.0
NAMES = ("network", "pixels")


def small_lens(cell: float) -> lenses.Lens:
    """Returns the lens and its scene, on cells of a width in metres."""
    return lenses.Lens(
        scene=partial(metalens.scene, cell=cell),
        symmetries=(design.Mirror(0),),
        shape=(2 * round(WIDTH / 2 / cell) + 1, round(metalens.THICKNESS / cell)),
        cell=cell,
        length=LENGTH,
    )


@eqx.filter_jit
def intensity(
    lens: lenses.Lens, density: Float[Array, "x y"], part: float
) -> Float[Array, " waves"]:
    """Returns the intensity in the focus, at each wavelength."""
    return lenses.middle(lenses.line(lens.scene(density, part)))


def device(lens: lenses.Lens) -> Graph:
    """Returns the graph from latent density and strength to the lowest gain."""
    alone = intensity(lens, jnp.zeros(lens.shape), LONG)

    def projected(latent, beta):
        return lenses.densities(lens, lambda: latent, beta)[1]

    def gain(density):
        return design.soft_min(intensity(lens, density, SHORT) / alone, 3.0)

    model = Graph() | op(projected).connect(
        latent="latent", beta="beta", output="density"
    )
    model |= op(gain).connect(density="density", output="gain")
    return model.expose("density")


def places(lens: lenses.Lens) -> Float[Array, "x y 1 2"]:
    """Returns where the cells are, in um from the middle of the lens."""
    axes = [(np.arange(n) - (n - 1) / 2) * lens.cell / MICRO for n in lens.shape]
    return jnp.stack(jnp.meshgrid(*map(jnp.asarray, axes), indexing="ij"), axis=-1)


def painted(lens: lenses.Lens, seed: int, width: int = 32) -> graph.Program:
    """Returns the lens whose latent density is a network of the coordinates.

    Args:
        lens: The lens.
        seed: Of weights and wave numbers.
        width: Neurons of a hidden layer.
    """
    # One period in 1 um: two parts and two gaps as wide as the filter makes them.
    model = Graph() | FourierFeatures(count=24, scale=1.0).connect(
        input="places", output="waves"
    )
    model += MLP(
        input_size=48, hidden_sizes=(width,) * 2, output_size=1, activation="silu"
    )
    model += op("squeeze", axis=-1)
    model |= op("sigmoid").connect(x="squeeze", output="latent")
    return graph.compile(
        model
        | device(lens).connect(
            latent="latent", beta="beta", density="density", gain="gain"
        ),
        {"beta": ()},
        jax.random.key(seed),
        graph.Backend(jnp.result_type(float)),
        constants={"places": places(lens)},
    )


def pixelled(lens: lenses.Lens, seed: int) -> graph.Program:
    """Returns the lens with a parameter for each cell, grey with noise."""
    start = design.grey_start(lens.shape, noise=0.05, key=jax.random.key(seed))
    return graph.compile(
        device(lens),
        {"beta": ()},
        backend=graph.Backend(jnp.result_type(float)),
        trainable={"latent": start.values},
    )


def designed(lens: lenses.Lens, program: graph.Program, steps: int) -> dict:
    """Designs a lens from grey to binary.

    Args:
        lens: The lens.
        program: From parameters and strength to density and gain.
        steps: Number of simulations, each with its gradient.

    Returns:
        The gain of each step as `"course"`, its greyness as `"grey"`, the binary
        lens as `"solid"` and its gain at each wavelength as `"gain"`.
    """
    densities = []

    def gain(params, beta):
        made = program.evaluate(params, {"beta": beta})
        return made["gain"], made["density"]

    pixels = set(program.params) == {"latent"}
    result = design.optimise(
        gain,
        program.params,
        steps=steps,
        maximise=True,
        has_aux=True,
        schedule=design.Stages((8, 16, 32, BINARY), every=-(-steps // 5)),
        optimiser=design.MovingAsymptotes(move=0.2) if pixels else optax.adam(0.01),
        bounds=(0.0, 1.0) if pixels else None,
        on_step=lambda info: densities.append(np.asarray(info.aux)),
    )
    course = np.asarray(result.history.objective)
    last = np.isinf(np.asarray(result.history.strength))
    solid = densities[np.argmax(np.where(last, course, 0))] > 0.5
    lit, alone = (
        np.asarray(intensity(lens, jnp.asarray(density, float), LONG))
        for density in (solid, np.zeros(lens.shape))
    )
    return {
        "course": course,
        "grey": np.array(
            [float(design.greyness(jnp.asarray(density))) for density in densities]
        ),
        "solid": solid,
        "gain": lit / alone,
    }


def compared(lens: lenses.Lens, steps: int, seeds: int) -> dict[str, list[dict]]:
    """Designs the lens both ways from each seed; the lists are by seed."""
    found = {name: [] for name in NAMES}
    for seed in range(seeds):
        for name, made in zip(NAMES, (painted, pixelled), strict=True):
            one = designed(lens, made(lens, seed), steps)
            found[name].append(one)
            print(told(name, seed, one, lens.cell))
    return found


def told(name: str, seed: int, made: dict, cell: float) -> str:
    """Describes the result of one design."""
    course = made["course"]
    some = course[:: -(-len(course) // 6)]
    least = design.minimum_length(made["solid"], cell)
    return (
        f"{name}, seed {seed}: gain {' '.join(f'{x:.2f}' for x in some)} ... "
        f"{course[-1]:.2f}, grey {made['grey'][-1]:.3f}; binary at least "
        f"{made['gain'].min():.2f}, solid {least.solid / NANO:.0f} nm, gaps "
        f"{least.void / NANO:.0f} nm"
    )


def draw(lens: lenses.Lens, found: dict[str, list[dict]], path: Path) -> None:
    """Draws the best lens of each kind and the history of all."""
    figure, panels = plt.subplot_mosaic(
        [["network", "course"], ["pixels", "course"]],
        figsize=(9, 3.8),
        layout="constrained",
    )
    half = [n * lens.cell / MICRO / 2 for n in lens.shape]
    box = (-half[0], half[0], 0.0, 2 * half[1])
    for colour, name in zip(("C0", "C1"), NAMES, strict=True):
        best = max(found[name], key=lambda made: made["gain"].min())
        panel = panels[name]
        panel.imshow(best["solid"].T, "gray_r", origin="lower", extent=box)
        panel.set_title(f"{name}: gain at least {best['gain'].min():.2f}")
        panel.set_xlabel("x (um)")
        panel.set_ylabel("y (um)")
        for seed, made in enumerate(found[name]):
            panels["course"].plot(
                made["course"], colour, label=None if seed else name, alpha=0.8
            )
    panels["course"].set_xlabel("iteration (a run of light with gradient)")
    panels["course"].set_ylabel("gain (smooth least of 3 wavelengths)")
    panels["course"].set_ylim(0)
    panels["course"].grid(alpha=0.3)
    panels["course"].legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cells", type=float, default=50, help="their width in nm")
    parser.add_argument("--small", action="store_true", help="10 steps, 100 nm")
    parser.add_argument("--output", type=Path, default=Path("output"))
    chosen = parser.parse_args(arguments)
    chosen.output.mkdir(parents=True, exist_ok=True)
    steps, cell = (10, 100.0) if chosen.small else (chosen.steps, chosen.cells)
    lens = small_lens(cell * NANO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhysaxWarning)  # few cells, lingering light
        found = compared(lens, steps, chosen.seeds)
    path = chosen.output / "neural_design.png"
    draw(lens, found, path)
    last = {
        f"{name}_{key}": made[-1][key]
        for name, made in found.items()
        for key in made[-1]
    }
    io.save_npz(path.with_suffix(".npz"), last)
    print(f"wrote {path} and {path.with_suffix('.npz').name}")


if __name__ == "__main__":
    main()
