"""Dates of files as seconds, and back: any calendar of the CF conventions."""

import dataclasses
import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._checks import ArgumentError
from ._gds import MissingPackageError
from ._netcdf_open import import_xarray


@dataclasses.dataclass(frozen=True)
class Epoch:
    """The date from which seconds are counted.

    Attributes:
        date: As ISO 8601 writes it, "1970-01-31T12:00:00".
        calendar: Of the CF conventions: "standard", "noleap", "360_day", ...
    """

    date: str
    calendar: str = "standard"

    def __post_init__(self):
        parts = self.date.replace("T", " ").split(" ")[0].lstrip("-").split("-")
        if len(parts) != 3 or not all(part.isdigit() for part in parts):
            raise ArgumentError(
                "`date` must have the form '1970-01-31T12:00:00', but is "
                f"{self.date!r}."
            )

    @property
    def units(self) -> str:
        """The unit of times in a file of the CF conventions."""
        return f"seconds since {self.date.replace('T', ' ')}"


Stamps = np.ndarray
"""Dates as NumPy's, as objects of cftime, or seconds where a file has no dates."""


def read_stamps(values: np.ndarray, attributes: Mapping[str, Any]) -> Stamps:
    """Returns the dates that a variable of time holds.

    Args:
        values: The numbers in the file.
        attributes: Its attributes: `units`, "days since 1970-01-01", and `calendar`.

    Raises:
        ArgumentError: If the unit is not one of time, or one is missing.
        MissingPackageError: If a package for the calendar is not installed.
    """
    none = np.array([], int)
    if values.dtype.kind in "fM":
        none = np.flatnonzero(~np.isfinite(values))
    if none.size:
        raise ArgumentError(
            f"Times must be finite, but {none.size} of {values.size} are not; number "
            f"{none[0]} is {values[none[0]]}. Write the file without these instants."
        )
    if values.dtype.kind in "MO":
        return values
    units = str(attributes.get("units", "s")).strip()
    if " since " not in units:
        return values.astype(float) * _seconds(units)
    xarray = import_xarray("Dates")
    known = {k: attributes[k] for k in ("units", "calendar") if k in attributes}
    raw = xarray.Dataset(coords={"time": ("time", values, known)})
    try:
        return np.asarray(xarray.decode_cf(raw)["time"].values)
    except (ImportError, ValueError, OverflowError) as error:
        calendar = known.get("calendar", "standard")
        if importlib.util.find_spec("cftime") is None:
            raise MissingPackageError(
                f"Times in {units!r} of the calendar {calendar!r} may need the package "
                "cftime: pip install cftime."
            ) from error
        # xarray's own text advises an argument that a reader of files cannot give.
        raise ArgumentError(
            "Times must be in seconds, minutes, hours or days since a date such "
            "as 1970-01-31 12:00:00 in a calendar of the CF conventions, or in months "
            f"of '360_day', but are in {units!r} of {calendar!r}. Rewrite them, for "
            "example in days."
        ) from error


def _seconds(units: str) -> float:
    names = {
        ("", "s", "sec", "second", "seconds"): 1.0,
        ("min", "minute", "minutes"): 60.0,
        ("h", "hr", "hour", "hours"): 3600.0,
        ("d", "day", "days"): 86400.0,
    }
    for known, seconds in names.items():
        if units.lower() in known:
            return seconds
    raise ArgumentError(
        "The unit of times must be seconds, minutes, hours or days, with or without "
        f"'since' and a date, but is {units!r}."
    )


def to_seconds(stamps: Stamps, attributes: Mapping[str, Any]) -> tuple[np.ndarray, Any]:
    """Returns seconds since the first date, and that date.

    Args:
        stamps: From `read_stamps`, in order.
        attributes: Of the variable.

    Returns:
        The seconds, and the `Epoch`; `None` where the file has no dates, whose seconds
        are as they are.
    """
    calendar = calendar_of(stamps, attributes)
    if calendar is None:
        return stamps, None
    first = stamps[0]
    if stamps.dtype.kind == "M":
        seconds = (stamps - first) / np.timedelta64(1, "s")
        early, micro = first.astype("M8[us]"), np.timedelta64(1, "us")
        date = str(early + round((first - early) / micro)).removesuffix(".000000")
        return seconds.astype(float), Epoch(date, calendar)
    seconds = np.array([(stamp - first).total_seconds() for stamp in stamps])
    return seconds, Epoch(first.isoformat(), calendar)


def calendar_of(stamps: Stamps, attributes: Mapping[str, Any]) -> str | None:
    """Returns the calendar of dates, `None` of seconds without dates.

    Args:
        stamps: From `read_stamps`.
        attributes: Of the variable.
    """
    if stamps.dtype.kind == "f":
        return None
    if stamps.dtype.kind == "O":
        return str(stamps[0].calendar)
    name = str(attributes.get("calendar", "standard")).lower()
    return "standard" if name == "gregorian" else name


def seconds_between(start: Epoch, stop: Epoch | None) -> float:
    """Returns the seconds from one date to another; 0 to no date.

    NaN where the calendars differ, or where NumPy's dates have only one of both.
    """
    if stop in (None, start):
        return 0.0
    # These two have the same dates since 1582.
    names = {start.calendar, stop.calendar} - {"standard", "proleptic_gregorian"}
    if names and start.calendar != stop.calendar:
        return np.nan
    dates = [
        read_stamps(np.zeros(1), {"units": e.units, "calendar": start.calendar})
        for e in (start, stop)
    ]
    if dates[0].dtype.kind != dates[1].dtype.kind:
        return np.nan
    return float(to_seconds(np.concatenate(dates), {})[0][1])


def seconds_since(epoch: Epoch, first: Epoch | None) -> float:
    """Returns the seconds from a date that a user gave to the first of a file.

    Args:
        epoch: The former.
        first: The latter; 0 seconds where a file has none.

    Raises:
        ArgumentError: If they cannot be compared.
    """
    seconds = seconds_between(epoch, first)
    if first is not None and np.isnan(seconds):
        raise ArgumentError(
            f"`epoch` must be in the file's calendar, {first.calendar!r}, and near its "
            f"first date, {first.date}, but is {epoch.date} in {epoch.calendar!r}."
        )
    return seconds
