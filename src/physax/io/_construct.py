"""Turns nodes of a YAML file into modules: the signature is the schema."""

import collections.abc
import dataclasses
import difflib
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jaxtyping
import numpy as np

from .._checks import PhysaxError
from ._errors import PhysaxFileError
from ._key_units import DEGREES, Dimension, KeyUnits, scaled
from ._yaml_nodes import YamlNode


TYPE = "type"
"""The key that names a constructor."""

_UNIONS = (typing.Union, types.UnionType)
_LISTS = (list, tuple, collections.abc.Sequence)
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    complex: "a number",
    str: "a text",
    type(None): "null",
}


def construct(
    node: YamlNode,
    target: Callable | None = None,
    *,
    registry: Mapping[str, Callable] = types.MappingProxyType({}),
    units: Mapping[str, float | int] = DEGREES,
    dimensions: Sequence[Dimension] = (),
) -> Any:
    """Calls a constructor with the entries of a mapping, and theirs with theirs.

    The keys are the names of its parameters, and the annotations of these say what the
    values must be. A mapping whose parameter may be one of several classes names its
    own in the key `type`; the name is looked up in `registry` and nowhere else. A key
    that ends in a unit, as `phi0_degrees`, gives the parameter before it, `phi0`.

    Args:
        node: A mapping, from `read_yaml`.
        target: The constructor or function; `None` if the key `type` names it.
        registry: The constructors that a file may name.
        units: What to multiply a value by, for each unit that may end any key.
        dimensions: Units that may end only the keys of some parameters.

    Returns:
        What the constructor returns.

    Raises:
        PhysaxFileError: If a key is unknown, missing or has a unit that it does not
            take, a value is of a wrong type, or a constructor refuses it; names the
            line.
    """
    return _Builder(registry, KeyUnits(units, dimensions)).build(node, target)


