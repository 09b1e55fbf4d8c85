"""Checks on values: loud on the host, harmless under `jit` and on many devices."""

import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from numbers import Number
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Num, PyTree


class PhysaxError(Exception):
    """Base of all errors that physax raises on purpose."""


class ArgumentError(PhysaxError, ValueError):
    """An argument has a value that the physics or the method does not allow."""


class PhysaxWarning(UserWarning):
    """Something that may be intended but usually is not."""


# What calls of physax pass through; a warning is about a line elsewhere.
_INNER = "beartype contextlib equinox functools jax jaxtyping physax".split()


def warn(message: str, category: type[Warning] = PhysaxWarning) -> None:
    """Warns of the line outside of physax that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def traced(x: PyTree) -> bool:
    """Whether any value in a tree is traced."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(x))


def refuse_traced(x: PyTree, name: str, remedy: str) -> None:
    """Raises if a value is traced.

    Args:
        x: The value.
        name: What the user calls it.
        remedy: A sentence that says what to do instead.

    Raises:
        ArgumentError: If any value in it is traced.
    """
    if traced(x):
        raise ArgumentError(
            f"`{name}` must be known here, but is traced by `jit`, `vmap` or `grad`. "
            + remedy
        )


def same(one: PyTree, other: PyTree) -> bool:
    """Whether two trees are equal, where their arrays are known."""
    ours, theirs = jax.tree.flatten(one), jax.tree.flatten(other)
    return ours[1] == theirs[1] and all(
        traced(pair) or np.array_equal(np.asarray(pair[0]), np.asarray(pair[1]))
        for pair in zip(ours[0], theirs[0], strict=True)
    )


def at_once(x: PyTree) -> AbstractContextManager:
    """Returns a context in which arithmetic on a concrete `x` runs at once.

    Inside `jit`, what is built from constants then stays concrete, and can be checked
    and placed on the host.
    """
    if traced(x):
        return nullcontext()
    return jax.ensure_compile_time_eval()


def refuse_text(x: Any, name: str) -> None:
    """Raises if `x` holds `None`, or text, which NumPy would read as a number."""
    several = isinstance(x, (list, tuple))
    leaves = jax.tree.leaves(x, is_leaf=lambda one: one is None) if several else [x]
    if any(map(_is_text, leaves)):
        what = "a number" if x is None or isinstance(x, (str, bytes)) else "numbers"
        raise ArgumentError(f"`{name}` must be {what}, but is {x!r:.80}.")


def masked(x: Any) -> bool:
    """Whether an entry of an array or of a sequence of arrays is masked."""
    return any(map(np.ma.is_masked, jax.tree.leaves(x)))


def refuse_masked(x: Any, name: str, remedy: str = "Leave masked ones out.") -> None:
    """Refuses arrays with masked entries.

    JAX has no masks, and would show the numbers below: 1e20, say, where netCDF4 read
    land.

    Args:
        x: Anything.
        name: What the caller calls it.
        remedy: What to do about it.

    Raises:
        ArgumentError: If an entry is masked.
    """
    if masked(x):
        first = np.argwhere(np.ma.getmaskarray(np.ma.array(x)))[0].tolist()
        raise ArgumentError(
            f"`{name}` must be known everywhere, but entry {first} is masked. {remedy}"
        )


_TEXT = (str, bytes, bytearray, type(None))


def _is_text(x: Any) -> bool:
    if isinstance(x, (jax.Array, Number, *_TEXT)):
        return isinstance(x, _TEXT)
    host = np.asarray(x)
    if host.dtype.kind == "O":
        return any(isinstance(one, _TEXT) for one in host.ravel())
    return host.dtype.kind in "SUT"


def as_array(x: ArrayLike | Sequence, name: str = "value") -> Num[Array, "..."]:
    """Returns `x` as an array of definite dtype, integers as floating point.

    A Python number gets the default precision without JAX's weak type, under which
    1.0 and `jnp.float32(1.0)` would compile twice. An integer such as `2 * 10**14` Hz
    would not fit into JAX's default of 32 bits. Lists and tuples of numbers count as
    arrays. Text and booleans are refused, under the `name` that the caller gives
    the argument.
    """
    try:
        refuse_text(x, name)
        refuse_masked(x, name)
        if isinstance(x, (list, tuple)) and any(
            isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(x)
        ):
            x = jnp.asarray(x)
        found = _as_it_is(x) if isinstance(x, jax.Array) else _copied(np.asarray(x))
    except PhysaxError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"`{name}` must be a number or an array of numbers, but is of the type "
            f"{type(x).__name__}: {str(error).rstrip('.')}."
        ) from error
    if found.dtype == bool:
        raise ArgumentError(f"`{name}` must be numbers, but holds booleans.")
    return found


