"""Numbers that are known before compiling."""

from typing import Any

from ._checks import real, refuse_text, refuse_traced, single


def known_number(x: Any, name: str, remedy: str = "Close over a number.") -> float:
    """Returns one real number that is known before compiling.

    Args:
        x: What was given.
        name: What the caller calls it.
        remedy: What to do about a traced one.

    Raises:
        ArgumentError: If it is something else.
    """
    refuse_text(x, name)
    refuse_traced(x, name, remedy)
    single(real(x, name), name)
    # As it was given: an array of JAX may have fewer digits.
    return float(x)
