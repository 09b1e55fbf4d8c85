"""Reads measured one-time correlations."""

import os
from typing import NamedTuple

import h5py
import numpy as np
from jaxtyping import ArrayLike, Num

from .._checks import ArgumentError
from ..xpcs import OneTime
from ._errors import PhysaxFileError
from ._hdf5 import find, listing, numbers, open_hdf5
from ._two_time_contents import describe
from ._two_time_index import bin_values, product
from ._two_time_npz import array, is_npz, open_npz


class _Layout(NamedTuple):
    """Where a multi-tau file has what; the bins of APS-U need more than a path."""

    g2: str
    sigma: str
    lags: str
    q: str
    phi: str
    time: str
    counts: tuple[str, ...]


_APSU = _Layout(
    "xpcs/multitau/normalized_g2",
    "xpcs/multitau/normalized_g2_err",
    "xpcs/multitau/delay_list",
    "xpcs/qmap/dynamic_v_list_dim0",
    "xpcs/qmap/dynamic_v_list_dim1",
    "entry/instrument/detector_1/frame_time",
    ("xpcs/multitau/config/avg_frame", "xpcs/multitau/config/stride_frame"),
)
_APS = _Layout(
    "exchange/norm-0-g2",
    "exchange/norm-0-stderr",
    "exchange/tau",
    "xpcs/dqlist",
    "xpcs/dphilist",
    "measurement/instrument/detector/exposure_period",
    ("xpcs/avg_frames", "xpcs/stride_frames"),
)


class _Curves(NamedTuple):
    """Curves as a file has them: seconds, (lags, curves), 1/angstrom, radians."""

    lags: np.ndarray
    g2: np.ndarray
    sigma: np.ndarray | None
    q: np.ndarray
    phi: np.ndarray | None
    names: dict[str, str]


def read_g2(
    path: str | os.PathLike,
    *,
    q: float | int | None = None,
    dt: float | int | None = None,
    sigma: Num[ArrayLike, "..."] | None = None,
    q_tolerance: float | int = 0.1,
) -> OneTime:
    """Reads one-time correlation curves.

    Files are results of a multi-tau correlator at the Advanced Photon Source, APS-U
    (`xpcs/multitau/normalized_g2`, `normalized_g2_err`, `delay_list`, and the map of q)
    or older (`exchange/norm-0-g2`, `norm-0-stderr`, `tau`), both of shape (lags,
    curves); or npz files with `tau` in seconds, `g2` of shape (curves, lags), `q`, and
    perhaps `sigma` and `phi` in degrees.

    Args:
        path: An HDF5 or npz file.
        q: The wavevector in 1/angstrom whose curves to read, the nearest one there is;
            all if `None`.
        dt: Time from frame to frame in seconds. Needed where an HDF5 file does not
            state it, and overrules it where it does.
        sigma: Standard deviation of the values that are read; as in the file if `None`.
        q_tolerance: By which fraction the nearest wavevector may differ from `q`.

    Returns:
        The curves.

    Raises:
        PhysaxFileError: If the file is damaged, lacks something, or holds values that
            cannot be; or has no curve near `q`.
        FileNotFoundError: If there is no such file.
    """
    if is_npz(path):
        curves = _from_npz(path, sigma is None)
    else:
        with open_hdf5(path) as file:
            curves = _from_hdf5(file, dt, sigma is None)
    keep = np.ones(curves.q.size, bool)
    if q is not None:
        nearest = curves.q[np.argmin(np.abs(curves.q - q))]
        if not abs(nearest - q) <= q_tolerance * abs(q):
            raise PhysaxFileError(
                path,
                f"It must have a wavevector within {100 * q_tolerance:.3g} % of `q` = "
                f"{q:g} 1/angstrom, but has {describe(curves.q)}. Choose one of these.",
            )
        keep = np.abs(curves.q - nearest) <= 1e-10 * nearest
    g2 = curves.g2[keep]
    _check_finite(path, curves.names["g2"], g2)
    errors = sigma
    if errors is None:
        assert curves.sigma is not None
        errors = curves.sigma[keep]
        good = (errors > 0) & np.isfinite(errors)
        if not np.all(good):
            k, j = (int(n) for n in np.argwhere(~good)[0])
            raise PhysaxFileError(
                path,
                f"`{curves.names['sigma']}` must be positive, but is {errors[k, j]:g} "
                f"for curve {k + 1} at lag {j + 1}. Give `sigma` yourself.",
            )
    phi = None if curves.phi is None else curves.phi[keep]
    try:
        return OneTime(curves.lags, g2, errors, curves.q[keep], phi)
    except ArgumentError as error:
        raise PhysaxFileError(path, str(error)) from error