def _as_it_is(x: Array) -> Array:
    """Returns an array, integers as floating point."""
    if not jnp.issubdtype(x.dtype, jnp.number) and x.dtype != bool:
        raise TypeError(f"it has the dtype {x.dtype}")
    integer = jnp.issubdtype(x.dtype, jnp.integer)
    with at_once(x):
        return x.astype(jnp.result_type(float) if integer else x.dtype)


def _copied(host: np.ndarray) -> Array:
    """Returns a copy of numbers, integers as floating point."""
    host = host.astype(float) if host.dtype.kind in "iuO" else native(host).copy()
    # `jnp.asarray` would compile a program for each shape; `device_put` alone could
    # share the memory of an array that its owner goes on to change.
    with at_once(host):
        return jax.device_put(host)


def native(host: np.ndarray) -> np.ndarray:
    """Returns an array in the byte order of this machine, as JAX has no other."""
    return host.astype(host.dtype.newbyteorder("="), copy=False)


def check(
    x: Num[Array, "*shape"], good: Bool[Array, "*#shape"], message: str
) -> Num[Array, "*shape"]:
    """Returns `x` where `good` holds.

    On the host this raises where it does not. Under `jit` it puts NaN there instead,
    and in its derivative, which the status of the run reports: raising inside a
    compiled program would keep it out of the compile cache, and on several devices
    leave the others waiting.

    Args:
        x: Floating point values.
        good: The condition that must hold.
        message: What must be true, without the value; that is appended.

    Returns:
        `x`. Always use the returned value: XLA removes a check that nothing reads.

    Raises:
        ArgumentError: If the values are known now and `good` fails.
    """
    if isinstance(good, jax.core.Tracer):
        # A factor: the derivative becomes NaN, too.
        return x * jnp.where(good, 1, jnp.nan).astype(x.dtype)
    if not bool(jnp.all(good)):
        # Under `grad` the condition is known, and x once its derivative is left out.
        x = lax.stop_gradient(x)
        worst = np.asarray(x)[~np.broadcast_to(np.asarray(good), np.shape(x))].flat[0]
        raise ArgumentError(f"{message}, but is {worst:g}.")
    return x


def real(
    x: ArrayLike | Sequence, name: str, remedy: str = "Take its real part."
) -> Num[Array, "..."]:
    """Returns `x` as an array, refusing complex numbers, which have no order."""
    x = as_array(x, name)
    if jnp.iscomplexobj(x):
        raise ArgumentError(f"`{name}` must be real, but has dtype {x.dtype}. {remedy}")
    return x


def single(x: Num[Array, "..."], name: str) -> Num[Array, ""]:
    """Returns `x`, refusing an array of several numbers."""
    if x.shape != ():
        raise ArgumentError(
            f"`{name}` must be one number, but has shape {x.shape}. For several at "
            "once build what holds it inside `jax.vmap`."
        )
    return x


def numeric(name: str) -> Callable[[ArrayLike | Sequence], Array]:
    """Makes a field converter that checks for numbers of whatever shape.

    Args:
        name: Name of the field.
    """
    return partial(as_array, name=name)


def finite(
    name: str, remedy: str = "Take its real part."
) -> Callable[[ArrayLike], Array]:
    """Makes a field converter that checks for one finite real number.

    Args:
        name: Of the field.
        remedy: What to do about a complex number.
    """

    def convert(x):
        x = single(real(x, name, remedy), name)
        with at_once(x):
            return check(x, jnp.isfinite(x), f"`{name}` must be finite")

    return convert


def whole(x: Any, name: str, least: int = 1) -> int:
    """Returns an integer, one of an array too, checking that it is large enough."""
    try:
        count = operator.index(x)
    except TypeError:
        count = least - 1
    if isinstance(x, bool) or getattr(x, "dtype", "") == "bool" or count < least:
        raise ArgumentError(
            f"`{name}` must be an integer of at least {least}, but is {x!r}."
        )
    return count


