"""Where the commands write: folders of results, and files of settings."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .._checks import ArgumentError
from ..io import check_writable
from ..io._whole_file import whole_file


@contextmanager
def output_folder(folder: str | os.PathLike) -> Iterator[Path]:
    """Makes a folder that can be written to; what stays empty in the block goes again.

    Args:
        folder: The folder.

    Yields:
        The folder.

    Raises:
        PhysaxFileError: If it cannot be made, or no file can be written to it.
    """
    place = Path(folder)
    new = [path for path in (place, *place.parents) if not path.exists()]
    try:
        yield check_writable(place)
    finally:
        for path in new:
            # One that holds files stays.
            with suppress(OSError):
                path.rmdir()


def write_template(text: str, output: str | None) -> None:
    """Writes a template to a file and prints its name, or prints the template.

    Args:
        text: The template.
        output: The file, or `None`.

    Raises:
        ArgumentError: If there is such a file.
    """
    if output is None:
        print(text, end="")
        return
    path = Path(output)
    check_new(path)
    check_writable(path.parent)
    with whole_file(path) as file:
        file.write(text.encode())
    print(path)


def check_new(path: Path) -> None:
    """Refuses to write settings over a file.

    Args:
        path: Where they are to be written.

    Raises:
        ArgumentError: If there is such a file.
    """
    if path.exists():
        raise ArgumentError(
            f"`--output` must be a new file, but {path} exists. Remove it, or choose "
            "another name."
        )
