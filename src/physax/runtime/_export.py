"""Compiled functions as bytes, for other processes and other machines.

Layout: 8 bytes that name the format, 8 bytes with the length of the header (little
endian), 32 bytes with its SHA-256, the header (JSON), then what `jax.export` made.
"""

import hashlib
import importlib.util
import json
import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.export
from jax.tree_util import PyTreeDef
from jaxtyping import Array, ArrayLike, PyTree

from .._checks import ArgumentError, PhysaxError, whole
from .._written_for_jax import check_function


_MAGIC = b"physaxX\x01"
_SCHEMA = 1
_START = len(_MAGIC) + 8 + 32
_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_HEADER = {"schema": int, "jax": str, "sha256": str, "vjp_order": int}


class ExportError(PhysaxError, ValueError):
    """A function cannot be exported, or what was exported cannot be used."""


class Exported(eqx.Module):
    """A function that was exported; made by `load_exported`.

    May be called, compiled into other functions, and differentiated as often as its
    `vjp_order` says. `jax.vmap` does not take it: leave a size open instead.

    Attributes:
        platforms: Where it runs.
        arguments: Their types, as text; letters are sizes that are left open.
        results: Their types, as text.
        vjp_order: How many times it may be differentiated.
        devices: On how many devices it runs.
        jax_version: Of the JAX that exported it.
        call: The function.
    """

    platforms: tuple[str, ...] = eqx.field(static=True)
    arguments: str = eqx.field(static=True)
    results: str = eqx.field(static=True)
    vjp_order: int = eqx.field(static=True)
    devices: int = eqx.field(static=True)
    jax_version: str = eqx.field(static=True)
    call: Callable = eqx.field(static=True, repr=False)

    def __call__(
        self, *args: PyTree[ArrayLike], **named: PyTree[ArrayLike]
    ) -> PyTree[Array]:
        """Calls it.

        Args:
            *args: Arrays, in trees as those it was exported with.
            **named: Arguments that were exported by name.

        Returns:
            Its results.

        Raises:
            ExportError: If the arguments have other shapes, dtypes or structures, or
                the platform or the number of devices is another.
            ValueError: If a gradient is asked for that was not exported.
        """
        try:
            return self.call(*args, **named)
        except (ValueError, TypeError) as error:
            # JAX prints the whole program before it says what is wrong.
            reason = str(error).rpartition("as an abstract array. ")[2].strip()
            reason = reason.rstrip(".")
            raise ExportError(
                f"What was exported takes {self.arguments} and runs on {self.devices} "
                f"device(s) of {', '.join(self.platforms)}, but: {reason}."
            ) from error


def export(
    function: Callable,
    *args: Any,
    platforms: Sequence[str] | None = None,
    vjp_order: int = 0,
    **named: Any,
) -> bytes:
    """Compiles a function to bytes that another process runs without its source.

    They hold the program as StableHLO, with all arrays that the function encloses. JAX
    reads them for six months of its releases. Needs the package flatbuffers: `pip
    install "physax[export]"`.

    Args:
        function: A function of arrays, jitted by `jax.jit` or not.
        *args: Arguments, or `jax.ShapeDtypeStruct`s in their place, in dicts, lists and
            tuples. Sizes may be left open by `jax.export.symbolic_shape`.
        platforms: Where it is to run: `"cpu"`, `"cuda"`, `"rocm"`, `"tpu"`; by default
            the platform of this process.
        vjp_order: How many times it may be differentiated. Gradients are programs
            too, each about as long as the function.
        **named: Arguments by name.

    Returns:
        The bytes, for `load_exported`; `Path.write_bytes` makes them a file.

    Raises:
        ArgumentError: If a platform is unknown, `vjp_order` is negative, or `function`
            is none.
        ExportError: If flatbuffers is missing, or an argument or a result is in a tree
            of another kind.
    """
    check_function(function, "function")
    if platforms is not None:
        names = list(platforms)
        if not names or not set(names) <= set(_PLATFORMS):
            raise ArgumentError(
                f"`platforms` must be of {', '.join(_PLATFORMS)}, but is {names}."
            )
    vjp_order = whole(vjp_order, "vjp_order", 0)
    _require_flatbuffers()
    # A module cannot be a key of `jit`, a function that calls it is.
    jitted = jax.jit(lambda *args, **named: function(*args, **named))
    if isinstance(function, jax.stages.Wrapped):
        jitted = function
    args, named = jax.tree.map(_struct, (args, named))
    exported = jax.export.export(jitted, platforms=platforms)(*args, **named)
    try:
        content = bytes(exported.serialize(vjp_order=vjp_order))
    except (ValueError, NotImplementedError) as error:
        raise ExportError(
            "Arguments and results of an exported function must be arrays in dicts, "
            f"lists and tuples, and its gradients must be programs, but: {error}"
        ) from error
    header = {
        "schema": _SCHEMA,
        "jax": jax.__version__,
        "sha256": hashlib.sha256(content).hexdigest(),
        "vjp_order": vjp_order,
    }
    text = json.dumps(header).encode()
    start = _MAGIC + struct.pack("<Q", len(text)) + hashlib.sha256(text).digest()
    return start + text + content


