"""A fingerprint of a problem, by which a checkpoint knows what it belongs to."""

import dataclasses
import enum
import fractions
import functools
import hashlib
import json
import pathlib
import re
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec, Sharding

from .._checks import ArgumentError


_PLACEMENT = (Mesh, Sharding, PartitionSpec, jax.Device)
_PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, type(...), slice, range),
    *(np.dtype, np.generic, pathlib.PurePath, fractions.Fraction),
)
_LONGEST = 48
# How Python shows what has no other text, as it does functions.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

# The methods of their classes belong to a version, those of others to the problem.
_LIBRARIES = sys.stdlib_module_names | {
    *("physax", "jax", "jaxlib", "equinox", "optax", "numpy", "ml_dtypes", "jaxtyping"),
    *("diffrax", "lineax", "optimistix", "numpyro", "scipy"),
}
_METHODS = (
    *(types.FunctionType, property, functools.cached_property),
    *(functools.partial, functools.partialmethod, functools.singledispatchmethod),
)
# What makes, shows, compares or copies an object, whose fields count already.
_APART = {
    *("__init__", "__new__", "__post_init__", "__check_init__", "__init_subclass__"),
    *("__repr__", "__str__", "__eq__", "__hash__", "__setattr__", "__delattr__"),
    *("__getstate__", "__setstate__", "__replace__", "__annotate__"),
    *("__annotate_func__", "__class_getitem__"),
}

_FILTERED_JIT: type = type(eqx.filter_jit(abs))


