"""Parameters that follow from others, and the order in which they do."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import partial_eval
from jaxtyping import PyTree

from .._checks import ArgumentError, real
from .._written_for_jax import check_function, check_takes, written_for_jax
from ._given import entries, listed


class Tie(eqx.Module):
    """Makes parameters functions of others.

    Those others are free, fixed or tied by further ties, which may be listed in any
    order, but not in a circle: no parameter follows from itself. Tied parameters are
    neither fixed nor bounded; bound what they follow from.

    Attributes:
        where: Takes the tree of parameters to those that are tied, each once:
            `lambda p: p["b"]`, or a tuple of several.
        value: Takes the tree to their values, in the same order. What it reads of the
            tree is found by tracing it, when the problem is made. Functions with a
            derivative rule of their own read all that they get: give them no more than
            they need.
    """

    where: Callable = eqx.field(static=True)
    value: Callable = eqx.field(static=True)

    def __check_init__(self):
        check_function(self.where, "where", "lambda p: p.b")
        check_takes(self.where, "where", "where(p)")
        check_function(self.value, "value", "lambda p: 2 * p.a")
        check_takes(self.value, "value", "value(p)")


def with_tied(tree: PyTree, tie: Tie) -> PyTree:
    """Returns parameters of which those that are tied have their values.

    Raises:
        ArgumentError: If `value` takes another tree, or returns other than `where`
            picks.
    """
    old = picked(tie.where, tree, "where")
    try:
        with written_for_jax("value"):
            new = tie.value(tree)
    except (KeyError, AttributeError, IndexError) as error:
        raise ArgumentError(
            "`value` must take parameters like `start`, which are "
            f"{listed(entries(tree))}, but fails: {type(error).__name__} {error}."
        ) from error
    known = set(map(id, jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))))
    chosen = jax.tree.leaves(eqx.filter(old, eqx.is_inexact_array))
    if not chosen or not all(id(one) in known for one in chosen):
        raise ArgumentError(
            "`where` must pick parameters of `start`, whole arrays of floating point "
            f"numbers, but picks {shown(old)}. Make constants such numbers, and "
            "entries of an array parameters of their own."
        )
    wanted, given = jax.tree.structure(old), jax.tree.structure(new)
    if given != wanted:
        raise ArgumentError(
            f"`value` must return what `where` picks, {wanted}, but returns {given}."
        )
    found = jax.tree.leaves(jax.tree.map(_as_parameter, new, old))
    return eqx.tree_at(lambda tree: jax.tree.leaves(tie.where(tree)), tree, found)


def picked(where: Callable, tree: PyTree, name: str) -> PyTree:
    """Returns what a function picks of the parameters.

    Args:
        where: The function.
        tree: The parameters.
        name: What the caller calls it.

    Raises:
        ArgumentError: If there is no such parameter.
    """
    try:
        return where(tree)
    except (KeyError, AttributeError, IndexError, TypeError) as error:
        raise ArgumentError(
            f"`{name}` must pick parameters of `start`, which are "
            f"{listed(entries(tree))}, but fails: {type(error).__name__} "
            f"{' '.join(str(error).split()).rstrip('. ')}."
        ) from error


def shown(found: PyTree) -> str:
    """Returns the types and shapes of what was picked."""
    kinds = [
        f"{x.dtype}{list(x.shape)}" if eqx.is_array(x) else type(x).__name__
        for x in jax.tree.leaves(found)
    ]
    return listed(kinds) or "nothing"


def _as_parameter(value: Any, parameter: Any) -> Any:
    """Returns a value as the parameter that it is for; a constant stays."""
    if not eqx.is_inexact_array(parameter):
        return parameter
    value = real(value, "value(...)")
    try:
        return jnp.broadcast_to(value, parameter.shape).astype(parameter.dtype)
    except ValueError as error:
        raise ArgumentError(
            "`value` must return one number or what broadcasts to the shape "
            f"{parameter.shape} of the parameter, but returns shape {value.shape}."
        ) from error


def in_order(
    ties: Sequence[Tie],
    start: PyTree,
    places: Sequence[Sequence[int]],
    names: Sequence[str],
) -> tuple[Tie, ...]:
    """Sorts ties such that each comes after those of the parameters that it reads.

    Args:
        ties: The ties.
        start: The parameters.
        places: Places of what each ties, in the flat vector of the parameters.
        names: Names of the entries of that vector.

    Raises:
        ArgumentError: If a parameter is tied twice, or follows from itself.
    """

    def named(some: Iterable[int]) -> str:
        return listed([names[i] for i in sorted(some)])

    twice = {i for i, n in Counter(chain(*places)).items() if n > 1}
    if twice:
        raise ArgumentError(
            f"`ties` must tie a parameter once, but tie {named(twice)} twice. Leave "
            "one of these ties out."
        )
    reads = [_places_read(tie, start) for tie in ties]
    sources = {
        i: [j for j, some in enumerate(places) if read.intersection(some)]
        for i, read in enumerate(reads)
    }
    try:
        order = tuple(TopologicalSorter(sources).static_order())
    except CycleError as error:
        circle = ", and ".join(
            f"the tie of {named(places[i])} reads "
            f"{named(reads[i].intersection(places[j]))}"
            for j, i in pairwise(error.args[1])
        )
        raise ArgumentError(
            f"`ties` must not go in a circle, but {circle}. Leave one parameter of the "
            "circle free, and tie what follows from a tied one by a `Tie` of its own "
            "(entries of an array: as parameters of their own)."
        ) from error
    return tuple(ties[i] for i in order)


def _places_read(tie: Tie, start: PyTree) -> set[int]:
    """Returns the places in the flat vector of the arrays from which a tie computes.

    By the program: a derivative may happen to vanish at the start.
    """
    arrays, rest = eqx.partition(start, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(arrays)

    def values(*leaves):
        tree = eqx.combine(jax.tree.unflatten(structure, leaves), rest)
        return eqx.filter(tie.where(with_tied(tree, tie)), eqx.is_inexact_array)

    program = jax.make_jaxpr(values)(*leaves).jaxpr
    # Functions that get the whole tree read, even if compiled, only what they use.
    _, used = partial_eval.dce_jaxpr(program, [True] * len(program.outvars))
    ends = np.cumsum([leaf.size for leaf in leaves])
    read = [
        range(end - leaf.size, end)
        for leaf, end, one in zip(leaves, ends, used, strict=True)
        if one
    ]
    return {int(place) for part in read for place in part}
