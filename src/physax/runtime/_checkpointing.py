"""How a driven run keeps and finds its checkpoints."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx

from .._checks import ArgumentError, instance, true_or_false, warn, whole
from ._checkpoint_file import CheckpointError
from ._checkpoint_store import (
    CheckpointWarning,
    as_folder,
    checkpoint_steps,
    load_checkpoint,
    save_checkpoint,
)
from ._fingerprint import Fingerprint
from ._initialize import check_same
from ._shards import Place
from ._state_arrays import array_places, as_arrays, pack_state, unpack_state


def _as_mark(x: Any) -> Fingerprint | str:
    remedy = "Write `fingerprint(problem)`, or leave it out."
    return instance(x, "fingerprint", (Fingerprint, str), remedy)


class Checkpointing(eqx.Module):
    """Where and when a run writes checkpoints.

    Attributes:
        folder: Where, one folder for each run.
        every: After how many steps. Checkpoints are at multiples of it, at the end, and
            where a signal stops the run.
        keep: How many stay.
        fingerprint: What the run computes, a `Fingerprint` or a text; a checkpoint of
            anything else is refused.
        resume: Whether to continue from the newest whole checkpoint. If not, the folder
            must not have any.
        pack: Takes the state to named arrays, on the host unless they are spread over
            several processes. Give your own to store it in a layout that does not
            depend on the mesh.
        unpack: Takes those arrays to the state; needed with a `pack` of your own.
        places: Where the arrays go that `unpack` takes, from `array_places`, for those
            that were written by several processes; needed with a `pack` of your own.

    Raises:
        ArgumentError: If `folder` is empty, `every` or `keep` is not a positive
            integer, `fingerprint` or `resume` is of another kind, or only one of `pack`
            and `unpack` is given.
    """

    folder: Path = eqx.field(static=True, converter=as_folder)
    every: int = eqx.field(static=True, converter=lambda n: whole(n, "every"))
    keep: int = eqx.field(static=True, converter=lambda n: whole(n, "keep"), default=2)
    fingerprint: Fingerprint | str = eqx.field(
        static=True, converter=_as_mark, default=""
    )
    resume: bool = eqx.field(
        static=True, converter=lambda x: true_or_false(x, "resume"), default=True
    )
    pack: Callable | None = eqx.field(static=True, default=None)
    unpack: Callable | None = eqx.field(static=True, default=None)
    places: Mapping[str, Place] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if (self.pack is None) != (self.unpack is None):
            raise ArgumentError(
                "`pack` and `unpack` must be given together, but one is missing."
            )

    def completed(
        self, fingerprint: Fingerprint | str, packing: Mapping[str, Any] | None = None
    ) -> "Checkpointing":
        """Fills in what a run knows of itself.

        Args:
            fingerprint: What it computes.
            packing: Its `pack`, `unpack` and perhaps `places`, unless they were given.
        """
        own = packing if packing is not None and self.pack is None else {}
        return dataclasses.replace(self, fingerprint=fingerprint, **own)


def check_checkpoint(checkpoint: Any) -> None:
    """Raises unless an argument says where to keep checkpoints, or is None."""
    if checkpoint is not None:
        remedy = "Write `Checkpointing(folder, every)`."
        instance(checkpoint, "checkpoint", Checkpointing, remedy)


def store(checkpointing: Checkpointing, step: int, state) -> bool:
    """Writes a checkpoint, or warns that it could not.

    A full disk is no reason to lose the run: it goes on in memory, and the next
    checkpoint tries again.

    Args:
        checkpointing: Where and how.
        step: How many steps have been done.
        state: The state then.

    Returns:
        Whether the checkpoint is on the disk.

    Raises:
        CheckpointError: If the fault is not the disk's.
    """
    pack = checkpointing.pack or pack_state
    try:
        save_checkpoint(
            checkpointing.folder,
            step,
            pack(state),
            checkpointing.fingerprint,
            keep=checkpointing.keep,
        )
    except CheckpointError as error:
        if error.errno is None:
            raise
        warn(
            f"The run goes on without a checkpoint of step {step}: {error}",
            CheckpointWarning,
        )
        return False
    return True


def restore(checkpointing: Checkpointing, state, start: int, stop: int) -> tuple:
    """Finds where to begin.

    Args:
        checkpointing: Where and how.
        state: The initial state.
        start: Its step.
        stop: The last step of the run.

    Returns:
        The step and the state to begin with: the newest whole checkpoint's, or those
        given if there is none, as arrays of definite dtype.

    Raises:
        ArgumentError: If `state` holds what is no array, and no `pack` says how to
            store it.
        CheckpointError: If there are checkpoints, but none can be used.
    """
    if checkpointing.pack is None:
        state = as_arrays(state)
    present = checkpoint_steps(checkpointing.folder)
    mark = checkpointing.fingerprint
    check_same("What is computed", mark if isinstance(mark, str) else mark.digest)
    check_same(f"What lies in `{checkpointing.folder}`", str(max(present, default="")))
    if not present:
        return start, state
    if not checkpointing.resume:
        raise CheckpointError(
            f"The folder `{checkpointing.folder}` must have no checkpoints when "
            f"`resume` is False, but has step {present[-1]}. Resume, choose another "
            "folder, or remove them."
        )
    if not any(start <= step <= stop for step in present):
        raise CheckpointError(
            f"The folder `{checkpointing.folder}` must have a checkpoint between the "
            f"steps {start} and {stop}, but has {list(present)}, of a run of "
            "another length. Choose another folder, or go on to one of these steps, if "
            "the length is no part of the problem."
        )
    unpack, places = checkpointing.unpack, checkpointing.places
    if unpack is None:
        unpack, places = partial(unpack_state, like=state), array_places(state)
    found = load_checkpoint(checkpointing.folder, mark, at_most=stop, places=places)
    check_same(f"The step read from `{checkpointing.folder}`", str(found.step))
    return found.step, unpack(found.arrays)
