"""Tracks as labelled arrays by the CF conventions for trajectories, and back."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, as_array
from ..particles import ParticleStatus, Tracks
from ..particles._sphere import unfolded
from ._netcdf_time import Epoch
from ._tracks_clock import Clock, make_clock


_ID, _OBS, _SIZE = "trajectory", "obs", "row_size"
_PERIODIC = "periodic_range"
_SPHERE = (
    ("lon", {"standard_name": "longitude", "units": "degrees_east", "axis": "X"}),
    ("lat", {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"}),
)
_WORDS = ("first", "last")
_FATES = ("status", "since", "ended", "face", "entries")
# All names that mean something to a reader, of tracks in any number of axes.
_OWN = frozenset(
    ["time", _ID, _OBS, _SIZE, *_FATES]
    + [
        f"{word}{name}"
        for word in ("", "first_", "last_", "velocity_")
        for name in ("x", "y", "z", "lon", "lat")
    ]
)


class Labels(NamedTuple):
    """What the numbers of tracks mean.

    Attributes:
        spherical: Whether positions are longitude and latitude.
        units: Of each coordinate.
        downward: Of each coordinate whether it increases downward.
        epoch: The date of time 0, or `None`.
        attributes: Of variables along the tracks, by name.
    """

    spherical: bool
    units: tuple[str, ...]
    downward: tuple[bool, ...]
    epoch: Epoch | None
    attributes: Mapping[str, Mapping[str, str]]


def tracks_dataset(xarray: Any, tracks: Tracks, labels: Labels, *, ragged: bool) -> Any:
    """Makes a dataset of tracks.

    Places beyond a pole are written as those within 90 degrees of latitude that they
    are. Where xarray would read NaN as a date, rows without an observation have a time,
    too, and `ended` is without a unit unless all have ended.

    Args:
        xarray: The package.
        tracks: The tracks.
        labels: What their numbers mean.
        ragged: Whether tracks follow one another, or as rows of equal length.

    Returns:
        The `xarray.Dataset`.
    """
    _check_names(tracks)
    moving = np.asarray(tracks.moving()).T
    count, rows = moving.shape
    times = np.asarray(tracks.times, float)
    positions, velocities = _within_the_poles(tracks, labels.spherical)
    positions = np.moveaxis(positions, 0, 1)
    clock = make_clock(xarray, labels.epoch, times)
    dims = (_OBS,) if ragged else (_ID, _OBS)

    def along(values: np.ndarray) -> tuple:
        if ragged:
            return dims, values[moving]
        kind = values.dtype if values.dtype.kind == "f" else np.float64
        return dims, np.where(moving, values, np.nan).astype(kind)

    every = np.broadcast_to(times, (count, rows))
    stamps = along(every)[1] if ragged or clock.gaps else every
    stamps, label = clock.dated(stamps, "time")
    shared = {"standard_name": "time", "axis": "T", **label}
    coordinates: dict[str, tuple] = {"time": (dims, stamps, shared)}
    variables: dict[str, tuple] = {}
    for number, (name, attributes) in enumerate(_coordinates(labels, positions)):
        ends = _periodic_range(tracks, number)
        coordinates[name] = (*along(positions[..., number]), {**attributes, **ends})
        label = {"units": attributes["units"]}
        variables |= _at_the_ends(name, "where", positions[..., number], label)
        if velocities is not None:
            speed = velocities[..., number].T
            label = {
                "long_name": f"velocity of the particle along {name}",
                "units": f"{labels.units[number]} s-1",
            }
            variables[f"velocity_{name}"] = (*along(speed), label)
    variables |= _fates(tracks, clock)
    for name, values in tracks.variables.items():
        label, rows = labels.attributes.get(name, {}), np.asarray(values).T
        variables[name] = (*along(rows), {"long_name": name, **label})
        variables |= _at_the_ends(name, "when", rows, label)
    identity = {"cf_role": "trajectory_id", "long_name": "number of the particle"}
    coordinates[_ID] = (_ID, np.arange(count, dtype=np.int32), identity)
    if ragged:
        size = {"long_name": "number of observations", "sample_dimension": _OBS}
        variables[_SIZE] = (_ID, moving.sum(1).astype(np.int32), size)
    whole = {
        "Conventions": "CF-1.10",
        "featureType": "trajectory",
        "source": "physax",
        "recorded_times": times,
    }
    return xarray.Dataset(variables, coordinates, whole)


def _within_the_poles(
    tracks: Tracks, spherical: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns positions and velocities, on a sphere with latitudes within 90 degrees.

    Longitudes are turned by 180 degrees only where a track is beyond a pole; others
    keep their bits and their whole turns.
    """
    positions, velocities = np.asarray(tracks.positions), tracks.velocities
    velocities = None if velocities is None else np.asarray(velocities)
    if not spherical:
        return positions, velocities
    places, turned = map(np.array, unfolded(tracks.positions))
    if tracks.wraps is not None:
        low, high = np.asarray(tracks.wraps)[:, 0]
        if np.isfinite(high - low):
            # They stay between the ends of a periodic axis.
            inside = low + np.mod(places[..., 0] - low, high - low)
            places[..., 0] = np.where(turned, inside, places[..., 0])
    if velocities is not None:
        # Beyond a pole the latitude of a track increases southward.
        southward = np.where(turned, -velocities[..., 1], velocities[..., 1])
        velocities = velocities.copy()
        velocities[..., 1] = southward
    return places, velocities