class _Builder(NamedTuple):
    registry: Mapping[str, Callable]
    units: KeyUnits

    def build(self, node: YamlNode, target: Any) -> Any:
        if not isinstance(node.value, dict):
            raise node.error(f"must be a mapping, but is {_seen(node)}.")
        entries = dict(node.value)
        chosen = entries.get(TYPE)
        if chosen is not None and (target is None or self._fitting(target)):
            del entries[TYPE]
            target = self._named(chosen, target)
        elif target is None or inspect.isabstract(target) or _is_abstract(target):
            raise node.error(
                f"must have the key `{TYPE}`, one of {self._names(target)}."
            )
        given = self._arguments(node, entries, target)
        try:
            return target(**given)
        except (PhysaxError, ValueError, TypeError, OSError) as error:
            raise node.refused(error) from error

    def _fitting(self, target: Any) -> list[str]:
        return [name for name, made in self.registry.items() if _fits(made, target)]

    def _names(self, target: Any) -> str:
        return ", ".join(self._fitting(target)) or "nothing (none is registered)"

    def _named(self, chosen: YamlNode, target: Any) -> Callable:
        name = chosen.value
        found = self.registry.get(name) if isinstance(name, str) else None
        if found is None or not _fits(found, target):
            near = _nearest(str(name), self._fitting(target))
            raise chosen.error(
                f"must be one of {self._names(target)}, but is {name!r}.{near}"
            )
        return found

    def _arguments(
        self, node: YamlNode, entries: dict[str, YamlNode], target: Callable
    ) -> dict[str, Any]:
        parameters = _parameters(target)
        given: dict[str, Any] = {}
        written: dict[str, str] = {}
        for key, value in entries.items():
            name, factor = self._parameter(node, key, parameters, target)
            first = written.setdefault(name, key)
            if first != key:
                line = node.key_lines[key]
                raise node.error(f"gives `{first}` twice, also as `{key}`.", line)
            try:
                made = self.value(value, parameters[name].annotation)
            except PhysaxFileError as error:
                told = self.units.behind(value, name, target)
                if told is None:
                    raise
                raise told from error
            given[name] = made if factor is None else scaled(value, made, factor)
        missing = [
            name
            for name, parameter in parameters.items()
            if parameter.default is parameter.empty and name not in given
        ]
        if missing:
            listed = ", ".join(f"`{name}`" for name in missing)
            raise node.error(f"must have the keys {listed}, but does not.")
        return given

    def _parameter(
        self, node: YamlNode, key: str, parameters: Mapping, target: Callable
    ) -> tuple[str, float | int | None]:
        """Returns the parameter of a key, and what its unit is worth."""
        if key in parameters:
            return key, None
        base, _, unit = key.rpartition("_")
        hint = ""
        if base in parameters:
            units = self.units.of(base, target)
            if unit in units:
                return base, units[unit]
            value = typing.cast("dict[str, YamlNode]", node.value)[key]
            foreign = self.units.foreign(value, key, target)
            if foreign is not None:
                raise foreign
            hint = self.units.endings(base, target)
        allowed = ", ".join(parameters) or "no keys"
        raise node.error(
            f"has the unknown key `{key}`; known are {allowed}."
            + (hint or _nearest(key, parameters)),
            node.key_lines[key],
        )

    def value(self, node: YamlNode, hint: Any) -> Any:
        """Makes a value of the kind that an annotation asks for."""
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self.value(node, args[0])
        if origin in _UNIONS:
            return self._one_of(node, hint, args)
        if not _takes(node.value, hint):
            raise self._other_kind(node, hint)
        if origin in _LISTS:
            return self._items(node, origin, args)
        if origin in (dict, collections.abc.Mapping):
            entries = typing.cast("dict[str, YamlNode]", node.value)
            return {key: self.value(item, args[1]) for key, item in entries.items()}
        if hint in (float, complex):
            return float(typing.cast("float", node.value))
        if _is_array(hint):
            return _numbers(node, hint)
        mapping = isinstance(node.value, dict)
        anything = hint in (Any, inspect.Parameter.empty, object, dict)
        if mapping and not anything:
            return self.build(node, hint)
        return node.plain()

    def _one_of(self, node: YamlNode, hint: Any, options: tuple) -> Any:
        possible = [option for option in options if _takes(node.value, option)]
        if not possible:
            raise self._other_kind(node, hint)
        # Of lists, those that may start as this one does.
        possible = [one for one in possible if _starts(node.value, one)] or possible
        for option in possible[:-1]:
            try:
                return self.value(node, option)
            except PhysaxFileError:
                continue
        # What the last one says is said.
        return self.value(node, possible[-1])

    def _other_kind(self, node: YamlNode, hint: Any) -> PhysaxFileError:
        given, remedy = node.value, ""
        union = typing.get_origin(hint) in _UNIONS
        for option in typing.get_args(hint) if union else (hint,):
            item, *more = typing.get_args(option) or (None,)
            listed = typing.get_origin(option) in _LISTS and more in ([], [...])
            if inspect.isclass(option) and given in self._fitting(option):
                remedy = f" Write `{{{TYPE}: {given}}}`."
            elif listed and not isinstance(given, dict) and _takes(given, item):
                remedy = f" Write `[{given}]`."
        return node.error(f"must be {_name(hint)}, but is {_seen(node)}.{remedy}")

    def _items(self, node: YamlNode, origin: Any, args: tuple) -> Any:
        items = typing.cast("list[YamlNode]", node.value)
        if origin is tuple and args and args[-1] is not Ellipsis:
            if len(items) != len(args):
                raise node.error(
                    f"must have {len(args)} entries, but has {len(items)}."
                )
            hints = args
        else:
            hints = (args[0] if args else Any,) * len(items)
        made = [self.value(i, hint) for i, hint in zip(items, hints, strict=True)]
        return made if origin is list else tuple(made)


def _parameters(target: Any) -> dict[str, inspect.Parameter]:
    """Returns the parameters of a constructor with annotations that are types."""
    hints = typing.get_type_hints(
        target.__init__ if inspect.isclass(target) else target, include_extras=True
    )
    if dataclasses.is_dataclass(target):
        # A converter replaces the annotation of the parameter by its own.
        hints |= typing.get_type_hints(target, include_extras=True)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = {}
    for name, parameter in inspect.signature(target).parameters.items():
        hint = hints.get(name, Any)
        if parameter.kind in named:
            found[name] = parameter.replace(annotation=hint)
        elif typing.get_origin(hint) is typing.Unpack:
            # PEP 692: keywords that are the entries of a dictionary with types.
            (entries,) = typing.get_args(hint)
            for key, kind in typing.get_type_hints(entries).items():
                default = parameter.empty if key in entries.__required_keys__ else None
                found[key] = inspect.Parameter(
                    key, named[1], default=default, annotation=kind
                )
    return found


