"""Checks of what is given to fits."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, instance, kind_of, refuse_text, traced, whole
from .._known_number import known_number
from .._written_for_jax import floating
from ._trust_region import TrustRegion


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
            f"bound), but is {bounds!r:.80}."
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
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise ArgumentError(f"`{name}` must be different names, but has {twice} twice.")


def check_groups(groups: Any, shape: tuple[int, ...]) -> int:
    """Returns the number of groups of a `Separable`.

    Args:
        groups: What was given, None for one.
        shape: That of the observed values, whose second axis is the groups.
    """
    if groups is None:
        return 1
    count = whole(groups, "groups")
    if shape[1:2] != (count,):
        remedy = (
            f"Write `groups={shape[1]}`, or leave it out for the same coefficients "
            "everywhere."
            if len(shape) > 1
            else "Leave it out: there is no second axis."
        )
        raise ArgumentError(
            "`groups` must be the length of the second axis of `observed`, of shape "
            f"{shape}, but is {count}. {remedy}"
        )
    return count


def entries(tree: PyTree) -> list[str]:
    """Returns the names of the leaves of a tree, such as `diffusion.D0`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda x: x is None)
    return [
        jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves
    ]


def listed(names: Sequence[str]) -> str:
    """Returns names as text; of very many the first ones."""
    shown = ", ".join(names[:_SHOWN])
    return shown + (f", ... ({len(names)})" if len(names) > _SHOWN else "")


_SHOWN = 20


def unlike(tree: PyTree, like: PyTree, name: str, error: ValueError) -> str:
    """Says how a tree differs from the one that it should resemble.

    Args:
        tree: What was given.
        like: What it should resemble.
        name: What the caller calls that.
        error: What NumPy or JAX say of it, where the entries are the same.
    """
    ours, theirs = entries(tree), entries(like)
    unknown = [one for one in ours if not _within(one, theirs)]
    missing = [one for one in theirs if not any(_within(o, [one]) for o in ours)]
    parts = []
    if unknown:
        parts.append(f"it has {listed(unknown)}, but `{name}` does not")
    if missing:
        parts.append(f"it lacks {listed(missing)} (write None for none)")
    if not parts and type(tree) is type(like):
        return str(error)
    if not parts:
        return f"it is {kind_of(tree)} `{name}` is {kind_of(like)}"
    return f"{', and '.join(parts)}. The entries of `{name}` are {listed(theirs)}."


def _within(upper: str, names: Sequence[str]) -> bool:
    return any(one == upper or one.startswith(f"{upper}.") for one in names)


def as_columns(values: Any, shape: tuple[int, ...], names: int) -> Float[Array, "..."]:
    """Returns functions of a `Separable` along the last axis.

    Args:
        values: What `basis` returned.
        shape: That of the observed values.
        names: How many functions there are.
    """
    floating(values, "basis")
    if values.size != math.prod(shape) * names:
        raise ArgumentError(
            "`basis` must return an array of shape "
            f"{(*shape, names) if names > 1 else shape} for {names} `functions`, but "
            f"its shape is {values.shape}. Stack them along the last axis, and give "
            "`functions` one name for each."
        )
    refuse_complex(values, "basis")
    return values.reshape(*shape, names)


def as_deviations(sigma: Any, mask: Any, observed: Any) -> Any:
    """Gives standard deviations the shape of what was observed, None for none.

    Args:
        sigma: What was given.
        mask: Which values count.
        observed: What was observed, which must be an array of real numbers.
    """
    shape = getattr(observed, "shape", ())
    if not shape:
        raise ArgumentError(
            "`observed` must be an array whose first axis is the points, but is "
            f"{kind_of(observed)} Write `np.asarray(observed)`."
        )
    refuse_complex(observed, "observed")
    if mask is not None and np.shape(mask) != shape:
        raise ArgumentError(
            f"`mask` must have the shape {shape} of `observed`, but has shape "
            f"{np.shape(mask)}. For whole points write `mask[:, None] & ...`."
        )
    if sigma is None:
        return None
    refuse_text(sigma, "sigma")
    given = np.shape(sigma)[::-1]
    fits = all(n in (1, m) for n, m in zip(given, shape[::-1], strict=False))
    if len(given) > len(shape) or not fits:
        raise ArgumentError(
            f"`sigma` must be one number or have the shape {shape} of `observed`, "
            f"but has shape {np.shape(sigma)}."
        )
    host = sigma if traced(sigma) else np.asarray(sigma)
    refuse_complex(host, "sigma", "Take its real part.")
    if isinstance(host, np.ndarray):
        if not np.all(host > 0):
            raise ArgumentError(
                f"`sigma` must be positive, but is {float(np.min(host)):g}."
            )
        lost = np.isinf(host)
        if lost.any() and (mask is None or _count_any(mask, lost, shape)):
            raise ArgumentError(
                "`sigma` must be finite where values count, but is inf "
                f"({int(lost.sum())} of {lost.size}). Leave such values out: "
                "`mask=np.isfinite(sigma)`."
            )
    return jnp.broadcast_to(jnp.asarray(sigma), shape)


def _count_any(mask, where: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether a mask, if it is known, lets anything through at some places."""
    if traced(mask):
        return False
    return bool((np.broadcast_to(where, shape) & np.asarray(mask)).any())


_STACKED = (
    "Give real and imaginary parts along a further axis, "
    "`np.stack([x.real, x.imag], axis=-1)`, or use `LeastSquares`."
)


def refuse_complex(x: Any, name: str, remedy: str = _STACKED) -> None:
    """Raises if an array is complex. Only its type is looked at: it may be on disk.

    Args:
        x: An array, or what has no type.
        name: What the caller calls it.
        remedy: A sentence that says what to do instead.
    """
    dtype = getattr(x, "dtype", None)
    if getattr(dtype, "kind", None) == "c":
        raise ArgumentError(f"`{name}` must be real, but has dtype {dtype}. {remedy}")


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


def probability(level: Any) -> float:
    """Returns the probability of an interval."""
    found = known_number(level, "level")
    if not 0 < found < 1:
        raise ArgumentError(f"`level` must lie in (0, 1), but is {found:g}.")
    return found
