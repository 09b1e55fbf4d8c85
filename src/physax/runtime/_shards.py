"""Arrays that lie on devices of several processes: each writes and reads its part."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np

from ._checkpoint_file import CheckpointError


def is_spread(array: object) -> bool:
    """Tells whether no process has the whole of an array."""
    return isinstance(array, jax.Array) and not (
        array.is_fully_addressable or array.is_fully_replicated
    )


def write_shards(folder: Path, arrays: Mapping[str, jax.Array | np.ndarray]) -> None:
    """Writes arrays, each process what lies on its devices. All must call it.

    Args:
        folder: Made for them; its name must be free or that of a previous try.
        arrays: What to write.

    Raises:
        CheckpointError: If the extra `checkpoint` is not installed, or a process cannot
            write.
    """
    checkpoint = _orbax()
    try:
        with checkpoint.Checkpointer(checkpoint.PyTreeCheckpointHandler()) as writer:
            writer.save(folder.absolute(), dict(arrays), force=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            getattr(error, "errno", None),
            f"The shards of a checkpoint cannot be written: {error}",
            str(folder),
        ) from error


def read_shards(
    folder: Path,
    names: list[str],
    places: Mapping[str, jax.ShapeDtypeStruct] | None,
) -> dict[str, np.ndarray | jax.Array]:
    """Reads arrays, each process what its devices need. All must call it.

    Args:
        folder: Where `write_shards` put them.
        names: Which.
        places: Shape and sharding that each gets; along an axis that is longer here,
            zeros follow, and of one that is shorter the end is dropped. None reads them
            whole, to the host.

    Returns:
        The arrays by name.

    Raises:
        CheckpointError: If the extra `checkpoint` is not installed, or they cannot be
            read or placed.
    """
    checkpoint = _orbax()

    def how(name: str):
        if places is None:
            return checkpoint.RestoreArgs(restore_type=np.ndarray)
        place = places[name]
        return checkpoint.ArrayRestoreArgs(
            sharding=place.sharding, global_shape=place.shape, strict=False
        )

    missing = [] if places is None else sorted(set(names) - set(places))
    if missing:
        raise CheckpointError(
            f"The checkpoint `{folder}` must hold the arrays of this state, but has "
            f"{missing} besides."
        )
    try:
        with checkpoint.Checkpointer(checkpoint.PyTreeCheckpointHandler()) as reader:
            return reader.restore(
                folder.absolute(),
                item=dict.fromkeys(names, 0),
                restore_args={name: how(name) for name in names},
            )
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"The shards of the checkpoint `{folder}` must be whole, but cannot be "
            f"read: {error}. Remove them and the file beside them; the run then goes "
            "on from the checkpoint before."
        ) from error


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
