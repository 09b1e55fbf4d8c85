"""Operations: functions, modules and names as blocks."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._checks import kind_of
from ._block import AbstractBlock, GraphError


_REGISTERED: dict[str, Callable] = {}
_LIBRARIES = (jnp, jax.nn, jax.lax)
_TAKEN = ("name", "output", "self")

# What a file may ask for besides registered operations: these map arrays to arrays.
_SAVED = frozenset(
    """
    abs add all any angle arccos arcsin arctan arctan2 argmax argmin average bitwise_and
    bitwise_not bitwise_or bitwise_xor broadcast_to cbrt ceil celu clip concat conj
    convolve cos cosh cross cumprod cumsum deg2rad diag diagonal diff divide dot einsum
    elu equal exp exp2 expand_dims expm1 flip floor floor_divide gelu glu greater
    greater_equal hard_tanh hypot imag inner kron leaky_relu less less_equal log log10
    log1p log2 log_sigmoid log_softmax logaddexp logical_and logical_not logical_or
    logsumexp matmul matrix_transpose max maximum mean median min minimum mish mod
    moveaxis multiply nan_to_num negative not_equal one_hot outer pad positive power
    prod rad2deg ravel real reciprocal relu relu6 repeat reshape roll round rsqrt selu
    sigmoid sign silu sin sinc sinh soft_sign softmax softplus sort sqrt square squeeze
    stack standardize std stop_gradient subtract sum swapaxes swish take tan tanh
    tensordot tile trace transpose tril triu true_divide var vdot vecdot where
    """.split()
)


class Operation(AbstractBlock):
    """A function, or a module whose arrays exist already; made by `op`.

    Attributes:
        function: What is called with the inputs.
        label: What a node is called unless it gets a name.
        terminals: Names of the inputs.
        results: Names of the outputs.
        trainable: Whether the arrays of the module are parameters.
        source: The name by which it was asked for, and the options; None for a function
            that has no registered name, which can't be saved.

    Raises:
        GraphError: If two terminals or results have one name.
    """

    function: Callable
    label: str = eqx.field(static=True)
    terminals: tuple[str, ...] = eqx.field(static=True)
    results: tuple[str, ...] = eqx.field(static=True, default=("output",))
    trainable: bool = eqx.field(static=True, default=True)
    source: tuple[str, tuple[tuple[str, Any], ...]] | None = eqx.field(
        static=True, default=None
    )

    def __check_init__(self):
        if not self.results:
            raise GraphError(f"`{self.label}` must have a result, but has none.")
        names = (*self.terminals, *self.results)
        if taken := [name for name in self.terminals if name in _TAKEN]:
            raise GraphError(
                f"A terminal of `{self.label}` must not be called {taken[0]}, which "
                "`connect` takes for itself. Name the terminals by `inputs`."
            )
        if double := sorted({name for name in names if names.count(name) > 1}):
            raise GraphError(
                f"`{self.label}` must have terminals and results of different names, "
                f"but repeats {', '.join(double)}. Name them by `inputs` and `outputs`."
            )

    def build(self, key, *inputs):
        """Returns the function itself."""
        del key, inputs
        return self.function


def register_op(name: str, *, replace: bool = False) -> Callable[[Callable], Callable]:
    """Makes a function available by name, ahead of JAX's own functions.

    Used as a decorator: `@register_op("gelu")`.

    Args:
        name: The name, a Python identifier.
        replace: Whether the function takes the place of another one of that name,
            JAX's own included, in everything that this process builds from then on.

    Returns:
        What takes the function and returns it unchanged.

    Raises:
        GraphError: If the name is not an identifier, or is taken by another function
            and `replace` is False.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise GraphError(
            "`name` must be a Python identifier, as in `@register_op('soft_step')`, "
            f"but is {name!r}."
        )

    def register(function: Callable) -> Callable:
        taken = _found(name)
        if not (taken is None or taken is function or replace):
            own = name in _REGISTERED
            raise GraphError(
                f"An operation must be registered once, but {name!r} already is"
                f"{'' if own else ' one of JAX'}, as {taken!r}. Choose another name, "
                "or replace it for the whole process by `replace=True`."
            )
        _REGISTERED[name] = function
        return function

    return register


def saved_operation(name: str) -> None:
    """Refuses an operation that a file may not ask for.

    Args:
        name: The operation.

    Raises:
        GraphError: If it was not registered, and is not among those of JAX that map
            arrays to arrays.
    """
    if name not in _REGISTERED and name not in _SAVED:
        raise GraphError(
            f"A saved graph must have operations that are registered, or that map "
            f"arrays to arrays, but {name!r} is neither. Register it by `register_op` "
            "beforehand."
        )


