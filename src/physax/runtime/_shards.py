"""Arrays that lie on devices of several processes: each writes and reads its part."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from ._checkpoint_file import CheckpointError


class Spread(NamedTuple):
    """An array on devices of several processes.

    Attributes:
        array: The array.
        shape: Its shape without what pads it at the high ends of axes.
    """

    array: jax.Array
    shape: tuple[int, ...]


class Place(NamedTuple):
    """Where an array goes.

    Attributes:
        struct: Shape, dtype and sharding that it gets.
        shape: Its shape without what pads it.
    """

    struct: jax.ShapeDtypeStruct
    shape: tuple[int, ...]


def is_spread(array: jax.Array) -> bool:
    """Whether no process has the whole of an array."""
    return not (array.is_fully_addressable or array.is_fully_replicated)


def write_shards(folder: Path, arrays: Mapping[str, jax.Array | np.ndarray]) -> None:
    """Writes arrays, each process what lies on its devices. All must call it.

    Args:
        folder: Made for them; its name must be free or that of a previous try.
        arrays: What to write.

    Raises:
        CheckpointError: If the extra `checkpoint` is not installed, or a process cannot
            write; without an `errno`, as the others wait for this one.
    """
    checkpoint = _orbax()
    try:
        with checkpoint.Checkpointer(checkpoint.PyTreeCheckpointHandler()) as writer:
            writer.save(folder.absolute(), dict(arrays), force=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"The shards of the checkpoint `{folder}` cannot be written: {error} Other "
            "processes wait for this one, so that the job ends. Make room, and start "
            "it again: it goes on from the checkpoint before."
        ) from error


def described(array: Spread) -> dict[str, object]:
    """Describes an array for the header of a checkpoint."""
    return {"dtype": array.array.dtype.name, "shape": list(array.shape)}


def read_shards(
    folder: Path,
    stored: Mapping[str, dict],
    places: Mapping[str, Place] | None,
) -> dict[str, np.ndarray | jax.Array]:
    """Reads arrays, each process what its devices need. All must call it.

    Args:
        folder: Where `write_shards` put them.
        stored: What `described` said of each.
        places: Where each goes; what pads it there may be longer or shorter than when
            it was written. None reads them whole, to the host.

    Returns:
        The arrays by name.

    Raises:
        CheckpointError: If the extra `checkpoint` is not installed, or they cannot be
            read, or do not fit.
    """
    checkpoint = _orbax()
    if places is not None:
        _refuse_others(folder, stored, places)

    def how(name: str):
        if places is None:
            return checkpoint.RestoreArgs(restore_type=np.ndarray)
        struct = places[name].struct
        return checkpoint.ArrayRestoreArgs(
            sharding=struct.sharding, global_shape=struct.shape, strict=False
        )

    try:
        with checkpoint.Checkpointer(checkpoint.PyTreeCheckpointHandler()) as reader:
            found = reader.restore(
                folder.absolute(),
                item=dict.fromkeys(stored, 0),
                restore_args={name: how(name) for name in stored},
            )
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"The shards of the checkpoint `{folder}` must be whole, but cannot be "
            f"read: {error}. Remove them and the file beside them; the run then goes "
            "on from the checkpoint before."
        ) from error
    if places is None:
        return {n: x[tuple(map(slice, stored[n]["shape"]))] for n, x in found.items()}
    return found


def _refuse_others(
    folder: Path, stored: Mapping[str, dict], places: Mapping[str, Place]
) -> None:
    extra = sorted(set(stored) - set(places))
    if extra:
        raise CheckpointError(
            f"The checkpoint `{folder}` must hold the arrays of this state, but "
            f"also has {extra}."
        )
    for name, there in stored.items():
        wanted = places[name].struct.dtype.name, list(places[name].shape)
        found = there["dtype"], there["shape"]
        if found != wanted:
            raise CheckpointError(
                f"The array {name!r} of the checkpoint must be {wanted[0]}{wanted[1]}, "
                f"but is {found[0]}{found[1]}."
            )


def remove_shards(folder: Path) -> None:
    """Removes what `write_shards` wrote, if it did."""
    shutil.rmtree(folder, ignore_errors=True)


def _orbax():
    # Imported here: it takes a second, and most runs are of one process.
    try:
        import orbax.checkpoint
    except ImportError as error:
        raise CheckpointError(
            "Arrays spread over several processes are written and read by orbax, which "
            f"is not installed ({error}). Install physax[checkpoint]."
        ) from error
    return orbax.checkpoint
