"""What processes that compute together decide as one."""

import errno
from collections.abc import Callable

import jax
import numpy as np

from ._checkpoint_file import CheckpointError
from ._initialize import exchange


def agree(stop: bool, length: int) -> tuple[bool, int]:
    """Makes all processes take the same next chunk.

    Args:
        stop: Whether this process was asked to finish.
        length: Steps of the next chunk by its clock.

    Returns:
        Whether any process was asked to finish, and the length that process 0 asks for.
    """
    if jax.process_count() == 1:
        return stop, length
    wanted = exchange(np.asarray([stop, length]))
    return bool(wanted[:, 0].any()), int(wanted[0, 1])


def anywhere(flag: bool) -> bool:
    """Whether a flag is set in any of the processes, all of which must ask."""
    return agree(flag, 0)[0]


def by_first(action: Callable[[], object], what: str) -> None:
    """Runs an action in process 0 while the others wait; its fault is a fault of all.

    Args:
        action: What to do.
        what: Its name, for the message of the others.

    Raises:
        CheckpointError: In process 0 what the action raises, in the others that it did.
    """
    fault = None
    if jax.process_index() == 0:
        try:
            action()
        except CheckpointError as error:
            fault = error
    if jax.process_count() > 1:
        # -1: no fault; 0: one that is not the disk's.
        code = -1 if fault is None else fault.errno or 0
        code = int(exchange(np.asarray(code))[0])
        if fault is None and code >= 0:
            message = f"{what} failed in process 0, whose message says why."
            if code == 0:
                raise CheckpointError(message)
            raise CheckpointError(code, f"{message} {errno.errorcode.get(code, '')}")
    if fault is not None:
        raise fault