def _takes(value: object, hint: Any) -> bool:
    """Tells whether a value is of the kind of an annotation, its entries aside."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _takes(value, args[0])
    if origin in _UNIONS:
        return any(_takes(value, option) for option in args)
    if origin is typing.Literal:
        return not isinstance(value, list | dict) and value in args
    if origin in _LISTS:
        return isinstance(value, list)
    if origin in (dict, collections.abc.Mapping):
        return isinstance(value, dict)
    if hint is None or hint is type(None):
        return value is None
    if hint in (Any, inspect.Parameter.empty, object):
        return True
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint in (float, complex):
        return number
    if hint in (bool, int, str):
        return type(value) is hint
    if _is_array(hint):
        flag = isinstance(value, bool) and "bool" in _dtypes(hint)
        return (
            flag
            or number
            or (isinstance(value, list) and _dims(hint) not in ((), None))
        )
    if hint in (list, tuple):
        return isinstance(value, list)
    return isinstance(value, dict)


def _starts(value: Any, hint: Any) -> bool:
    """Tells whether the first entry of a list is of the kind that one must have."""
    args = typing.get_args(hint)
    listed = isinstance(value, list) and value and args
    if not listed or typing.get_origin(hint) not in _LISTS:
        return True
    return _takes(value[0].value, args[0])


def _is_array(hint: Any) -> bool:
    return inspect.isclass(hint) and (
        issubclass(hint, jaxtyping.AbstractArray)
        or issubclass(hint, (np.ndarray, jax.Array))
    )


def _dtypes(hint: Any) -> tuple:
    return tuple(getattr(hint, "dtypes", ()))


def _dims(hint: Any) -> tuple:
    # An array without a shape can have any.
    return getattr(hint, "dims", ("...",))


def _numbers(node: YamlNode, hint: Any) -> Any:
    if not isinstance(node.value, list):
        return node.value if isinstance(node.value, bool) else float(node.value)  # pyright: ignore
    flags = "bool" in _dtypes(hint)

    def leaves(at: YamlNode):
        if isinstance(at.value, list):
            return [leaves(item) for item in at.value]
        boolean = isinstance(at.value, bool)
        if boolean != flags or not isinstance(at.value, bool | int | float):
            kind = "true or false" if flags else "a number"
            raise at.error(f"must be {kind}, but is {_seen(at)}.")
        return at.value

    try:
        return np.asarray(leaves(node), bool if flags else float)
    except ValueError as error:
        raise node.error("must have rows of equal length.") from error


def _fits(made: Callable, target: Any) -> bool:
    """Tells whether a registered constructor may stand where `target` is wanted."""
    if not inspect.isclass(made):
        made = typing.get_type_hints(made).get("return", object)
    if not inspect.isclass(target) or not inspect.isclass(made):
        return True
    return made is object or issubclass(made, target)


def _is_abstract(target: Any) -> bool:
    return inspect.isclass(target) and target.__name__.startswith("Abstract")


def _name(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        if any(map(_is_array, args)):
            # Of all that JAX takes as an array, a file can hold these.
            args = (np.ndarray, *(one for one in args if one is type(None)))
        return " or ".join(dict.fromkeys(_name(option) for option in args))
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, args))
    if origin in _LISTS or hint in (list, tuple):
        return "a list"
    if origin in (dict, collections.abc.Mapping):
        return "a mapping"
    if _is_array(hint):
        return "a number" + ("" if _dims(hint) == () else " or a list of numbers")
    return _KINDS.get(type(None) if hint is None else hint, "a mapping")


def _seen(node: YamlNode) -> str:
    value = node.value
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"the text {value!r}"
    return "null" if value is None else str(value).lower()


# What is meant by keys that are spelt otherwise.
_MEANT = {"frequency": "wavelengths", "frequencies": "wavelengths"}


def _nearest(key: str, allowed) -> str:
    near = difflib.get_close_matches(key, list(allowed), n=1, cutoff=0.5)
    if _MEANT.get(key) in allowed:
        near = [_MEANT[key]]
    return f" Did you mean `{near[0]}`?" if near else ""
