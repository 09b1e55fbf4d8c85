"""Compiled programs that outlive the process."""

import os
import stat
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

from .._checks import PhysaxError


class CacheFolderError(PhysaxError, OSError):
    """A folder is not safe to load compiled programs from."""


def enable_compile_cache(path: str | os.PathLike | None = None) -> Path:
    """Keeps compiled programs in a folder, for the next process to load.

    The entries are machine code that JAX runs as it finds it, so nobody else may be
    able to write there: a new folder gets the mode 0700. This changes JAX's
    configuration for the whole process; nothing in physax does so unless you call it.

    Args:
        path: The folder. By default what the environment variable
            `JAX_COMPILATION_CACHE_DIR` names, otherwise `physax/jax` in the user's
            cache folder.

    Returns:
        The folder.

    Raises:
        CacheFolderError: If the folder belongs to somebody else, or others may write
            to it, or it is not a folder.
    """
    folder = _chosen_folder(path)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise CacheFolderError(
            f"The compile cache must be a folder, but `{folder}` or a part of that "
            "path is a file."
        ) from error
    _refuse_unsafe(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # JAX decides at the first compile whether there is a cache, and remembers it.
    compilation_cache.reset_cache()
    return folder


def _chosen_folder(path: str | os.PathLike | None) -> Path:
    if path is not None:
        return Path(path).expanduser().absolute()
    named = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "physax" / "jax"


def _refuse_unsafe(folder: Path) -> None:
    status = folder.stat()
    if os.name != "posix":
        return
    if status.st_uid != os.geteuid():
        raise CacheFolderError(
            f"The compile cache `{folder}` must belong to you (user "
            f"{os.geteuid()}), but belongs to user {status.st_uid}. Choose another "
            "folder."
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CacheFolderError(
            f"The compile cache `{folder}` must be writable by you alone, but has the "
            f"mode {stat.S_IMODE(status.st_mode):04o}. Check what is in it, then "
            f"`chmod 700 {folder}`."
        )
