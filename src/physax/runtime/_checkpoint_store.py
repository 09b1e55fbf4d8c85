"""A folder of checkpoints that holds a whole one at any instant."""

import errno
import itertools
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._checks import ArgumentError, PhysaxWarning, instance, optional, warn, whole
from ._checkpoint_file import (
    Checkpoint,
    CheckpointError,
    encode_header,
    read_checkpoint,
    write_arrays,
)
from ._fingerprint import Fingerprint
from ._initialize import check_same
from ._memory import host_memory
from ._shards import (
    Place,
    Spread,
    described,
    is_spread,
    read_shards,
    remove_shards,
    write_shards,
)
from ._together import anywhere, by_first
from ._writer_lock import holds_lock, writer_lock


_NAME = re.compile(r"step-(\d{12})\.checkpoint")
_SHARDS = re.compile(r"(step-\d{12})\.shards.*")
_counter = itertools.count()
_MOST_SHOWN = 5


class CheckpointWarning(PhysaxWarning):
    """A checkpoint could not be written or read; the run continues without it."""


class FingerprintError(CheckpointError):
    """A checkpoint belongs to another problem."""


def as_folder(folder: Any) -> Path:
    """Returns a folder's path, refusing what is none."""
    instance(folder, "folder", (str, os.PathLike))
    if not os.fspath(folder):
        raise ArgumentError(
            "`folder` must be the path of a folder, but is ''. Write '.' for the "
            "current one."
        )
    if "\0" in os.fsdecode(folder):
        raise ArgumentError(
            "`folder` must be the path of a folder, but has a character that no path "
            f"has: {os.fspath(folder)!r}."
        )
    return Path(folder)


def save_checkpoint(
    folder: str | os.PathLike,
    step: int,
    arrays: Mapping[str, np.ndarray | jax.Array | Spread],
    fingerprint: Fingerprint | str = "",
    metadata: Mapping[str, object] | None = None,
    *,
    keep: int = 2,
) -> Path:
    """Writes a checkpoint; an older one stays whole until this one is.

    When this returns, the checkpoint survives a loss of power.

    Where several processes compute together, all must call it, and see one folder. Of
    arrays that are spread over them each writes its part (with orbax), into a folder
    beside the file; everything else is written by process 0.

    Args:
        folder: Where; made if it is not there.
        step: How many steps have been done.
        arrays: What to keep, by name.
        fingerprint: What the checkpoint belongs to.
        metadata: Further values that JSON can hold; the key `shards` is taken.
        keep: How many checkpoints stay in the folder, at least 1.

    Returns:
        The file.

    Raises:
        ArgumentError: If `step` or `keep` is out of range, the key is taken, or
            `arrays` are not arrays by name.
        CheckpointLockError: If another process writes into the folder.
        CheckpointError: If the file cannot be written, for example because the disk is
            full. What was there before is unharmed.
    """
    step, keep = whole(step, "step", 0), whole(keep, "keep")
    if step >= 10**12:
        raise ArgumentError(f"`step` must lie in [0, 1e12), but is {step}.")
    metadata = dict(metadata or {})
    if "shards" in metadata:
        raise ArgumentError("`metadata` must not have the key 'shards', but has it.")
    instance(arrays, "arrays", Mapping, "Write `pack_state(state)`.")
    spread = {}
    for name, array in arrays.items():
        if isinstance(array, jax.Array) and jnp.issubdtype(
            array.dtype, jax.dtypes.prng_key
        ):
            raise ArgumentError(
                f"`arrays` must hold numbers, but {name!r} is a random key. Write "
                "`pack_state(state)`, or `jax.random.key_data(key)`."
            )
        if isinstance(array, Spread):
            spread[name] = array
        elif isinstance(array, jax.Array) and is_spread(array):
            spread[name] = Spread(array, array.shape)
    if spread:
        metadata["shards"] = {name: described(x) for name, x in spread.items()}
    digest, fields = _parts(fingerprint)
    checkpoint = Checkpoint(
        step=step,
        arrays={n: np.asarray(a) for n, a in arrays.items() if n not in spread},
        digest=digest,
        fields=fields,
        metadata=metadata,
    )
    with _locked(as_folder(folder)) as path:
        target = path / f"step-{step:012d}.checkpoint"
        if spread:
            parts = {name: x.array for name, x in spread.items()}
            write_shards(target.with_suffix(".shards"), parts)
        # The file comes last: without it there is no checkpoint.
        by_first(lambda: _write_whole(target, checkpoint), "Writing a checkpoint")
        if jax.process_index() == 0:
            _prune(path, step, keep)
    return target


def _prune(folder: Path, step: int, keep: int) -> None:
    """Removes older checkpoints, and shards that belong to none."""
    others = [old for old in sorted(_steps(folder), reverse=True) if old != step]
    for old in others[keep - 1 :]:
        (folder / f"step-{old:012d}.checkpoint").unlink(missing_ok=True)
    for entry in list(folder.iterdir()):
        match = _SHARDS.fullmatch(entry.name)
        if match and not (folder / f"{match[1]}.checkpoint").exists():
            remove_shards(entry)


