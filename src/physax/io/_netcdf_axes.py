"""Which coordinate of a file is longitude, latitude, height or time, by CF's rules."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._checks import ArgumentError


X, Y, Z, T = "x", "y", "z", "t"

_EAST = re.compile(r"degrees?_?(e|east)", re.IGNORECASE)
_NORTH = re.compile(r"degrees?_?(n|north)", re.IGNORECASE)
# "deg", "degree_east", "decimal degrees".
_DEGREES = re.compile(r"((decimal|arc).?)?deg.*|°.*", re.IGNORECASE)
# What says nothing of longitudes and latitudes.
_NOTHING = ("", "1", "-", "none", "unknown")
_RADIANS = re.compile(r"rad(ian)?s?(.(north|east))?", re.IGNORECASE)
_PRESSURE = {
    **dict.fromkeys(("pa", "pascal"), 1.0),
    **dict.fromkeys("hpa mb mbar millibar millibars".split(), 100.0),
    **dict.fromkeys("dbar decibar".split(), 1e4),
}
_LENGTH = {
    **dict.fromkeys("m meter meters metre metres".split(), 1.0),
    **dict.fromkeys("km kilometer kilometers".split(), 1e3),
    **{"cm": 1e-2, "mm": 1e-3, "um": 1e-6},
}
_VERTICAL = re.compile(
    r"depth.*|height.*|altitude.*|air_pressure.*|sea_water_pressure.*|"
    r".*sigma.*|.*s_coordinate.*|model_level_number|geopotential_height",
)
_NAMES = {
    X: "x xc x_c xt xgrid projection_x_coordinate".split(),
    Y: "y yc y_c yt ygrid projection_y_coordinate".split(),
    Z: (
        "z lev level levels depth plev pressure height altitude isobaric pressure_level"
    ).split(),
    T: "t time times time_counter ocean_time valid_time record".split(),
}
_LONGITUDE = re.compile(r"(grid_)?(lon(gitude)?|nav_lon|xlong)(_.*)?")
_LATITUDE = re.compile(r"(grid_)?(lat(itude)?|nav_lat|xlat)(_.*)?")

# Times the spacings on both sides: longitudes that miss more have a hole there.
_HOLE = 2.5
# Degrees: longitudes of 32 bits that are nearer are the same.
_ONE_COLUMN = 1e-4
# Degrees that rounding to 32 bits, also of radians, does not exceed.
_ROUNDING = 1e-4


class Role(NamedTuple):
    """What a coordinate is.

    Attributes:
        axis: `"x"`, `"y"`, `"z"`, `"t"`, or empty for none of them.
        degrees: Whether it is a longitude or a latitude.
    """

    axis: str
    degrees: bool


def role_of(name: str, attributes: Mapping[str, Any]) -> Role:
    """Says what a coordinate is, by its attributes or else by its name.

    Args:
        name: Of the variable.
        attributes: Its attributes.
    """
    units = str(attributes.get("units", "")).strip()
    standard = str(attributes.get("standard_name", "")).lower()
    letter = str(attributes.get("axis", "")).lower()
    plain = name.lower().rsplit("/", 1)[-1]
    # Coordinates of a projection may be angles of a camera.
    projected = standard.startswith("projection_")
    angles = bool(_DEGREES.fullmatch(units) or _RADIANS.fullmatch(units))
    if standard == "time" or " since " in units or letter == T:
        return Role(T, False)
    if _EAST.fullmatch(units) or _LONGITUDE.fullmatch(standard):
        return Role(X, True)
    if _NORTH.fullmatch(units) or _LATITUDE.fullmatch(standard):
        return Role(Y, True)
    if letter in (X, Y):
        return Role(letter, angles and not projected)
    if letter == Z or "positive" in attributes or _VERTICAL.fullmatch(standard):
        return Role(Z, False)
    if _LONGITUDE.fullmatch(plain):
        return Role(X, True)
    if _LATITUDE.fullmatch(plain):
        return Role(Y, True)
    if units.lower() in _PRESSURE or _VERTICAL.fullmatch(plain):
        return Role(Z, False)
    for axis, names in _NAMES.items():
        if plain in names or standard in names:
            return Role(axis, axis in (X, Y) and angles and not projected)
    return Role("", False)


class PlannedAxis(NamedTuple):
    """How the samples along one axis become increasing positions.

    Attributes:
        name: Of the coordinate.
        positions: Increasing, in degrees, metres or pascals.
        order: Which samples, in this order.
        period: Length after which they repeat, or `None`.
        unit: Of the positions.
        downward: Whether it is a vertical axis that increases downward.
    """

    name: str
    positions: np.ndarray
    order: np.ndarray
    period: float | None
    unit: str
    downward: bool


def plan_axis(
    name: str, values: np.ndarray, attributes: Mapping[str, Any], role: Role
) -> PlannedAxis:
    """Finds out how to make the positions along one axis increase.

    A falling axis is flipped. Longitudes may begin anywhere and jump once by 360; if
    they go around the globe they are periodic, and columns that repeat are left out.
    Those of a region across 0 or 180 degrees that were sorted begin behind the hole.

    Args:
        name: Of the coordinate.
        values: Its values.
        attributes: Its attributes.
        role: What it is.

    Raises:
        ArgumentError: If the positions are not monotonic.
    """
    stored, (unit, scale) = np.asarray(values), _unit(name, attributes, role)
    places, order = stored.astype(float) * scale, np.arange(stored.size)
    if not np.all(np.isfinite(places)):
        raise ArgumentError(
            f"Positions along `{name}` must be finite, but some are not."
        )
    if places.size > 1 and np.all(np.diff(places) < 0):
        places, order = places[::-1], order[::-1]
    period = None
    if role.degrees and role.axis == X:
        places, order, period = _around(places, order)
    wrong = np.flatnonzero(np.diff(places) <= 0)
    if wrong.size:
        at = int(wrong[0])
        raise ArgumentError(
            f"Positions along `{name}` must be monotonic, but entries {at} and "
            f"{at + 1} are {places[at]:g} and {places[at + 1]:g}."
        )
    _check_latitudes(name, places, role)
    # Of 32 bits, 0.1, 0.2, ... are not evenly spaced to 64.
    rounding = (
        8 * float(np.finfo(np.float32).eps) if stored.dtype.itemsize <= 4 else 0.0
    )
    places = _evened(places, rounding, period)
    downward = role.axis == Z and _downward(name, attributes, unit, places)
    return PlannedAxis(name, places, order, period, unit, downward)


def _around(places: np.ndarray, order: np.ndarray):
    """Unwraps longitudes, and finds out whether they go around the globe."""
    jumps = np.flatnonzero(np.diff(places) <= -180)
    if jumps.size == 1:
        places = places + 360.0 * (np.arange(places.size) > jumps[0])
    if places.size < 3:
        return places, order, None
    margin = max(1e-3 * float(np.median(np.diff(places))), _ONE_COLUMN)
    if jumps.size == 1 and abs(places[jumps[0] + 1] - places[jumps[0]]) <= margin:
        # -180 and 180, side by side, are one column.
        places, order = np.delete(places, jumps), np.delete(order, jumps)
    if np.any(np.diff(places) <= 0):
        return places, order, None
    kept = places < places[0] + 360 - margin
    turn, turn_order = places[kept], order[kept]
    gaps = np.append(np.diff(turn), turn[0] + 360 - turn[-1])
    widest = int(np.argmax(gaps[:-1]))
    # Spacings may vary around the globe, but not so much from one to the next.
    beside = np.maximum(np.roll(gaps, 1), np.roll(gaps, -1))
    holes = (gaps > _HOLE * beside) | (gaps > 180)
    if not np.any(holes) and gaps[-1] <= 1.01 * gaps[widest]:
        return turn, turn_order, 360.0
    if holes[widest] and gaps[widest] > _HOLE * gaps[-1]:
        # A region across the end of the longitudes, which were sorted.
        first = widest + 1
        places = np.append(turn[first:], turn[:first] + 360)
        order = np.roll(turn_order, -first)
    return places, order, None


def _evened(places: np.ndarray, rounding: float, period: float | None) -> np.ndarray:
    """Removes the rounding of evenly spaced positions."""
    if places.size < 3 or not rounding:
        return places
    # The shortest decimals that round to the ends are what they were meant to be.
    first, last = (float(str(np.float32(place))) for place in places[[0, -1]])
    spacing = (last - first) / (places.size - 1)
    tolerance = rounding * max(np.abs(places).max(), spacing)
    if period is not None and abs(period / places.size - spacing) <= tolerance:
        spacing = period / places.size
    even = first + spacing * np.arange(places.size)
    return even if np.abs(even - places).max() <= tolerance else places


def _unit(name: str, attributes: Mapping[str, Any], role: Role) -> tuple[str, float]:
    """Returns the unit of positions, and what one of the file's is in it."""
    if role.degrees:
        units = str(attributes.get("units", "degrees")).strip()
        if _RADIANS.fullmatch(units):
            return "degrees", 180 / np.pi
        if units.lower() not in _NOTHING and not _DEGREES.fullmatch(units):
            raise ArgumentError(
                f"The unit of the {'longitudes' if role.axis == X else 'latitudes'} "
                f"`{name}` must be degrees or radians, but is {units!r}. Correct their "
                f"attribute `units` in the file; if they are no angles, call them "
                f"{role.axis!r}, without a `standard_name`."
            )
        return "degrees", 1.0
    units = str(attributes.get("units", "m")).strip()
    for table, unit in ((_LENGTH, "m"), (_PRESSURE, "Pa")):
        if units.lower() in table:
            return unit, table[units.lower()]
    if role.axis == Z or units in ("1", ""):
        return units, 1.0
    raise ArgumentError(
        f"The unit of `{name}` must be one of {', '.join(_LENGTH)}, but is {units!r}. "
        "Angles are longitudes and latitudes, not positions on a map."
    )


def _check_latitudes(name: str, places: np.ndarray, role: Role) -> None:
    """Raises if latitudes are beyond a pole."""
    if not (role.degrees and role.axis == Y):
        return
    farthest = float(places[np.argmax(np.abs(places))])
    if abs(farthest) > 90 + _ROUNDING:
        raise ArgumentError(
            f"Latitudes along `{name}` must be from -90 to 90 degrees, but one is "
            f"{farthest:g}. Correct it, or the attributes that make it a latitude."
        )


def all_negative(places: np.ndarray) -> bool:
    """Whether positions are those of heights below a surface at 0.

    Args:
        places: The positions.
    """
    return bool(places.max(initial=-np.inf) <= 0 and places.min(initial=0) < 0)


def _downward(
    name: str, attributes: Mapping[str, Any], unit: str, places: np.ndarray
) -> bool:
    positive = str(attributes.get("positive", "")).lower()
    if positive in ("up", "down"):
        return positive == "down"
    standard = str(attributes.get("standard_name", name)).lower()
    return unit == "Pa" or (standard.startswith("depth") and not all_negative(places))
