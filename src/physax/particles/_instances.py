"""Whether an argument is an object of the kind that is wanted."""

from typing import Any

from .._checks import ArgumentError, forgotten


def check_instance(
    x: Any, kinds: tuple[type, ...], name: str, *, optional: bool = False
) -> None:
    """Refuses what is no object of some classes.

    Args:
        x: What was given.
        kinds: The classes, with what a user would write in the message.
        name: What the caller calls it.
        optional: Whether `None` will do.

    Raises:
        ArgumentError: If it is something else.
    """
    if isinstance(x, kinds) or (optional and x is None):
        return
    *most, last = [f"`{kind.__name__}()`" for kind in kinds]
    choice = f"{', '.join(most)} or {last}" if most else last
    raise ArgumentError(f"`{name}` must be {choice}, but is {x!r}.{forgotten(x)}")
