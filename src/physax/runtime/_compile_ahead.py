"""Compiles before the first call."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax

from .._written_for_jax import check_function


def compile_ahead(fn: Callable, *args: Any, **static: Any) -> Callable:
    """Compiles a function for arguments like these, without running it.

    Args:
        fn: The function. What is jitted already keeps its options, donation included;
            anything else is jitted here.
        *args: Arguments, or `jax.ShapeDtypeStruct`s in place of arrays; those spare
            the memory.
        **static: Keyword arguments that stay as they are. A function jitted by
            `jax.jit` must name them in its `static_argnames`.

    Returns:
        What takes `args` (arrays of the same shapes, dtypes and shardings) and compiles
        nothing.

    Raises:
        ArgumentError: If `fn` is not a function.
    """
    check_function(fn, "fn")
    if isinstance(fn, jax.stages.Wrapped):
        return fn.lower(*args, **static).compile()
    # The wrapper of `eqx.filter_jit` is private, its method `lower` is not.
    if callable(getattr(fn, "lower", None)):
        return partial(fn.lower(*args, **static).compile(), **static)  # pyright: ignore
    bound = partial(fn, **static)
    leaves = jax.tree.leaves(args)
    plain = all(
        eqx.is_array_like(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)
        for leaf in leaves
    )
    jitted = jax.jit(bound) if plain else eqx.filter_jit(bound)
    return jitted.lower(*args).compile()


def executable(compiled) -> jax.stages.Compiled:
    """Returns JAX's compiled object from what `compile_ahead` returned."""
    while not isinstance(compiled, jax.stages.Compiled):
        # `functools.partial` keeps it in `func`, Equinox's wrapper in `compiled`.
        compiled = getattr(compiled, "func", None) or compiled.compiled
    return compiled
