"""Units at the ends of keys: which ones a parameter takes, what they are worth."""

import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ._errors import PhysaxFileError
from ._yaml_nodes import YamlNode


DEGREES = types.MappingProxyType({"degrees": math.pi / 180})
"""Units that may stand at the end of a key, and what they are worth in Python."""

# A text that begins as a number and goes on with a unit.
_MEASURED = re.compile(r"[-+]?[.0-9][-+.0-9eE]*\s*[^\W\d].*")

# Infinity as Python writes it, which YAML reads as text.
_ENDLESS = re.compile(r"[-+]?(inf|infinity)", re.IGNORECASE)

# Characters of a value in a message.
_LONGEST = 60


class Dimension(NamedTuple):
    """What some parameters measure, and the units that may end their keys.

    Attributes:
        name: With its article: `"a length"`.
        unit: That of a number whose key ends in none: `"metres"`.
        units: What to multiply a value by, for each unit.
        keys: The parameters, as `"size"`, or as `"Bend.start"` of one constructor only.
    """

    name: str
    unit: str
    units: Mapping[str, float | int]
    keys: Sequence[str]


class KeyUnits(NamedTuple):
    """Which units may end which keys.

    Attributes:
        common: Those of all keys, and what they are worth.
        dimensions: Those of some keys.
    """

    common: Mapping[str, float | int]
    dimensions: Sequence[Dimension]

    def of(self, name: str, target: Callable) -> Mapping[str, float | int]:
        """Returns the units that a parameter of a constructor takes."""
        dimension = self._dimension(name, target)
        return {**self.common, **({} if dimension is None else dimension.units)}

    def endings(self, name: str, target: Callable) -> str:
        """Lists the keys of a parameter with a unit, as a sentence after another."""
        keys = " or ".join(f"`{name}_{unit}`" for unit in self.of(name, target))
        return f" With a unit it is {keys}." if keys else ""

    def foreign(
        self, node: YamlNode, key: str, target: Callable
    ) -> PhysaxFileError | None:
        """Makes the error of a key that ends in a unit of other keys, if it does.

        Args:
            node: The value.
            key: Its key: a parameter of the constructor, with an ending.
            target: The constructor.
        """
        name, _, ending = key.rpartition("_")
        if not any(ending in one.units for one in self.dimensions):
            return None
        dimension = self._dimension(name, target)
        takes = (
            f"takes no unit: write `{name}`."
            if dimension is None
            else f"is {dimension.name}, in {dimension.unit} without a unit."
        )
        seen = repr(node.plain())
        seen = seen if len(seen) <= _LONGEST else f"{seen[:_LONGEST]} ..."
        return node.error(
            f"must not end in `_{ending}`, but is {seen}: `{name}` {takes}"
            f"{self.endings(name, target)}"
        )

    def behind(
        self, node: YamlNode, name: str, target: Callable
    ) -> PhysaxFileError | None:
        """Makes the error of a number with its unit behind it, if it is one.

        Args:
            node: The value, or a list of them.
            name: The parameter.
            target: The constructor.
        """
        endings = self.endings(name, target)
        for item in node.value if isinstance(node.value, list) else [node]:
            text = item.value
            if endings and isinstance(text, str) and _ENDLESS.fullmatch(text):
                return item.error(
                    f"must be a number, but is the text {text!r}. Write "
                    f"{'-' * text.startswith('-')}.inf, with a dot."
                )
            if endings and isinstance(text, str) and _MEASURED.fullmatch(text):
                return item.error(
                    f"must be a number, but is the text {text!r}.{endings}"
                )
        return None

    def _dimension(self, name: str, target: Callable) -> Dimension | None:
        names = {name, f"{getattr(target, '__name__', '')}.{name}"}
        return next((one for one in self.dimensions if names & {*one.keys}), None)


def scaled(node: YamlNode, value: Any, factor: float | int) -> Any:
    """Returns a value in the units of Python.

    Args:
        node: Where it stands.
        value: Numbers, or nothing.
        factor: What the unit of its key is worth.

    Raises:
        PhysaxFileError: If it is neither number nor nothing.
    """
    if isinstance(value, list | tuple):
        return type(value)(scaled(node, item, factor) for item in value)
    if isinstance(value, bool | str | Mapping):
        raise node.error("must be a number, as its key ends in a unit.")
    return value if value is None else value * factor
