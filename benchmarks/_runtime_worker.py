"""Parts of `benchmarks.runtime` that need a process of their own.

`python -m benchmarks._runtime_worker start [FOLDER] | precision | pipeline` prints its
figures as JSON. What has to be set before JAX starts is set by the caller.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physax import em, runtime
from physax.grid import Grid


POLICIES = (
    runtime.Precision(),
    runtime.Precision(storage="bfloat16"),
    runtime.Precision(storage="bfloat16", compute="bfloat16"),
    runtime.Precision(storage="float16", compute="float16"),
)
STAGES = 4


def start(folder: str | None = None) -> dict[str, float]:
    """Seconds to the gradient of a small simulation, and what XLA compiled for it."""
    if folder is not None:
        runtime.enable_compile_cache(folder)

    def energy(eps):
        pulse = em.GaussianPulse(2e14, 5e13)
        dipole = em.Dipole(component="Ez", position=(6e-7, 6e-7), pulse=pulse)
        sim = em.Simulation(
            Grid.uniform((30, 30), 4e-8),
            em.Medium(eps),
            em.Boundaries.all(em.CPML(8)),
            polarisation="Ez",
            steps=40,
            sources={"dipole": dipole},
        )
        return jnp.sum(em.simulate(sim).fields["Ez"] ** 2)

    begin = time.perf_counter()
    jax.block_until_ready(jax.value_and_grad(energy)(jnp.full((30, 30), 2.0)))
    return {"seconds": time.perf_counter() - begin}


def layers(weights, rows):
    """Eight layers of 256, as in the guide."""
    for weight in weights:
        rows = jnp.tanh(rows @ weight)
    return jnp.mean(rows**2)


def heat(initial, rate):
    """200 steps of a heat equation on 200 points."""

    def one_step(u, _):
        return u + rate * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), None

    u, _ = jax.lax.scan(one_step, initial, None, length=200)
    return jnp.sum(u**2)


def precision() -> list[dict[str, Any]]:
    """Relative errors of value and gradient against float64."""
    key = jax.random.key(0)
    weights = jax.random.normal(key, (8, 256, 256)) / 16
    rows = jax.random.normal(key, (512, 256))
    initial = 1 + jnp.sin(2 * jnp.pi * jnp.arange(200) / 200)
    cases = {
        "8 layers": (layers, weights, rows),
        "200 heat steps": (heat, initial, jnp.asarray(0.1)),
    }
    return [
        {
            "case": f"{name}, {row.precision.storage} computed in "
            f"{row.precision.compute}",
            "value": float(row.value),
            "gradient": float(row.gradient),
        }
        for name, (function, *arguments) in cases.items()
        for row in runtime.precision_error(function, *arguments, policies=POLICIES)
    ]


def best(function: Callable, *args: Any) -> float:
    """Seconds of the best of five runs."""
    return runtime.benchmark(function, *args, repeats=5).min


def pipeline() -> dict[str, float]:
    """Four stages of eight layers on four devices beside one: seconds, bytes held."""
    line = runtime.mesh(stage=STAGES)
    key = jax.random.key(0)
    weights = jax.random.normal(key, (STAGES, 8, 256, 256)) / 16
    parts = jax.random.normal(key, (16, 256, 256))
    stages = runtime.place(weights, line, {"": jax.P("stage")})

    def stage(weight, x):
        for one in weight:
            x = jnp.tanh(x @ one)
        return x

    def piped(weights, parts):
        outputs = runtime.pipeline(stage, weights, parts, mesh=line, axis="stage")
        return jnp.mean(outputs**2)

    def alone(weights, parts):
        def whole(x):
            for one in weights:
                x = stage(one, x)
            return x

        return jnp.mean(jax.lax.map(whole, parts) ** 2)

    runs = [jax.jit(jax.value_and_grad(run)) for run in (piped, alone)]
    slopes = [np.asarray(run(w, parts)[1]) for run, w in zip(runs, (stages, weights),
                                                             strict=True)]  # fmt: skip
    return {
        "piped": best(runs[0], stages, parts),
        "alone": best(runs[1], weights, parts),
        "held": stages.addressable_shards[0].data.nbytes,
        "whole": weights.nbytes,
        "error": float(np.max(np.abs(slopes[0] - slopes[1])) / np.abs(slopes[1]).max()),
    }


def main(words: list[str]) -> None:
    """Runs one part."""
    parts = {"start": start, "precision": precision, "pipeline": pipeline}
    sys.stdout.write(json.dumps(parts[words[0]](*words[1:])) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
