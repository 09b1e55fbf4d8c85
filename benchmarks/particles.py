"""Speed of particle tracking beside other codes, their runs interleaved.

`python -m benchmarks.particles [--json FILE] [--quick] [--peers numpy,parcels]` carries
7,500 particles through a gridded flow by the classical Runge-Kutta method, in float32
on the CPU (`peers/_tracks_data.py`). Each tool runs in a process of its own, in turn;
the first call of each compiles. Then come figures that are ours alone: all steps
recorded, a million particles, walls, diffrax, the same flow on tetrahedra, and
gradients.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import Delaunay

from physax.particles import (
    Box,
    Diffrax,
    FieldAdjoint,
    Inlet,
    Mesh,
    MeshField,
    Outlet,
    Reflect,
    classical_runge_kutta,
    track,
)
from physax.runtime import memory

from ._command import Command
from ._physax_tracks import field
from ._rows import CHECK, MISSING, OURS, Row, console, ours_version, ranked, report
from .peers._tracks_data import DT, axes, seeds
from .peers._worker import interleaved, opened


PEERS = ("numpy", "parcels")
MODULES = {
    "physax": "_physax_tracks",
    **{name: f"peers.{name}_tracks" for name in PEERS},
}
SPEED = "Mparticle-steps/s"
RATIO = "x"
# Of the mean edge of a tetrahedron, at the mean speed in a step.
COURANT = 0.1


def compared(steps: int, tools: Sequence[str], rounds: int) -> list[Row]:
    """Measures the workload with all tools, interleaved."""
    name = f"7,500 particles, {steps} steps"
    workers, missing = opened(tools, MODULES)
    rows = []
    for tool, why in missing.items():
        console().print(f"{name}: {why}")
        rows.append(Row(name, tool, MISSING, None, SPEED))
    request = {"steps": steps, "particles": 7500, "recorded": 0}
    answers = interleaved(workers, rounds, **request)
    ours = answers[OURS][0]["values"]
    for worker in workers:
        first, *rest = answers[worker.tool]
        best = min(run["seconds"] for run in rest)
        off = max(abs(a - b) for a, b in zip(first["values"], ours, strict=True))
        rate, memory = 7500 * steps / best / 1e6, rest[-1]["peak_mb"]
        version = worker.version
        rows += [
            Row(
                name,
                worker.tool,
                version,
                rate,
                SPEED,
                compile_s=first["seconds"] - best,
                peak_mb=memory,
                runs=rounds,
            ),
            Row(f"{name}: off from ours", worker.tool, version, off, CHECK),
        ]
    return ranked(sorted(rows, key=lambda row: row.unit == CHECK))


def seconds(run: Callable[[], Any]) -> float:
    """Returns the seconds of one run."""
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


def in_turn(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Returns the best seconds of each run, after one that compiles."""
    times = {name: [seconds(run)] for name, run in runs.items()}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds(run))
    return {name: min(found[1:]) for name, found in times.items()}