def load_checkpoint(
    folder: str | os.PathLike,
    fingerprint: Fingerprint | str | None = None,
    step: int | None = None,
    *,
    at_most: int | None = None,
    max_bytes: int | None = None,
    places: Mapping[str, Place] | None = None,
) -> Checkpoint:
    """Reads a checkpoint and verifies all of it.

    Args:
        folder: Where.
        fingerprint: What it must belong to; by default it is not asked.
        step: Which one. By default the newest whole one; those that are damaged are
            passed over with a `CheckpointWarning`.
        at_most: The newest step that may be chosen so; by default any.
        max_bytes: The largest memory its arrays may take; by default what is free.
        places: Where arrays go that were written by several processes (see
            `array_places`): devices need not be those of the writers, and what pads an
            array may differ. All processes must call it then. By default such arrays
            are read whole, to the host.

    Returns:
        The checkpoint.

    Raises:
        ArgumentError: If `folder` is not a path, or a step not an integer.
        CheckpointError: If there is none, or the one asked for, or every one, is
            damaged, of another version or too large; or if only what several processes
            have written of it is damaged.
        FingerprintError: If it belongs to another problem. The message names the first
            values that differ.
    """
    path = as_folder(folder)
    at_most = optional(partial(whole, name="at_most", least=0))(at_most)
    step = optional(partial(whole, name="step", least=0))(step)
    steps = [step] if step is not None else sorted(_steps(path), reverse=True)
    if at_most is not None:
        steps = [candidate for candidate in steps if candidate <= at_most]
    if not steps:
        limit = "" if at_most is None else f" of a step up to {at_most}"
        raise CheckpointError(
            f"The folder `{path}` must hold a checkpoint{limit}, but has none."
        )
    if max_bytes is None:
        max_bytes = host_memory() or sys.maxsize
    faults = []
    for candidate in steps:
        file = path / f"step-{candidate:012d}.checkpoint"
        try:
            checkpoint = _open_and_read(file, max_bytes)
            if checkpoint.step != candidate:
                raise CheckpointError(
                    f"The checkpoint `{file}` must be of step {candidate}, but is of "
                    f"step {checkpoint.step}: it was renamed."
                )
        except CheckpointError as error:
            faults.append(error)
            continue
        _refuse_other_problem(file, checkpoint, fingerprint)
        for fault in faults:
            warn(f"{fault} Using {file.name}.", CheckpointWarning)
        stored = checkpoint.metadata.get("shards", {})
        if stored:
            check_same(f"The step read from `{path}`", str(candidate))
            shards = read_shards(file.with_suffix(".shards"), stored, places)
            checkpoint.arrays.update(shards)
        return checkpoint
    raise faults[0]


def latest_step(folder: str | os.PathLike) -> int | None:
    """Finds the newest checkpoint by its name, without reading it; None without any."""
    return max(_steps(as_folder(folder)), default=None)


def checkpoint_steps(folder: str | os.PathLike) -> tuple[int, ...]:
    """Lists the steps of the checkpoints in a folder, in order."""
    return tuple(sorted(_steps(as_folder(folder))))


def _steps(folder: Path) -> Iterator[int]:
    if folder.is_dir():
        for entry in folder.iterdir():
            match = _NAME.fullmatch(entry.name)
            if match:
                yield int(match[1])


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    if not anywhere(jax.process_index() == 0 and not holds_lock(folder)):
        yield folder
    else:
        with writer_lock(folder) as path:
            yield path


def _write_whole(target: Path, checkpoint: Checkpoint) -> None:
    header, payload = encode_header(checkpoint)
    needed = len(header) + sum(array.nbytes for array in payload)
    draft = target.with_name(f"{target.name}.tmp-{os.getpid()}-{next(_counter)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(header)
            write_arrays(file, payload)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise CheckpointError(
            error.errno or errno.EIO,
            f"A checkpoint needs {needed} bytes, but writing failed: {error.strerror}. "
            "Older checkpoints are unharmed",
            str(target),
        ) from error
    finally:
        # Also after an interrupt; once it has its final name, there is nothing here.
        draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    # The new name is safe only when the folder is.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_and_read(file: Path, max_bytes: int) -> Checkpoint:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            return read_checkpoint(opened, str(file), max_bytes)
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(
            error.errno, f"A checkpoint cannot be read: {error.strerror}", str(file)
        ) from error


def _parts(fingerprint: Fingerprint | str) -> tuple[str, dict[str, str]]:
    if isinstance(fingerprint, Fingerprint):
        return fingerprint.digest, fingerprint.fields
    return fingerprint, {}


def _refuse_other_problem(
    file: Path, checkpoint: Checkpoint, wanted: Fingerprint | str | None
) -> None:
    if wanted is None:
        return
    digest, fields = _parts(wanted)
    if checkpoint.digest == digest:
        return
    message = (
        f"The checkpoint `{file}` must belong to this problem, but belongs to another."
    )
    found = Fingerprint(checkpoint.fields).differences(Fingerprint(fields))
    if fields and checkpoint.fields:
        shown = [
            f"`{name}` is {here} here and {there} there"
            for name, (there, here) in itertools.islice(found.items(), _MOST_SHOWN)
        ]
        more = len(found) - len(shown)
        shown += [f"and {more} more"] if more > 0 else []
        message = f"{message} {'; '.join(shown)}."
    raise FingerprintError(
        f"{message} Choose another folder, or remove the checkpoint."
    )