def load_exported(source: bytes | str | os.PathLike) -> Exported:
    """Loads what `export` made.

    It is a program: run only what comes from somebody you trust. Needs the package
    flatbuffers.

    Args:
        source: The bytes, or a file of them.

    Returns:
        The function.

    Raises:
        ExportError: If the bytes are damaged, of a newer version of physax or JAX, or
            flatbuffers is missing.
        FileNotFoundError: If there is no such file.
    """
    if isinstance(source, bytes):
        name, data = "The bytes", source
    else:
        name, data = f"`{os.fspath(source)}`", Path(source).read_bytes()
    header, content = _opened(name, data)
    _require_flatbuffers()
    try:
        exported = jax.export.deserialize(bytearray(content))
    except (ValueError, NotImplementedError) as error:
        raise ExportError(
            f"{name} must be exported by a JAX that this one, {jax.__version__}, can "
            f"read, but {header['jax']} did: {error}"
        ) from error
    return Exported(
        platforms=tuple(exported.platforms),
        arguments=_arguments(exported.in_tree, exported.in_avals),
        results=_results(exported.out_tree, exported.out_avals),
        vjp_order=header["vjp_order"],
        devices=exported.nr_devices,
        jax_version=header["jax"],
        call=jax.jit(exported.call),
    )


def _require_flatbuffers() -> None:
    if importlib.util.find_spec("flatbuffers") is None:
        raise ExportError(
            "Exported functions are written and read by the package flatbuffers, which "
            'is not installed: pip install "physax[export]".'
        )


def _struct(leaf: Any) -> Any:
    """Keeps the layout of an array over a mesh, but no single device."""
    if not isinstance(leaf, jax.Array):
        return leaf
    cut = leaf.sharding if len(leaf.sharding.device_set) > 1 else None
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=cut)


def _opened(name: str, data: bytes) -> tuple[dict, bytes]:
    """The header and what follows it, compared with their digests."""
    if len(data) < _START or data[: len(_MAGIC)] != _MAGIC:
        raise ExportError(f"{name} must come from `export`, but begin differently.")
    (length,) = struct.unpack_from("<Q", data, len(_MAGIC))
    text, content = data[_START : _START + length], data[_START + length :]
    if hashlib.sha256(text).digest() != data[_START - 32 : _START]:
        raise ExportError(
            f"{name} must be whole, but the digest of the header differs."
        )
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExportError(
            f"{name} has a header that cannot be read: {error}."
        ) from error
    if not isinstance(header, dict) or header.get("schema") != _SCHEMA:
        found = header.get("schema") if isinstance(header, dict) else None
        raise ExportError(
            f"{name} must have the schema {_SCHEMA}, but has {found}: another version "
            "of physax wrote it. Update physax."
        )
    for field, kind in _HEADER.items():
        if type(header.get(field)) is not kind:
            raise ExportError(
                f"{name} has a header whose `{field}` is not of the type "
                f"{kind.__name__}."
            )
    if hashlib.sha256(content).hexdigest() != header["sha256"]:
        raise ExportError(
            f"{name} must be whole, but the digest of the program differs."
        )
    return header, content


def _arguments(tree: PyTreeDef, avals: Sequence[Any]) -> str:
    """As in `f32[8], {x: f32[b,5]}, scale=f32[]`."""
    placed, named = jax.tree.unflatten(tree, [_Shown(a.str_short()) for a in avals])
    shown = [*map(repr, placed), *(f"{name}={x!r}" for name, x in named.items())]
    return ", ".join(shown) or "nothing"


def _results(tree: PyTreeDef, avals: Sequence[Any]) -> str:
    return repr(jax.tree.unflatten(tree, [_Shown(a.str_short()) for a in avals]))


class _Shown(str):
    """A text that shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