def _check_finite(path, name: str, g2: np.ndarray) -> None:
    if not np.all(np.isfinite(g2)):
        k, j = (int(n) for n in np.argwhere(~np.isfinite(g2))[0])
        raise PhysaxFileError(
            path,
            f"`{name}` must be finite, but is {g2[k, j]} for curve {k + 1} at lag "
            f"{j + 1}. Choose other curves with `q`.",
        )


def _from_hdf5(file: h5py.File, dt: float | int | None, with_errors: bool) -> _Curves:
    for layout in (_APSU, _APS):
        if find(file, layout.g2) is not None:
            break
    else:
        raise PhysaxFileError(
            file.filename,
            f"It must hold `{_APSU.g2}` or `{_APS.g2}`, but has {listing(file)}.",
        )
    g2 = np.atleast_2d(numbers(file, layout.g2, finite=False))
    lags = numbers(file, layout.lags).reshape(-1)
    count = g2.shape[1]
    if g2.ndim != 2 or lags.size != g2.shape[0]:
        raise PhysaxFileError(
            file.filename,
            f"`{layout.g2}` must have the shape (lags, curves) with {lags.size} lags, "
            f"as `{layout.lags}` has, but has {g2.shape}.",
        )
    time = product(file, layout.time, layout.counts) if dt is None else dt
    if time is None:
        raise PhysaxFileError(
            file.filename,
            f"It does not state the time between frames (`{layout.time}`): give `dt` "
            "in seconds.",
        )
    if layout is _APSU:
        q, phi = bin_values(file, np.arange(1, count + 1), layout.g2)
    else:
        q = numbers(file, layout.q).reshape(-1)
        known = find(file, layout.phi) is not None
        phi = numbers(file, layout.phi).reshape(-1) if known else None
        for name, values in {layout.q: q, layout.phi: phi}.items():
            if values is not None and values.size != count:
                raise PhysaxFileError(
                    file.filename,
                    f"`{name}` must have one entry for each of the {count} curves of "
                    f"`{layout.g2}`, but has {values.size}.",
                )
    sigma = None
    if with_errors:
        sigma = np.atleast_2d(numbers(file, layout.sigma, finite=False))
        if sigma.shape != g2.shape:
            raise PhysaxFileError(
                file.filename,
                f"`{layout.sigma}` must have the shape {g2.shape} of `{layout.g2}`, "
                f"but has {sigma.shape}.",
            )
        sigma = sigma.T
    phi = None if phi is None else np.radians(phi)
    names = {"g2": layout.g2, "sigma": layout.sigma}
    return _Curves(lags * time, g2.T, sigma, q, phi, names)


def _from_npz(path, with_errors: bool) -> _Curves:
    with open_npz(path) as archive:
        there = {name.removesuffix(".npy") for name in archive.namelist()}
        lags = array(path, archive, "tau", ndim=1)
        g2 = array(path, archive, "g2", ndim=2)
        q = array(path, archive, "q", ndim=1).astype(np.float64)
        sigma = phi = None
        if with_errors:
            sigma = array(path, archive, "sigma", ndim=2)
        if "phi" in there:
            phi = np.radians(array(path, archive, "phi", ndim=1))
    for name, values, shape in (
        ("tau", lags, g2.shape[1:]),
        ("q", q, g2.shape[:1]),
        ("sigma", sigma, g2.shape),
        ("phi", phi, g2.shape[:1]),
    ):
        if values is not None and values.shape != shape:
            raise PhysaxFileError(
                path,
                f"`{name}` must have the shape {shape}, as `g2` is of shape (curves, "
                f"lags) = {g2.shape}, but has {values.shape}.",
            )
    return _Curves(lags, g2, sigma, q, phi, {"g2": "g2", "sigma": "sigma"})
