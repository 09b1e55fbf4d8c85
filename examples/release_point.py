"""Finds where to release a float so that a flow brings it to a target, by gradient.

`python -m examples.release_point [--steps N] [--output FOLDER]` starts from a guess in
the double gyre, minimises the distance from the target after 8 time units with Adam,
also finds the strength of the flow that reaches the target from the guess, and saves
`release_point.png`.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jaxtyping import Array, Float

from physax import plot
from physax.particles import track

from .double_gyre_ftle import gyre


DURATION, STEPS = 8.0, 160
GUESS, TARGET = np.array([0.6, 0.35]), np.array([0.75, 0.6])


def distance(place: Float[Array, " 2"], strength: Float[Array, ""]) -> Float[Array, ""]:
    """Returns the distance of a float from the target at the end.

    Args:
        place: Where it is released.
        strength: By which the flow is multiplied.
    """
    ends = track(
        lambda t, x: strength * gyre(t, x),
        place[None],
        np.array([0.0, DURATION]),
        steps=STEPS,
    ).positions[-1, 0]
    return jnp.linalg.norm(ends - TARGET)


def descend(function, start, steps: int, rate: float) -> tuple[Array, list[float]]:
    """Minimises a function with Adam; returns the best argument and the history."""
    slope = jax.jit(jax.value_and_grad(function))
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))
    x = jnp.asarray(start, jnp.result_type(float))
    state, best, course = optimiser.init(x), x, []
    for _ in range(steps):
        value, gradient = slope(x)
        if not course or value < min(course):
            best = x
        course.append(float(value))
        update, state = optimiser.update(gradient, state)
        x = jnp.asarray(optax.apply_updates(x, update))
    return best, course


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--output", type=Path, default=Path("."))
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    one = jnp.asarray(1.0)
    place, course = descend(lambda p: distance(p, one), GUESS, options.steps, 0.03)
    print(
        f"released at ({place[0]:.4f}, {place[1]:.4f}) instead of ({GUESS[0]}, "
        f"{GUESS[1]}): {min(course):.1e} from the target instead of {course[0]:.2f}"
    )
    guess = jnp.asarray(GUESS)
    strength, made = descend(lambda s: distance(guess, s), 1.0, options.steps, 0.01)
    print(f"or a flow {float(strength):.3f} times as strong: {min(made):.2f} instead")

    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    both = jnp.stack([guess, place])
    tracks = track(gyre, both, np.linspace(0, DURATION, 161))
    plot.tracks(tracks, axes=axes)
    axes.plot(*TARGET, "k*", markersize=14, label="target")
    axes.plot(*np.asarray(both).T, "ks", fillstyle="none", label="released")
    axes.set_xlim(0, 2)
    axes.set_ylim(0, 1)
    axes.legend(loc="upper right")
    figure.savefig(options.output / "release_point.png", dpi=150)
    print(f"wrote {options.output / 'release_point.png'}")


if __name__ == "__main__":
    main()
