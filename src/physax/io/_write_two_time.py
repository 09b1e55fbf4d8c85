"""Writes two-time correlations in the layouts that others read."""

import json
import os
import zipfile

import h5py
import numpy as np

from .._checks import ArgumentError
from .._whole_file import whole_file
from ..xpcs import TwoTime
from ._two_time_layouts import (
    AbstractTwoTimeLayout,
    APSLayout,
    APSULayout,
    NPZLayout,
)
from ._two_time_npz import C2, METADATA, PHI, T1, T2, Q, write_npy
from ._whole_hdf5 import whole_hdf5


# HDF5 unpacks whole chunks: small ones let a reader take a few frames.
_CHUNK = 256
# Relative: times in float32 are known to 6e-8 of the last.
_UNEVEN = 1e-5


def write_two_time(
    path: str | os.PathLike,
    data: TwoTime,
    *,
    layout: AbstractTwoTimeLayout | None = None,
) -> None:
    """Writes two-time correlation maps.

    The file appears whole or not at all, and an older one stays until then. Every byte
    is protected by a checksum, so that damage is found when the file is read.

    What a layout has no place for lies beside it, where other programs do not look:
    `sigma`, whether it is known, `mask`, and the exact times, in the group `physax` of
    an HDF5 file. HDF5 layouts store the triangle above the diagonal and zeros below it,
    in degrees and with one time per frame.

    Args:
        path: The file.
        data: The maps.
        layout: `APSULayout()`, `APSLayout()` or `NPZLayout()`; by the suffix of `path`
            if `None`: the cache for `.npz`, APS-U for others.

    Raises:
        ArgumentError: If the layout cannot hold the maps, is none of these, or does not
            go with the suffix.
        OSError: If the file cannot be written.
    """
    npz = os.fspath(path).lower().endswith(".npz")
    if layout is None:
        layout = NPZLayout() if npz else APSULayout()
    if not isinstance(layout, APSULayout | APSLayout | NPZLayout):
        name = layout.name if isinstance(layout, AbstractTwoTimeLayout) else layout
        raise ArgumentError(
            "`layout` must be an APSULayout(), an APSLayout() or an NPZLayout(), but "
            f"is {name!r}."
        )
    if isinstance(layout, NPZLayout) != npz:
        raise ArgumentError(
            f"`path` must {'end' if not npz else 'not end'} in .npz with the layout "
            f"{layout.name!r}, but is {os.fspath(path)!r}. Without `layout` the suffix "
            "decides."
        )
    host = _Host(data)
    if isinstance(layout, NPZLayout):
        _write_npz(path, host)
    elif isinstance(layout, APSLayout):
        _write_hdf5(path, host, _aps_lists(host), "exchange/C2T_all/g2_{:05d}")
    else:
        name = "xpcs/twotime/correlation_map/c2_{:05d}"
        _write_hdf5(path, host, _apsu_lists(host), name)


class _Host:
    """The arrays of maps on the host, with angles in degrees."""

    def __init__(self, data: TwoTime):
        self.c2 = np.asarray(data.c2)
        self.q = np.asarray(data.q, np.float64)
        self.degrees = np.degrees(np.asarray(data.phi, np.float64))
        self.times = np.asarray(data.times)
        self.sigma = np.asarray(data.sigma)
        self.sigma_is_known = np.asarray(data.sigma_is_known, np.uint8)
        self.mask = None if data.mask is None else np.asarray(data.mask)

    def dt(self) -> float:
        """Returns the time per frame, the same for all."""
        steps = np.diff(self.times.astype(np.float64))
        mean = float(np.mean(steps)) if steps.size else 1.0
        slack = _UNEVEN * (mean + float(np.max(np.abs(self.times), initial=0.0)))
        if np.any(np.abs(steps - mean) > slack):
            raise ArgumentError(
                "`data.times` must be evenly spaced for this layout, but steps go from "
                f"{steps.min():g} to {steps.max():g} s. Write an npz file."
            )
        return mean


def _aps_lists(host: _Host) -> dict[str, np.ndarray]:
    return {
        "xpcs/dqlist": host.q[None],
        "xpcs/dphilist": host.degrees[None],
        "measurement/instrument/detector/exposure_period": np.array([[host.dt()]]),
    }


def _apsu_lists(host: _Host) -> dict[str, np.ndarray]:
    q, at_q = np.unique(host.q, return_inverse=True)
    phi, at_phi = np.unique(host.degrees, return_inverse=True)
    bins = at_q * phi.size + at_phi + 1
    if np.unique(bins).size != bins.size:
        raise ArgumentError(
            "`data` must have each pair of wavevector and angle once for this layout, "
            "but has one twice. Use `APSLayout()`, "
            "or `--layout aps` on the command line."
        )
    return {
        "xpcs/qmap/dynamic_v_list_dim0": q,
        "xpcs/qmap/dynamic_v_list_dim1": phi,
        "xpcs/twotime/processed_bins": bins,
        "entry/instrument/detector_1/frame_time": np.array(host.dt()),
    }


def _write_hdf5(path, host: _Host, lists: dict[str, np.ndarray], name: str) -> None:
    # Formats before 1.10 have no checksums over what describes the values.
    version = ("v110", "v110")
    with whole_hdf5(path) as content, h5py.File(content, "w", libver=version) as file:
        for where, values in lists.items():
            _small(file, where, values)
        _small(file, "physax/times", host.times)
        for k, one in enumerate(host.c2, 1):
            _large(file, name.format(k), np.triu(one))
        write = _large if host.sigma.ndim == 3 else _small
        write(file, "physax/sigma", host.sigma)
        _small(file, "physax/sigma_is_known", host.sigma_is_known)
        if host.mask is not None:
            _large(file, "physax/mask", host.mask.astype(np.uint8))


def _small(file: h5py.File, name: str, values: np.ndarray) -> None:
    if values.nbytes > 32_000:
        _large(file, name, values)
        return
    # In the header of the dataset, which has a checksum. Of a single number h5py's own
    # `create_dataset` makes another layout whatever it is told.
    compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compact.set_layout(h5py.h5d.COMPACT)
    folder, _, last = name.rpartition("/")
    made = h5py.h5d.create(
        file.require_group(folder).id,
        last.encode(),
        h5py.h5t.py_create(values.dtype),
        h5py.h5s.create_simple(values.shape),
        dcpl=compact,
    )
    h5py.Dataset(made)[...] = values


def _large(file: h5py.File, name: str, values: np.ndarray) -> None:
    chunks = tuple(min(_CHUNK, n) for n in values.shape[-2:])
    file.create_dataset(
        name,
        data=values,
        chunks=(1,) * (values.ndim - len(chunks)) + chunks,
        fletcher32=True,
        # Half of a map is zeros.
        compression="gzip",
        compression_opts=1,
        shuffle=True,
    )


def _write_npz(path, host: _Host) -> None:
    times = host.times.astype(np.float64)
    arrays = {
        Q: host.q,
        PHI: host.degrees,
        T1: times,
        T2: times,
        C2: host.c2,
        "sigma": host.sigma,
        "sigma_is_known": host.sigma_is_known,
    }
    if host.mask is not None:
        arrays["mask"] = host.mask
    # The directory of an archive has no checksum: it says here what must be in it.
    about = {"written_by": "physax", "arrays": list(arrays)}
    arrays = {METADATA: np.array(json.dumps(about)), **arrays}
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, values in arrays.items():
            write_npy(archive, name, values)