def ours_alone(rounds: int, steps: int, many: int) -> list[Row]:
    """Measures what has no peer."""
    flow, at = field(), jnp.asarray(seeds())
    last = steps * DT
    ends = partial(track, flow, at, [0, last], steps=steps)
    box = partial(Box, [0, 0, 0], [1, 1, 1])
    inlet = box([(Inlet(), Outlet()), Reflect(), Reflect()])
    runs = {
        "last step recorded": lambda: ends().positions,
        "all recorded": lambda: (
            track(flow, at, np.linspace(0, last, steps + 1)).positions
        ),
        "reflecting box": lambda: ends(boundary=box(Reflect())).positions,
        "reflecting box and inlet": lambda: (
            ends(boundary=inlet, key=jax.random.key(0)).positions
        ),
        "diffrax, same method": lambda: (
            ends(solver=Diffrax(classical_runge_kutta())).positions
        ),
    }
    best = in_turn(runs, rounds)
    plain = best["last step recorded"]
    rows = []
    for name, found in best.items():
        case = f"7,500 particles, {steps} steps: {name}"
        rate = at.shape[0] * steps / found / 1e6
        rows.append(Row(case, OURS, ours_version(), rate, SPEED, runs=rounds))
        rows.append(Row(f"{case}: time", OURS, ours_version(), found / plain, RATIO))
    crowd = jnp.asarray(seeds(many))
    run = lambda: track(flow, crowd, [0, 100 * DT], steps=100).positions  # noqa: E731
    found = in_turn({"many": run}, max(rounds // 2, 1))["many"]
    rate = crowd.shape[0] * 100 / found / 1e6
    case = f"{crowd.shape[0]:,} particles, 100 steps"
    return [*rows, Row(case, OURS, ours_version(), rate, SPEED, runs=rounds)]


def tetrahedra(rounds: int, steps: int, nodes: int, counts: Sequence[int]) -> list[Row]:
    """Measures the same flow, given at the nodes of an unstructured mesh."""
    box = np.stack(np.meshgrid(*[[0, 1]] * 3), -1).reshape(-1, 3)
    inner = np.random.default_rng(0).uniform(size=(nodes - len(box), 3))
    points = np.concatenate([box, inner])
    cells = Delaunay(points).simplices
    mesh = Mesh(points, {"tetrahedron": cells}, orient=True)
    flow, times = field(), axes()[0]
    sampled = jax.vmap(jax.vmap(flow, (None, 0)), (0, None))
    values = sampled(jnp.asarray(times, jnp.float32), mesh.points)
    along = points[cells] - np.roll(points[cells], 1, axis=1)
    edge = np.linalg.norm(along, axis=-1).mean()
    dt = COURANT * edge / float(jnp.linalg.norm(values, axis=-1).mean())
    on_mesh, rows = MeshField(mesh, values, times), []
    for count in counts:
        at = jnp.asarray(seeds(count))
        follow = partial(track, seeds=at, times=[0, steps * dt], steps=steps)
        run = lambda follow=follow: follow(on_mesh).positions  # noqa: E731
        case = f"{len(at):,} particles, {steps} steps, {mesh.elements:,} tetrahedra"
        rate = len(at) * steps / in_turn({case: run}, rounds)[case] / 1e6
        away = jnp.linalg.norm(run()[-1] - follow(flow).positions[-1], axis=-1)
        away = float(jnp.mean(away))
        rows += [
            Row(case, OURS, ours_version(), rate, SPEED, runs=rounds),
            Row(f"{case}: off from the grid", OURS, ours_version(), away, CHECK),
        ]
    return rows


def gradients(rounds: int, steps: int) -> list[Row]:
    """Measures derivatives of a sum over the last places of 1,000 particles."""
    flow = field()
    at = jnp.asarray(np.random.default_rng(0).uniform(0.1, 0.9, (1000, 3)), jnp.float32)

    def loss(values, at, adjoint=None):
        now = eqx.tree_at(lambda f: f.values, flow, values)
        tracks = track(now, at, [0, steps * DT], steps=steps, adjoint=adjoint)
        return jnp.mean(tracks.positions[-1] ** 2)

    functions = {
        "by seeds": jax.grad(loss, 1),
        "by the whole field": jax.grad(partial(loss, adjoint=FieldAdjoint())),
    }
    rows = []
    for name, function in functions.items():
        start = time.perf_counter()
        compiled = jax.jit(function).lower(flow.values, at).compile()
        compile_s = time.perf_counter() - start
        run = partial(compiled, flow.values, at)
        found = in_turn({name: run}, rounds)[name]
        temporary = memory(function, flow.values, at).temporary / 1e6
        case = f"gradient {name}, 1,000 particles, {steps} steps"
        rows += [
            Row(case, OURS, ours_version(), found, "s", None, compile_s, runs=rounds),
            Row(f"{case}: temporary", OURS, ours_version(), temporary, "MB"),
        ]
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    command = Command(__doc__, PEERS, rounds=5, quick=1)
    options = command.options(arguments)
    quick = options.quick
    rows = compared(20 if quick else 100, [OURS, *options.peers], options.rounds)
    rows += ours_alone(
        options.rounds, 50 if quick else 1500, 10_000 if quick else 10**6
    )
    few, some = (20, 1500, [7500]), (100, 15_000, [7500, 100_000])
    rows += tetrahedra(options.rounds, *(few if quick else some))
    rows += gradients(options.rounds, 20 if quick else 300)
    report(rows, "particles, float32", options.json)


if __name__ == "__main__":
    main()
