"""Parameters of a fit: a tree of numbers, of which some are free."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._checks import (
    ArgumentError,
    as_array,
    at_once,
    check_picker,
    instance,
    traced,
)
from ._given import check_pair, unlike
from ._ties import Tie, in_order, picked, shown, with_tied


class Parameters(eqx.Module):
    """The start of a fit, and which entries of its flat vector may move.

    Attributes:
        start: The tree, numbers as arrays. Numbers of Python, integers too, and
            floating point arrays are parameters. Booleans, integer arrays, functions
            and None are constants.
        flat: All of them in one vector.
        free: Places in `flat` of those that move.
        low: Lower bounds of those.
        high: Upper bounds.
        ties: What follows from the others, in an order in which it can be computed.
        names: Names of those that move.
        tied: Names of those that are tied.
    """

    start: PyTree
    flat: Float[Array, " all"]
    free: tuple[int, ...] = eqx.field(static=True)
    low: Float[Array, " free"]
    high: Float[Array, " free"]
    ties: tuple[Tie, ...]
    names: tuple[str, ...] = eqx.field(static=True)
    tied: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        start: PyTree,
        bounds: tuple[Any, Any] = (None, None),
        fixed: Callable | None = None,
        ties: Tie | Sequence[Tie] = (),
    ):
        with at_once(eqx.filter(start, eqx.is_array_like)):
            self.start = jax.tree.map(_as_parameter, start)
            self.flat = to_vector(self.start)
        if not self.flat.size:
            raise ArgumentError(
                "`start` must hold at least one number or floating point array, but is "
                f"{start!r}."
            )
        _refuse_texts(self.start)
        several = isinstance(ties, Sequence)
        ties = [
            instance(tie, "ties", Tie, "Write `Tie(where, value)`.")
            for tie in (ties if several else (ties,))
        ]
        check_picker(fixed)
        check_pair(bounds, "bounds")
        held = set(_places(self.start, fixed, "fixed") if fixed is not None else ())
        each = [_places(self.start, tie.where, "where") for tie in ties]
        names = _names(self.start)
        self.ties = in_order(ties, self.start, each, names)
        tied = set().union(*each)
        lows, highs = (
            _bound_vector(bound, self.start, name, empty)
            for bound, name, empty in zip(
                bounds, ("lower", "upper"), (-np.inf, np.inf), strict=True
            )
        )
        _check_tied(tied, held, lows, highs, names)
        _check_bounds(self.flat, lows, highs, names, tied)
        held |= tied
        moving = [i for i in range(len(lows)) if i not in held and lows[i] < highs[i]]
        self.free = tuple(moving)
        with at_once(()):
            self.low = jnp.asarray(lows[moving], float)
            self.high = jnp.asarray(highs[moving], float)
        self.names = tuple(names[i] for i in moving)
        self.tied = tuple(names[i] for i in sorted(tied))

    def with_free(self) -> "Parameters":
        """Returns the same, if there is something to fit.

        Raises:
            ArgumentError: If all parameters are fixed or tied.
        """
        if not self.names:
            raise ArgumentError(
                "`start` must have a free parameter, but all are fixed or tied. "
                "Coefficients that enter linearly alone need no search: solve for them "
                "with `jnp.linalg.lstsq`."
            )
        return self

    @property
    def vector(self) -> Float[Array, " free"]:
        """The start values of what moves, in the widest type there is."""
        flat = self.flat.astype(float)
        return flat if self._all_free else flat[np.array(self.free, int)]

    @property
    def _all_free(self) -> bool:
        return len(self.free) == self.flat.size

    def filled(self, vector: Float[Array, " free"]) -> Float[Array, " all"]:
        """Returns all parameters as one vector, with new values of what moves."""
        if self._all_free:
            return vector
        return self.flat.astype(vector.dtype).at[np.array(self.free, int)].set(vector)

    def tree(self, vector: Float[Array, " free"]) -> PyTree:
        """Returns the parameters that a vector of free values represents."""
        tree = from_vector(self.start, self.filled(vector))
        for tie in self.ties:
            tree = with_tied(tree, tie)
        return tree


def to_vector(tree: PyTree) -> Float[Array, " all"]:
    """Returns the floating point arrays of a tree as one vector."""
    leaves = [x for x in jax.tree.leaves(tree) if eqx.is_inexact_array(x)]
    if not leaves:
        return jnp.zeros((0,))
    if not traced(leaves):
        # On the host: not a program for each size.
        return jnp.asarray(np.concatenate([np.ravel(leaf) for leaf in leaves]))
    return jnp.concatenate([jnp.ravel(leaf) for leaf in leaves])


def from_vector(like: PyTree, vector: Float[Array, " all"]) -> PyTree:
    """Puts a vector into the floating point arrays of a tree."""
    arrays, rest = eqx.partition(like, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(arrays)
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = [
        vector[end - leaf.size : end].reshape(leaf.shape).astype(leaf.dtype)
        for leaf, end in zip(leaves, ends, strict=True)
    ]
    return eqx.combine(jax.tree.unflatten(structure, parts), rest)


def _as_parameter(leaf):
    number = isinstance(leaf, (int, float, np.floating, np.integer))
    if (number and not isinstance(leaf, bool)) or (
        isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"
    ):
        return as_array(leaf)
    if isinstance(leaf, complex | np.complexfloating) or (
        eqx.is_array(leaf) and jnp.iscomplexobj(leaf)
    ):
        what = "array" if np.ndim(leaf) else "number"
        raise ArgumentError(
            f"`start` must hold real numbers, but has a complex {what}. Give its real "
            "and imaginary parts as two parameters."
        )
    return leaf


def _refuse_texts(start: PyTree) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(start):
        if isinstance(leaf, str):
            raise ArgumentError(
                f"`start` must hold numbers, but start{jax.tree_util.keystr(path)} is "
                f"{leaf!r}. Options that are not fitted belong in the function."
            )


class Parameter:
    """Stands for a parameter while functions pick: nothing can be computed of it."""

    def __init__(self, number: int):
        self.number = number

    def __bool__(self):
        raise TypeError("parameters are picked by their place, not by their value")

    def __eq__(self, other):
        return bool(self)

    __hash__ = object.__hash__


def _places(tree: PyTree, where: Callable, name: str) -> list[int]:
    """Returns the places in the flat vector of what `where` picks.

    Raises:
        ArgumentError: If it picks what is no parameter, or constants alone.
    """
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(arrays)
    ends = np.cumsum([leaf.size for leaf in leaves])
    marks = np.array([Parameter(i) for i in range(ends[-1])], object)
    marked = [
        marks[end - leaf.size : end].reshape(leaf.shape)
        for leaf, end in zip(leaves, ends, strict=True)
    ]
    chosen = picked(
        where, eqx.combine(jax.tree.unflatten(structure, marked), rest), name
    )
    places, others = [], []
    for leaf in jax.tree.leaves(chosen):
        found = np.ravel(leaf).tolist() if _are_parameters(leaf) else None
        if found is None:
            others.append(leaf)
        else:
            places += [mark.number for mark in found]
    count = sum(np.size(x) for x in jax.tree.leaves(where(tree)) if _is_number(x))
    constants = set(map(id, jax.tree.leaves(rest)))
    if others and (not places or any(id(one) not in constants for one in others)):
        raise ArgumentError(
            f"`{name}` must pick parameters of `start`, which are floating point "
            f"numbers and entries of arrays of such, but picks {shown(others)}. Make "
            "constants such numbers, or leave them out."
        )
    if count != len(places):
        raise ArgumentError(
            f"`{name}` must pick parameters by their place, not by their type or "
            f"value, but picks {count} of the numbers and {len(places)} of marks for "
            "them. Pick modules and arrays whole: what is no parameter in them is "
            "left out."
        )
    return places


def _is_number(leaf: Any) -> bool:
    """Whether what was picked is what parameters are."""
    return eqx.is_inexact_array(leaf) or isinstance(leaf, float | np.inexact)


def _are_parameters(leaf: Any) -> bool:
    """Whether what was picked is nothing but parameters."""
    if isinstance(leaf, np.ndarray) and leaf.dtype == object:
        return all(isinstance(one, Parameter) for one in leaf.ravel())
    return isinstance(leaf, Parameter)


def _bound_vector(bound, tree: PyTree, name: str, empty: float) -> np.ndarray:
    """Spreads a bound, or a tree of bounds, over the flat vector.

    Each in the precision of its parameter: a start on a bound lies within it.
    """

    def spread(value, part):
        value = empty if value is None else value
        return jax.tree.map(
            lambda x: _rounded(value, x) if eqx.is_inexact_array(x) else None,
            part,
        )

    if traced(bound):
        raise ArgumentError(
            f"`bounds` must be known, but the {name} one is traced by `jit`, `vmap` or "
            "`grad`. Make the problem outside, or fit a parameter that the residual "
            "scales to its bounds."
        )
    try:
        full = jax.tree.map(spread, bound, tree, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ArgumentError(
            f"`bounds` must be a pair of numbers or of trees like `start`, but the "
            f"{name} one does not fit: {unlike(bound, tree, 'start', error)}"
        ) from error
    leaves = [np.ravel(leaf) for leaf in jax.tree.leaves(full)]
    return np.concatenate(leaves)


def _rounded(value: Any, like: Array) -> np.ndarray:
    """Returns a bound in the precision and shape of a parameter."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(value, float).astype(like.dtype)
    return np.broadcast_to(rounded, like.shape)


