"""YAML as checked nodes that know their lines: no tags, no aliases, no surprises."""

import dataclasses
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import yaml

from ._errors import PhysaxFileError


MAX_BYTES = 1_000_000
"""Files of settings are far shorter than this."""

MAX_DEPTH = 20
"""Levels of nesting."""

# YAML 1.2, not 1.1: there "no" is false, 1:30 is 90, and 1e5 is a text.
_INTEGER = re.compile(r"[-+]?[0-9]+")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
_PLAIN = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


@dataclasses.dataclass(frozen=True)
class YamlNode:
    """One value of a YAML file, and where it is.

    Attributes:
        value: `None`, a boolean, a number, a string, a list of nodes, or a dictionary
            of nodes by their keys.
        file: The file.
        line: Its line, counted from 1.
        key_lines: The lines of the keys of a dictionary.
        name: How one gets here: `"model.shear.beta"`, empty for the whole.
    """

    value: object
    file: str
    line: int
    key_lines: dict[str, int]
    name: str

    def plain(self) -> object:
        """Returns the values as Python's own, without the nodes."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def error(self, text: str, line: int | None = None) -> PhysaxFileError:
        """Makes an error that names the file, the line and the value.

        Args:
            text: What is wrong, as a sentence that goes on after the name.
            line: Of a key; that of the value if `None`.

        Returns:
            The error, to be raised.
        """
        what = f"`{self.name}` " if self.name else "It "
        return PhysaxFileError(
            self.file, f"line {self.line if line is None else line}: {what}{text}"
        )

    def line_named(self, text: str) -> int | None:
        """Returns the line of the first entry that a text names in backticks.

        Args:
            text: A message. A key may go on with a unit where it names a parameter.

        Returns:
            The line; `None` without such an entry.
        """
        named = re.findall(r"`(?:\w+\.)*(\w+)`", text)
        lines = self.key_lines.items()
        found = (
            n for name in named for k, n in lines if f"{k}_".startswith(f"{name}_")
        )
        return next(found, None)

    def refused(self, error: Exception) -> PhysaxFileError:
        """Makes an error of what refused the value: points to the entry that it names.

        Args:
            error: It names an entry in backticks, or a file that is not there, or
                neither.

        Returns:
            The error, to be raised.
        """
        if isinstance(error, FileNotFoundError) and error.filename is not None:
            entries = cast("dict[str, YamlNode]", self.value).values()
            name = os.fspath(error.filename)
            line = next((one.line for one in entries if one.value == name), None)
            text = f"there is no file {str(Path(name).absolute())!r}."
        else:
            text = str(error)
            line = self.line_named(text)
        return self.error(f"is refused: {text}", line)


def read_yaml(path: str | os.PathLike) -> YamlNode:
    """Reads a YAML file as data: nothing in it can run, grow or hide.

    Truth values are `true` and `false`, and `1e5` is a number, as in YAML 1.2. Dates
    stay texts.

    Args:
        path: The file, in UTF-8.

    Returns:
        Its node, for `construct`; `plain` makes dictionaries and lists of it.

    Raises:
        PhysaxFileError: If it is a folder, is larger than 1 MB, is not YAML, nests
            deeper than 20 levels, or has tags, anchors, aliases, several documents, a
            key twice, a key that is not a string, or NaN; names the line.
        FileNotFoundError: If there is no such file.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no file {os.fspath(path)!r}.")
    if Path(path).is_dir():
        raise PhysaxFileError(path, "It must be a file, but is a folder.")
    with Path(path).open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise PhysaxFileError(path, f"It must have at most {MAX_BYTES} bytes.")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PhysaxFileError(path, f"It is not text in UTF-8: {error}.") from error
    try:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        return _document(os.fspath(path), events)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f"line {mark.line + 1}: "
        problem = error.problem or error.context
        raise PhysaxFileError(
            path, f"{line}It is not valid YAML: {problem}."
        ) from error
    except yaml.YAMLError as error:
        raise PhysaxFileError(path, f"It is not valid YAML: {error}.") from error


def _document(file: str, events: Iterator[yaml.Event]) -> YamlNode:
    root = None
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if root is not None:
                line = event.start_mark.line + 1
                raise PhysaxFileError(
                    file, f"line {line}: It must hold one document, but holds another."
                )
            root = _node(file, next(events), events, "", 0)
    # An empty file has no document.
    return YamlNode(None, file, 1, {}, "") if root is None else root


def _node(file: str, event, events: Iterator, name: str, depth: int) -> YamlNode:
    line = event.start_mark.line + 1
    here = YamlNode(None, file, line, {}, name)
    if isinstance(event, yaml.AliasEvent):
        raise here.error(f"must be a value, but is the alias *{event.anchor}.")
    if event.anchor is not None:
        raise here.error(f"must have no anchor, but has &{event.anchor}.")
    if event.tag is not None:
        raise here.error(f"must have no tag, but has {event.tag!r}.")
    if depth > MAX_DEPTH:
        raise here.error(f"nests deeper than {MAX_DEPTH} levels.")
    if isinstance(event, yaml.ScalarEvent):
        if "\0" in event.value:
            raise here.error("must not hold the character NUL, which no file name has.")
        plain = event.implicit[0] and event.style is None
        value = _scalar(here, event.value) if plain else event.value
        return dataclasses.replace(here, value=value)
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_node(file, event, events, f"{name}[{len(items)}]", depth + 1))
        return dataclasses.replace(here, value=items)
    return _mapping(here, events, depth)


def _mapping(here: YamlNode, events: Iterator, depth: int) -> YamlNode:
    values: dict[str, YamlNode] = {}
    lines: dict[str, int] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key = _node(here.file, event, events, here.name, depth + 1)
        if not isinstance(key.value, str):
            raise here.error(
                f"must have texts as keys, but has {key.plain()!r}.", key.line
            )
        if key.value in values:
            raise here.error(
                f"must have each key once, but has {key.value!r} in line "
                f"{lines[key.value]} already.",
                key.line,
            )
        name = f"{here.name}.{key.value}" if here.name else key.value
        lines[key.value] = key.line
        values[key.value] = _node(here.file, next(events), events, name, depth + 1)
    return dataclasses.replace(here, value=values, key_lines=lines)


def _scalar(here: YamlNode, text: str) -> object:
    if text in _PLAIN:
        return _PLAIN[text]
    if _INTEGER.fullmatch(text) and len(text) < 30:
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    infinite = _INFINITY.fullmatch(text)
    if infinite:
        return -math.inf if infinite[1] == "-" else math.inf
    if text in (".nan", ".NaN", ".NAN"):
        raise here.error("must be a number, but is NaN.")
    return text
