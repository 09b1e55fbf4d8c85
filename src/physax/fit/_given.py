"""Checks of what is given to fits."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import jax

from .._checks import ArgumentError, instance, kind_of
from ..runtime import Progress
from ._trust_region import TrustRegion


def check_callable(f: Any, name: str, example: str) -> None:
    """Raises if `f` cannot be called.

    Args:
        f: What was given.
        name: What the caller calls it.
        example: What to write instead.
    """
    if not callable(f):
        raise ArgumentError(
            f"`{name}` must be a function such as `{example}`, but is {kind_of(f)}"
        )


def check_key(key: Any) -> None:
    """Raises if `key` is not a key of random numbers; a seed is not one."""
    instance(key, "key", jax.Array, "Write `jax.random.key(0)`.")


def check_pair(bounds: Any, name: str) -> None:
    """Raises if `bounds` is not a lower and an upper bound.

    Args:
        bounds: What was given.
        name: What the caller calls it.
    """
    # Arrays have a shape and a length, too.
    sized = isinstance(bounds, Sequence) or getattr(bounds, "ndim", 0)
    if isinstance(bounds, str) or not sized or len(bounds) != 2:
        raise ArgumentError(
            f"`{name}` must be a pair, the lower and the upper bound (None for no "
            f"bound), but is {bounds!r}."
        )


def check_names(names: Any, name: str) -> None:
    """Raises if `names` is not a list of texts; a text would be a list of letters.

    Args:
        names: What was given.
        name: What the caller calls it.
    """
    several = isinstance(names, Sequence) and not isinstance(names, str)
    if not several or not all(isinstance(one, str) for one in names):
        raise ArgumentError(
            f"`{name}` must be a list of names, such as `['amplitude']`, but is "
            f"{names!r}."
        )


def check_mask(mask: Any) -> None:
    """Raises if a mask is not boolean: those on disk are not converted."""
    dtype = getattr(mask, "dtype", None)
    if mask is not None and getattr(dtype, "kind", None) != "b":
        raise ArgumentError(
            "`mask` must be an array of booleans, but is "
            + (f"one of dtype {dtype}. " if dtype is not None else f"{kind_of(mask)} ")
            + "Compare it: `np.asarray(mask) != 0`."
        )


def method_or_default(method: Any) -> TrustRegion:
    """Returns how to search, or raises if it is of another kind.

    Args:
        method: What was given, None for the default.
    """
    if method is None:
        return TrustRegion()
    return instance(method, "method", TrustRegion, "Write `TrustRegion()`.")


def check_progress(progress: Any) -> None:
    """Raises if it is neither a way to show progress nor whether to show it."""
    if progress is not None and not isinstance(progress, bool):
        instance(progress, "progress", Progress, "Write `Progress('fit')`, or True.")


def number(x: Any, name: str) -> float:
    """Returns one real number, in the precision of the host."""
    if getattr(x, "ndim", None) == 0:
        x = x.item()
    if not isinstance(x, Real) or isinstance(x, bool):
        raise ArgumentError(f"`{name}` must be a number, but is {x!r}.")
    return float(x)


def probability(level: Any) -> float:
    """Returns the probability of an interval."""
    found = number(level, "level")
    if not 0 < found < 1:
        raise ArgumentError(f"`level` must lie in (0, 1), but is {found:g}.")
    return found
