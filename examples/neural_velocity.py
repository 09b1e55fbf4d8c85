"""Learns the velocity in a basin from the tracks of drifters, by a small network.

`python -m examples.neural_velocity [--steps N] [--drifters N] [--small] [--output
FOLDER]`. Drifters in the double gyre, a basin of 200 km by 100 km, report positions
once a day, to 300 m. A network gives a stream function that vanishes at the coast, and
is fitted through the tracker: arcs of two days, which must join. It is compared with a
polynomial and with the same network, both fitted to differences of positions. Saves
`neural_velocity.png`.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from physax import design, graph
from physax.graph import MLP, Graph, op
from physax.particles import Box, Hold, seed_random, track

from .double_gyre_ftle import gyre


# Lengths are in units of 100 km, times in days.
DAYS, ARC, NOISE = 10, 2, 0.003
PER_DAY = 2  # steps of the tracker
KM, CM_PER_S = 100.0, 1e7 / 86_400
TITLES = {
    "tracked": "network through the tracker",
    "differences": "network by differences",
    "polynomial": "polynomial by differences",
}


class Drifters(NamedTuple):
    """The reports of drifters.

    Attributes:
        times: In days.
        positions: In 100 km, with noise.
        truth: Without.
    """

    times: Float[Array, " times"]
    positions: Float[Array, "times drifters 2"]
    truth: Float[Array, "times drifters 2"]


def released(count: int, seed: int) -> Drifters:
    """Follows drifters from random positions through the double gyre.

    Args:
        count: Number of drifters.
        seed: Of positions and noise.
    """
    place, noise = jax.random.split(jax.random.key(seed))
    times = jnp.arange(DAYS + 1.0)
    seeds = seed_random(place, (0.02, 0.02), (1.98, 0.98), count)
    truth = track(gyre, seeds, times, steps=20 * DAYS).positions
    return Drifters(times, truth + NOISE * jax.random.normal(noise, truth.shape), truth)


class StreamFlow(eqx.Module):
    r"""The velocity $(-\partial_y, \partial_x)\,x(2 - x)\,y(1 - y)\,\psi(t, x, y)$.

    No divergence, whatever the weights, and no flow through the coast.

    Attributes:
        weights: Of the network.
        network: From `"where"`, all three from -2 to 2, to `"psi"`.
    """

    weights: PyTree
    network: graph.Program

    def __call__(self, t, x):
        def psi(x):
            coast = x[0] * (2 - x[0]) * x[1] * (1 - x[1])
            where = 2 * jnp.stack([2 * t / DAYS - 1, x[0] - 1, 2 * x[1] - 1])
            return coast * self.network.evaluate(self.weights, {"where": where})["psi"]

        slope = jax.grad(psi)(x)
        return jnp.stack([-slope[1], slope[0]])


def random_flow(width: int = 32, seed: int = 0) -> StreamFlow:
    """Returns an untrained velocity.

    Args:
        width: Neurons of a hidden layer.
        seed: Of the weights.
    """
    model = Graph() | MLP(
        input_size=3, hidden_sizes=(width,) * 2, output_size=1, activation="gelu"
    ).connect(input="where", output="raw")
    model |= op("squeeze", axis=-1).connect(a="raw", output="psi")
    backend = graph.Backend(jnp.result_type(float))
    program = graph.compile(model, {"where": (3,)}, jax.random.key(seed), backend)
    return StreamFlow(*program.split())


def arcs(
    flow, starts: Float[Array, "arcs drifters 2"]
) -> Float[Array, "arcs rows drifters 2"]:
    """Follows each drifter anew every two days.

    Args:
        flow: The velocity.
        starts: Where each arc starts.

    Returns:
        Where it is, once a day, its start included.
    """

    def one(begin, start):
        lags = jnp.arange(ARC + 1.0)
        moved = track(lambda t, x: flow(begin + t, x), start, lags, steps=ARC * PER_DAY)
        return moved.positions

    begins = ARC * jnp.arange(len(starts), dtype=starts.dtype)
    return jax.vmap(one)(begins, starts)


def tracked_misfit(
    parameters: PyTree, network: graph.Program, seen: Drifters
) -> Float[Array, ""]:
    """Returns the mean square error of positions and arc joints, over the noise.

    Args:
        parameters: The `"weights"`, and the `"shifts"`, the offset of each arc's start
            from the reported position in units of the noise.
        network: From day and position to the stream function.
        seen: The reports of the drifters.
    """
    told = seen.positions
    starts = told[:-1:ARC] + NOISE * parameters["shifts"]
    ways = arcs(StreamFlow(parameters["weights"], network), starts)
    daily = told[:-1].reshape(-1, ARC, *told.shape[1:])
    ends = jnp.concatenate([starts[1:], told[-1:]])
    off = jnp.concatenate([ways[:, :-1] - daily, (ways[:, -1] - ends)[:, None]], axis=1)
    return jnp.mean((off / NOISE) ** 2)


def differences(seen: Drifters):
    """Returns days, positions and velocities halfway between consecutive positions."""
    days = (seen.times[1:] + seen.times[:-1]) / 2
    steps = jnp.diff(seen.times)[:, None, None]
    places = (seen.positions[1:] + seen.positions[:-1]) / 2
    velocities = jnp.diff(seen.positions, axis=0) / steps
    days = jnp.broadcast_to(days[:, None], places.shape[:-1])
    return days.ravel(), places.reshape(-1, 2), velocities.reshape(-1, 2)


def difference_misfit(
    parameters: PyTree, network: graph.Program, seen: Drifters
) -> Float[Array, ""]:
    """Returns the mean square error of velocities by differences, over the noise."""
    days, places, velocities = differences(seen)
    flow = StreamFlow(parameters["weights"], network)
    return jnp.mean((jax.vmap(flow)(days, places) - velocities) ** 2) / (2 * NOISE**2)


def learned(misfit, first: StreamFlow, seen: Drifters, steps: int, rate: float = 0.02):
    """Fits the network.

    Args:
        misfit: One of the two above.
        first: The velocity to start from.
        seen: The reports of the drifters.
        steps: Of Adam.
        rate: Of its first step.

    Returns:
        The velocity, and the misfit of each step.
    """
    weights, network = first.weights, first.network
    shifts = jnp.zeros_like(seen.positions[:-1:ARC])
    result = design.optimise(
        lambda parameters, _: misfit(parameters, network, seen),
        {"weights": weights, "shifts": shifts},
        steps=steps,
        optimiser=optax.adam(optax.cosine_decay_schedule(rate, steps)),
    )
    flow = StreamFlow(result.design["weights"], network)
    return flow, np.asarray(result.history.objective)


class Polynomial(eqx.Module):
    """A velocity of monomials of day and position.

    Attributes:
        factors: Of each monomial, for both components.
        degree: The highest.
    """

    factors: Float[Array, "monomials 2"]
    degree: int = eqx.field(static=True)

    def __call__(self, t, x):
        return monomials(self.degree, t, x) @ self.factors


def monomials(degree: int, t, x) -> Float[Array, " monomials"]:
    """Returns all products of powers of day and position, both from -1 to 1."""
    where = jnp.stack([2 * t / DAYS - 1, x[0] - 1, 2 * x[1] - 1])
    powers = where[:, None] ** jnp.arange(degree + 1)
    i, j, k = np.indices((degree + 1,) * 3).reshape(3, -1)
    low = i + j + k <= degree
    return powers[0, i[low]] * powers[1, j[low]] * powers[2, k[low]]


def best_polynomial(seen: Drifters) -> Polynomial:
    """Returns the polynomial by differences whose degree is closest to the truth.

    Only this choice uses the truth, in favour of the polynomial.
    """
    days, places, velocities = differences(seen)

    def fitted(degree):
        rows = jax.jit(jax.vmap(partial(monomials, degree)))(days, places)
        factors, *_ = np.linalg.lstsq(np.asarray(rows), np.asarray(velocities))
        return Polynomial(jnp.asarray(factors), degree)

    return min(map(fitted, (4, 6, 8, 10)), key=velocity_error)


def samples(nodes: int = 40):
    """Returns days and positions over the basin, (days, x, y) and (x, y, 2)."""
    x = (np.arange(2 * nodes) + 0.5) / nodes
    places = np.stack(np.meshgrid(x, x[:nodes], indexing="ij"), axis=-1)
    return jnp.linspace(0.0, DAYS, 9), jnp.asarray(places)


@eqx.filter_jit
def velocities(flow, days, places) -> Float[Array, "days x y 2"]:
    """Returns the velocity at days and positions."""
    of_places = jax.vmap(jax.vmap(flow, (None, 0)), (None, 0))
    return jax.vmap(of_places, (0, None))(days, places)


def velocity_error(flow) -> float:
    """Returns the root-mean-square error in the basin over that of the velocity."""
    true = np.asarray(velocities(gyre, *samples()))
    off = np.asarray(velocities(flow, *samples())) - true
    return float(np.sqrt(np.sum(off**2) / np.sum(true**2)))


def separation(flow, other: Drifters, days: int = 5) -> np.ndarray:
    """Returns the root-mean-square error of other drifters on each day, in km.

    Args:
        flow: The velocity.
        other: Held-out drifters, started at their true positions.
        days: How long.
    """
    times = other.times[: days + 1]
    coast = Box([0, 0], [2, 1], [Hold(), Hold()])
    went = track(
        flow, other.truth[0], times, steps=days * PER_DAY, boundary=coast
    ).positions
    off = jnp.sum((went - other.truth[: days + 1]) ** 2, axis=-1)
    return np.asarray(KM * jnp.sqrt(jnp.mean(off, axis=1)))


def draw(flows: dict, other: Drifters, path: Path, day: float = 2.5) -> None:
    """Draws velocities, their errors, and the errors of drifters."""
    figure, panels = plt.subplots(2, 2, figsize=(10, 5.4), layout="constrained")
    arrows, *maps, astray = panels.ravel()
    _draw_arrows(flows["tracked"], jnp.array([day]), arrows)
    for name, axes in zip(("tracked", "polynomial"), maps, strict=True):
        _draw_error(flows[name], jnp.array([day]), axes)
        axes.set_title(f"{TITLES[name]}, day {day:g}: error")
    for name, flow in flows.items():
        astray.plot(separation(flow, other), "o-", label=TITLES[name])
    astray.set_xlabel("time since release (days)")
    astray.set_ylabel("off by (km, root mean square)")
    astray.set_title("drifters that were not fitted")
    astray.legend()
    astray.grid(alpha=0.3)
    for axes in (arrows, *maps):
        axes.set(xlim=(0, 200), ylim=(0, 100), aspect="equal")
        axes.set(xlabel="x (km)", ylabel="y (km)")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _draw_arrows(flow, day, axes) -> None:
    places = samples(8)[1]
    x, y = KM * np.moveaxis(np.asarray(places), -1, 0)
    for one, colour, width in ((gyre, "k", 0.007), (flow, "C1", 0.003)):
        found = np.asarray(velocities(one, day, places)[0])
        u, v = CM_PER_S * np.moveaxis(found, -1, 0)
        arrows = axes.quiver(x, y, u, v, color=colour, width=width, scale=700)
    axes.quiverkey(arrows, 0.93, 1.07, 50, "50 cm/s", labelpos="W")
    axes.set_title(f"day {float(day[0]):g}: true (black), learned", loc="left")


def _draw_error(flow, day, axes) -> None:
    places = samples()[1]
    off = velocities(flow, day, places)[0] - velocities(gyre, day, places)[0]
    speed = CM_PER_S * np.linalg.norm(np.asarray(off), axis=-1)
    image = axes.imshow(
        speed.T, "magma", origin="lower", extent=(0, 200, 0, 100), vmin=0, vmax=10
    )
    axes.figure.colorbar(image, ax=axes, label="error (cm/s)", extend="max")


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of each fit")
    parser.add_argument("--drifters", type=int, default=100)
    parser.add_argument("--small", action="store_true", help="150 steps, 40 drifters")
    parser.add_argument("--output", type=Path, default=Path("output"))
    chosen = parser.parse_args(arguments)
    chosen.output.mkdir(parents=True, exist_ok=True)
    steps, count = (150, 40) if chosen.small else (chosen.steps, chosen.drifters)
    seen, other = released(count, 0), released(count, 1)
    by_differences, _ = learned(difference_misfit, random_flow(), seen, steps)
    tracked, course = learned(tracked_misfit, by_differences, seen, steps)
    flows = {
        "tracked": tracked,
        "differences": by_differences,
        "polynomial": best_polynomial(seen),
    }
    print(
        f"{count} drifters, {DAYS} days, positions to {KM * NOISE:g} km; misfit "
        f"through the tracker from {course[0]:.2f} to {course[-1]:.2f}"
    )
    for name, flow in flows.items():
        off = separation(flow, other)
        print(
            f"{TITLES[name]}: velocity within {velocity_error(flow):.2%}, drifters "
            f"that were not fitted off by {off[1]:.2f} km after 1 day, "
            f"{off[-1]:.2f} km after {len(off) - 1}"
        )
    path = chosen.output / "neural_velocity.png"
    draw(flows, other, path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
