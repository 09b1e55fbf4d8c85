"""Measured two-time correlation maps."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from .._checks import ArgumentError, instance, real, refuse_masked, true_or_false
from ._known import known, on_host, require
from ._measured import deviations, directions, increasing, per_map, wavevectors, wide


# Of one value of the maps of an experiment, where nothing is known.
_USUAL_SIGMA = 0.01


def _values(c2):
    """Returns maps as an array that keeps its precision."""
    refuse_masked(c2, "c2", "Give `c2.filled(0)` and say with `mask` what counts.")
    c2 = real(c2, "c2")
    if c2.ndim != 3 or c2.shape[1] != c2.shape[2] or not c2.size:
        raise ArgumentError(
            "`c2` must have shape (maps, frames, frames) with at least one map, but "
            f"has shape {c2.shape}. Give a single map as `c2[None]`."
        )
    return c2


def _times(times):
    times = wide(real(times, "times"))
    if times.ndim != 1:
        raise ArgumentError(
            f"`times` must have shape (frames,), but has shape {times.shape}."
        )
    (now,) = on_host(times)
    good = (now >= 0) & (now < np.inf)
    times = require(times, good, "`times` must be finite and not negative")
    return increasing(times, "times")


def _mask(mask):
    """Returns a mask as booleans, also of the numbers 0 and 1 of a file."""
    refuse_masked(mask, "mask", "Fill it: `mask.filled(False)`.")
    given = mask if isinstance(mask, jax.Array) else np.asarray(mask)
    if given.dtype.kind not in "bui":
        raise ArgumentError(
            f"`mask` must be booleans, but has dtype {given.dtype}. Compare it, as in "
            "`mask > 0`."
        )
    return jnp.asarray(given, bool)


def _not_finite(c2: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Returns which values off the diagonal are used and not finite."""
    bad = ~np.isfinite(c2)
    if bad.any():
        unused = np.eye(c2.shape[1], dtype=bool)
        bad &= ~(unused if mask is None else unused | ~mask)
    return bad


class TwoTime(eqx.Module):
    r"""Two-time intensity correlations $c_2(t_i, t_j)$, one map for each wavevector.

    The diagonal holds the peak of the shot noise and is never fitted, and as maps are
    symmetric, a fit reads the triangle above it only. Maps may be of half precision, to
    take less memory: what is computed from them, and all other numbers, are float32 or
    wider.

    Attributes:
        c2: The full symmetric maps, dimensionless, in the precision of the input.
        q: Wavevector of each map in 1/angstrom; one number applies to all.
        phi: Direction of each wavevector in radians; one number applies to all.
        times: Times of the frames in seconds since the transport began, strictly
            increasing.
        sigma: Standard deviation of one value: a number, one for each map, or one for
            each value. If not given it is 0.01, and unknown.
        mask: Which pairs of frames to use, the same for all maps; `None` for all.
        sigma_is_known: Whether `sigma` is known, and not only relative; by default, if
            it is given. If not, the errors of a fit follow from its residuals.

    Raises:
        ArgumentError: If a shape does not fit, a value that is used is not finite, the
            times do not increase, `q` or `sigma` is not positive, or `phi` is in
            degrees.
    """

    c2: Float[Array, "maps frames frames"]
    q: Float[Array, " maps"]
    phi: Float[Array, " maps"]
    times: Float[Array, " frames"]
    sigma: Float[Array, "..."]
    mask: Bool[Array, "frames frames"] | None
    sigma_is_known: bool = eqx.field(static=True)

    def __init__(
        self,
        c2: Num[ArrayLike, "..."],
        q: Num[ArrayLike, "..."],
        phi: Num[ArrayLike, "..."],
        times: Num[ArrayLike, "..."],
        sigma: Num[ArrayLike, "..."] | None = None,
        mask: Bool[ArrayLike, "..."] | None = None,
        sigma_is_known: bool | None = None,
    ):
        self.c2 = _values(c2)
        self.q = per_map(wavevectors(q), self.maps, "q")
        self.phi = per_map(directions(phi), self.maps, "phi")
        self.times = _times(times)
        if sigma_is_known is None:
            sigma_is_known = sigma is not None
        self.sigma_is_known = true_or_false(sigma_is_known, "sigma_is_known")
        given = _USUAL_SIGMA if sigma is None else sigma
        self.sigma = deviations(given, " (leave values out with `mask`)")
        self.mask = None if mask is None else _mask(mask)

    def __check_init__(self):
        if self.times.shape != (self.frames,):
            raise ArgumentError(
                f"`times` must have one entry for each of the {self.frames} frames of "
                f"`c2`, but has {self.times.size}."
            )
        if self.sigma.shape not in ((), (self.maps,), self.c2.shape):
            raise ArgumentError(
                "`sigma` must be one number, one for each map or one for each value, "
                f"shape (), ({self.maps},) or {self.c2.shape}, but has shape "
                f"{self.sigma.shape}."
            )
        if self.mask is not None and self.mask.shape != self.c2.shape[1:]:
            raise ArgumentError(
                "`mask` must have one entry for each pair of frames, shape "
                f"{self.c2.shape[1:]}, but has shape {self.mask.shape}."
            )
        self._check_values()

    def _check_values(self):
        """Raises if a value that may be fitted is not finite, where that is known."""
        if not known(self.c2, self.mask):
            return
        c2 = np.asarray(self.c2)
        bad = _not_finite(c2, None if self.mask is None else np.asarray(self.mask))
        if bad.any():
            k, i, j = np.unravel_index(np.argmax(bad), bad.shape)
            raise ArgumentError(
                f"`c2` must be finite wherever it is used, but c2[{k}, {i}, {j}] is "
                f"{c2[k, i, j]:g} ({bad.sum()} such values). Leave pairs of frames out "
                "with `mask`."
            )

    @property
    def maps(self) -> int:
        """How many maps there are."""
        return self.c2.shape[0]

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return self.c2.shape[1]


def check_data(data: Any) -> None:
    """Raises if `data` does not hold measured maps.

    Args:
        data: What was given.
    """
    remedy = "Make one of arrays, or read it by `io.read_two_time`."
    instance(data, "data", TwoTime, remedy)
