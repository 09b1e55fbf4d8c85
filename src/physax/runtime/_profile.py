"""Records where the time goes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax


@contextmanager
def profile(folder: str | os.PathLike) -> Iterator[Path]:
    """Records a trace of the block with JAX's profiler.

    Block on the results inside, otherwise the trace ends before the work does.

    Args:
        folder: Where the trace goes; made if it is not there. Read it with
            `profile_summary`, TensorBoard or XProf.

    Yields:
        The folder.
    """
    path = Path(folder)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with jax.profiler.trace(str(path)):
        yield path
