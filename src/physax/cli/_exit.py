"""What the exit code of the `physax` command says, and its last words."""

import os
from enum import IntEnum


class ExitCode(IntEnum):
    """Outcome of a command, for scripts and job schedulers.

    A command ended by Ctrl-C before it had anything to save exits with 130, as shells
    expect.
    """

    DONE = 0
    """The command did its work."""

    REFUSED = 1
    """The input was refused. Nothing on disk has changed."""

    USAGE = 2
    """The command line was wrong."""

    DIVERGED = 3
    """The run diverged and stopped at its last good state."""

    CHECKPOINTED = 4
    """The run was interrupted and saved its state: start it again to continue."""

    RESOURCES = 5
    """The machine has too little memory, or lacks the device asked for."""

    INTERRUPTED = 130
    """The command was interrupted before it had anything to save."""


def words_of(error: Exception) -> str:
    """Returns what a user is told: of the system's errors no number.

    Args:
        error: An error of the input or of the system.
    """
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    name = os.fspath(error.filename)
    if isinstance(error, FileNotFoundError):
        return f"There is no file or folder {name!r}."
    return f"{error.strerror}: {name!r}."
