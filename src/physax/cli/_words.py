"""What the command says about an error."""

import os


def words_of(error: Exception) -> str:
    """Returns the message; for an error of the system what failed, and the file.

    Args:
        error: Any error.
    """
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    # Of two files the second is the one that was to be written.
    place = error.filename if error.filename2 is None else error.filename2
    if place is None:
        return f"{error.strerror}."
    if isinstance(error, FileNotFoundError):
        return f"There is no file or folder {os.fspath(place)!r}."
    return f"{error.strerror}: {os.fspath(place)!r}."
