"""Writes tracks as npz, NetCDF or zarr, and reads them again."""

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._checks import ArgumentError, as_array, kind_of
from .._whole_file import check_folder
from ..particles import Tracks
from ..particles._tracks import check_tracks
from ._errors import PhysaxFileError
from ._gds import MissingPackageError
from ._netcdf_open import NETCDF_SUFFIXES, NPZ_SUFFIXES, ZARR_SUFFIXES, import_xarray
from ._netcdf_time import Epoch
from ._npz import load_npz, save_npz
from ._read_velocity import StoredField
from ._tracks_dataset import Labels, tracks_dataset, tracks_of
from ._whole_hdf5 import whole_hdf5


_KIND = "physax tracks 1"
_FIELDS = (
    "times",
    "positions",
    "velocities",
    "variables",
    "status",
    "ended",
    "face",
    "since",
    "entries",
)


def write_tracks(
    path: str | os.PathLike,
    tracks: Tracks,
    flow: StoredField | None = None,
    *,
    spherical: bool | None = None,
    epoch: Epoch | None = None,
    ragged: bool = False,
    attributes: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Writes tracks as one file, whole or not at all.

    `.npz` keeps every bit and needs no other package. `.nc` and `.zarr` files hold
    trajectories of the CF conventions (`featureType` is `trajectory`), which xarray and
    most programs of the field open: `time`, `lon` and `lat` or `x` and `y`, further
    variables, and for each particle its `status`, when it `ended`, and where it was
    last. A coordinate that is periodic has its ends as the attribute `periodic_range`.
    Before the release and after the end of a particle there are no observations: the
    coordinates are NaN there. `read_tracks` reads all of them.

    On a sphere a place beyond a pole is written to `.nc` and `.zarr` with the latitude
    and longitude that it has, as by `wrap_globe`, but without taking whole turns off
    longitudes; `.npz` keeps latitudes of tracks beyond 90 degrees.

    xarray decodes dates of calendars that NumPy does not have, as `noleap`, and of
    years before 1678, but not missing ones. Files with such dates have a `time` in
    every row, also where there is no observation, and `ended`, unless all particles
    have ended, is a number of seconds without a unit: its `comment` has the date.

    Variables of the tracks that have a name which these files use, such as `z`,
    `velocity_x` or `status`, are refused: rename them, or write `.npz`.

    Args:
        path: The file, `*.npz`, `*.nc` or `*.zarr`.
        tracks: The tracks.
        flow: What carried the particles: says what coordinates and times mean.
        spherical: Whether positions are longitude and latitude; as in `flow`, else not.
        epoch: The date of time 0; as in `flow`.
        ragged: Whether to write tracks one after another, without padding: smaller
            where many end early.
        attributes: Attributes of variables along the tracks, by name, such as
            `{"temperature": {"units": "degree_C"}}`. NetCDF and zarr only.

    Raises:
        ArgumentError: If the suffix is another, `tracks` is not a `Tracks`, or one of
            its variables has a name that CF files use for something else.
        MissingPackageError: If xarray, or a package behind it, is not installed.
        PhysaxFileError: If `path` is a folder that is not a zarr store.
        FileNotFoundError: If there is no folder for it.
        OSError: If the file cannot be written.
    """
    path = _as_path(path, "write_tracks(path, tracks)")
    check_tracks(tracks)
    suffix = path.suffix.lower()
    if suffix in NPZ_SUFFIXES:
        # NumPy's arrays: JAX's of 64 bits could not be read where it has them off.
        content = {name: getattr(tracks, name) for name in _FIELDS}
        if tracks.wraps is not None:
            content["wraps"] = tracks.wraps
        save_npz(path, {"kind": _KIND, **jax.tree.map(np.asarray, content)})
        return
    if suffix not in (*NETCDF_SUFFIXES, *ZARR_SUFFIXES):
        raise ArgumentError(
            f"`path` must end in '.npz', '.nc' or '.zarr', but is {os.fspath(path)!r}."
        )
    xarray = import_xarray("NetCDF and zarr files")
    ndim = tracks.positions.shape[-1]
    if spherical is None:
        spherical = flow is not None and flow.spherical
    units = ("degrees", "degrees", "m")[:ndim] if spherical else ("m",) * ndim
    downward = (False,) * ndim
    if flow is not None:
        epoch = epoch or flow.epoch
        units, downward = flow.units, flow.downward
    labels = Labels(spherical, units, downward, epoch, attributes or {})
    data = tracks_dataset(xarray, tracks, labels, ragged=ragged)
    if suffix in ZARR_SUFFIXES:
        _write_zarr(path, data)
        return
    if importlib.util.find_spec("h5netcdf") is None:
        raise MissingPackageError(
            "NetCDF files are written by the package h5netcdf: pip install h5netcdf."
        )
    if _version(xarray) < (2025, 8):
        raise MissingPackageError(
            "NetCDF files are written by xarray 2025.8 or newer, but there is "
            f"{xarray.__version__}: pip install -U xarray."
        )
    with whole_hdf5(path) as content:
        data.to_netcdf(content, engine="h5netcdf")


def _version(package: Any) -> tuple[int, ...]:
    return tuple(map(int, package.__version__.split(".")[:2]))


def _write_zarr(path: Path, data: Any) -> None:
    """Writes a folder under another name first."""
    if path.exists() and not _is_zarr(path):
        raise PhysaxFileError(
            path, "It must be a zarr store to be replaced, but is something else."
        )
    check_folder(path)
    draft = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    old = path.with_name(f".{path.name}.old-{os.getpid()}")
    try:
        data.to_zarr(draft, mode="w", consolidated=False)
        if path.exists():
            path.rename(old)
        try:
            draft.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
    except ImportError as error:
        raise MissingPackageError(
            "Zarr stores need the package zarr: pip install zarr."
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)


def _is_zarr(path: Path) -> bool:
    return any((path / name).is_file() for name in ("zarr.json", ".zgroup", ".zattrs"))


def read_tracks(path: str | os.PathLike) -> Tracks:
    """Reads tracks that `write_tracks` wrote.

    Args:
        path: The file.

    Returns:
        The tracks, in float32 where JAX has 64 bits off. Of NetCDF and zarr files,
        velocities are NaN before the release and after the end.

    Raises:
        ArgumentError: If `path` is not the name of a file.
        PhysaxFileError: If the file is damaged or holds something else.
        MissingPackageError: If xarray is needed and not installed.
        FileNotFoundError: If there is no such file.
    """
    path = _as_path(path, "read_tracks(path)")
    if path.suffix.lower() in NPZ_SUFFIXES:
        content = load_npz(path)
        if not isinstance(content, dict) or content.get("kind") != _KIND:
            raise PhysaxFileError(
                path, "It must hold tracks, but holds something else."
            )
        fields = {n: jax.tree.map(_to_jax, content[n]) for n in _FIELDS}
        wraps = content.get("wraps")
        return Tracks(**fields, wraps=None if wraps is None else _to_jax(wraps))
    xarray = import_xarray("NetCDF and zarr files")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {os.fspath(path)!r}.")
    options = {}
    if path.suffix.lower() in ZARR_SUFFIXES:
        options = {"engine": "zarr", "consolidated": False}
    try:
        with xarray.open_dataset(
            path, decode_times=False, decode_timedelta=False, **options
        ) as data:
            return tracks_of(data)
    except KeyError as error:
        raise PhysaxFileError(
            path, f"It must hold tracks by `write_tracks`, but lacks {error}."
        ) from error
    except (OSError, ValueError, RuntimeError) as error:
        kinds = (*NETCDF_SUFFIXES, *ZARR_SUFFIXES)
        if path.suffix.lower() not in kinds:
            reason = (
                "It must be a file that `write_tracks` wrote, '.npz', '.nc' or "
                f"'.zarr', but ends in {path.suffix!r}.{_remedy(path)}"
            )
        else:
            # xarray writes paragraphs.
            first = str(error).partition(". ")[0].rstrip(".")
            reason = (
                f"It cannot be read: {first}. If the file is valid, a package may be "
                "missing: pip install h5netcdf zarr."
            )
        raise PhysaxFileError(path, reason) from error


def _as_path(path: Any, form: str) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(
            f"`path` must be the name of a file, as in `{form}`, but is {kind_of(path)}"
        )
    return Path(path)


def _remedy(path: Path) -> str:
    """Says what reads files of other kinds that hold tracks."""
    if path.suffix == ".npy":
        return " The rows of a `TrackFile` are read by `np.load`."
    if path.suffix.startswith(".vt"):
        return " VTK files are read by `read_vtk`."
    return ""


def _to_jax(values: np.ndarray) -> jax.Array:
    codes = values.dtype.kind == "i"
    return jnp.asarray(values, jnp.int32) if codes else as_array(values)
