"""How a program runs: names and shapes checked while it is traced, at no cost later."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec
from jax.tree_util import PyTreeDef

from .._checks import PhysaxError, kind_of
from ._assembly import Assembly
from ._backend import Backend
from ._block import GraphError
from ._structs import Sizes, agree, shape_of, struct_text


_LEAF = jax.tree.structure(0)


class NotFiniteError(PhysaxError, FloatingPointError):
    """A node gave NaN or infinity."""


class Source(eqx.Module):
    """What a program runs, apart from arrays.

    Attributes:
        rest: The built blocks without their arrays.
        tree: How their arrays are nested.
        names: The name of each of these arrays.
        arrays: The shape of each parameter and constant.
        given: The inputs that were made parameters or constants.
        structs: The shape of each input.
        layout: How wires are cut.
        backend: Where and how it runs.
        policy: What a gradient keeps of each node.
    """

    rest: Assembly
    tree: PyTreeDef = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    arrays: dict[str, Any]
    given: tuple[str, ...] = eqx.field(static=True)
    structs: dict[str, Any]
    layout: dict[str, PartitionSpec]
    backend: Backend
    policy: str = eqx.field(static=True)


def evaluator(source: Source) -> tuple[Callable, Callable]:
    """Makes the two functions that a program runs by.

    Args:
        source: What it runs.

    Returns:
        One that takes parameters, constants and inputs and returns the outputs, and one
        that takes cotangents of the outputs too and returns gradients with them.
    """

    def forward(params, constants, inputs):
        return _run(source, _with_derivatives(source, params), constants, inputs)

    def pull_back(params, constants, inputs, cotangents):
        params = _with_derivatives(source, params)

        def run(params):
            return _run(source, params, constants, inputs)

        outputs, pull, finite = jax.vjp(run, params, has_aux=True)
        (gradients,) = pull(_cotangents(outputs, cotangents))
        if source.backend.debug:
            finite |= {
                f"gradient {number:06d} the gradient by {name} came": _all_finite(g)
                for number, (name, g) in enumerate(gradients.items())
            }
        return (outputs, gradients), finite

    backend = source.backend
    return _entry(forward, backend), _entry(pull_back, backend)


def _entry(function: Callable, backend: Backend) -> Callable:
    if not backend.debug:
        # Nothing stands between the caller and the compiled function.
        return backend.jit(lambda *arguments: function(*arguments)[0])
    checked = backend.jit(function)

    def run(*arguments):
        outputs, finite = checked(*arguments)
        for what, good in finite.items():
            # Within another `jit` nothing is known yet, and the results say it.
            if not isinstance(good, jax.core.Tracer) and not good:
                shown = what.removeprefix("gradient ").partition(" ")[2]
                raise NotFiniteError(
                    f"All values must be finite, but {shown} with NaN or infinity; "
                    "what runs before it is finite."
                )
        return outputs

    return run


def _run(source, params, constants, inputs) -> tuple[dict[str, Any], dict[str, Any]]:
    check_mapping("inputs", inputs)
    _check_names("inputs", inputs, source.structs)
    arrays = {**params, **jax.lax.stop_gradient(constants)}
    _check_names("params", arrays, (*source.names, *source.given))
    for name, struct in source.arrays.items():
        if jnp.shape(arrays[name]) != struct.shape:
            raise GraphError(
                f"The parameter `{name}` must have shape {struct_text(struct)}, but "
                f"has {struct_text(shape_of(arrays[name]))}."
            )
    finite: dict[str, Any] = {}

    def watch(node, wire, value):
        if wire in source.layout:
            place = source.backend.placement(wire, value.shape, source.layout[wire])
            value = jax.lax.with_sharding_constraint(value, place)
        if source.backend.debug:
            # JAX sorts dicts by their keys.
            shape = struct_text(shape_of(value))
            what = f"{len(finite):06d} `{node}` writes {wire}:{shape}"
            finite[what] = _all_finite(value)
        return value

    wires = {name: arrays[name] for name in source.given}
    sizes = Sizes()
    for wire, value in inputs.items():
        value = _checked(wire, value, source.structs[wire], sizes)
        wires[wire] = watch("input", wire, value)
    leaves = [arrays[name] for name in source.names]
    built = eqx.combine(jax.tree.unflatten(source.tree, leaves), source.rest)
    outputs = built.run(wires, watch, source.policy)
    return dict(zip(built.outputs, outputs, strict=True)), finite


def _with_derivatives(source: Source, params: Any) -> dict[str, Any]:
    """Returns parameters with integers as numbers of the program's type.

    Those of other precisions stay: they choose that of the gradients.
    """
    check_mapping("params", params)

    def convert(name, leaf):
        dtype = source.arrays[name].dtype
        have = jnp.result_type(leaf)
        if jnp.iscomplexobj(leaf) and jnp.issubdtype(dtype, jnp.floating):
            raise GraphError(
                f"The parameter `{name}` must be real, as it is in the program, but "
                f"is {have}. Take its real part."
            )
        exact = not jnp.issubdtype(have, jnp.inexact)
        return jnp.asarray(leaf, dtype) if exact else leaf

    return {
        name: jax.tree.map(partial(convert, name), value)
        if name in source.arrays
        else value
        for name, value in params.items()
    }


def check_mapping(argument: str, given: Any) -> None:
    """Raises unless an argument is a dict."""
    if not isinstance(given, Mapping):
        what = "an array." if isinstance(given, jax.Array) else kind_of(given)
        raise GraphError(
            f"`{argument}` must be a dict of arrays by name, but is {what}"
        )


def _check_names(argument: str, given: Mapping[str, Any], wanted: Any) -> None:
    missing = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in wanted]
    if missing or unknown:
        raise GraphError(
            f"`{argument}` must hold {', '.join(wanted) or 'nothing'}, but "
            + "; ".join(
                f"{', '.join(names)} {what}"
                for names, what in ((missing, "is missing"), (unknown, "is unknown"))
                if names
            )
            + "."
        )


def _checked(wire: str, value: Any, struct: Any, sizes: Sizes) -> Any:
    """The input with the dtype that is declared, if it has the declared shape."""

    def cast(leaf, wanted):
        leaf = jnp.asarray(leaf)
        if any(jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in (leaf, wanted)):
            return leaf
        # Integers become real and real numbers complex, in the precision that is
        # declared; nothing loses its part or its range.
        kinds = (jnp.integer, jnp.floating, jnp.complexfloating)
        have = [jnp.issubdtype(leaf.dtype, kind) for kind in kinds]
        want = [jnp.issubdtype(wanted.dtype, kind) for kind in kinds]
        rounded = any(have) and any(want[1:]) and have.index(True) <= want.index(True)
        exact = not any(want[1:]) and np.can_cast(leaf.dtype, wanted.dtype)
        return leaf.astype(wanted.dtype) if rounded or exact else leaf

    if isinstance(struct, jax.ShapeDtypeStruct) and jax.tree.structure(value) != _LEAF:
        listed = isinstance(value, (list, tuple))
        raise GraphError(
            f"The input `{wire}` must be an array of shape {struct_text(struct)}, but "
            f"is {kind_of(value)}"
            + (" Convert lists of numbers by `jnp.asarray`." if listed else "")
        )
    if jax.tree.structure(value) == jax.tree.structure(struct):
        value = jax.tree.map(cast, value, struct)
    found = shape_of(value)
    if not agree(found, struct):
        raise GraphError(
            f"The input `{wire}` must have shape {struct_text(struct, found)}, but "
            f"has {struct_text(found, struct)}."
        )
    sizes.bind(wire, struct, found)
    return value


def _cotangents(outputs: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    check_mapping("output_gradients", given)
    unknown = [wire for wire in given if wire not in outputs]
    if unknown:
        raise GraphError(
            f"`output_gradients` must name outputs, {', '.join(outputs)}, but got "
            f"{', '.join(unknown)}."
        )

    def zero(value):
        if jnp.issubdtype(value.dtype, jnp.inexact):
            return jnp.zeros_like(value)
        return np.zeros(value.shape, jax.dtypes.float0)

    def cotangent(wire, value, gradient):
        if not jnp.issubdtype(value.dtype, jnp.inexact):
            raise GraphError(
                f"`output_gradients` must name outputs of real or complex numbers, but "
                f"`{wire}` is {struct_text(shape_of(value))}."
            )
        gradient = jnp.asarray(gradient)
        real = jnp.issubdtype(value.dtype, jnp.floating)
        if real and jnp.issubdtype(gradient.dtype, jnp.complexfloating):
            raise GraphError(
                f"The gradient by `{wire}` must be real as its values are, but is "
                f"{gradient.dtype}."
            )
        if gradient.shape != value.shape:
            raise GraphError(
                f"The gradient by `{wire}` must have its shape, "
                f"{struct_text(shape_of(value))}, but has "
                f"{struct_text(shape_of(gradient))}."
            )
        return gradient.astype(value.dtype)

    for wire, gradient in given.items():
        wanted = jax.tree.structure(outputs[wire])
        if jax.tree.structure(gradient) != wanted:
            raise GraphError(
                f"The gradient by `{wire}` must have the structure of the output, "
                f"{wanted}, but has {jax.tree.structure(gradient)}."
            )
    return {
        wire: jax.tree.map(zero, value)
        if wire not in given
        else jax.tree.map(
            lambda v, g, wire=wire: cotangent(wire, v, g), value, given[wire]
        )
        for wire, value in outputs.items()
    }


def _all_finite(value: Any) -> Any:
    leaves = [
        leaf
        for leaf in jax.tree.leaves(value)
        if eqx.is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.inexact)
    ]
    good = [jnp.all(jnp.isfinite(leaf)) for leaf in leaves]
    return jnp.all(jnp.stack(good)) if good else jnp.array(True)
