"""Measures how long a function takes."""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._checks import whole
from ._compile_ahead import compile_ahead, executable


class Benchmark(eqx.Module):
    """The time a compiled function takes, and its work.

    All times are in seconds, as numbers on the host.

    Attributes:
        compile_s: Time to trace, lower and compile.
        min: The fastest run: the machine's least disturbed one.
        median: The middle run.
        max: The slowest run.
        mean: The mean of the runs.
        std: Their standard deviation.
        spread: `(max - min) / median`. Above about 0.2 the machine was not quiet.
        flops: Floating point operations of a run as XLA counts them; it counts the
            body of a loop once. NaN where XLA does not report them.
        bytes: Bytes a run reads and writes, counted likewise.
        repeats: How many runs were timed.
    """

    compile_s: float
    min: float
    median: float
    max: float
    mean: float
    std: float
    spread: float
    flops: float
    bytes: float
    repeats: int


def benchmark(
    fn: Callable, *args: Any, repeats: int = 10, at_least: float = 0.0, **static: Any
) -> Benchmark:
    """Compiles a function and times its runs, each to the end.

    One run that is not counted goes first. A function that donates its arguments gets
    copies, so that yours stay alive; making them is not timed.

    Args:
        fn: The function, jitted or not.
        *args: Its arguments.
        repeats: How many runs to time, at least 1.
        at_least: For how many seconds: more runs follow until they have taken so long.
            What disturbs a machine for a moment then misses the fastest.
        **static: Keyword arguments that are static.

    Returns:
        The times.

    Raises:
        ArgumentError: If `repeats` is less than 1, or `fn` is not a function.
    """
    repeats = whole(repeats, "repeats")
    begin = time.perf_counter()
    compiled = compile_ahead(fn, *args, **static)
    compile_s = time.perf_counter() - begin

    first = _copy(args)
    jax.block_until_ready(compiled(*first))
    donates = any(
        leaf.is_deleted() for leaf in jax.tree.leaves(first) if _is_device_array(leaf)
    )
    del first
    seconds = []
    while len(seconds) < repeats or sum(seconds) < at_least:
        inputs = jax.block_until_ready(_copy(args)) if donates else args
        begin = time.perf_counter()
        jax.block_until_ready(compiled(*inputs))
        seconds.append(time.perf_counter() - begin)

    median = float(np.median(seconds))
    cost = _cost(compiled)
    return Benchmark(
        compile_s=compile_s,
        min=min(seconds),
        median=median,
        max=max(seconds),
        mean=float(np.mean(seconds)),
        std=float(np.std(seconds)),
        spread=(max(seconds) - min(seconds)) / median,
        flops=float(cost.get("flops", np.nan)),
        bytes=float(cost.get("bytes accessed", np.nan)),
        repeats=len(seconds),
    )


def _is_device_array(leaf) -> bool:
    return isinstance(leaf, jax.Array)


def _copy(tree):
    return jax.tree.map(
        lambda leaf: jnp.copy(leaf) if _is_device_array(leaf) else leaf, tree
    )


def _cost(compiled) -> dict:
    analysis = executable(compiled).cost_analysis()
    return analysis if isinstance(analysis, dict) else {}
