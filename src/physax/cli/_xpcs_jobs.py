"""Which fits a command line asks for: files, wavevectors and modes."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..io import APSULayout, scan_two_time
from ._xpcs_settings import Settings


class Job(NamedTuple):
    """One fit.

    Attributes:
        file: The data.
        q: The wavevector in 1/angstrom, or `None` where there is one only.
        mode: The name of the model.
        folder: Where its results go.
        key: What it is called in a table: file, wavevector, mode.
        mark: Of the file and the settings: another one means another fit.
    """

    file: Path
    q: float | None
    mode: str
    folder: Path
    key: str
    mark: str


class Request(NamedTuple):
    """What is asked for.

    Attributes:
        settings: Settings of each mode that may be fitted, by its name.
        automatic: Whether the modes follow from the data.
        files: The files.
        root: The folder they are named from.
        output: The folder for results.
    """

    settings: dict[str, Settings]
    automatic: bool
    files: tuple[Path, ...]
    root: Path
    output: Path


def jobs_of(request: Request, file: Path) -> list[Job]:
    """Lists the fits of one file.

    Raises:
        PhysaxFileError: If the file is damaged.
        FileNotFoundError: If there is none.
    """
    contents = scan_two_time(file)
    first = next(iter(request.settings.values()))
    exact = isinstance(contents.layout, APSULayout)
    asked = first.data.q
    wanted = _groups(contents.q, exact) if asked is None else [asked]
    modes = list(request.settings)
    if request.automatic:
        angles = np.unique(np.round(contents.phi % np.pi, 6)).size
        modes = ["static_anisotropic"] if contents.maps > 1 else ["static_isotropic"]
        modes += ["laminar_flow"] if angles > 2 else []
    name = os.path.relpath(file, request.root)
    place = request.output
    if len(request.files) > 1:
        place = place / Path(name).with_suffix("")
    made = []
    for q in wanted:
        several = len(wanted) > 1
        at = place / f"q{q:.6g}" if several else place
        for mode in modes:
            folder = at / mode if len(modes) > 1 else at
            given = q if several or asked is not None else None
            key = f"{name}:{q:.6g}:{mode}"
            mark = _mark(file, request.settings[mode])
            made.append(Job(file, given, mode, folder, key, mark))
    return made


def _groups(q: np.ndarray, exact: bool) -> list[float]:
    """Returns one wavevector for each group that is fitted together."""
    values = np.unique(q)
    if exact:
        return values.tolist()
    groups: list[list[float]] = []
    for value in values.tolist():
        # Half of the window in which maps of one wavevector are read.
        if groups and value <= 1.1 * groups[-1][0]:
            groups[-1].append(value)
        else:
            groups.append([value])
    return [group[len(group) // 2] for group in groups]


def _mark(file: Path, settings: Settings) -> str:
    state = file.stat()
    text = f"{state.st_size} {state.st_mtime_ns} {settings!r}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
