"""Where the particles of `physax track` begin."""

import jax
import numpy as np

from .._checks import ArgumentError
from ..io import StoredField
from ..particles import seed_grid, wrap_globe
from ..particles._sphere import check_latitudes
from ._track_settings import Settings


def place_seeds(settings: Settings, flow: StoredField) -> jax.Array:
    """Returns where particles begin, without those on land.

    Args:
        settings: Of the run.
        flow: The velocity.

    Returns:
        The positions, `[particles, ndim]`.

    Raises:
        ArgumentError: If a seed is not a place of the data, or all are on land.
    """
    ndim = flow.low.size
    if settings.seeds is None:
        seeds = _everywhere(flow)
    else:
        seeds = settings.seeds.place()
        if seeds.shape[1] != ndim:
            raise ArgumentError(
                f"`seeds` must have {ndim} coordinates, {', '.join(flow.names)}, but "
                f"have {seeds.shape[1]}."
            )
    if flow.spherical:
        _check_latitudes(seeds)
        if not flow.periodic[0]:
            # West may be 350 in one place and -10 in another.
            seeds = wrap_globe(seeds, flow.low[0])
    _check_inside(np.asarray(seeds), flow)
    if flow.land is not None and settings.coast == "strand":
        seeds = seeds[~np.asarray(flow.land.covers(seeds))]
    if not len(seeds):
        raise ArgumentError("`seeds` must lie at sea somewhere, but all are on land.")
    return seeds


def _everywhere(flow: StoredField) -> jax.Array:
    """Seeds a grid all over the data."""
    low, high = np.asarray(flow.low, float), np.asarray(flow.high, float)
    extent = high - low
    shape = [36, 17, 1][: low.size]
    if extent[1] > extent[0]:
        shape[:2] = shape[1::-1]
    inset = extent / np.array([2 * n for n in shape])
    return seed_grid(low + inset, high - inset, shape)


def _check_latitudes(seeds: jax.Array) -> None:
    """Refuses latitudes beyond the poles: what a swapped pair often has."""
    try:
        check_latitudes(seeds)
    except ArgumentError as error:
        # There the remedy is a function, which a file of settings cannot call.
        said = str(error).partition("; `wrap_globe`")[0].rstrip(".")
        raise ArgumentError(f"{said}.") from error


def _check_inside(seeds: np.ndarray, flow: StoredField) -> None:
    """Refuses seeds beyond the data, along axes that have ends."""
    low, high = np.asarray(flow.low, float), np.asarray(flow.high, float)
    # Rounding of the ends is left to the field.
    slack = 1e-9 * (high - low)
    beyond = (seeds < low - slack) | (seeds > high + slack)
    wrong = np.flatnonzero((beyond & ~np.array(flow.periodic)).any(1))
    if wrong.size:
        first = int(wrong[0])
        ends = zip(flow.names, low, high, flow.units, strict=True)
        ranges = ", ".join(f"{n} {a:g} to {b:g} {unit}" for n, a, b, unit in ends)
        raise ArgumentError(
            f"`seeds` must lie within the data, {ranges}, but {wrong.size} of "
            f"{len(seeds)} do not, first number {first} at {seeds[first].tolist()}. "
            "Leave them out."
        )