class Fingerprint(eqx.Module):
    """What identifies a problem: every value in it, by its place.

    Attributes:
        fields: A short text for each value: the value itself where that is short,
            otherwise its type, shape and SHA-256.
    """

    fields: dict[str, str] = eqx.field(static=True)

    @property
    def digest(self) -> str:
        """SHA-256 over all fields, as 64 hexadecimal digits."""
        text = json.dumps(self.fields, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def differences(self, other: "Fingerprint") -> dict[str, tuple[str, str]]:
        """Finds the fields that differ.

        Args:
            other: Another fingerprint.

        Returns:
            Both texts of each differing field, by its place; `"absent"` for a
            field that only one of them has.
        """
        names = sorted(self.fields.keys() | other.fields.keys())
        pairs = {
            name: (self.fields.get(name, "absent"), other.fields.get(name, "absent"))
            for name in names
        }
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def fingerprint(
    tree: Any, *, ignore: tuple[type, ...] = (), **extra: object
) -> Fingerprint:
    """Takes the fingerprint of a problem.

    It covers structure, types, shapes, dtypes, static values, the code of functions
    with what they enclose (not the global names they use), and the bits of all arrays.
    Methods and constants of your own modules and dataclasses count as functions do, an
    object among these constants whose identity cannot be decided by its type alone;
    those of physax, Python and what physax builds on, as JAX, Equinox and Diffrax, do
    not. Objects of other classes of yours are refused. Equal problems have equal
    fingerprints in every process. Meshes, shardings and devices do not count: a run may
    be continued on others.

    Args:
        tree: Modules, containers, arrays, numbers, functions.
        ignore: Further types that do not count.
        **extra: What else identifies the problem, under any name but `problem`, which
            is that of the tree.

    Returns:
        The fingerprint.

    Raises:
        ArgumentError: If there is an object whose identity cannot be decided in another
            process, or a further name is `problem` or no identifier.
    """
    skip = (*_PLACEMENT, *ignore)
    seen = {}
    fields = dict(_walk(tree, "problem", skip, (), seen, False))
    for name, value in sorted(extra.items()):
        if name == "problem" or not name.isidentifier():
            raise ArgumentError(
                "`extra` must have names that no value of the tree has, but one is "
                f"`{name}`: choose another, without dots."
            )
        fields.update(_walk(value, name, skip, (), seen, False))
    return Fingerprint(fields)


def _walk(
    x,
    path: str,
    skip: tuple[type, ...],
    above: tuple[int, ...],
    seen: dict[tuple[type, bool], str],
    by_type: bool,
) -> Iterator[tuple[str, str]]:
    """Yields place and text of everything in `x`, which stands in the ids `above`.

    Classes are walked once, or once each way; `seen` has the places of those that have
    been. An object whose identity cannot be decided is known `by_type`, or refused.
    """
    if isinstance(x, skip):
        return
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        numbers = _array(jax.random.key_data(x), path)
        yield path, f"key {jax.random.key_impl(x)} {numbers}"
    elif isinstance(x, np.ma.MaskedArray):
        yield f"{path}.mask", _array(np.ma.getmaskarray(x), path)
        yield path, _array(x.filled(0), path)
    elif isinstance(x, np.ndarray) and x.dtype.names is not None:
        # One by one: between fields there may be bytes of no meaning.
        yield path, f"fields {x.dtype.names}"
        for name in x.dtype.names:
            yield from _walk(x[name], f"{path}[{name!r}]", skip, above, seen, by_type)
    elif isinstance(x, jax.Array | np.ndarray):
        yield path, _array(x, path)
    elif isinstance(x, _PLAIN) and not isinstance(x, enum.Enum):
        yield path, _short(f"{type(x).__name__} {x!r}")
    elif isinstance(x, type) and ((x, by_type) in seen or not _own(x)):
        again = f", as {seen[x, by_type]}" if (x, by_type) in seen else ""
        yield path, f"type {_qualified(x)}{again}"
    else:
        yield path, _title(x)
        if isinstance(x, type):
            seen[x, by_type] = path
        # A recursive function stands in its own closure.
        children = [] if id(x) in above else _children(x)
        if children is None and not by_type:
            raise ArgumentError(
                f"`{path}` must be an array, a number, a string, a function, a module "
                f"or a container of those, but is {type(x).__name__}: whether two of "
                "them are the same cannot be decided in another process."
            )
        for name, child in children or []:
            # Constants of classes; a method must be told from another.
            own = isinstance(x, type) and not _is_method(child)
            below = (skip, (*above, id(x)), seen, by_type or own)
            yield from _walk(child, f"{path}{name}", *below)
        if _own(type(x)):
            below = (skip, above, seen, children is None)
            yield from _walk(type(x), f"{path}.class", *below)


def _own(kind: type) -> bool:
    """Whether a class belongs to no library whose version tells what it does."""
    module = kind.__module__
    # Compilers of Python have classes without the name of one.
    return isinstance(module, str) and module.partition(".")[0] not in _LIBRARIES


def _title(x) -> str:
    if isinstance(x, enum.Enum):
        return f"{_qualified(type(x))}.{x.name}"
    return f"type {_qualified(x)}" if isinstance(x, type) else _qualified(type(x))


def _children(x) -> list[tuple[str, object]] | None:
    """Returns names and values of what tells an object, `None` if nothing does."""
    if isinstance(x, _FILTERED_JIT):
        # Its other fields are made of this one.
        return [(".wrapped", x.__wrapped__)]
    if isinstance(x, enum.Enum):
        return []
    if isinstance(x, type):
        return _namespace(x)
    if dataclasses.is_dataclass(x):
        names = [field.name for field in dataclasses.fields(x)]
        # A field without a value is possible while a module is under construction.
        return [(f".{name}", getattr(x, name, None)) for name in names]
    if isinstance(x, Mapping):
        return _items(x)
    if isinstance(x, list | tuple):
        return [(f"[{i}]", value) for i, value in enumerate(x)]
    if isinstance(x, set | frozenset):
        return [(f"{{{i}}}", value) for i, value in enumerate(sorted(x, key=_label))]
    if isinstance(x, functools.partial | functools.partialmethod):
        return [(".func", x.func), (".args", x.args), (".keywords", x.keywords)]
    if isinstance(x, types.MethodType):
        return [(".self", x.__self__), (".func", x.__func__)]
    if isinstance(x, types.FunctionType):
        return _function(_unchecked(x))
    if isinstance(x, functools.singledispatchmethod):
        return [(".registry", dict(x.dispatcher.registry))]
    if isinstance(x, property):
        return [(".get", x.fget)]
    if isinstance(x, functools.cached_property):
        return [(".get", x.func)]
    if isinstance(x, types.CodeType):
        names = (x.co_names, x.co_varnames, x.co_freevars)
        return [(".code", x.co_code), (".constants", x.co_consts), (".names", names)]
    if isinstance(x, types.BuiltinFunctionType):
        # A method of a built-in type has no module, but an object.
        owner = x.__self__ if x.__module__ is None else x.__module__
        return [(".name", x.__name__), (".of", owner)]
    if isinstance(x, np.ufunc | types.ModuleType):
        return [(".name", x.__name__)]
    if isinstance(x, jax.custom_jvp):
        return [(".wrapped", x.fun), (".jvp", x.jvp), (".nondiff", x.nondiff_argnums)]
    if isinstance(x, jax.custom_vjp):
        rules = [(".forward", x.fwd), (".backward", x.bwd)]
        return [(".wrapped", x.fun), *rules, (".nondiff", x.nondiff_argnums)]
    wrapped = getattr(x, "__wrapped__", None)
    if wrapped is not None:
        return [(".wrapped", wrapped)]
    keyed, structure = jax.tree_util.tree_flatten_with_path(
        x, is_leaf=lambda node: node is not x
    )
    if jax.tree_util.treedef_is_leaf(structure):
        return None
    parts = [(jax.tree_util.keystr(key), child) for key, child in keyed]
    # What a registered class keeps beside its children.
    _, beside = structure.node_data() or (None, None)
    return [*parts, (".static", beside)]


def _label(x) -> str:
    """Returns how Python shows an object, without its address."""
    return _ADDRESS.sub("", repr(x))


def _items(x: Mapping) -> list[tuple[str, object]]:
    parts = []
    for i, (key, value) in enumerate(sorted(x.items(), key=lambda i: _label(i[0]))):
        label = _label(key)
        if label == repr(key):
            parts.append((f"[{label}]", value))
        else:
            # Two functions may be shown alike.
            parts += [(f"{{{i}}}.key", key), (f"{{{i}}}", value)]
    return parts


def _namespace(x: type) -> list[tuple[str, object]]:
    """Returns methods and constants of a class, and the classes that it is made of."""
    # Each object has values of its own of these.
    fields = dataclasses.fields(x) if dataclasses.is_dataclass(x) else ()
    apart = _APART | {field.name for field in fields}
    parts = []
    for name, value in sorted(vars(x).items()):
        method = _is_method(value) or dataclasses.is_dataclass(value)
        special = name.startswith("__") or issubclass(x, enum.Enum)
        if name not in apart and (method or not special):
            parts.append((f".{name}", value))
    bases = [base for base in x.__bases__ if _own(base)]
    return [*parts, *((f"[{i}]", base) for i, base in enumerate(bases))]


def _is_method(value) -> bool:
    """Returns whether what a class has is a method, plain or compiled."""
    wrapped = getattr(value, "__wrapped__", None)
    return isinstance(value, _METHODS) or wrapped is not None


def _unchecked(x: types.FunctionType) -> types.FunctionType:
    """Returns a function without checks of types, which differ between processes."""
    while True:
        by_beartype = x.__code__.co_filename.startswith("<@beartype(")
        by_jaxtyping = x.__globals__.get("__name__", "").startswith("jaxtyping.")
        wrapped = getattr(x, "__wrapped__", None)
        if wrapped is None or not (by_beartype or by_jaxtyping):
            return x
        x = wrapped


def _function(x: types.FunctionType) -> list[tuple[str, object]]:
    # The bytecode, because a lambda has no name to tell it by. It changes with the
    # version of Python; then a checkpoint is refused rather than misread.
    cells = dict(zip(x.__code__.co_freevars, x.__closure__ or (), strict=True))
    content = {name: _content(cell) for name, cell in cells.items()}
    if x.__globals__.get("__name__", "").startswith("jax."):
        # Where JAX encloses a bare object, it is the mark of what was not given.
        content = {
            name: "not given" if type(value) is object else value
            for name, value in content.items()
        }
    return [
        (".name", f"{x.__module__}.{x.__qualname__}"),
        (".code", x.__code__),
        (".closure", content),
        (".defaults", (x.__defaults__, x.__kwdefaults__)),
    ]


def _content(cell: types.CellType):
    try:
        return cell.cell_contents
    except ValueError:
        return "empty"  # The enclosing function has not assigned it yet.


def _array(x, path: str) -> str:
    values = np.asarray(x)
    if values.dtype.hasobject:
        raise ArgumentError(
            f"`{path}` must be an array of numbers or text, but has dtype "
            f"{values.dtype}: give it one of those."
        )
    if values.size == 1 and values.dtype.kind in "biufc" and np.all(values == values):
        # NumPy writes as many digits as tell it from others; NaN has several forms.
        return f"{values.dtype.name}{list(values.shape)} {values.reshape(-1)[0]!s}"
    little = values.astype(values.dtype.newbyteorder("<"), order="C", copy=False)
    digest = hashlib.sha256(np.ascontiguousarray(little).reshape(-1).view(np.uint8))
    return f"{values.dtype.name}{list(values.shape)} {digest.hexdigest()}"


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... {hashlib.sha256(text.encode()).hexdigest()}"


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
