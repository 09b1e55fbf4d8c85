"""Reads measured two-time correlations."""

import dataclasses
import os
import zipfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import h5py
import numpy as np
from jaxtyping import ArrayLike, Bool, Int, Num

from .._checks import ArgumentError, instance
from ..runtime import check_memory
from ..xpcs import TwoTime
from ._errors import PhysaxFileError
from ._hdf5 import dataset, find, listing, open_hdf5
from ._two_time_asked import Asked, asked_for
from ._two_time_contents import (
    TwoTimeContents,
    chosen_frames,
    chosen_maps,
    chosen_times,
    contents_of,
)
from ._two_time_index import Index, MapPlace
from ._two_time_layouts import (
    AbstractHDF5Layout,
    AbstractTwoTimeLayout,
    APSLayout,
    APSULayout,
    NPZLayout,
    nxxpcs_layout,
)
from ._two_time_npz import array, is_npz, member, npz_index, npz_maps, open_npz


# The halves of a full map come from different sums, in float32 perhaps.
_ASYMMETRY = 1e-4


def read_two_time(
    path: str | os.PathLike,
    *,
    q: float | int | None = None,
    phi_ranges: Sequence[tuple[float | int, float | int]] | None = None,
    frames: tuple[int, int] | None = None,
    dt: float | int | None = None,
    sigma: Num[ArrayLike, "..."] | None = None,
    mask: Bool[ArrayLike, "frames frames"] | None = None,
    without: Iterable[int] | Int[ArrayLike, " left_out"] = (),
    layout: AbstractTwoTimeLayout | None = None,
    q_tolerance: float | int = 0.1,
    keep_times: bool = False,
) -> TwoTime:
    r"""Reads two-time correlation maps, and only those that are asked for.

    Recognises the layout of a file. Files often store the triangle above or
    below the diagonal only; a file that stores both is read as it is. Values keep their
    precision, except that JAX makes float64 into float32 unless `jax_enable_x64` is on.

    Nothing outside the file is followed, nothing is unpickled, and what would not fit
    into memory is refused before it is read.

    Args:
        path: An HDF5 or npz file.
        q: The wavevector in 1/angstrom; all if `None`. The nearest one there is counts.
            Of an APS-U file the maps of exactly this one are read, of others all
            within a tenth of it; each map keeps its own.
        phi_ranges: Ranges of angles to read, in radians; all angles if `None`. Ranges
            wrap around: `(3.0, -3.0)` crosses pi.
        frames: The first and the last frame to read, counted from 1; all if `None`.
            The times of a part begin at 0 unless `keep_times`.
        dt: Time between frames in seconds. Needed where the file does not state it,
            and overrules it where it does.
        sigma: Standard deviation of one value, for the maps and frames that are read;
            as in the file if `None`, and unknown where it has none.
        mask: Which pairs of the frames that are read to use; as in the file if `None`.
        without: Frames whose pairs are all left out, counted from 1 as in the file,
            whether they are among those that are read or not.
        layout: How the file is stored; found out if `None`.
        q_tolerance: By which fraction the nearest wavevector may differ from `q`.
        keep_times: Whether the frames of a part keep the times that they have in the
            file. Rates that change with time, $t^\alpha$, are counted from time 0: of a
            sample that ages, a part that begins at 0 again has another exponent, and
            the fit may look good all the same.

    Returns:
        The maps, with angles in radians.

    Raises:
        PhysaxFileError: If the file is damaged, lacks something, or holds values that
            cannot be; or nothing in it is what was asked for.
        ArgumentError: If `q`, `dt` or `q_tolerance` is not positive, or what else is
            asked for is of another kind.
        MemoryLimitError: If the maps do not fit into memory.
        FileNotFoundError: If there is no such file.
    """
    asked = asked_for(q, phi_ranges, frames, mask, without, dt, q_tolerance, keep_times)
    if is_npz(path):
        _check_kind(path, layout, NPZLayout)
        with open_npz(path) as archive:
            index = npz_index(path, archive)
            known = layout or NPZLayout()
            part = _read(path, index, known, asked, _npz_reader(path, archive, index))
    else:
        _check_kind(path, layout, AbstractHDF5Layout)
        with open_hdf5(path) as file:
            known = _hdf5_layout(file, layout)
            index = known.index(file)
            part = _read(path, index, known, asked, _hdf5_reader(file, index))
    try:
        data = TwoTime(
            part.c2,
            part.q,
            part.phi,
            part.times,
            part.sigma if sigma is None else None,
            part.mask,
            part.sigma_is_known if sigma is None else None,
        )
    except ArgumentError as error:
        raise PhysaxFileError(path, str(error)) from error
    if sigma is None:
        return data
    # What is wrong with this one is no fault of the file.
    return dataclasses.replace(data, sigma=sigma, sigma_is_known=True)


