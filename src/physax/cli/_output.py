"""Where the commands write: folders of results, and files of settings."""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._checks import ArgumentError
from .._whole_file import whole_file
from ..io import check_writable
from ._exit import ExitCode


# Endings of pictures.
_DRAWN = (".png", ".gif", ".mp4")


def check_place(folder: str | os.PathLike) -> Path:
    """Finds out whether a folder can be written to or made, without making it.

    Args:
        folder: The folder.

    Returns:
        The folder.

    Raises:
        PhysaxFileError: If no file can be written to it, or to the one above it that
            is there.
    """
    place = Path(folder)
    check_writable(next(p for p in (place, *place.parents) if os.path.exists(p)))
    return place


def write_or_check(
    options: argparse.Namespace, template: str, check: Callable[[str], str]
) -> ExitCode:
    """Writes a template of settings, or checks the file given by `--check`.

    Args:
        options: The command line.
        template: The template. Without `--output` it is printed.
        check: Reads settings from a file, and returns how they are described.

    Raises:
        ArgumentError: If `--output` is an existing file, or comes with `--check`.
        PhysaxFileError: If the settings are not valid.
    """
    if options.check is not None:
        if options.output is not None:
            raise ArgumentError("`--output` must be left out with `--check`.")
        print(f"{options.check}: {check(options.check)}")
    elif options.output is None:
        print(template, end="")
    else:
        path = Path(options.output)
        check_new(path)
        check_writable(path.parent)
        with whole_file(path) as file:
            file.write(template.encode())
        print(path)
    return ExitCode.DONE


def check_new(path: Path) -> None:
    """Refuses to write what `--output` names over a file.

    Args:
        path: Where it is to be written.

    Raises:
        ArgumentError: If there is such a file.
    """
    if path.exists():
        raise ArgumentError(
            f"`--output` must be a new file, but {path} exists. Remove it, or choose "
            "another name."
        )


def replace_summary(
    folder: Path, command: str, summary: dict[str, Any], pictures: list[Path]
) -> Path:
    """Writes a summary in place of that of an earlier run, whose pictures are removed.

    These are the ones that a summary of the same command lists and that are not of this
    run: no other file is removed.

    Args:
        folder: Where results are.
        command: Which one has run.
        summary: What is told of the run.
        pictures: What it has drawn into the folder.

    Returns:
        The file.
    """
    path = folder / "summary.json"
    for old in (folder / name for name in _listed(path, command)):
        # Some disks take names that differ in case for one.
        if old.is_file() and not any(old.samefile(new) for new in pictures):
            old.unlink()
    names = [picture.name for picture in pictures]
    content = {"command": command, **summary, "pictures": names}
    with whole_file(path) as file:
        file.write(json.dumps(content, indent=2, allow_nan=False).encode())
    return path


def _listed(path: Path, command: str) -> list[str]:
    """Returns the pictures that a summary of a command lists, none if it is another."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    if not isinstance(content, dict) or content.get("command") != command:
        return []
    names = content.get("pictures")
    if not isinstance(names, list):
        return []
    texts = [name for name in names if isinstance(name, str)]
    # A name leads into no other folder.
    return [n for n in texts if Path(n).name == n and Path(n).suffix in _DRAWN]
