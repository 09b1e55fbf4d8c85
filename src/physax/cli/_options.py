"""Options that several commands have, and readers of numbers for `type`."""

import argparse
import math
from collections.abc import Callable
from typing import Any

from .._checks import ArgumentError


# Seeds that JAX takes.
SEEDS = 2**63


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Adds what each command has that computes: `--threads`, `-v` and `-q`."""
    parser.add_argument(
        "--threads", type=whole(1), metavar="N", help="number of processors to use"
    )
    parser.add_argument("-v", "--verbose", action="count", default=0, help="print more")
    parser.add_argument("-q", "--quiet", action="count", default=0, help="print less")


def check_seed(seed: int) -> None:
    """Refuses a seed in a file that random numbers cannot start from."""
    if not 0 <= seed < SEEDS:
        raise ArgumentError(
            f"`seed` must be a whole number of at least 0 and below {SEEDS}, but is "
            f"{seed}."
        )


def whole(least: int, below: int | None = None) -> Callable[[str], int]:
    """Makes a reader of whole numbers in a range."""
    limit = "" if below is None else f" and below {below}"
    what = f"a whole number of at least {least}{limit}"
    return _reader(int, what, lambda x: least <= x < (below or math.inf))


def _reader(
    kind: Callable[[str], Any], what: str, good: Callable[[Any], bool]
) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not good(value):
            # argparse names the option.
            raise argparse.ArgumentTypeError(f"must be {what}, but is {text!r}")
        return value

    return read


finite = _reader(float, "a finite number", math.isfinite)
not_negative = _reader(float, "a number of at least 0", lambda x: 0 <= x < math.inf)
positive = _reader(float, "a positive number", lambda x: 0 < x < math.inf)
