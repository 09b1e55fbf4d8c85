"""Says which argument made a function compile again."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.core
import numpy as np
from jax.sharding import SingleDeviceSharding

from ._recompile import count_compiles, tell_reason


_ABSENT = "absent"
_NUMBERS = (bool, int, float, complex)
_LONGEST = 60


class _Static:
    """A value that compiled programs were made for; they compare it as Python does."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other) -> bool:
        if not isinstance(other, _Static):
            return NotImplemented
        return self.value is other.value or self.value == other.value

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __str__(self) -> str:
        name = getattr(self.value, "__qualname__", None)
        if name is not None:
            return f"the object {name} at {id(self.value):#x}"
        text = repr(self.value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


class _Number(_Static):
    """A Python number, which is traced unless its argument is static."""

    def same_type(self, other) -> bool:
        return isinstance(other, _Number) and type(self.value) is type(other.value)

    def __eq__(self, other) -> bool:
        return self.same_type(other) and self.value == other.value

    __hash__ = None  # pyright: ignore[reportAssignmentType]


_Signature = dict[str, object]


def watched(function: Callable) -> Callable:
    """Makes a jitted function say why it compiles.

    Whenever a call compiles something, its arguments are compared with those of the
    earlier calls that did: shapes, dtypes, weak types, devices, static values and
    structure. `no_recompile` quotes what is found, and `count_compiles` collects it
    in `reasons`. A call that compiles nothing is not examined.

    Args:
        function: The function, jitted by `jax.jit` or `eqx.filter_jit`, or one that
            calls such functions.

    Returns:
        A function of the same arguments. Keep it: a new one has seen nothing. What
        other threads compile during a call counts as its own.
    """
    name = getattr(function, "__name__", type(function).__name__)
    # Under `jax.jit` a Python number is an array, elsewhere it is most often static.
    traced_numbers = isinstance(function, jax.stages.Wrapped)
    seen: list[_Signature] = []

    def differences(old: _Signature, new: _Signature) -> list[str]:
        changed = [
            place
            for place in old | new
            if old.get(place, _ABSENT) != new.get(place, _ABSENT)
        ]
        kinds = [
            place for place in changed if not _same_type(old.get(place), new.get(place))
        ]
        # A number that is traced has not made it compile if something else has.
        return kinds or changed if traced_numbers else changed

    def reason(new: _Signature) -> str:
        if not seen:
            return (
                f"`{name}` compiled at its first call. A function that is made anew "
                "for each call compiles each time: make it once, outside."
            )
        found, old = min(
            ((differences(old, new), old) for old in reversed(seen)),
            key=lambda pair: len(pair[0]),
        )
        if not found:
            return (
                f"`{name}` compiled although no argument changed: it makes a new "
                "function in each call and jits that, or JAX's caches were cleared or "
                "its configuration changed."
            )
        changes = (
            f"`{place}` changed from {old.get(place, _ABSENT)} to "
            f"{new.get(place, _ABSENT)}"
            for place in found
        )
        return f"`{name}` compiled again because {', and '.join(changes)}."

    @functools.wraps(function)
    def call(*args, **kwargs):
        with count_compiles() as count:
            result = function(*args, **kwargs)
        if count or not seen:
            signature = dict(_entries(_named(function, args, kwargs), ""))
            if count:
                tell_reason(reason(signature), sum(count.seconds))
            seen.append(signature)
        return result

    return call


def _same_type(a: object, b: object) -> bool:
    return isinstance(a, _Number) and a.same_type(b)


def _named(function: Callable, args: tuple, kwargs: Mapping[str, Any]) -> dict:
    """Returns the arguments by the names of their parameters."""
    try:
        parameters = inspect.signature(function).bind(*args, **kwargs).arguments
    except ValueError:  # A builtin has no signature.
        return {f"args[{i}]": x for i, x in enumerate(args)} | dict(kwargs)
    return dict(parameters)


def _entries(x, path: str) -> Iterator[tuple[str, object]]:
    """Yields place and signature of everything in an argument."""
    if isinstance(x, jax.Array | np.ndarray | np.generic):
        yield path, _array(x)
    elif isinstance(x, _NUMBERS):
        yield path, _Number(x)
    elif isinstance(x, eqx.Module):
        yield path, type(x).__qualname__
        for name, field in type(x).__dataclass_fields__.items():
            value = getattr(x, name, None)
            if field.metadata.get("static", False):
                yield f"{path}.{name}", _Static(value)
            else:
                yield from _entries(value, f"{path}.{name}")
    elif isinstance(x, dict):
        for key, value in x.items():
            # The names of the arguments stand alone at the beginning.
            yield from _entries(value, f"{path}[{key!r}]" if path else str(key))
    else:
        yield from _node(x, path)


def _node(x, path: str) -> Iterator[tuple[str, object]]:
    """As `_entries`, for whatever JAX knows how to take apart, and for the rest."""
    children, structure = jax.tree_util.tree_flatten_with_path(
        x, is_leaf=lambda node: node is not x
    )
    if jax.tree_util.treedef_is_leaf(structure):
        yield path, _Static(x)
        return
    data = structure.node_data()
    if data is None:  # None, which has no content.
        yield path, "None"
        return
    kind, extra = data
    yield path, kind.__qualname__
    if extra is not None:
        yield f"static fields of {path}", _Static(extra)
    for key, child in children:
        yield from _entries(child, f"{path}{jax.tree_util.keystr(key)}")


def _array(x) -> str:
    kind = jax.typeof(x)
    text = f"{kind.dtype.name}{list(kind.shape)}"
    if getattr(kind, "weak_type", False):
        text += " of weak type"
    # Only an array that has been put somewhere makes the program stay there.
    if isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer) and x.committed:
        text += f" {_place(x.sharding)}"
    return text


def _place(sharding) -> str:
    if isinstance(sharding, SingleDeviceSharding):
        (device,) = sharding.device_set
        return f"placed on {device.platform}:{device.id}"
    return f"placed by {sharding}"