def _at_the_ends(
    name: str, at: str, rows: np.ndarray, attributes: Mapping[str, Any]
) -> dict[str, tuple]:
    """Returns what fills the rows before the release and after the end, two numbers."""
    names = {
        word: f"{attributes.get('long_name', name)} {at} the particle was {word}"
        for word in _WORDS
    }
    return {
        f"{word}_{name}": (_ID, rows[:, row], {**attributes, "long_name": names[word]})
        for word, row in zip(_WORDS, (0, -1), strict=True)
    }


def _check_names(tracks: Tracks) -> None:
    """Raises if a variable has a name that is none, or that means something else."""
    for name in tracks.variables:
        if not name or "/" in name:
            raise ArgumentError(
                "`tracks.variables` of a CF file must have names without '/', which "
                f"are not empty, but one is {name!r}. Rename it, or write `.npz`."
            )
        for word in _WORDS:
            if (twin := f"{word}_{name}") in tracks.variables:
                raise ArgumentError(
                    f"`tracks.variables` of a CF file must not have the name {twin!r} "
                    f"beside {name!r}, whose {word} value has it. Rename it, or write "
                    "`.npz`."
                )
        if name in _OWN:
            raise ArgumentError(
                "`tracks.variables` of a CF file must not have the names "
                f"{', '.join(sorted(_OWN))}, but one is {name!r}. Rename it, or write "
                "`.npz`."
            )


def _coordinates(labels: Labels, positions: np.ndarray):
    """Yields the name and the attributes of each coordinate."""
    for number in range(positions.shape[-1]):
        if labels.spherical and number < 2:
            name, attributes = _SPHERE[number]
            yield name, {**attributes, "long_name": attributes["standard_name"]}
            continue
        name, unit = "xyz"[number], labels.units[number]
        positive = {"positive": "down"} if labels.downward[number] else {}
        label = {"axis": name.upper(), "units": unit, "long_name": f"position {name}"}
        yield name, label | positive


def _periodic_range(tracks: Tracks, number: int) -> dict[str, np.ndarray]:
    """Returns the ends of a coordinate as an attribute, if it is periodic."""
    if tracks.wraps is None:
        return {}
    ends = np.asarray(tracks.wraps)[:, number]
    return {_PERIODIC: ends} if np.isfinite(ends).all() else {}


