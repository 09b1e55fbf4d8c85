"""One of two processes that make mistakes together: `mistakes_together FOLDER`."""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np


jax.config.update("jax_enable_x64", True)

from physax import PhysaxError, runtime  # noqa: E402


me = runtime.initialize()
folder = Path(sys.argv[1])
mesh = runtime.mesh(me.count)
cut = jax.sharding.NamedSharding(mesh, jax.P("x"))


def spread(size, dtype=float):
    values = np.arange(size, dtype=dtype)
    return jax.make_array_from_callback((size,), cut, values.__getitem__)


def advance(state, start, stop):
    return jax.tree.map(lambda x: x + (stop - start).astype(x.dtype), state)


def drive(state, where, fingerprint="one", stop=20):
    keep = runtime.Checkpointing(where, 10, fingerprint=fingerprint)
    result = runtime.drive(
        jax.jit(advance), {"x": state}, stop=stop, checkpoint=keep, progress=False
    )
    return float(jnp.sum(result.state["x"]))


def message(call, *args, **options):
    try:
        call(*args, **options)
    except PhysaxError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


said = [
    drive(spread(8), folder / "run", stop=10),
    message(drive, spread(12), folder / "run"),
    message(drive, spread(8, np.float32), folder / "run"),
    message(drive, spread(8), folder / "run", fingerprint=f"of {me.index}"),
    message(drive, spread(8), folder / f"own {me.index}"),
    drive(spread(8), folder / "run"),
]
# Outside of a run, which holds the lock.
for step in (1, 2):
    runtime.save_checkpoint(folder / "alone", step, {"x": spread(8)})
whole = runtime.load_checkpoint(folder / "alone")
said.append([whole.step, whole.arrays["x"].tolist()])
print(json.dumps(said))
