"""Writes a file through the HDF5 library as a whole or not at all."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._whole_file import check_folder, whole_file


@contextmanager
def whole_hdf5(path: str | os.PathLike) -> Iterator[io.BytesIO]:
    """Gives h5py or h5netcdf memory to fill, which becomes a file when the block ends.

    The library ends the process where it cannot write, as on a full disk. It can always
    write to memory, and there no handler of a signal comes between.

    Args:
        path: The file.

    Yields:
        What the library shall open in place of a file.

    Raises:
        FileNotFoundError: If there is no such folder.
        OSError: If the file cannot be written.
    """
    check_folder(Path(path))
    content = io.BytesIO()
    yield content
    with whole_file(path) as file:
        file.write(content.getbuffer())
