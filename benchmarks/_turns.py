"""Runs taken in turn, so that all of them meet the same load."""

import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import jax


Name = TypeVar("Name", bound=Hashable)
Answer = TypeVar("Answer")


def in_turn(
    runs: Mapping[Name, Callable[[], Answer]], rounds: int
) -> dict[Name, list[Answer]]:
    """Makes all runs one after the other, round after round.

    Args:
        runs: By name.
        rounds: How often.

    Returns:
        What each run gave in each round.
    """
    answers: dict[Name, list[Answer]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            answers[name].append(run())
    return answers


def least_seconds(
    runs: Mapping[Name, Callable[[], Any]], rounds: int
) -> dict[Name, float]:
    """Returns the least time of each run of arrays, after one that compiles."""

    def timed(run: Callable[[], Any]) -> Callable[[], float]:
        def one() -> float:
            start = time.perf_counter()
            jax.block_until_ready(run())
            return time.perf_counter() - start

        return one

    spent = in_turn({name: timed(run) for name, run in runs.items()}, rounds + 1)
    return {name: min(seconds[1:]) for name, seconds in spent.items()}
