"""Functions as bytes: what comes back, and what is refused."""

import hashlib
import importlib.util
import inspect
import json
import struct
import sys

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.runtime import Exported, ExportError, export, load_exported


X = np.linspace(-1, 2, 5, dtype=np.float32)
STRUCT = jax.ShapeDtypeStruct((5,), np.float32)
BEGINNING = 8 + 8 + 32


def wave(x, *, scale):
    return {"y": jnp.sin(scale * x), "sum": jnp.sum(x)}


@pytest.fixture(scope="module")
def content():
    pytest.importorskip("flatbuffers")
    return export(wave, STRUCT, scale=np.float32(1), vjp_order=1)


def test_the_same_bits_come_back_and_one_gradient(content):
    found = load_exported(content)
    assert isinstance(found, Exported)
    assert found.arguments == "float32[5], scale=float32[]"
    assert found.results == "{'sum': float32[], 'y': float32[5]}"
    assert (found.platforms, found.devices, found.vjp_order) == (("cpu",), 1, 1)
    assert found.jax_version == jax.__version__
    scale = np.float32(3)
    wanted = jax.jit(wave)(X, scale=scale)
    for name, value in found(X, scale=scale).items():
        assert jnp.array_equal(value, wanted[name])
    slope = jax.grad(lambda x: found(x, scale=scale)["y"].sum())
    assert jnp.allclose(slope(X), 3 * jnp.cos(3 * X), atol=1e-6)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.jit(jax.grad(lambda x: slope(x).sum()))(X)


def test_a_file_is_its_bytes(content, tmp_path):
    path = tmp_path / "wave.physax"
    path.write_bytes(content)
    found = load_exported(path)(X, scale=np.float32(1))
    assert jnp.array_equal(found["y"], jax.jit(jnp.sin)(X))
    with pytest.raises(FileNotFoundError):
        load_exported(tmp_path / "other.physax")


def test_sizes_stay_open_and_other_platforms_are_there():
    pytest.importorskip("flatbuffers")
    (size,) = jax.export.symbolic_shape("n")
    struct_ = jax.ShapeDtypeStruct((size, 2), np.float32)
    found = load_exported(
        export(jax.jit(lambda x: x * x.shape[0]), struct_, platforms=("cpu", "cuda"))
    )
    assert found.platforms == ("cpu", "cuda")
    assert found.arguments == "float32[n,2]"
    for count in (3, 7):
        ones = np.ones((count, 2), np.float32)
        assert jnp.array_equal(found(ones), count * ones)
    other = load_exported(export(jnp.sin, STRUCT, platforms=("tpu",)))
    with pytest.raises(ExportError, match=r"device\(s\) of tpu.*used on '\('cpu',\)'"):
        other(X)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((X[:4],), {"scale": 1.0}, r"takes float32\[5\].*args\[0\].*with \(4,\)"),
        ((X.astype(int),), {"scale": 1.0}, r"Dtype mismatch for args\[0\]"),
        ((X[None],), {"scale": 1.0}, r"Rank mismatch for args\[0\]"),
        ((X,), {}, "must have the same pytree structure"),
    ],
)
def test_other_arguments_are_refused(content, arguments, named, message):
    with pytest.raises(ExportError, match=message):
        load_exported(content)(*arguments, **named)


def test_damage_is_noticed_at_any_byte(content):
    for place in range(0, len(content), max(1, len(content) // 150)):
        damaged = bytearray(content)
        damaged[place] ^= 4
        with pytest.raises(ExportError, match="must come from `export`|must be whole"):
            load_exported(bytes(damaged))
    for length in (0, 7, BEGINNING, BEGINNING + 9, len(content) - 1):
        with pytest.raises(ExportError, match="must come from `export`|must be whole"):
            load_exported(content[:length])
    with pytest.raises(ExportError, match="must be whole"):
        load_exported(content + b"more")


def rewritten(content, text):
    """The bytes with another header, whose digest is right."""
    (length,) = struct.unpack_from("<Q", content, 8)
    digest = hashlib.sha256(text).digest()
    start = content[:8] + struct.pack("<Q", len(text)) + digest
    return start + text + content[BEGINNING + length :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "must have the schema 1, but has 2: .* Update physax"),
        ({"vjp_order": "1"}, "whose `vjp_order` is not of the type int"),
        ({"sha256": None}, "whose `sha256` is not of the type str"),
        ({"sha256": "0"}, "digest of the program differs"),
    ],
)
def test_headers_that_can_not_be(content, change, message):
    (length,) = struct.unpack_from("<Q", content, 8)
    header = json.loads(content[BEGINNING : BEGINNING + length])
    assert load_exported(rewritten(content, json.dumps(header).encode()))
    with pytest.raises(ExportError, match=message):
        load_exported(rewritten(content, json.dumps(header | change).encode()))


def test_a_header_that_is_no_object(content):
    for text in (b"[1]", b"{", b"\xff"):
        with pytest.raises(ExportError, match="cannot be read|must have the schema"):
            load_exported(rewritten(content, text))


def test_a_newer_jax_is_named(content, monkeypatch):
    def refuse(data):
        raise ValueError("calling convention version 99 is outside of the range")

    monkeypatch.setattr(jax.export, "deserialize", refuse)
    with pytest.raises(ExportError, match=f"{jax.__version__} did: calling convention"):
        load_exported(content)


def test_trees_of_other_kinds_are_refused():
    pytest.importorskip("flatbuffers")
    with pytest.raises(ExportError, match=r"in dicts, lists and tuples.*Partial"):
        export(lambda x: jax.tree_util.Partial(jnp.add, x), STRUCT)


def test_options_that_can_not_be():
    with pytest.raises(ArgumentError, match="`function` must be a function, but is an"):
        inspect.unwrap(export)(3, STRUCT)
    with pytest.raises(ArgumentError, match="of cpu, cuda, rocm, tpu, but is .'gpu'"):
        export(jnp.sin, STRUCT, platforms=["gpu"])
    with pytest.raises(ArgumentError, match=r"`platforms` must be .* but is \[\]"):
        export(jnp.sin, STRUCT, platforms=[])
    with pytest.raises(
        ArgumentError, match="`vjp_order` must be an integer of at least 0"
    ):
        export(jnp.sin, STRUCT, vjp_order=-1)


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "flatbuffers", raising=False)
    found = importlib.util.find_spec

    def find(name, package=None):
        return None if name == "flatbuffers" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(ExportError, match=r'flatbuffers.*"physax\[export\]"'):
        export(jnp.sin, STRUCT)
