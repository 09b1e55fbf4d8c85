"""Writes a file as a whole or not at all."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


_counter = itertools.count()


def check_folder(path: Path) -> None:
    """Refuses a file in a folder that is not there.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: If there is no such folder.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{os.fspath(path)!r} must lie in a folder, but there is no folder "
            f"{os.fspath(path.parent)!r}. Make it first."
        )


@contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a draft that takes the place of `path` when the block ends well.

    An older file stays whole until then, and after an error.

    Args:
        path: The file.

    Yields:
        The draft, open for writing bytes and for seeking.

    Raises:
        FileNotFoundError: If there is no such folder.
        OSError: If the folder cannot be written.
    """
    target = Path(path)
    check_folder(target)
    # The name of the target may be as long as names can be.
    name = f".{target.name[:200]}.tmp-{os.getpid()}-{next(_counter)}"
    draft = target.with_name(name)
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(draft)):
            raise
        # Nobody knows the draft, and a full disk names no file at all.
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error
    finally:
        # Once it has its final name, there is nothing here.
        draft.unlink(missing_ok=True)
    # The new name is safe only when the folder is.
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
