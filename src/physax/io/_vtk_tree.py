"""XML without declarations of types or entities, as VTK files need it."""

import os
import re
from collections.abc import Iterator
from io import BufferedReader
from xml.parsers import expat

from ._vtk_cells import VTKFaultError


_CHUNK = 1 << 16
_DEEPEST = 32
_MOST_ELEMENTS = 1_000_000
_APPENDED = re.compile(rb"<AppendedData[^>]*>\s*_")
_LONGEST_TAG = 4096


class Element:
    """An element of XML.

    Attributes:
        tag: Its name.
        attributes: Its attributes.
        children: The elements in it.
        texts: Pieces of the text that stands directly in it.
    """

    __slots__ = ("attributes", "children", "tag", "texts")

    def __init__(self, tag: str, attributes: dict[str, str]):
        self.tag, self.attributes = tag, attributes
        self.children: list[Element] = []
        self.texts: list[str] = []

    def find(self, tag: str) -> "Element | None":
        """Returns the first child of a name."""
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, tag: str) -> "Iterator[Element]":
        """Yields the children of a name."""
        return (child for child in self.children if child.tag == tag)

    def text(self) -> bytes:
        """Returns the text without white space around it.

        Raises:
            VTKFaultError: If it is not ASCII.
        """
        try:
            return "".join(self.texts).strip().encode("ascii")
        except UnicodeEncodeError as error:
            raise VTKFaultError(
                f"The text of <{self.tag}> must be ASCII, but is not."
            ) from error

    def get(self, name: str) -> str:
        """Returns an attribute that must be there.

        Raises:
            VTKFaultError: If it is not.
        """
        if name not in self.attributes:
            raise VTKFaultError(
                f"<{self.tag}> must have the attribute {name!r}, but has "
                f"{', '.join(self.attributes) or 'none'}."
            )
        return self.attributes[name]

    def count(self, name: str, default: int | None = None) -> int:
        """Returns an attribute that is a number of things.

        Raises:
            VTKFaultError: If it is not.
        """
        if default is not None and name not in self.attributes:
            return default
        text = self.get(name).strip()
        if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
            raise VTKFaultError(
                f"{name!r} of <{self.tag}> must be a number of at most 18 digits, but "
                f"is {text[:40]!r}."
            )
        return int(text)


class _ReachedError(Exception):
    """Parsing came to a place where it should end."""


class _Builder:
    """Makes elements of what the parser meets."""

    def __init__(self, parser: expat.XMLParserType, early: bool):
        self.root: Element | None = None
        self.appended: int | None = None
        self._parser, self._early, self._many = parser, early, 0
        self._stack: list[Element] = []
        self._inline = True
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._doctype

    def _doctype(self, *args):
        del args
        raise VTKFaultError(
            "It must not declare a document type or entities (`<!DOCTYPE`), but does: "
            "VTK writes none, and they can be used for attacks."
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "AppendedData" and len(self._stack) == 1:
            self.appended = self._parser.CurrentByteIndex
            self._stack[-1].children.append(Element(tag, attributes))
            raise _ReachedError
        if tag == "Piece" and self._early and self._inline:
            raise _ReachedError
        self._inline &= attributes.get("format") != "appended"
        element = Element(tag, attributes)
        self._many += 1
        if len(self._stack) >= _DEEPEST or self._many > _MOST_ELEMENTS:
            raise VTKFaultError(
                f"It must have at most {_MOST_ELEMENTS} elements, nested at most "
                f"{_DEEPEST} deep, but has more."
            )
        if self._stack:
            self._stack[-1].children.append(element)
        else:
            self.root = element
        self._stack.append(element)

    def _end(self, tag: str) -> None:
        del tag
        self._stack.pop()

    def _text(self, text: str) -> None:
        self._stack[-1].texts.append(text)


def parse_tree(
    file: BufferedReader, *, early: bool = False
) -> tuple[Element, int | None]:
    """Parses the XML of a file, up to the appended data, which need not be XML.

    Args:
        file: The file.
        early: Whether to stop at the first `<Piece>`, if nothing before it refers to
            appended data.

    Returns:
        The root, and the place of the appended data in the file, `None` without any.

    Raises:
        VTKFaultError: If it is not valid XML, or declares entities.
    """
    parser = expat.ParserCreate()
    builder = _Builder(parser, early)
    file.seek(0)
    try:
        while chunk := file.read(_CHUNK):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except _ReachedError:
        pass
    # The last two come of names of encodings that do not exist or do not fit.
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise VTKFaultError(
            f"It is not valid XML, or is truncated: {error}."
        ) from error
    if builder.root is None:
        raise VTKFaultError("It must hold XML, but is empty.")
    if builder.appended is None:
        return builder.root, None
    file.seek(builder.appended)
    head = _APPENDED.match(file.read(_LONGEST_TAG))
    if head is None:
        raise VTKFaultError(
            "Its appended data must begin with an underscore, but do not: it is "
            "truncated or damaged."
        )
    return builder.root, builder.appended + head.end()


def local_path(path: str | os.PathLike, name: str) -> str:
    """Returns the path of a file that another one names, if it lies beside or below it.

    Args:
        path: The file that names it.
        name: The name.

    Raises:
        VTKFaultError: If it lies elsewhere, also by a link.
    """
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    inside = False
    if name and "\0" not in name:
        # Both as written and as links lead.
        whole = os.path.realpath(folder)
        target = os.path.realpath(os.path.join(folder, name))
        parts = name.replace("\\", "/").split("/")
        written = not os.path.isabs(name) and ".." not in parts and ":" not in parts[0]
        inside = written and os.path.commonpath([whole, target]) == whole
    if not inside:
        raise VTKFaultError(
            f"It must name files in its own folder or below, but names {name[:200]!r}. "
            "Move that file there, or read it on its own."
        )
    return os.path.join(folder, name)
