"""Arrays of blocks: drawn node by node, equal nodes by one compiled program."""

import functools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jax.sharding import Sharding
from jax.tree_util import PyTreeDef
from jaxtyping import Array, Key, Shaped

from ._assembly import Assembly
from ._block import AbstractBlock, Connection
from ._graph import Graph
from ._inference import by_value


class _Piece(NamedTuple):
    """A node with arrays: its place, what builds it, and what they are called."""

    path: tuple[str, ...]
    block: AbstractBlock
    inputs: tuple
    names: tuple[str, ...]


def drawer(
    nodes: Iterable[Connection],
    structs: Mapping[str, Any],
    names: Assembly,
    types: Mapping[str, np.dtype],
    placements: Mapping[str, Sharding | None],
) -> Callable[[Key[Array, ""]], dict[str, Shaped[Array, "..."]]]:
    """Makes the function that draws the arrays of nodes.

    A program for all of them would take long to compile, as XLA does not see that
    layers are equal. So each node is drawn by a program of its own, which all nodes of
    the same block, shapes and layout share, in this graph and in later ones.

    Args:
        nodes: The nodes in order.
        structs: The shape of each wire.
        names: The built nodes with the name of each array in its place.
        types: The dtype of each array.
        placements: Where each goes, born there; None leaves it to JAX.

    Returns:
        What takes a key and returns the arrays by name.
    """
    pieces = tuple(_pieces(nodes, structs, names, ()))

    def draw(key: Key[Array, ""]) -> dict[str, Array]:
        keys = {(): key}
        drawn = {}
        for piece in pieces:
            kinds = tuple(types[name] for name in piece.names)
            places = tuple(placements[name] for name in piece.names)
            if any(map(eqx.is_array, jax.tree.leaves(piece.block))):
                arrays = _copied(piece, _key_of(piece.path, keys), kinds, places)
            else:
                made = by_value(_program, (piece.block, piece.inputs), kinds, places)
                arrays = made(_key_of(piece.path, keys))
            drawn |= dict(zip(piece.names, arrays, strict=True))
        return drawn

    return draw


def _pieces(
    nodes: Iterable[Connection],
    structs: Mapping[str, Any],
    names: Assembly,
    path: tuple[str, ...],
) -> Iterator[_Piece]:
    # Later nodes of a name share the arrays of the first.
    first = {}
    for node in nodes:
        first.setdefault(node.name, node)
    for name, node in first.items():
        inputs = tuple(structs[wire] for wire in node.inputs)
        part: Any = names.modules[name]
        if not node.block.trainable:
            part = part.function
        if isinstance(node.block, Graph):
            wiring = node.block.bound(*inputs)
            yield from _pieces(wiring.nodes, wiring.structs, part, (*path, name))
        elif mine := tuple(jax.tree.leaves(part)):
            yield _Piece((*path, name), node.block, inputs, mine)


_fold_in = jax.jit(jr.fold_in)


def _key_of(path: tuple[str, ...], keys: dict[tuple[str, ...], Array]) -> Array:
    """The key of a node, as `assemble` folds it."""
    if path not in keys:
        code = np.uint32(zlib.crc32(path[-1].encode()))
        keys[path] = _fold_in(_key_of(path[:-1], keys), code)
    return keys[path]


@functools.lru_cache(maxsize=4096)
def _program(
    tree: PyTreeDef,
    leaves: tuple,
    kinds: tuple[type, ...],
    real: np.dtype,
    types: tuple[np.dtype, ...],
    places: tuple[Sharding | None, ...],
) -> Callable[[Key[Array, ""]], tuple[Array, ...]]:
    del kinds, real
    block, inputs = jax.tree.unflatten(tree, leaves)

    def draw(key):
        return _arrays(block, key, inputs, types)

    return jax.jit(draw, out_shardings=places)


def _arrays(block, key, inputs, types) -> tuple[Array, ...]:
    built = block.build(key, *inputs)
    arrays = jax.tree.leaves(eqx.filter(built, eqx.is_array))
    pairs = zip(arrays, types, strict=True)
    return tuple(array.astype(dtype) for array, dtype in pairs)


def _copied(piece: _Piece, key, types, places) -> tuple[Array, ...]:
    # Without a program, which would contain what is there a second time. Copies, as
    # the arrays of a program may be donated.
    arrays = _arrays(piece.block, key, piece.inputs, types)
    pairs = zip(arrays, places, strict=True)
    return tuple(jax.device_put(a, place, may_alias=False) for a, place in pairs)
