"""Follows particles through a pipe on a mesh of tetrahedra, from inlet to outlet.

`python -m examples.pipe_flow [--particles N] [--output FOLDER]` meshes a round pipe,
puts Poiseuille's velocity on its nodes, releases particles at the inlet, and compares
their residence times with Danckwerts' law of laminar pipes: the fraction that has left
is 1 - (t_min / t)^2, t_min the time on the axis. It saves `pipe_flow.png`.
"""

import argparse
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

from physax.particles import (
    Box,
    Hold,
    Inlet,
    Mesh,
    MeshField,
    Outlet,
    Pattern,
    lifetimes,
    track,
)


RADIUS, LENGTH, FASTEST = 1.0, 8.0, 2.0
DT = 0.05


def pipe(rings: int = 12, layers: int = 24) -> Mesh:
    """Returns a pipe along z: a square of hexahedra, bent round, cut into tetrahedra.

    Args:
        rings: Cells from the axis to the wall.
        layers: Cells along the pipe.
    """
    s = np.linspace(-1, 1, 2 * rings + 1)
    x, y = np.meshgrid(s, s, indexing="ij")
    # The map of a square to a disk that leaves no corner flat.
    x, y = x * np.sqrt(1 - y**2 / 2), y * np.sqrt(1 - x**2 / 2)
    z = np.linspace(0, LENGTH, layers + 1)
    shape = (*x.shape, z.size)
    places = [
        np.broadcast_to(x[..., None], shape),
        np.broadcast_to(y[..., None], shape),
        np.broadcast_to(z, shape),
    ]
    return Mesh.structured(RADIUS * np.stack(places, -1) * [1, 1, 1 / RADIUS])


def places_by_flux(count: int) -> np.ndarray:
    """Returns positions on the inlet, each for the same share of the flow.

    Args:
        count: Number of positions.
    """
    share = (np.arange(count) + 0.5) / count
    # The share of the flow within r is 1 - (1 - r^2)^2.
    r = np.sqrt(1 - np.sqrt(1 - 0.99 * share))
    angle = np.pi * (1 + np.sqrt(5)) * np.arange(count)
    return RADIUS * np.stack([r * np.cos(angle), r * np.sin(angle), 0 * r], -1)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--particles", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=Path("."))
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    mesh = pipe()
    points = np.asarray(mesh.points)
    speed = FASTEST * (1 - (points[:, 0] ** 2 + points[:, 1] ** 2) / RADIUS**2)
    flow = MeshField(mesh, np.stack([0 * speed, 0 * speed, speed], -1))
    seeds = places_by_flux(options.particles)

    low, high = [-RADIUS, -RADIUS, 0], [RADIUS, RADIUS, LENGTH]
    once = Box(low, high, [Hold(), Hold(), Outlet()])
    fastest = LENGTH / FASTEST
    times = np.arange(0, 6 * fastest + DT / 2, 10 * DT)
    tracks = track(flow, seeds, times, dt=DT, boundary=once)
    stayed = np.asarray(lifetimes(tracks, face=5))
    stayed = np.sort(stayed[np.isfinite(stayed)])
    left = np.arange(1, stayed.size + 1) / seeds.shape[0]
    theory = np.where(stayed > fastest, 1 - (fastest / stayed) ** 2, 0)
    off = np.abs(left - theory).max()
    print(
        f"{tracks.counts()['exited']} of {len(seeds)} left; within {off:.3f} of theory"
    )

    # The same, but particles that leave re-enter where they entered before.
    again = Box(low, high, [Hold(), Hold(), (Inlet(Pattern(seeds)), Outlet())])
    round_and_round = track(flow, seeds, times[[0, -1]], dt=DT, boundary=again)
    alive = int(jax.numpy.sum(round_and_round.alive))
    print(
        f"with an inlet: {alive} of {len(seeds)} in the pipe, "
        f"{int(round_and_round.entries.sum())} entries"
    )

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    axes.plot(stayed / fastest, left, label="particles")
    axes.plot(stayed / fastest, theory, "--", label="Danckwerts (1953)")
    axes.set_xlabel("time in the pipe (of the fastest)")
    axes.set_ylabel("fraction that has left")
    axes.legend()
    figure.savefig(options.output / "pipe_flow.png", dpi=150)
    print(f"wrote {options.output / 'pipe_flow.png'}")


if __name__ == "__main__":
    main()
