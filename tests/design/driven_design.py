"""An optimisation for tests that kill its process.

Designs a picture, or with light a mode converter. `main` prints a line after its third
step, and at the end its status and the digest of its design.
"""

import jax
import jax.numpy as jnp

from examples import mode_converter, published_designs
from physax import design
from physax.runtime import Checkpointing, fingerprint


STEPS = 40
SMOOTH = design.ConicFilter(3.0, 1.0)


def device(density, beta):
    return design.subpixel_projection(SMOOTH(density()), beta)


def misfit(density, beta):
    target = jnp.indices((60, 60)).sum(0) % 23 < 11
    return jnp.mean((device(density, beta) - target) ** 2)


def unconverted(density, beta):
    problem = published_designs.coarser(mode_converter.PUBLISHED.problem, 40.0)
    _, converted = mode_converter.powers(device(density, beta), problem, 1500)
    return 1 - jnp.min(converted)


def amount(density, beta):
    return jnp.mean(device(density, beta)) / 0.6 - 1


def designed(folder, *, light=False, on_step=None):
    """Returns the status of a design, and its digest."""
    shape = (40, 40) if light else (60, 60)
    result = design.optimise(
        unconverted if light else misfit,
        design.grey_start(shape, noise=0.1, key=jax.random.key(0)),
        # With light it is killed so often that it would end too soon.
        steps=400 if light else STEPS,
        optimiser=design.MovingAsymptotes(),
        schedule=design.Stages((4, 16, jnp.inf), every=30 if light else 12),
        constraints=amount,
        checkpoint=Checkpointing(folder, 2),
        progress=False,
        on_step=on_step,
    )
    found = fingerprint((result.parameters, result.best, result.history))
    return result.status.name, found.digest


def main(folder, light=""):
    calls = 0

    def on_step(info):
        # All is compiled by now, so that a kill falls between two steps or into one.
        nonlocal calls
        calls += 1
        if calls == 3:
            print("started", flush=True)

    print(*designed(folder, light=bool(light), on_step=on_step), flush=True)
