"""Writes a file through the HDF5 library as a whole or not at all."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, TypeVar

from ._whole_file import whole_file


T = TypeVar("T")


@contextmanager
def whole_hdf5(path: str | os.PathLike) -> Iterator[io.RawIOBase]:
    """Opens a draft for h5py or h5netcdf; it takes the place of `path` at the end.

    On a full disk the HDF5 library ends the process when it cannot close its file. Here
    it never hears of an error, which is raised when it has closed.

    Args:
        path: The file.

    Yields:
        The draft, to be opened by the library.

    Raises:
        FileNotFoundError: If there is no such folder.
        OSError: If the file cannot be written.
    """
    with whole_file(path) as file:
        draft = _Draft(file)
        try:
            yield draft
        finally:
            if draft.error is not None:
                raise draft.error


class _Draft(io.RawIOBase):
    """A file that keeps its first error and goes on as if nothing had been."""

    def __init__(self, file: BinaryIO):
        self.error: OSError | None = None
        self._file = file

    def write(self, b):
        return self._try(lambda: self._file.write(b), len(b))

    def readinto(self, b):
        # What could not be written reads as zeros.
        content = self._try(lambda: self._file.read(len(b)), b"")
        b[:] = content + bytes(len(b) - len(content))
        return len(b)

    def seek(self, offset, whence=os.SEEK_SET):
        # Writes what is in the buffer.
        return self._try(lambda: self._file.seek(offset, whence), offset)

    def tell(self):
        return self._try(self._file.tell, 0)

    def truncate(self, size=None):
        return self._try(lambda: self._file.truncate(size), size)

    def flush(self):
        self._try(self._file.flush, None)

    def seekable(self):
        return True

    def _try(self, step: Callable[[], T], otherwise: T) -> T:
        if self.error is None:
            try:
                return step()
            except OSError as error:
                self.error = error
        return otherwise
