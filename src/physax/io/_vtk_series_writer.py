"""Writes series of VTK files during a run."""

import html
import math
import os
import re
from dataclasses import replace
from pathlib import Path

from .._checks import ArgumentError
from .._whole_file import whole_file
from ..particles import Tracks
from ._vtk_build import vtk_snapshots, vtk_tracks
from ._vtk_data import SUFFIXES, VTKData
from ._vtk_series import read_pvd
from ._write_vtk import write_vtk


class VTKSeriesWriter:
    """Writes one VTK file for each time, and a `.pvd` file that lists them.

    The files go into a folder beside the `.pvd` file, which bears its name, and are
    numbered. After each step the `.pvd` file is whole and lists only whole files, also
    if the process is killed, so that a viewer may follow the run.

    With `append=True` a series continues: a resumed run writes on from its checkpoint,
    and what the old series has at the first time written and after it is dropped.
    Without it, an old series of the same name is replaced at the first step.

    Each step rewrites the whole list: of 10,000 times that is about 1 MB.

    Example:
        >>> with VTKSeriesWriter("run/particles.pvd") as series:  # doctest: +SKIP
        ...     series.write(time, vtk_points(positions, point_data={"age": age}))

    Args:
        path: The `.pvd` file.
        append: Whether to continue a series that exists.
        compress: Whether to compress by zlib.

    Raises:
        ArgumentError: If the suffix is another.
        PhysaxFileError: If the series to continue is damaged.
    """

    def __init__(
        self, path: str | os.PathLike, *, append: bool = False, compress: bool = True
    ):
        self.path = Path(path)
        if self.path.suffix.lower() != ".pvd":
            raise ArgumentError(f"`path` must end in '.pvd', but is {str(path)!r}.")
        if not self.path.parent.is_dir():
            raise ArgumentError(
                f"`path` must lie in a folder that exists, but is {str(path)!r}."
            )
        self.folder = self.path.with_suffix("")
        self._compress = compress
        self._entries: list[tuple[float, str]] = []
        if append and self.path.exists():
            self._entries = read_pvd(self.path)
        self._started = self._open = False
        self._number = 0

    @property
    def _direction(self) -> float:
        """Positive if times increase, negative if they decrease, 0 if not known yet."""
        times = self.times[:2]
        return times[1] - times[0] if len(times) == 2 else 0.0

    def __enter__(self) -> "VTKSeriesWriter":
        self._open = True
        return self

    def __exit__(self, *args) -> None:
        del args
        self._open = False

    @property
    def times(self) -> tuple[float, ...]:
        """The times in the list so far."""
        return tuple(time for time, _ in self._entries)

    def write(self, time: float | int, data: VTKData) -> None:
        """Writes the data of the next time.

        Args:
            time: The time; times must be monotonic.
            data: The data; the time is written into it.

        Raises:
            ArgumentError: If the series is closed, or the time does not continue it.
            OSError: If a file cannot be written.
        """
        time = float(time)
        if not self._open:
            raise ArgumentError("The series must be open: use it in a `with` block.")
        if not math.isfinite(time):
            raise ArgumentError(f"`time` must be finite, but is {time}.")
        if not self._started:
            self._start(time)
        elif self._entries and not _ahead(time - self.times[-1], self._direction):
            raise ArgumentError(
                f"`time` must go on from {self.times[-1]:g} in the direction of the "
                f"series, but is {time:g}."
            )
        name = f"{self.folder.name}_{self._number:06d}{SUFFIXES[data.kind]}"
        write_vtk(self.folder / name, replace(data, time=time), compress=self._compress)
        self._entries.append((time, f"{self.folder.name}/{name}"))
        self._number += 1
        self._list()

    def _start(self, time: float) -> None:
        """Drops what the first step replaces: first from the list, then the files."""
        direction = self._direction
        while self._entries and not _ahead(time - self.times[-1], direction):
            self._entries.pop()
        self._started = True
        self._list()
        self.folder.mkdir(exist_ok=True)
        kept = {Path(name).name for _, name in self._entries}
        stem, suffix = re.escape(self.folder.name), re.escape(self.path.name)
        ours = re.compile(rf"{stem}_(\d{{6,12}})\.vt[irsup]")
        # What a killed run has left half written.
        draft = re.compile(rf"\.({stem}_\d{{6,12}}\.vt[irsup]|{suffix})\.tmp-\d+-\d+")
        numbers = [-1]
        for file in [*self.folder.iterdir(), *self.path.parent.iterdir()]:
            found = ours.fullmatch(file.name) if file.parent == self.folder else None
            if draft.fullmatch(file.name) or (found and file.name not in kept):
                file.unlink()
            elif found:
                numbers.append(int(found[1]))
        self._number = max(numbers) + 1

    def _list(self) -> None:
        lines = [
            f'<DataSet timestep="{time!r}" part="0" file="{html.escape(name)}"/>'
            for time, name in self._entries
        ]
        text = "\n".join(
            [
                '<?xml version="1.0"?>',
                '<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">',
                "<Collection>",
                *lines,
                "</Collection>",
                "</VTKFile>",
                "",
            ]
        )
        with whole_file(self.path) as file:
            file.write(text.encode())


def _ahead(step: float, direction: float) -> bool:
    return step * direction > 0 if direction else step != 0


def write_vtk_tracks(path: str | os.PathLike, tracks: Tracks) -> None:
    """Writes tracks for viewers such as ParaView.

    Args:
        path: A `.vtp` file for one line per particle, as of `vtk_tracks`, or a `.pvd`
            file for a series of points, one file for each recorded time.
        tracks: The tracks.

    Raises:
        ArgumentError: If the suffix is another.
        OSError: If a file cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".vtp":
        write_vtk(path, vtk_tracks(tracks))
    elif suffix == ".pvd":
        with VTKSeriesWriter(path) as series:
            for data in vtk_snapshots(tracks):
                assert data.time is not None
                series.write(data.time, data)
    else:
        raise ArgumentError(
            f"`path` must end in '.vtp' for lines or in '.pvd' for a series, but is "
            f"{os.fspath(path)!r}."
        )
