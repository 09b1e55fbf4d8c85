"""Where the arrays of a tree lie: rules by their names."""

import math
import re
from collections.abc import Mapping

import equinox as eqx
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.tree_util import keystr, tree_flatten_with_path
from jaxtyping import PyTree

from .._auto_mesh import auto_mesh
from .._checks import ArgumentError, instance, kind_of, whole


def round_up(n: int, multiple: int) -> int:
    """Returns the smallest multiple that is not below a number.

    Args:
        n: The number, such as the cells of a grid along an axis.
        multiple: What must divide the result, at least 1: the devices along that axis.

    Raises:
        ArgumentError: If `n` is not an integer of at least 0, or `multiple` not one of
            at least 1.
    """
    n, multiple = whole(n, "n", 0), whole(multiple, "multiple")
    return -(-n // multiple) * multiple


def shardings(
    tree: PyTree, mesh: Mesh, rules: Mapping[str, PartitionSpec]
) -> PyTree[NamedSharding | None]:
    """Finds where each array of a tree shall lie.

    Args:
        tree: Any pytree; `jax.ShapeDtypeStruct`s may take the place of arrays.
        mesh: The devices.
        rules: Which axes of the mesh divide which axes of an array, by regular
            expression. It is searched in the array's path, such as
            `layers.0.weight`; the first one found holds. An array that none fits is
            copied to all devices.

    Returns:
        The tree with a sharding in place of each array, `None` in place of other
        leaves. It serves as `in_shardings` and `out_shardings` of `jax.jit` too.

    Raises:
        ArgumentError: If a rule is not a regular expression or gives no
            `PartitionSpec`, fits no array, names an axis that `mesh` does not have or
            names one twice, has more entries than an array has axes, or divides a size
            that is not a multiple of the devices.
    """
    mesh = auto_mesh(mesh)
    instance(rules, "rules", Mapping, "Write `{'weight': PartitionSpec('x')}`.")
    patterns = {rule: _compiled(rule) for rule in rules}
    for rule, spec in rules.items():
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(
                f"The rule {rule!r} must give a `PartitionSpec`, but gives "
                f"{kind_of(spec)} Write `PartitionSpec('x')`, with the name of "
                "an axis of the mesh, or None, for each axis of the array."
            )
        _check_axes(rule, spec, mesh)
    leaves, structure = tree_flatten_with_path(tree)
    used = set()

    def find(path, leaf):
        if not _is_array(leaf):
            return None
        name = _name(path)
        fitting = [rule for rule, pattern in patterns.items() if pattern.search(name)]
        used.update(fitting)
        if not fitting:
            return NamedSharding(mesh, PartitionSpec())
        spec = rules[fitting[0]]
        _check_sizes(name, leaf.shape, spec, mesh)
        return NamedSharding(mesh, spec)

    found = [find(path, leaf) for path, leaf in leaves]
    for rule in rules:
        if rule not in used:
            names = [_name(path) for path, leaf in leaves if _is_array(leaf)]
            raise ArgumentError(
                f"Each of `rules` must fit an array of the tree, but {rule!r} fits "
                f"none. There are: {_listed(names)}."
            )
    return jax.tree.unflatten(structure, found)


def place(tree: PyTree, mesh: Mesh, rules: Mapping[str, PartitionSpec]) -> PyTree:
    """Puts the arrays of a tree on the devices of a mesh, as rules say.

    Args:
        tree: Any pytree of arrays on one device or several, or on the host. What is no
            array stays as it is.
        mesh: The devices.
        rules: As for `shardings`.

    Returns:
        The tree, its arrays placed.

    Raises:
        ArgumentError: As `shardings` does.
    """
    wanted = shardings(tree, mesh, rules)
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, wanted), rest)


def propose(tree: PyTree, mesh: Mesh) -> dict[str, PartitionSpec]:
    """Proposes rules that spread each array over as many devices as possible.

    Each axis of the mesh, the one with the most devices first, divides the largest axis
    of the array that it can and that no other one divides. That evens out the memory.
    What is fastest depends on the computation: look at the rules, and change them.

    Args:
        tree: Any pytree; `jax.ShapeDtypeStruct`s may take the place of arrays.
        mesh: The devices.

    Returns:
        Rules for `shardings` and `place`, one for each array that can be divided.

    Raises:
        ArgumentError: If `mesh` is no mesh of devices.
    """
    mesh = auto_mesh(mesh)
    rules = {}
    for path, leaf in tree_flatten_with_path(tree)[0]:
        if not _is_array(leaf):
            continue
        entries: list[str | None] = [None] * len(leaf.shape)
        for axis, count in sorted(mesh.shape.items(), key=lambda item: -item[1]):
            free = [
                i
                for i, size in enumerate(leaf.shape)
                if entries[i] is None and size and size % count == 0
            ]
            if free and count > 1:
                entries[max(free, key=lambda i: leaf.shape[i])] = axis
        if any(entries):
            rules[f"^{re.escape(_name(path))}$"] = PartitionSpec(*entries)
    return rules


def _is_array(leaf) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _name(path) -> str:
    return keystr(path, simple=True, separator=".")


def _compiled(rule: str) -> re.Pattern:
    try:
        return re.compile(rule)
    except re.error as error:
        raise ArgumentError(
            f"Each of `rules` must be a regular expression, but {rule!r} is not "
            f"one: {error}."
        ) from error


def _axes(entry) -> tuple[str, ...]:
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)


def _check_axes(rule: str, spec: PartitionSpec, mesh: Mesh) -> None:
    names = [axis for entry in spec for axis in _axes(entry)]
    for axis in names:
        if axis not in mesh.axis_names:
            raise ArgumentError(
                f"The rule {rule!r} must name axes of the mesh, "
                f"{', '.join(mesh.axis_names)}, but names {axis}."
            )
    if len(set(names)) < len(names):
        raise ArgumentError(
            f"The rule {rule!r} must name each axis of the mesh once at most, but is "
            f"{spec}."
        )


def _check_sizes(
    name: str, shape: tuple[int, ...], spec: PartitionSpec, mesh: Mesh
) -> None:
    if len(spec) > len(shape):
        raise ArgumentError(
            f"The rule for `{name}` must have at most {len(shape)} entries, the axes "
            f"of its shape {list(shape)}, but is {spec}."
        )
    for number, (size, entry) in enumerate(zip(shape, spec, strict=False)):
        count = math.prod(mesh.shape[axis] for axis in _axes(entry))
        if size % count:
            raise ArgumentError(
                f"Axis {number} of `{name}`, of shape {list(shape)}, must be a "
                f"multiple of the {count} devices along {' and '.join(_axes(entry))}, "
                f"but is {size}. Pad it to {round_up(size, count)}, or leave this axis "
                "undivided."
            )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:12]) or "no arrays"
    return f"{shown}, and {len(names) - 12} more" if len(names) > 12 else shown
