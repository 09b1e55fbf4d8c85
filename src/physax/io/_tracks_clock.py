"""Times of tracks in files of the CF conventions, as xarray reads them."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from ._netcdf_time import Epoch


_UNDATED = Epoch("1970-01-01T00:00:00")
_UNDATED_COMMENT = "The run has no date: times count from an arbitrary one."


class Clock(NamedTuple):
    """How seconds become dates.

    Attributes:
        attributes: `units` and `calendar`, of the CF conventions.
        gaps: Whether xarray reads NaN as a missing date.
    """

    attributes: dict[str, str]
    gaps: bool

    def dated(self, values: np.ndarray, long_name: str) -> tuple[np.ndarray, dict]:
        """Returns times and their attributes.

        They are numbers without a unit where xarray could not read them as dates; a
        comment then says since when and in which calendar they count.

        Args:
            values: In seconds, NaN for none.
            long_name: What they are.
        """
        label = {"long_name": long_name}
        if self.gaps or (values.size and np.isfinite(values).all()):
            return values, label | self.attributes
        units, calendar = self.attributes["units"], self.attributes["calendar"]
        said = f"Numbers of {units} of the calendar {calendar}, NaN for none."
        return values, label | {"comment": said}


def make_clock(xarray: Any, epoch: Epoch | None, times: np.ndarray) -> Clock:
    """Makes the clock of a file.

    Args:
        xarray: The package.
        epoch: The date of time 0, or `None`.
        times: All recorded times, in seconds.
    """
    known = epoch or _UNDATED
    attributes = {"units": known.units, "calendar": known.calendar}
    # Dates that NumPy does not have are made by cftime, which takes NaN for time 0 and
    # of which xarray opens none whose first and last are NaN
    # (https://github.com/Unidata/cftime/issues/145). Not needed when that is closed.
    some = np.array([times.min(), np.nan, times.max()])
    probe = xarray.Dataset({"time": ("obs", some, attributes)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            gaps = bool(xarray.decode_cf(probe)["time"].isnull()[1])
        except ValueError:
            gaps = False
    if epoch is None:
        attributes["comment"] = _UNDATED_COMMENT
    return Clock(attributes, gaps)