def scan_two_time(
    path: str | os.PathLike, layout: AbstractTwoTimeLayout | None = None
) -> TwoTimeContents:
    """Says what a file of two-time correlations holds, without reading the maps.

    Args:
        path: An HDF5 or npz file.
        layout: How the file is stored; found out if `None`.

    Returns:
        Wavevectors, angles, frames; `print` shows a table.

    Raises:
        PhysaxFileError: If the file is damaged or lacks something.
        ArgumentError: If `layout` is of another kind.
        FileNotFoundError: If there is no such file.
    """
    if is_npz(path):
        _check_kind(path, layout, NPZLayout)
        with open_npz(path) as archive:
            return contents_of(path, layout or NPZLayout(), npz_index(path, archive))
    _check_kind(path, layout, AbstractHDF5Layout)
    with open_hdf5(path) as file:
        known = _hdf5_layout(file, layout)
        return contents_of(path, known, known.index(file))


class _Part(NamedTuple):
    c2: np.ndarray
    q: np.ndarray
    phi: np.ndarray
    times: np.ndarray
    sigma: np.ndarray | None
    mask: np.ndarray | None
    sigma_is_known: bool | None


class _Reader(NamedTuple):
    """How to get arrays out of an open file.

    Attributes:
        maps: From numbers of maps and a slice of frames to maps as they are stored.
        beside: From the name of another field of `TwoTime`, numbers of maps and a slice
            of frames to what the file has of it, or `None`.
    """

    maps: Callable[[np.ndarray, slice], np.ndarray]
    beside: Callable[[str, np.ndarray, slice], np.ndarray | None]


def _check_kind(path, layout: Any, kind: type) -> None:
    if layout is None:
        return
    remedy = "Write one as `APSLayout()`, or leave it out."
    instance(layout, "layout", AbstractTwoTimeLayout, remedy)
    if not isinstance(layout, kind):
        found = "an npz" if kind is NPZLayout else "not an npz"
        raise PhysaxFileError(
            path, f"It is {found} file, but `layout` is {layout.name!r}."
        )


def _hdf5_layout(
    file: h5py.File, layout: AbstractTwoTimeLayout | None
) -> AbstractHDF5Layout:
    """Returns the layout if it is given and fits, or the one that does."""
    given = isinstance(layout, AbstractHDF5Layout)
    known = [layout] if given else [APSULayout(), APSLayout(), nxxpcs_layout()]
    for candidate in known:
        if all(find(file, name) is not None for name in candidate.required()):
            return candidate
    looked = "; ".join(
        f"{c.name if i < 2 or given else 'NXxpcs'}: " + ", ".join(c.required())
        for i, c in enumerate(known)
    )
    advice = "" if given else " Name them in Python: `layout=DatasetLayout(...)`."
    raise PhysaxFileError(
        file.filename,
        f"It must hold the datasets of a known layout ({looked}), but has "
        f"{listing(file)}.{advice}",
    )


def _read(
    path, index: Index, layout: AbstractTwoTimeLayout, asked: Asked, reader: _Reader
) -> _Part:
    maps = chosen_maps(
        path,
        index,
        q=asked.q,
        phi_ranges=asked.phi_ranges,
        spread=layout.spread,
        q_tolerance=asked.q_tolerance,
    )
    part = chosen_frames(path, asked.frames, index.frames)
    size = part.stop - part.start
    # The maps, JAX's copy of them, and some of one map for the mirror image.
    check_memory(
        (2 * maps.size + 3) * size**2 * index.dtype.itemsize,
        f"{os.fspath(path)}: reading {maps.size} maps of {size} x {size} frames (ask "
        "for less with `frames`, `q` or `phi_ranges`)",
    )
    c2 = reader.maps(maps, part)
    if c2.dtype.kind != "f":
        c2 = c2.astype(np.float32)
    stored = reader.beside("mask", maps, part) if asked.mask is None else asked.mask
    mask = _mask(stored, asked, part, index.frames)
    is_known = reader.beside("sigma_is_known", maps, part)
    for k, one in zip(maps, c2, strict=True):
        _complete(path, one, index, int(k), part, mask)
    return _Part(
        c2,
        index.q[maps],
        index.phi[maps],
        chosen_times(path, index, asked.dt, part, keep=asked.keep_times),
        reader.beside("sigma", maps, part),
        mask,
        # Files written before it was stored have a sigma only where it is known.
        None if is_known is None else bool(is_known),
    )


