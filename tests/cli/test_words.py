import errno
import os

import pytest

from physax import ArgumentError
from physax.cli._words import words_of


def system(number, *names):
    """An error as the system raises it: the name of a file, its code, another name."""
    return OSError(number, os.strerror(number), *names)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ArgumentError("`gap` must be positive."), "`gap` must be positive."),
        (OSError("as it is"), "as it is"),
        (system(errno.ENOENT, "a.hdf"), "There is no file or folder 'a.hdf'."),
        (system(errno.EACCES, b"a.hdf"), "Permission denied: b'a.hdf'."),
        (system(errno.EISDIR, "a.tmp", None, "a.hdf"), "Is a directory: 'a.hdf'."),
        (system(errno.ENOSPC), "No space left on device."),
    ],
)
def test_errors_of_the_system_have_no_number(error, words):
    assert words_of(error) == words
