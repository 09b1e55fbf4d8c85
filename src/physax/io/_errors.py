"""The error of a file that cannot be used."""

import os

from .._checks import PhysaxError


class PhysaxFileError(PhysaxError, OSError):
    """A file is damaged, or does not hold what was asked for.

    Attributes:
        path: The file.
        reason: What is wrong with it, as a sentence.
    """

    def __init__(self, path: str | os.PathLike, reason: str):
        super().__init__(f"{os.fspath(path)}: {reason}")
        self.path = os.fspath(path)
        self.reason = reason
