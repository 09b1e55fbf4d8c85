"""Where the commands write: folders of results, and files of settings."""

import os
from pathlib import Path

from .._checks import ArgumentError
from ..io import check_writable
from ..io._whole_file import whole_file


def check_place(folder: str | os.PathLike) -> Path:
    """Finds out whether a folder can be written to or made, without making it.

    Args:
        folder: The folder.

    Returns:
        The folder.

    Raises:
        PhysaxFileError: If no file can be written to it, or to the one above it that
            is there.
    """
    place = Path(folder)
    check_writable(next(p for p in (place, *place.parents) if os.path.exists(p)))
    return place


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