def _fates(tracks: Tracks, clock: Clock) -> dict[str, tuple]:
    members = list(ParticleStatus)
    flags = {
        "long_name": "what became of the particle",
        "flag_values": np.array([int(m) for m in members], np.int32),
        "flag_meanings": " ".join(m.name.lower() for m in members),
    }
    since, ended = np.asarray(tracks.since, float), np.asarray(tracks.ended, float)
    return {
        "status": (_ID, np.asarray(tracks.status, np.int32), flags),
        "since": (_ID, *clock.dated(since, "time of release or last entry")),
        "ended": (_ID, *clock.dated(ended, "time at which the particle ended")),
        "face": (
            _ID,
            np.asarray(tracks.face, np.int32),
            {"long_name": "boundary where the particle ended or came in, -1 for none"},
        ),
        "entries": (
            _ID,
            np.asarray(tracks.entries, np.int32),
            {"long_name": "how often the particle came in again"},
        ),
    }


def tracks_of(data: Any) -> Tracks:
    """Makes tracks of a dataset by `tracks_dataset`, read without decoding times.

    Rows before the release and after the end hold the place of release and of the end
    again, and variables their value there, as those of `track` do.

    Args:
        data: The `xarray.Dataset`.

    Raises:
        KeyError: If a variable is missing.
    """
    times = np.atleast_1d(np.asarray(data.attrs["recorded_times"], float))
    names = _names(data)
    wide = _padded(data, times)
    known = np.isfinite(wide(names[0]))
    # A particle may begin and end between two recorded times.
    sense = -1 if times[-1] < times[0] else 1
    late = sense * times < sense * np.asarray(data["since"].values, float)[:, None]
    first = np.where(known.any(1), known.argmax(1), late.sum(1))
    before = np.arange(times.size) < first[:, None]

    def filled(name: str) -> np.ndarray:
        start, last = (data[f"{word}_{name}"].values[:, None] for word in _WORDS)
        return np.where(known, wide(name), np.where(before, start, last))

    positions = np.stack([filled(name) for name in names], -1)
    along, every = set(data["time"].dims), data.variables
    variables = {
        # Files of other programs may have no values at the ends.
        str(name): as_array((filled if f"last_{name}" in every else wide)(name).T)
        for name, values in data.variables.items()
        if set(values.dims) == along and name not in _OWN
    }
    velocities = None
    if f"velocity_{names[0]}" in data.variables:
        moving = [wide(f"velocity_{name}").T for name in names]
        velocities = as_array(np.stack(moving, -1))
    return Tracks(
        times=as_array(times),
        positions=as_array(np.moveaxis(positions, 1, 0)),
        velocities=velocities,
        variables=variables,
        status=_codes(data, "status"),
        ended=as_array(data["ended"].values),
        face=_codes(data, "face"),
        since=as_array(data["since"].values),
        entries=_codes(data, "entries"),
        wraps=_wraps(data, names, positions.dtype),
    )


def _names(data: Any) -> list[str]:
    """Returns the names of the coordinates, also of one that got lost."""

    def known(name: str) -> bool:
        return any(
            f"{word}{name}" in data.variables for word in ("", "first_", "last_")
        )

    names = ["lon", "lat", "z"] if known("lon") or known("lat") else ["x", "y", "z"]
    return names[: max([n for n in range(3) if known(names[n])], default=0) + 1]


def _wraps(
    data: Any, names: list[str], dtype: np.dtype
) -> Float[Array, "2 ndim"] | None:
    """Returns the ends of periodic coordinates, infinite for others."""
    ends = [data[name].attrs.get(_PERIODIC) for name in names]
    if all(pair is None for pair in ends):
        return None
    rows = [(-np.inf, np.inf) if pair is None else pair for pair in ends]
    return as_array(np.stack(rows, -1).astype(dtype))


def _padded(data: Any, times: np.ndarray) -> Callable[[str], np.ndarray]:
    """Returns what reads a variable as rows of equal length, with NaN for none."""
    if _SIZE not in data.variables:
        return lambda name: data[name].values
    count = data.sizes[_ID]
    row = np.repeat(np.arange(count), data[_SIZE].values)
    order = np.argsort(times)
    column = order[np.searchsorted(times, data["time"].values, sorter=order)]

    def wide(name: str) -> np.ndarray:
        values = data[name].values
        full = np.full((count, times.size), np.nan, values.dtype)
        full[row, column] = values
        return full

    return wide


def _codes(data: Any, name: str):
    return jnp.asarray(data[name].values, jnp.int32)
