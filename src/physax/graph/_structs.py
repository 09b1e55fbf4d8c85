"""Shapes of wires: integers, symbols, and how messages show them."""

import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import ShapeDtypeStruct, export

from .._checks import ArgumentError, whole
from ._block import GraphError


# One for all graphs, so that they can be joined: a symbol means one size everywhere.
_SCOPE = export.SymbolicScope()


def struct_of(wire: str, given: Any, dtype: np.dtype) -> Any:
    """Returns what is known of a wire from what was declared.

    Args:
        wire: Its name, for the message.
        given: A shape, whose sizes are integers, symbols such as `"b"` or expressions
            such as `"2*n"`; or a `jax.ShapeDtypeStruct`, an array, or a pytree of
            these.
        dtype: Of a shape that comes without one.

    Returns:
        A `jax.ShapeDtypeStruct`, or a pytree of them.

    Raises:
        GraphError: If a size is neither.
    """
    if not isinstance(given, (tuple, list)) or any(map(_has_shape, given)):
        if isinstance(given, (str, int)):
            raise GraphError(
                f"The shape of `{wire}` must be a tuple such as ('b', 64), but is "
                f"{given!r}."
            )
        return shape_of(given)
    sizes = []
    for size in given:
        if isinstance(size, str):
            try:
                (size,) = export.symbolic_shape(size, scope=_SCOPE)
            except ValueError as error:
                raise GraphError(
                    f"A size of `{wire}` must be an integer, a symbol or an expression "
                    f"of them, but is {size!r}: {error}"
                ) from None
        elif not export.is_symbolic_dim(size) and not (
            isinstance(size, (int, np.integer))
            and not isinstance(size, bool)
            and size >= 0
        ):
            raise GraphError(
                f"A size of `{wire}` must be an integer of at least 0 or a symbol such "
                f"as 'b', but is {size!r}."
            )
        sizes.append(size)
    return ShapeDtypeStruct(tuple(sizes), dtype)


def as_size(x: Any, name: str) -> int:
    """Returns a size of an array as an integer.

    Args:
        x: What was given.
        name: What the caller calls it.

    Raises:
        GraphError: If it is not a positive integer.
    """
    try:
        return whole(x, name)
    except ArgumentError as error:
        raise GraphError(str(error)) from None


def sized(name: str) -> Callable[[Any], int]:
    """Makes a field converter that checks for a size.

    Args:
        name: Of the field.
    """
    return lambda x: as_size(x, name)


def shape_of(value: Any) -> Any:
    """Returns the struct of a value: shapes and dtypes in place of its arrays."""
    return eqx.filter_eval_shape(lambda: value)


def _has_shape(given: Any) -> bool:
    return isinstance(given, (ShapeDtypeStruct, jax.Array, np.ndarray, np.generic))


def is_symbolic(struct: Any) -> bool:
    """Whether a size of a wire, or of any leaf of a pytree, is a symbol."""
    return any(
        export.is_symbolic_dim(size)
        for leaf in jax.tree.leaves(struct)
        if _has_shape(leaf)
        for size in leaf.shape
    )


class Sizes:
    """What size each symbol stands for, as inputs tell one after another.

    Attributes:
        known: The size of each symbol, or expression of symbols that are not known,
            and the wire that told it.
    """

    def __init__(self):
        self.known: dict[str, tuple[int, str]] = {}

    def bind(self, wire: str, declared: Any, found: Any) -> None:
        """Learns the symbols of a wire.

        Args:
            wire: Its name.
            declared: Its struct with symbols.
            found: Its struct with sizes, of the same ranks.

        Raises:
            GraphError: If a symbol or an expression would stand for two sizes.
        """
        leaves = jax.tree.leaves(declared), jax.tree.leaves(found)
        for want, have in zip(*leaves, strict=True):
            if not (_has_shape(want) and _has_shape(have)):
                continue
            for symbol, size in zip(want.shape, have.shape, strict=True):
                if export.is_symbolic_dim(size) or not export.is_symbolic_dim(symbol):
                    continue
                text = str(symbol)
                value = None if text.isidentifier() else self._value(text)
                if value is None:
                    value, other = self.known.setdefault(text, (size, wire))
                    where = f"in `{other}`"
                else:
                    where = "by the sizes of other inputs"
                if value != size:
                    raise GraphError(
                        f"{symbol} must stand for one size, but is {value} {where} and "
                        f"{size} in `{wire}`."
                    )

    def resolved(self, struct: Any) -> Any:
        """Puts known sizes in place of symbols."""

        def resolve(leaf):
            if not isinstance(leaf, ShapeDtypeStruct):
                return leaf
            sizes = (
                self.known.get(str(size), (size,))[0]
                if export.is_symbolic_dim(size)
                else size
                for size in leaf.shape
            )
            return ShapeDtypeStruct(tuple(sizes), leaf.dtype)

        return jax.tree.map(resolve, struct)

    def _value(self, expression: str) -> int | None:
        """The value of a linear expression such as `2*n - 1`, if all is known."""
        total = 0
        for sign, term in re.findall(r"([+-]?)\s*([^\s+-]+)", expression):
            value = -1 if sign == "-" else 1
            for factor in term.split("*"):
                if factor.isdigit():
                    value *= int(factor)
                elif factor in self.known:
                    value *= self.known[factor][0]
                else:
                    return None
            total += value
        return total


def agree(found: Any, wanted: Any) -> bool:
    """Whether a value of one struct may stand where another one is declared.

    Symbols that are declared stand for any size here; `Sizes` sees that each stands
    for one.
    """
    mine, tree = jax.tree.flatten(found)
    other, other_tree = jax.tree.flatten(wanted)
    if tree != other_tree:
        return False
    return all(
        a.ndim == b.ndim
        and a.dtype == b.dtype
        and all(
            export.is_symbolic_dim(q) or export.is_symbolic_dim(p) or p == q
            for p, q in zip(a.shape, b.shape, strict=True)
        )
        for a, b in zip(mine, other, strict=True)
        if _has_shape(a) and _has_shape(b)
    )


def struct_text(struct: Any, beside: Any = None) -> str:
    """Shows a struct: `[b,64]`, with its dtype where that is not the default one.

    Args:
        struct: The struct, or None.
        beside: Another one that it is compared with: the dtype is shown where theirs
            differ, too.
    """
    if struct is None:
        return "?"
    if not _has_shape(struct):
        leaves = [leaf for leaf in jax.tree.leaves(struct) if _has_shape(leaf)]
        shown = ", ".join(struct_text(leaf) for leaf in leaves[:4])
        more = ", ..." if len(leaves) > 4 else ""
        return f"{type(struct).__name__}({shown}{more})"
    sizes = f"[{','.join(map(str, struct.shape))}]"
    other = beside.dtype if _has_shape(beside) else struct.dtype
    usual = struct.dtype == jnp.result_type(float) == other
    return sizes if usual else f"{sizes} {struct.dtype}"
