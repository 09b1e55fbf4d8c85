"""How files store two-time correlations: where q, angles, times and maps lie."""

import abc
from typing import ClassVar

import equinox as eqx
import h5py
import numpy as np

from ._errors import PhysaxFileError
from ._hdf5 import dataset, find, numbers, seconds, text_attribute
from ._two_time_index import (
    Index,
    MapPlace,
    bin_values,
    check_counts,
    finished,
    maps_of,
    product,
)


class AbstractTwoTimeLayout(eqx.Module):
    """How a file stores two-time correlations.

    Attributes:
        name: Of the layout, for messages.
        spread: A map belongs to the wavevector that is asked for when its own differs
            by no more than this fraction.
    """

    name: ClassVar[str]
    spread: eqx.AbstractVar[float]


class AbstractHDF5Layout(AbstractTwoTimeLayout):
    """A layout inside an HDF5 file."""

    @abc.abstractmethod
    def required(self) -> tuple[str, ...]:
        """Returns the paths by which a file is known to have this layout."""

    @abc.abstractmethod
    def index(self, file: h5py.File) -> Index:
        """Reads everything but the maps."""


class NPZLayout(AbstractTwoTimeLayout):
    """The cache of homodyne: an npz file of six arrays.

    `wavevector_q_list` in 1/angstrom, `phi_angles_list` in degrees, `t1` and `t2` (one
    axis each, equal) in seconds, `c2_exp` of shape (maps, frames, frames), and
    `cache_metadata_json`, which is not needed. Arrays `sigma`,
    `sigma_is_known` and `mask` are ours.

    Attributes:
        spread: Maps whose wavevector differs from that asked for by no more than this
            fraction are read.
    """

    name: ClassVar[str] = "NPZ cache"
    spread: float = eqx.field(static=True, default=0.1)


class APSLayout(AbstractHDF5Layout):
    """The older layout of the Advanced Photon Source, beamline 8-ID.

    `xpcs/dqlist` and `xpcs/dphilist` (shape (1, maps), in 1/angstrom and degrees), and
    one dataset per map in `exchange/C2T_all`, in the order of the numbers in their
    names. The time per frame is `measurement/instrument/detector/exposure_period`, in
    seconds, times `xpcs/avg_frames` and `xpcs/stride_frames` where they are given.

    Attributes:
        spread: Maps whose wavevector differs from that asked for by no more than this
            fraction are read.
    """

    name: ClassVar[str] = "APS"
    spread: float = eqx.field(static=True, default=0.1)

    def required(self) -> tuple[str, ...]:
        return "xpcs/dqlist", "xpcs/dphilist", "exchange/C2T_all"

    def index(self, file: h5py.File) -> Index:
        places = maps_of(file, "exchange/C2T_all")
        q = numbers(file, "xpcs/dqlist").reshape(-1)
        phi = numbers(file, "xpcs/dphilist").reshape(-1)
        check_counts(
            file,
            {
                "xpcs/dqlist": q.size,
                "xpcs/dphilist": phi.size,
                "exchange/C2T_all": len(places),
            },
        )
        dt = product(
            file,
            "measurement/instrument/detector/exposure_period",
            ("xpcs/avg_frames", "xpcs/stride_frames"),
        )
        return finished(file, "xpcs/dqlist", q, phi, places, dt=dt)


class APSULayout(AbstractHDF5Layout):
    """The layout of the Advanced Photon Source since its upgrade.

    `xpcs/qmap/dynamic_v_list_dim0` (q, 1/angstrom) and `..._dim1` (angles, degrees)
    span a grid of bins; `xpcs/twotime/processed_bins` names the bin of each map in
    `xpcs/twotime/correlation_map`, counted from 1 with the angle running fastest. Where
    `xpcs/qmap/dynamic_index_mapping` exists, bins without pixels are not counted, and
    it says where on the grid each of the others lies. The time per frame is
    `entry/instrument/detector_1/frame_time`, in seconds, times `avg_frame` and
    `stride_frame` of `xpcs/twotime/config`.

    Attributes:
        spread: Maps whose wavevector differs from that asked for by no more than this
            fraction are read. Tiny: on a grid, maps have the same q or another.
    """

    name: ClassVar[str] = "APS-U"
    spread: float = eqx.field(static=True, default=1e-10)

    def required(self) -> tuple[str, ...]:
        return "xpcs/qmap/dynamic_v_list_dim0", "xpcs/twotime/correlation_map"

    def index(self, file: h5py.File) -> Index:
        places = maps_of(file, "xpcs/twotime/correlation_map")
        bins = numbers(file, "xpcs/twotime/processed_bins").reshape(-1)
        check_counts(
            file,
            {
                "xpcs/twotime/processed_bins": bins.size,
                "xpcs/twotime/correlation_map": len(places),
            },
        )
        q, phi = bin_values(file, bins, "xpcs/twotime/processed_bins")
        dt = product(
            file,
            "entry/instrument/detector_1/frame_time",
            ("xpcs/twotime/config/avg_frame", "xpcs/twotime/config/stride_frame"),
        )
        where = "xpcs/qmap/dynamic_v_list_dim0"
        return finished(file, where, q, phi, places, dt=dt)


