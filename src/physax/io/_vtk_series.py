"""Series of VTK files, one for each time, read one after the other."""

import glob
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import overload

import equinox as eqx
import numpy as np
from jaxtyping import Float, Num

from .._checks import whole
from ._errors import PhysaxFileError
from ._hdf5 import natural_key
from ._vtk_cells import VTKFaultError
from ._vtk_data import VTKData
from ._vtk_pieces import merge
from ._vtk_read import VTK_SUFFIXES, read_vtk, time_in
from ._vtk_tree import local_path, parse_tree
from ._vtk_xml import with_field


class VTKSeries(eqx.Module):
    """Files that belong to rising times; none is read before it is asked for.

    `series[i]` reads one file and returns its time and data, `series[-10:]` is the
    series of the last ten, and a `for` loop reads one file after the other.

    Attributes:
        times: The times, in the unit of the files.
        paths: The file of each time, or its several parts.
        arrays: Names of the values to read, or `None` for all.
    """

    times: Float[np.ndarray, " times"]
    paths: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    arrays: tuple[str, ...] | None = eqx.field(static=True, default=None)

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> tuple[float, VTKData]: ...

    @overload
    def __getitem__(self, index: slice) -> "VTKSeries": ...

    def __getitem__(self, index):
        if isinstance(index, slice):
            return VTKSeries(self.times[index], self.paths[index], self.arrays)
        if not -len(self) <= index < len(self):
            raise IndexError(f"The series has {len(self)} times, but not {index}.")
        time, paths = float(self.times[index]), self.paths[index]
        if len(paths) == 1:
            return time, read_vtk(paths[0], self.arrays)
        parts = [read_vtk(path, self.arrays) for path in paths]
        try:
            if parts[0].cells is None:
                raise VTKFaultError("Only meshes may come in several parts.")
            joined = merge([(None, part) for part in parts], None)
        except VTKFaultError as error:
            raise PhysaxFileError(paths[0], f"{error} See `paths`.") from error
        return time, with_field(joined, parts[0].field_data)

    def __iter__(self) -> Iterator[tuple[float, VTKData]]:
        return (self[index] for index in range(len(self)))

    def array(self, name: str) -> "VTKArraySeries":
        """Returns the series of one array alone.

        Args:
            name: Its name, on points or else on cells.
        """
        return VTKArraySeries(VTKSeries(self.times, self.paths, (name,)), name)