def _check_tied(tied: set[int], fixed: set[int], lows, highs, names) -> None:
    """Raises if parameters that follow from others are fixed or bounded as well."""
    for i in sorted(tied):
        if i in fixed:
            raise ArgumentError(
                f"`fixed` must not pick tied parameters, but {names[i]} is tied. Leave "
                "it out of `fixed`, or leave its `Tie` out."
            )
        if lows[i] > -np.inf or highs[i] < np.inf:
            raise ArgumentError(
                f"`bounds` of tied parameters must be None, but {names[i]} has "
                f"[{lows[i]:g}, {highs[i]:g}]. Give trees like `start`, with None "
                "or inf there, and bound what it follows from."
            )


def _check_bounds(flat, lows, highs, names, tied: set[int]) -> None:
    known = not isinstance(flat, jax.core.Tracer)
    values = np.asarray(flat) if known else np.clip(0, lows, highs)
    every = zip(values, lows, highs, names, strict=True)
    for i, (value, low, high, name) in enumerate(every):
        if i in tied:
            continue  # Has no bounds, and its start is not used.
        if not low <= high:
            raise ArgumentError(
                f"`bounds` of {name} must be in increasing order, but are {low:g} "
                f"and {high:g}."
            )
        if not np.isfinite(value):
            raise ArgumentError(f"`start` must be finite, but {name} is {value:g}.")
        if not low <= value <= high:
            raise ArgumentError(
                f"`start` must lie within `bounds`, but {name} is {value:g}, outside "
                f"[{low:g}, {high:g}]. Move the start or widen the bounds."
            )


def _names(tree: PyTree) -> tuple[str, ...]:
    arrays = eqx.filter(tree, eqx.is_inexact_array)
    names = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(arrays):
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "p"
        for index in np.ndindex(leaf.shape):
            place = ",".join(map(str, index))
            names.append(f"{name}[{place}]" if index else name)
    return tuple(names)