class DatasetLayout(AbstractHDF5Layout):
    """An HDF5 file whose datasets lie where you say.

    Attributes:
        c2: A dataset of all maps, or a group with one dataset per map.
        q: One wavevector per map, or one number for all, in 1/angstrom.
        phi: One angle per map.
        dt: Time per frame in seconds; a single number.
        times: Times of the frames in seconds; used rather than `dt`.
        degrees: Whether `phi` is in degrees and not in radians.
        maps_last: Whether the axis of maps is the last of `c2` and not the first.
        spread: Maps whose wavevector differs from that asked for by no more than this
            fraction are read.
    """

    name: ClassVar[str] = "own paths"
    c2: str = eqx.field(static=True)
    q: str = eqx.field(static=True)
    phi: str = eqx.field(static=True)
    dt: str | None = eqx.field(static=True, default=None)
    times: str | None = eqx.field(static=True, default=None)
    degrees: bool = eqx.field(static=True, default=True)
    maps_last: bool = eqx.field(static=True, default=False)
    spread: float = eqx.field(static=True, default=1e-10)

    def required(self) -> tuple[str, ...]:
        return self.c2, self.q, self.phi

    def index(self, file: h5py.File) -> Index:
        baseline, last = 0.0, self.maps_last
        if isinstance(find(file, self.c2), h5py.Group):
            places = maps_of(file, self.c2)
        else:
            data = dataset(file, self.c2)
            if data.ndim != 3:
                raise PhysaxFileError(
                    file.filename,
                    f"`{self.c2}` must have axes for maps, frames and frames, but has "
                    f"shape {data.shape}.",
                )
            # NeXus says in attributes what else would have to be guessed.
            mode = text_attribute(data, "storage_mode")
            last = mode == "one_array_q_last" if mode else last
            # A value of 0 for "baseline_reference": c2 - 1 is stored.
            if np.array_equal(data.attrs.get("baseline_reference", 1), 0):
                baseline = 1.0
            count = data.shape[-1 if last else 0]
            places = tuple(MapPlace(self.c2, k, last) for k in range(count))
        q, phi = numbers(file, self.q), numbers(file, self.phi)
        q = np.full(len(places), q) if q.ndim == 0 else q.reshape(-1)
        phi = phi.reshape(-1)
        check_counts(file, {self.q: q.size, self.phi: phi.size, self.c2: len(places)})
        if not self.degrees:
            phi = np.degrees(phi)
        dt = None if self.dt is None else seconds(file, self.dt)
        found = finished(file, self.q, q, phi, places, dt=dt, times=self.times)
        return found._replace(baseline=baseline)


def nxxpcs_layout(entry: str = "entry", detector: str = "detector") -> DatasetLayout:
    """Makes the layout of a NeXus file that follows the definition NXxpcs.

    Args:
        entry: Name of the entry.
        detector: Name of the detector in its instrument, which has the frame time.

    Returns:
        The layout. The attributes `storage_mode` and `baseline_reference` of
        `two_time_corr_func` are obeyed.
    """
    masks = f"{entry}/instrument/masks"
    return DatasetLayout(
        c2=f"{entry}/twotime/two_time_corr_func",
        q=f"{masks}/dynamic_q_list",
        phi=f"{masks}/dynamic_phi_list",
        dt=f"{entry}/instrument/{detector}/frame_time",
    )
