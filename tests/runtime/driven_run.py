"""A driven run for tests that kill its process: `driven_run.py FOLDER STOP`.

Prints a line when it begins, and at the end its status and the digest of its state.
"""

import sys
from functools import partial

import jax
import jax.numpy as jnp

from physax.runtime import Checkpointing, drive, fingerprint


@partial(jax.jit, donate_argnums=0)
def advance(state, start, stop):
    def one_step(i, x):
        return 3.7 * x * (1 - x) + 1e-3 * jnp.sin(i * x)

    return jax.lax.fori_loop(start, stop, one_step, state)


def main(folder, stop):
    # Large enough for a kill to fall into the writing of a checkpoint.
    state = jnp.linspace(0.1, 0.9, 300_000, dtype=jnp.float32)
    started = False

    def on_chunk(step, state, info):
        nonlocal started
        if not started:
            print("started", flush=True)
            started = True

    result = drive(
        advance,
        state,
        stop=int(stop),
        chunk=5,
        checkpoint=Checkpointing(folder, 10, fingerprint="chaos"),
        progress=False,
        on_chunk=on_chunk,
    )
    print(result.status.name, fingerprint(result.state).digest, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
