"""What the exit code of the `physax` command says."""

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