def _mask(
    stored: np.ndarray | None, asked: Asked, part: slice, frames: int
) -> np.ndarray | None:
    """Returns which pairs of frames count, or `None` for all."""
    size = part.stop - part.start
    mask = None if stored is None else np.asarray(stored, bool)
    if mask is not None and mask.shape != (size, size):
        raise ArgumentError(
            "`mask` must have one entry for each pair of the frames that are read, "
            f"shape {(size, size)}, but has shape {mask.shape}."
        )
    if not asked.without:
        return mask
    if max(asked.without) > frames:
        raise ArgumentError(
            f"`without` must be numbers of frames from 1 to {frames}, but one is "
            f"{max(asked.without)}."
        )
    kept = ~np.isin(np.arange(part.start, part.stop) + 1, asked.without)
    pairs = np.outer(kept, kept)
    return pairs if mask is None else mask & pairs


def _complete(path, one: np.ndarray, index: Index, k: int, part: slice, mask) -> None:
    """Mirrors a stored triangle in place, if only one is stored, and checks values."""
    used = ~np.eye(len(one), dtype=bool)
    if mask is not None:
        used &= mask
    bad = ~np.isfinite(one) & used
    if np.any(bad):
        i, j = (int(n) for n in np.argwhere(bad)[0])
        raise PhysaxFileError(
            path,
            f"`{index.places[k]}` must be finite, but is {one[i, j]} at frames "
            f"{i + part.start + 1} and {j + part.start + 1} ({np.sum(bad)} such "
            "values). Leave these out with `frames`, `without` or `mask`.",
        )
    lower, upper = np.tril(one, -1), np.triu(one, 1)
    both = np.any(lower) and np.any(upper)
    if not both:
        # Adding a full map to its mirror image would double it.
        one += (lower + upper).T
    elif np.any(np.abs(lower.T - upper) > _ASYMMETRY * np.nanmax(np.abs(upper))):
        worst = float(np.nanmax(np.abs(lower.T - upper)))
        raise PhysaxFileError(
            path,
            f"`{index.places[k]}` must be symmetric, or zero on one side of the "
            f"diagonal, but its halves differ by {worst:.3g}.",
        )
    one += one.dtype.type(index.baseline)


def _npz_reader(path, archive: zipfile.ZipFile, index: Index) -> _Reader:
    def beside(name: str, maps: np.ndarray, part: slice):
        if f"{name}.npy" not in archive.namelist():
            return None
        if name == "mask":
            values = array(path, archive, name, ndim=2)
            if values.shape != index.shape[1:]:
                raise _wrong_shape(path, name, values.shape)
            return _boolean(path, name, values[part, part])
        if name == "sigma_is_known":
            return _boolean(path, name, array(path, archive, name, ndim=0))
        shape = member(path, archive, name).shape
        if shape not in ((), index.shape[:1], index.shape):
            raise _wrong_shape(path, name, shape)
        if len(shape) == 3:
            return npz_maps(path, archive, maps, part, name)
        values = array(path, archive, name, ndim=len(shape))
        return values[maps] if shape else values

    return _Reader(lambda maps, part: npz_maps(path, archive, maps, part), beside)


def _hdf5_reader(file: h5py.File, index: Index) -> _Reader:
    def maps(numbers: np.ndarray, part: slice) -> np.ndarray:
        size = part.stop - part.start
        read = np.empty((len(numbers), size, size), index.dtype.newbyteorder("="))
        for row, k in enumerate(numbers):
            read[row] = _one_map(file, index.places[k], part)
        return read

    def beside(name: str, numbers: np.ndarray, part: slice):
        path = f"physax/{name}"
        if find(file, path) is None:
            return None
        data = dataset(file, path)
        if name == "mask":
            if data.shape != index.shape[1:]:
                raise _wrong_shape(file.filename, path, data.shape)
            return _boolean(file.filename, path, data[part, part])
        if name == "sigma_is_known":
            if data.shape:
                raise _wrong_shape(file.filename, path, data.shape)
            return _boolean(file.filename, path, np.asarray(data[()]))
        if data.shape not in ((), index.shape[:1], index.shape):
            raise _wrong_shape(file.filename, path, data.shape)
        if data.ndim < 3:
            return data[()][numbers] if data.ndim else data[()]
        return np.stack([data[k, part, part] for k in numbers])

    return _Reader(maps, beside)


def _one_map(file: h5py.File, place: MapPlace, part: slice) -> np.ndarray:
    data = dataset(file, place.dataset)
    if place.row is None:
        return data[part, part]
    if place.last:
        return data[part, part, place.row]
    return data[place.row, part, part]


def _boolean(path, name: str, values: np.ndarray) -> np.ndarray:
    if not np.all((values == 0) | (values == 1)):
        raise PhysaxFileError(path, f"`{name}` must hold 0 and 1 only, but does not.")
    return values.astype(bool)


def _wrong_shape(path, name: str, shape: tuple[int, ...]) -> PhysaxFileError:
    return PhysaxFileError(
        path, f"`{name}` must have the shape of the maps or frames, but has {shape}."
    )
