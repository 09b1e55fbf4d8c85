"""Learns the transmission of gratings, and designs one by the surrogate's gradient.

`python -m examples.fdtd_surrogate [--data FOLDER] [--output FOLDER]` trains a network
on the data of `examples.fdtd_dataset` (makes 400 samples first if there are none) and
compares it with simpler fits on held-out samples. Then its gradient searches
for gratings that pass 1450 nm and stop 1600 nm. There are few samples in that region,
so the results are simulated and learned, too, and the search is repeated. Saves
`fdtd_surrogate.png`.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import h5py
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jaxtyping import Array, ArrayLike, Complex, Float

from physax import design, graph, runtime
from physax.units import NANO

from .fdtd_dataset import Grating, generate, transmission


PASS, STOP = 1450 * NANO, 1600 * NANO
STARTS, MOVE = 32, 60 * NANO  # of the search: its starts, and how far it trusts


class Data(NamedTuple):
    """A data set, or a part of one.

    Attributes:
        widths: Of the blocks of each sample, in metres.
        transmission: Amplitudes.
    """

    widths: Float[np.ndarray, "samples blocks"]
    transmission: Complex[np.ndarray, "samples wavelengths"]


def read(path: Path) -> tuple[Data, Grating]:
    """Reads a data set and the constants shared by its samples."""
    with h5py.File(path) as file:
        arrays = {name: np.asarray(values) for name, values in file.items()}
        lengths = {
            name: float(np.asarray(file.attrs[f"{name} (m)"]))
            for name in ("length", "narrowest", "widest", "guide", "cell", "path")
        }
    widths, waves = arrays["widths"], tuple(arrays["wavelengths"].tolist())
    grating = Grating(widths.shape[1], **lengths, wavelengths=waves)
    return Data(widths, arrays["transmission"]), grating


def held_out(data: Data) -> tuple[Data, Data]:
    """Splits off the last fifth, which is not used for fitting."""
    first = len(data.widths) * 4 // 5
    return Data(*(x[:first] for x in data)), Data(*(x[first:] for x in data))


def network(blocks: int, outputs: int, hidden: tuple[int, ...]) -> graph.Graph:
    """Returns a network and its loss.

    By reciprocity a grating transmits the same in both directions. Both go through
    the same layers, so the network satisfies this exactly.
    """
    layers = graph.MLP(input_size=blocks, hidden_sizes=hidden, output_size=outputs)
    model = graph.Graph() | layers.connect(input="x", output="there", name="layers")
    model |= graph.op(lambda x: x[..., ::-1]).connect(x="x", output="reversed")
    model |= layers.connect(input="reversed", output="back", name="layers")
    model |= graph.op(lambda a, b: (a + b) / 2).connect(a="there", b="back", output="y")
    model |= graph.op(lambda y, z: jnp.mean((y - z) ** 2), label="loss").connect(
        y="y", z="z", output="loss"
    )
    return model.expose("y")


class Surrogate(eqx.Module):
    """A network in place of the solver.

    Attributes:
        program: Takes `x`, widths from -1 to 1, to `y`, real and imaginary parts.
        grating: What it replaces.
    """

    program: graph.Program
    grating: Grating = eqx.field(static=True)

    def __call__(
        self, widths: Float[Array, " blocks"]
    ) -> Complex[Array, " wavelengths"]:
        """Predicts the transmission of one grating."""
        parts = self.program(x=scaled(self.grating, widths))["y"]
        return jax.lax.complex(*jnp.split(parts, 2))


def scaled(grating: Grating, widths: Float[ArrayLike, "*samples blocks"]) -> Array:
    """Returns widths as numbers from -1 to 1."""
    middle = (grating.narrowest + grating.widest) / 2
    return (jnp.asarray(widths) - middle) / (grating.widest - middle)


def split_parts(light: Complex[np.ndarray, "samples wavelengths"]) -> np.ndarray:
    """Returns real parts, followed by imaginary parts."""
    return np.concatenate([np.real(light), np.imag(light)], axis=-1)


def train(
    data: Data,
    grating: Grating,
    *,
    steps: int = 3000,
    batch: int = 100,
    hidden: tuple[int, ...] = (128, 128),
    seed: int = 0,
    progress: bool = True,
) -> Surrogate:
    """Fits a surrogate to a data set, a random part of it in each step.

    Args:
        data: The samples.
        grating: The constants they share.
        steps: Number of steps.
        batch: Samples in a step.
        hidden: Sizes of the hidden layers.
        seed: For the first parameters and the choice of samples.
        progress: Whether progress is shown.
    """
    x, z = scaled(grating, data.widths), jnp.asarray(split_parts(data.transmission))
    start, choice = jax.random.split(jax.random.key(seed))
    model = network(x.shape[1], z.shape[1], hidden)
    shapes = {"x": ("n", x.shape[1]), "z": ("n", z.shape[1])}
    program = graph.compile(model, shapes, start)
    optimiser = optax.adamw(optax.cosine_decay_schedule(3e-3, steps), weight_decay=0.01)

    def one_step(i, state):
        params, memory = state
        picked = jax.random.choice(
            jax.random.fold_in(choice, i), len(x), (min(batch, len(x)),), replace=False
        )
        inputs = {"x": x[picked], "z": z[picked]}
        _, slope = program.evaluate(params, inputs, {"loss": True})
        updates, memory = optimiser.update(slope, memory, params)
        return optax.apply_updates(params, updates), memory

    @partial(jax.jit, donate_argnums=0)
    def advance(state, begin, end):
        return jax.lax.fori_loop(begin, end, one_step, state)

    first = jax.tree.map(jnp.copy, program.params)
    trained = runtime.drive(
        advance,
        (first, optimiser.init(first)),
        stop=steps,
        progress=runtime.Progress("training") if progress else False,
        throw=True,
    )
    # Written for one sample; callers use `vmap` for batches.
    predictor = graph.compile(model, {"x": x.shape[1:]}, discard=("loss",))
    return Surrogate(predictor.with_arrays(trained.state[0], {}), grating)


def predict(surrogate: Surrogate, data: Data) -> np.ndarray:
    """Returns the transmission of all samples by the surrogate."""
    return np.asarray(jax.vmap(surrogate)(jnp.asarray(data.widths)))


def error(found: Complex[np.ndarray, "..."], data: Data, mean) -> float:
    """Returns the deviation from data over that of the mean, as root mean squares."""
    true = data.transmission
    return float(np.linalg.norm(found - true) / np.linalg.norm(mean - true))


def polynomial_fit(data: Data, grating: Grating, widths, degree: int) -> np.ndarray:
    """Fits a linear or quadratic function by least squares and evaluates it."""

    def terms(widths):
        x = np.asarray(scaled(grating, widths))
        found = [np.ones((len(x), 1)), x]
        if degree == 2:
            found += [x[:, i : i + 1] * x[:, i:] for i in range(x.shape[1])]
        return np.concatenate(found, axis=1)

    weights = np.linalg.lstsq(terms(data.widths), data.transmission)[0]
    return terms(widths) @ weights


def contrast(
    light: Complex[Array, "*samples wavelengths"], grating: Grating
) -> Float[Array, "*samples"]:
    """Returns the power transmitted at `PASS` minus that at `STOP`."""
    waves = np.asarray(grating.wavelengths)
    i, j = (int(np.argmin(np.abs(waves - wave))) for wave in (PASS, STOP))
    power = jnp.abs(light) ** 2
    return power[..., i] - power[..., j]


def climbed(surrogate: Surrogate, data: Data) -> Float[Array, "starts blocks"]:
    """Increases the contrast by the surrogate's gradient, from the best known samples.

    Args:
        surrogate: Predicts the contrast.
        data: Provides the starts.

    Returns:
        Widths not far from those of the starts, in metres.
    """
    grating = surrogate.grating
    low, high = grating.narrowest, grating.widest
    known = np.asarray(contrast(jnp.asarray(data.transmission), grating))
    starts = data.widths[np.argsort(known)[-STARTS:]]
    starts = np.clip((starts - low) / (high - low), 0, 1)
    reach = MOVE / (high - low)

    def widths(unit):
        return low + (high - low) * unit

    def worth(unit, strength):
        del strength
        # The starts are independent: each climbs its own hill.
        return jnp.sum(contrast(jax.vmap(surrogate)(widths(unit)), grating))

    found = design.optimise(
        worth,
        jnp.asarray(starts),
        steps=100,
        bounds=tuple(np.ravel(np.clip(starts + d, 0, 1)) for d in (-reach, reach)),
        maximise=True,
        progress=False,
    )
    return widths(found.parameters)


class Round(NamedTuple):
    """The result of one search.

    Attributes:
        promised: The largest contrast, by the surrogate.
        true: The same grating's contrast by FDTD.
        widths: Of its blocks, in metres.
        predicted: Its transmission by the surrogate.
        simulated: By FDTD.
    """

    promised: float
    true: float
    widths: Float[Array, " blocks"]
    predicted: Complex[Array, " wavelengths"]
    simulated: Complex[Array, " wavelengths"]


def search(surrogate: Surrogate, data: Data, rounds: int, **training) -> list[Round]:
    """Searches, simulates the results, learns from them, and searches again.

    Args:
        surrogate: Trained on the data.
        data: The samples.
        rounds: Number of searches.
        **training: Options of `train`.
    """
    grating = surrogate.grating
    simulate = jax.jit(jax.vmap(lambda widths: transmission(grating, widths)[0]))
    found = []
    for number in range(rounds):
        if number:
            surrogate = train(data, grating, **training)
        widths = climbed(surrogate, data)
        predicted, simulated = jax.vmap(surrogate)(widths), simulate(widths)
        promised, true = contrast(predicted, grating), contrast(simulated, grating)
        i = jnp.argmax(promised)
        found.append(
            Round(
                float(promised[i]),
                float(true[i]),
                widths[i],
                predicted[i],
                simulated[i],
            )
        )
        more = Data(np.asarray(widths), np.asarray(simulated))
        data = Data(*map(np.concatenate, zip(data, more, strict=True)))
    return found


def draw(
    surrogate: Surrogate, test: Data, best: np.ndarray, found: list[Round], path: Path
) -> None:
    """Draws predicted over true power, the searches, and spectra of the design."""
    waves = np.asarray(surrogate.grating.wavelengths) / NANO
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    parity, course, spectrum = axes
    parity.plot(
        np.abs(test.transmission).ravel() ** 2,
        np.abs(predict(surrogate, test)).ravel() ** 2,
        ".",
        ms=2,
    )
    parity.axline((1, 1), slope=1, color="k", lw=0.8)
    parity.set_xlabel("transmitted power by FDTD (1)")
    parity.set_ylabel("by the surrogate (1)")
    parity.set_title("held-out samples")
    known = float(contrast(jnp.asarray(best), surrogate.grating))
    numbers = range(1, len(found) + 1)
    course.plot(numbers, [one.promised for one in found], "C0o--")
    course.plot(numbers, [one.true for one in found], "C0o-")
    course.axhline(known, color="C1")
    course.legend(["promised by the surrogate", "by FDTD", "best sample"])
    course.set_xticks(list(numbers))
    course.set_xlabel("search")
    course.set_ylabel("power at 1450 nm less that at 1600 nm (1)")
    spectrum.plot(waves, np.abs(found[-1].predicted) ** 2, "C0--")
    spectrum.plot(waves, np.abs(found[-1].simulated) ** 2, "C0-")
    spectrum.plot(waves, np.abs(best) ** 2, "C1-")
    spectrum.legend(["last design, surrogate", "by FDTD", "best sample, FDTD"])
    for wave in (PASS, STOP):
        spectrum.axvline(wave / NANO, color="0.8", zorder=0)
    spectrum.set_xlabel("wavelength (nm)")
    spectrum.set_ylabel("transmitted power (1)")
    spectrum.set_ylim(0, 1.05)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("output/gratings"))
    parser.add_argument("--steps", type=int, default=3000, help="of the training")
    parser.add_argument("--rounds", type=int, default=5, help="of the search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("output"))
    chosen = parser.parse_args(arguments)
    chosen.output.mkdir(parents=True, exist_ok=True)
    if not (chosen.data / "dataset.h5").exists():
        generate(Grating(), chosen.data, samples=400, batch=64, seed=0)
    data, grating = read(chosen.data / "dataset.h5")
    seen, test = held_out(data)
    surrogate = train(seen, grating, steps=chosen.steps, seed=chosen.seed)
    mean = seen.transmission.mean(axis=0)
    predicted = predict(surrogate, test)
    print(f"error on {len(test.widths)} held-out samples, that of the mean being 1:")
    for degree, name in ((1, "linear"), (2, "quadratic")):
        fitted = polynomial_fit(seen, grating, test.widths, degree)
        print(f"  {name} fit {error(fitted, test, mean):.3f}")
    print(f"  network {error(predicted, test, mean):.3f}")

    found = search(surrogate, seen, chosen.rounds, steps=chosen.steps)
    known = np.asarray(contrast(jnp.asarray(seen.transmission), grating))
    best = seen.transmission[np.argmax(known)]
    print(f"contrast of the best sample: {known.max():.3f}")
    for number, one in enumerate(found, 1):
        print(f"  search {number}: promised {one.promised:.3f}, by FDTD {one.true:.3f}")
    print("widths in nm:", *np.round(np.asarray(found[-1].widths) / NANO).astype(int))
    path = chosen.output / "fdtd_surrogate.png"
    draw(surrogate, test, best, found, path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