def true_or_false(x: Any, name: str) -> bool:
    """Returns a boolean, refusing others that Python takes as one, such as "no"."""
    if not isinstance(x, bool | np.bool_):
        raise ArgumentError(f"`{name}` must be True or False, but is {x!r}.")
    return bool(x)


def instance(
    value: Any, name: str, kind: type | tuple[type, ...], remedy: str = ""
) -> Any:
    """Returns `value`, refusing other kinds with what to write instead."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        *most, last = [one.__name__.rpartition(".")[2] for one in kinds]
        choice = f"{'`, `'.join(most)}` or `{last}" if most else last
        raise ArgumentError(
            f"`{name}` must be {_article(choice)} `{choice}`, but is {kind_of(value)} "
            f"{remedy}".rstrip()
        )
    return value


def kind_of(x: Any) -> str:
    """Says what something is, as the end of a sentence."""
    if x is None:
        return "None."
    if isinstance(x, type):
        return f"the class {x.__name__}.{forgotten(x)}"
    given = type(x).__name__
    return f"{_article(given)} {given}."


def forgotten(x: Any) -> str:
    """Returns a question about a class where an object is wanted, else nothing."""
    return " Did you forget to call it?" if isinstance(x, type) else ""


def _article(word: str) -> str:
    return "an" if word[0] in "AEIOUaeio" else "a"


def check_picker(fixed: Any) -> None:
    """Raises if `fixed` is not a function that picks parameters."""
    if fixed is not None and not callable(fixed):
        raise ArgumentError(
            "`fixed` must be a function that picks parameters, such as `lambda p: "
            f"p.offset`, but is {fixed!r}."
        )


def one_key(key: Any, name: str = "key") -> Array:
    """Returns one key of random numbers; one of `jax.random.PRNGKey` becomes typed."""
    if isinstance(key, jax.Array) and (key.dtype, key.shape) == (jnp.uint32, (2,)):
        key = jax.random.wrap_key_data(key)
    example = "`jax.random.key(0)`"
    if not isinstance(key, jax.Array) or not jnp.issubdtype(
        key.dtype, jax.dtypes.prng_key
    ):
        what = f"an array of {key.dtype}" if isinstance(key, jax.Array) else repr(key)
        raise ArgumentError(f"`{name}` must be a key, as {example}, but is {what}.")
    if key.shape:
        raise ArgumentError(
            f"`{name}` must be one key, as {example}, but has shape {key.shape}."
        )
    return key


def by_name(given: Any, name: str, kind: type) -> dict[str, Any]:
    """Returns modules of one kind by their names, refusing lists and other kinds.

    Args:
        given: A mapping, or `None` for an empty one.
        name: Of the argument, which says in the plural what it holds.
        kind: What all must be.
    """
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"`{name}` must be a dict of {name} by name, but is a "
            f"{type(given).__name__}. Write `{name}={{'name': ...}}`."
        )
    for key, one in given.items():
        if not isinstance(one, kind):
            raise ArgumentError(
                f"`{name}` must hold {name}, but {key!r} is a {type(one).__name__}."
            )
    return dict(given)


def positive(x: ArrayLike | Sequence, name: str) -> Num[Array, "..."]:
    """Returns `x` as an array, checking that every entry is positive."""
    x = real(x, name)
    with at_once(x):
        return check(x, x > 0, f"`{name}` must be positive")


def optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes a converter let `None` through."""
    return lambda x: None if x is None else convert(x)


def between(name: str, low: float, high: float) -> Callable[[ArrayLike], Array]:
    """Makes a field converter that checks for `low < x < high`."""

    def convert(x):
        x = real(x, name)
        with at_once(x):
            return check(
                x, (x > low) & (x < high), f"`{name}` must lie in ({low:g}, {high:g})"
            )

    return convert


def at_least(name: str, low: float) -> Callable[[ArrayLike], Array]:
    """Makes a field converter that checks for `x >= low`."""

    def convert(x):
        x = real(x, name)
        with at_once(x):
            return check(x, x >= low, f"`{name}` must be at least {low:g}")

    return convert
