"""Lets one process at a time write into a folder."""

import json
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax

from ._checkpoint_file import CheckpointError
from ._initialize import check_same
from ._together import by_first


_LOCK = "writer.lock"
_TRIES = 8
# Seconds until a file of one computer is seen by the others.
_SHARED_WITHIN = 15


class CheckpointLockError(CheckpointError):
    """Another process writes into the folder."""


@contextmanager
def writer_lock(folder: str | os.PathLike) -> Iterator[Path]:
    """Makes this process the only one that writes checkpoints into a folder.

    The lock is a file, made in one step, that names process and computer. It is taken
    over from a process that has died on this computer; one that died on another
    computer cannot be distinguished from a running one, and its lock must be removed
    by hand. What dead writers left half-written is removed. Where several processes
    compute together, all must call it, and process 0 holds the lock for all.

    Args:
        folder: The folder; made with the mode 0700 if it is not there.

    Yields:
        The folder.

    Raises:
        CheckpointLockError: If another process, or another run of this one, holds the
            lock.
        CheckpointError: If the folder cannot be written.
        ProcessesError: If the processes that compute together do not see one folder.
    """
    path = Path(folder)
    lock = path / _LOCK
    by_first(lambda: _make_and_take(lock), f"Locking `{path}`")
    check_same(f"The folder `{path}`", _token(lock))
    if jax.process_index() > 0:
        yield path
        return
    try:
        for pattern in ("*.tmp-*", f"{_LOCK}.*"):
            for orphan in path.glob(pattern):
                orphan.unlink(missing_ok=True)
        yield path
    finally:
        # Not one that somebody else has taken after ours was removed by hand.
        if holds_lock(path):
            lock.unlink(missing_ok=True)


def _token(lock: Path) -> str:
    """Reads whose lock it is: none in a folder that this process has for itself."""
    end = time.monotonic() + _SHARED_WITHIN
    while True:
        holder = _read(lock)
        alone = jax.process_count() == 1 or time.monotonic() > end
        if holder is not None or alone:
            return str((holder or {}).get("token", "absent"))
        time.sleep(0.1)


def _make_and_take(lock: Path) -> None:
    path = lock.parent
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _take(lock)
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(
            error.errno,
            f"The checkpoint folder must be writable, but: {error.strerror}",
            str(path),
        ) from error


def holds_lock(folder: Path) -> bool:
    """Whether this process holds the lock of a folder."""
    try:
        holder = _read(folder / _LOCK)
    except OSError:
        return False  # Whoever needs the lock will take it, and learn why it cannot.
    return holder is not None and _process(holder) == _process(_identity())


def _take(lock: Path) -> None:
    for _ in range(_TRIES):
        if _create(lock):
            return
        holder = _read(lock)
        if holder is None:
            continue  # Its owner has just released it.
        if not _is_dead(holder):
            raise CheckpointLockError(
                f"The folder `{lock.parent}` must have one writer, but the process "
                f"{holder.get('pid')} on {holder.get('host')} writes there. Wait for "
                f"it, choose another folder, or remove `{lock}` if it no longer runs."
            )
        _break(lock, holder)
    raise CheckpointLockError(
        f"The folder `{lock.parent}` must have one writer, but several processes "
        "compete for it. Choose another folder."
    )


def _create(lock: Path) -> bool:
    """Makes the lock with its content in one step; False if there is one already."""
    draft = lock.with_name(f"{_LOCK}.tmp-{os.getpid()}-{uuid.uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(_identity() | {"token": uuid.uuid4().hex}, file)
        # A link is made or refused like a file opened with O_EXCL, but is never seen
        # empty, not even if this process is killed here.
        os.link(draft, lock)
    except FileExistsError:
        return False
    except FileNotFoundError:
        return False  # The holder of the lock has tidied up our draft.
    finally:
        draft.unlink(missing_ok=True)
    return True


def _break(lock: Path, holder: dict) -> None:
    """Removes the lock of a dead process.

    Of several who try, one may: who holds a lock named after this one's token, which is
    itself taken over from whoever died here. It looks again, since the lock may have
    been broken and taken anew in between.
    """
    right = lock.with_name(f"{_LOCK}.{holder['token']}")
    try:
        _take(right)
    except CheckpointLockError:
        return
    try:
        if _read(lock) == holder:
            lock.unlink()
    finally:
        right.unlink(missing_ok=True)


def _read(lock: Path) -> dict | None:
    try:
        content = json.loads(lock.read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        content = {}
    # Nobody can be told dead by an unreadable lock, so it holds.
    return content if isinstance(content, dict) else {}


def _process(holder: dict) -> tuple:
    return holder.get("pid"), holder.get("host"), holder.get("started")


def _identity() -> dict:
    pid = os.getpid()
    return {"pid": pid, "host": socket.gethostname(), "started": _started(pid)}


def _is_dead(holder: dict) -> bool:
    pid = holder.get("pid")
    if holder.get("host") != socket.gethostname() or type(pid) is not int or pid < 1:
        return False
    # The token becomes part of a file name.
    if not re.fullmatch("[0-9a-f]{32}", str(holder.get("token"))):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # It lives, and belongs to somebody else.
    # Numbers are given anew, in a container often the very same one: then the process
    # that has this number now did not start when the holder did.
    return _started(pid) != holder.get("started")


def _started(pid: int) -> str | None:
    """Says when a process started, as the kernel counts; None where it does not."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The name, in parentheses, may contain spaces. Field 22 is the start.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return f"{boot} {fields[19]}"