def operation_named(name: str) -> Callable:
    """Returns the function of a name.

    Args:
        name: A registered operation, or else a function of `jax.numpy`, `jax.nn` or
            `jax.lax`.

    Returns:
        The function.

    Raises:
        GraphError: If it is none of these.
    """
    if not isinstance(name, str):
        raise GraphError(
            f"An operation must be given by its name, as 'tanh', but is {name!r}. "
            "Register functions of your own by `register_op`."
        )
    found = _found(name)
    if found is None:
        raise GraphError(
            f"An operation must be registered by `register_op`, or be a function of "
            f"jax.numpy, jax.nn or jax.lax, but {name!r} is not."
        )
    return found


def _found(name: str) -> Callable | None:
    places = [_REGISTERED.get(name)]
    if not name.startswith("_"):
        places += [getattr(library, name, None) for library in _LIBRARIES]
    for found in places:
        if callable(found) and not isinstance(found, type):
            return found
    return None


def op(
    function: str | Callable,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] = ("output",),
    label: str | None = None,
    trainable: bool = True,
    **options: Any,
) -> Operation:
    """Makes a block of a function, a module, or the name of an operation.

    A solver is one too: `op(simulate_device, outputs=("s11", "s21"))`. A wire may carry
    a pytree, such as the result of a solver.

    Args:
        function: A function of arrays; a module with `__call__`, whose arrays become
            parameters; or the name of an operation, as in `op("tanh")`.
        inputs: Names of the terminals; by default those of the arguments that have no
            default value.
        outputs: Names of the results. A function of several returns a tuple or a dict.
        label: What a node is called unless it gets a name; by default the name of the
            function.
        trainable: Whether the arrays of a module are parameters rather than constants.
        **options: Keyword arguments that the function gets, as in `op("sum", axis=0)`.

    Returns:
        The block.

    Raises:
        GraphError: If the name is unknown, or the names of arguments can't be found.
    """
    if isinstance(function, AbstractBlock) or not (
        callable(function) or isinstance(function, str)
    ):
        block = isinstance(function, AbstractBlock)
        raise GraphError(
            "`function` must be a function, a module with `__call__` or the name of an "
            f"operation, but is {kind_of(function)}"
            + (" A block goes into a graph without `op`." if block else "")
        )
    called = getattr(function, "__name__", type(function).__name__.lower())
    source = None
    if isinstance(function, str):
        fixed = (
            (name, tuple(value) if isinstance(value, list) else value)
            for name, value in sorted(options.items())
        )
        called, source = function, (function, tuple(fixed))
        function = operation_named(function)
    if called in _OF_SEQUENCES and source and inputs is not None and len(inputs) > 1:
        function = Gathered(function)
    names = tuple(inputs) if inputs is not None else _arguments(function, called)
    names = tuple(name for name in names if name not in options)
    if source and not names:
        raise GraphError(
            f"`inputs` must name the terminals of {called!r}, whose arguments are all "
            "optional, as in op('clip', inputs=('x',), max=1.0)."
        )
    if options:
        by_name = inputs is None and _take_names(function, names)
        function = Optioned(function, options, names if by_name else ())
    if not called.isidentifier():
        called = "function"
    return Operation(
        function=function,
        label=label or called,
        terminals=names,
        results=tuple(outputs),
        trainable=trainable,
        source=source,
    )


# These take a list of arrays, which several wires make.
_OF_SEQUENCES = ("concat", "concatenate", "stack", "hstack", "vstack", "column_stack")


class Gathered(eqx.Module):
    """A function of a list of arrays as one of several arrays.

    Attributes:
        function: The function.
    """

    function: Callable

    def __call__(self, *arrays: Any, **options: Any) -> Any:
        """Calls it."""
        return self.function(list(arrays), **options)


class Optioned(eqx.Module):
    """A function with options.

    Attributes:
        function: The function.
        options: Arguments by name.
        names: Of the other arguments, where they are given by name: an option may come
            before them.
    """

    function: Callable
    options: dict[str, Any]
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, *values: Any) -> Any:
        """Calls it."""
        if self.names:
            named = dict(zip(self.names, values, strict=True))
            return self.function(**named, **self.options)
        return self.function(*values, **self.options)


def _take_names(function: Callable, names: tuple[str, ...]) -> bool:
    if isinstance(function, jnp.ufunc):
        return False
    parameters = inspect.signature(function).parameters
    both = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return all(parameters[name].kind is both for name in names)


def _arguments(function: Callable, called: str) -> tuple[str, ...]:
    if isinstance(function, jnp.ufunc):
        return ("x", "y")[: function.nin]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise GraphError(
            f"`inputs` must name the terminals of `{called}`, whose signature Python "
            "does not know."
        ) from None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise GraphError(
            f"`inputs` must name the terminals of `{called}`, which takes any number "
            "of arguments."
        )
    return tuple(
        parameter.name
        for parameter in parameters
        if parameter.kind in kinds and parameter.default is parameter.empty
    )
