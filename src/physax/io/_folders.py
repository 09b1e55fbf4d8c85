"""Folders: many files as one batch, and a place for results that can be written."""

import os
from pathlib import Path

from ._errors import PhysaxFileError
from ._hdf5 import natural_key


def two_time_files(
    folder: str | os.PathLike, pattern: str = "*.hdf"
) -> tuple[Path, ...]:
    """Lists the files of a folder that match a pattern, `run2` before `run10`.

    Args:
        folder: The folder.
        pattern: Of the names, as a shell has it: `"*.hdf"`, `"A*/*.h5"`.

    Returns:
        The files.

    Raises:
        PhysaxFileError: If no file matches; names what there is.
        NotADirectoryError: If there is no such folder.
    """
    place = Path(folder)
    if not place.is_dir():
        raise NotADirectoryError(f"`{os.fspath(folder)}` must be a folder, but is not.")
    found = sorted(
        (file for file in place.glob(pattern) if file.is_file()),
        key=lambda file: natural_key(str(file.relative_to(place))),
    )
    if not found:
        kinds = sorted({f"*{file.suffix}" for file in place.iterdir() if file.suffix})
        there = ", ".join(kinds) if kinds else "none"
        raise PhysaxFileError(
            folder, f"It must hold files {pattern!r}, but has {there}."
        )
    return tuple(found)


def check_writable(folder: str | os.PathLike) -> Path:
    """Makes a folder if need be, and finds out whether files can be written to it.

    Call it before a long computation: a folder that cannot be written is then known at
    the start, not at the end.

    Args:
        folder: The folder.

    Returns:
        The folder.

    Raises:
        PhysaxFileError: If it cannot be made, or no file can be written to it.
    """
    place = Path(folder)
    probe = place / f".physax-probe-{os.getpid()}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        try:
            probe.write_bytes(b"physax")
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise PhysaxFileError(
            folder,
            "It must be a folder to which files can be written, but the system says: "
            f"{error.strerror or error}. Choose another, or change its permissions.",
        ) from error
    return place