class VTKArraySeries(eqx.Module):
    """One array of a series; `array(number)` reads it at one time.

    Attributes:
        series: The files.
        name: The name of the array, on points or else on cells.
    """

    series: VTKSeries
    name: str = eqx.field(static=True)

    @property
    def times(self) -> Float[np.ndarray, " times"]:
        """The times, in the unit of the files."""
        return self.series.times

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The file of each time, or its several parts."""
        return self.series.paths

    def __call__(self, number: int) -> Num[np.ndarray, "..."]:
        """Reads the array at one time.

        Args:
            number: Number of the time.
        """
        _, data = self.series[number]
        place = data.point_data if self.name in data.point_data else data.cell_data
        return place[self.name]


def read_vtk_series(
    path_or_pattern: str | os.PathLike,
    *,
    last: int | None = None,
    arrays: Collection[str] | None = None,
) -> VTKSeries:
    """Finds the files of a series and their times; reads each when it is asked for.

    A `.pvd` file gives both; its files must lie in its folder or below, and several of
    one time are parts of one mesh, each of another `part` if they bear one. Those of a
    pattern such as `"run/flow_*.vtu"` are taken in natural order, `flow_2` before
    `flow_10`, and each must bear its time (field data `TimeValue`, or `TIME` in files
    of VisIt), later than the one before; if none does, the times are 0, 1, 2, ...

    Args:
        path_or_pattern: The `.pvd` file, or the pattern as a shell has it.
        last: Take at most so many times, those at the end.
        arrays: Names of the values on points and cells to read, all by default.

    Returns:
        The series: pairs of time and data.

    Raises:
        ArgumentError: If `last` is not positive.
        PhysaxFileError: If no file matches, the `.pvd` file is damaged, names files
            elsewhere or one part of a time twice, or the times do not increase.
        FileNotFoundError: If there is no such `.pvd` file.
    """
    last = None if last is None else whole(last, "last")
    name = os.fspath(path_or_pattern)
    if Path(name).suffix.lower() == ".pvd":
        entries = read_pvd(name)
        grouped: dict[float, list[str]] = {}
        for time, source in entries:
            grouped.setdefault(time, []).append(
                os.path.join(os.path.dirname(name), source)
            )
        times = sorted(grouped)
        paths = tuple(tuple(grouped[time]) for time in times)
        if not paths:
            raise PhysaxFileError(name, "It must name files, but names none.")
    else:
        paths = tuple((file,) for file in _matches(name))
        times = _times([file for (file,) in paths])
    start = 0 if last is None else -last
    wanted = (arrays,) if isinstance(arrays, str) else arrays
    return VTKSeries(
        np.asarray(times[start:], np.float64),
        paths[start:],
        None if wanted is None else tuple(wanted),
    )


def _matches(pattern: str) -> list[str]:
    found = [
        file
        for file in glob.glob(pattern)
        if Path(file).suffix.lower() in VTK_SUFFIXES and Path(file).is_file()
    ]
    if not found:
        raise PhysaxFileError(
            pattern,
            f"`path_or_pattern` must be a .pvd file or match files "
            f"{', '.join(VTK_SUFFIXES)}, but matches none.",
        )
    return sorted(found, key=natural_key)


def _times(files: list[str]) -> list[float]:
    found = [time_in(file) for file in files]
    times = [time for time in found if time is not None]
    if not times:
        return [float(number) for number in range(len(files))]
    if len(times) != len(files):
        raise PhysaxFileError(
            files[found.index(None)],
            "It must have a time (field data `TimeValue`) like other files of the "
            "series, but does not.",
        )
    for before, after, file in zip(times, times[1:], files[1:], strict=False):
        if not after > before:
            raise PhysaxFileError(
                file,
                f"Its time must be later than {before}, that of the file before, but "
                f"is {after}. Write a .pvd file that gives the order.",
            )
    return times


def read_pvd(path: str | os.PathLike) -> list[tuple[float, str]]:
    """Reads a `.pvd` file: times and the names of the files as written there.

    Raises:
        PhysaxFileError: If it is damaged, or names files elsewhere or one part of a
            time twice.
        FileNotFoundError: If there is no such file.
    """
    with Path(path).open("rb") as file:
        try:
            root, _ = parse_tree(file)
            collection = root.find("Collection")
            if root.attributes.get("type") != "Collection" or collection is None:
                raise VTKFaultError("It must hold a <Collection>, but does not.")
            entries, seen = [], {}
            for number, element in enumerate(collection.all("DataSet")):
                source = element.get("file")
                local_path(path, source)
                if Path(source).suffix.lower() not in VTK_SUFFIXES:
                    raise VTKFaultError(
                        f"It must name files {', '.join(VTK_SUFFIXES)}, but names "
                        f"{source[:200]!r}."
                    )
                time = _time(element.attributes, number)
                _check_part(seen, time, element.attributes, source)
                entries.append((time, source))
        except VTKFaultError as error:
            raise PhysaxFileError(path, str(error)) from error
    return entries


def _check_part(
    seen: dict[tuple, str], time: float, attributes: dict[str, str], source: str
) -> None:
    """Raises if a file is of a part that the time has already; else notes it."""
    part = attributes.get("part")
    label = source if part is None else f"part {part.strip()[:40]}"
    group = attributes.get("group", "").strip()
    key = time, group, label
    if key in seen:
        raise VTKFaultError(
            f"It must name each part of a time once, but at time {time:g} has "
            f"{seen[key]} and {source} for {label}. Leave one out, as after a restart, "
            "or give them different numbers by `part`."
        )
    seen[key] = source


def _time(attributes: dict[str, str], number: int) -> float:
    text = attributes.get("timestep", str(number)).strip()
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        raise VTKFaultError(
            f"'timestep' of <DataSet> must be a finite number, but is {text[:40]!r}."
        )
    return float(text)
