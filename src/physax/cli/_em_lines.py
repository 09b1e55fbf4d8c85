"""Which line of the YAML file of `physax em` an error is about."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._checks import ArgumentError
from ..io import PhysaxFileError, YamlNode
from ..runtime import MemoryLimitError


@contextmanager
def at(file: YamlNode, *path: str | int) -> Iterator[None]:
    """Lets what the block refuses name the file and the line.

    Args:
        file: The whole file.
        *path: Keys, and places in lists, of what the block is about, as far as the file
            has them. Without any the message tells.

    Raises:
        PhysaxFileError: In place of an `ArgumentError` of the block.
        MemoryLimitError: As that of the block, with the line.
    """
    node = file
    for key in path:
        node = _entries(node).get(key, node)
    try:
        yield
    except MemoryLimitError as error:
        raise MemoryLimitError(str(node.refused(error))) from error
    except ArgumentError as error:
        raise _pointed(file, node, error) from error


def _entries(node: YamlNode | None) -> dict[Any, YamlNode]:
    value = None if node is None else node.value
    if isinstance(value, list):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else {}


def _pointed(file: YamlNode, node: YamlNode, error: ArgumentError) -> PhysaxFileError:
    """Points to the source or monitor that an error of the whole names, or to a key."""
    if node is not file:
        return node.refused(error)
    text = str(error)
    parts = {
        (group, name): part
        for group in ("monitor", "source")
        for name, part in _entries(_entries(file).get(f"{group}s")).items()
    }
    for (group, name), part in parts.items():
        if re.search(f"{group} {re.escape(repr(name))}", text, re.IGNORECASE):
            return part.refused(error)
    if file.line_named(text) is not None:
        return file.refused(error)
    named = [part for (_, name), part in parts.items() if repr(name) in text]
    return named[0].refused(error) if named else PhysaxFileError(file.file, text)
