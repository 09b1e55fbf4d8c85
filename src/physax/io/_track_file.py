"""Rows of tracks on disk, written during a run."""

import os
import uuid
from contextlib import suppress
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy.lib.format import open_memmap

from ._errors import PhysaxFileError


class TrackFile:
    """A `.npy` file of shape `[times, particles, width]`, for the `sink` of a run.

    The file has its whole size from the beginning; rows that are not written yet hold
    zeros. It appears whole, so that each of several processes may make the same one. A
    run that resumes writes some rows again, as they were. `np.load(path,
    mmap_mode="r")` reads it without loading it.

    Attributes:
        path: The file.
        values: Its rows, mapped into memory: positions, then the particles' own
            velocities, if they have any, then variables.

    Raises:
        PhysaxFileError: If the file exists with another shape or dtype.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        times: int,
        particles: int,
        width: int,
        dtype: str = "float32",
    ):
        self.path = Path(path)
        shape = (times, particles, width)
        if not self.path.exists():
            _make(self.path, shape, dtype)
        try:
            found = np.load(self.path, mmap_mode="r+", allow_pickle=False)
        except (OSError, EOFError, ValueError) as error:
            raise PhysaxFileError(
                self.path, f"it must be a whole .npy file to go on with, but: {error}"
            ) from error
        if found.shape != shape or found.dtype != np.dtype(dtype):
            raise PhysaxFileError(
                self.path,
                f"it must hold {np.dtype(dtype)}{list(shape)} to go on with, but holds "
                f"{found.dtype}{list(found.shape)}. Remove it, or write to another.",
            )
        self.values = found

    def __call__(
        self, row: int, particle: int, values: Float[np.ndarray, "rows particles width"]
    ) -> None:
        """Writes some rows of some particles.

        Args:
            row: Number of the first row.
            particle: Number of the first particle.
            values: The rows.
        """
        if (
            row + values.shape[0] > self.values.shape[0]
            or particle + values.shape[1] > self.values.shape[1]
            or values.shape[2] != self.values.shape[2]
        ):
            raise PhysaxFileError(
                self.path,
                f"it must have room for {row + values.shape[0]} rows, "
                f"{particle + values.shape[1]} particles and {values.shape[2]} numbers "
                f"of each, but has the shape {self.values.shape}.",
            )
        rows = slice(row, row + values.shape[0])
        self.values[rows, particle : particle + values.shape[1]] = values


def _make(path: Path, shape: tuple[int, int, int], dtype: str) -> None:
    """Makes a file of zeros, unless another process is faster."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        open_memmap(draft, "w+", dtype, shape).flush()
        # Unlike a new name, a link never takes the place of a file.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
