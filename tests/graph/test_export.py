"""Programs as bytes: the same bits in a process that does not know the graph."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import graph
from physax.graph import FourierFeatures, Graph, Linear, compile, op
from physax.runtime import ExportError, load_exported


pytest.importorskip("flatbuffers")
X = np.asarray(jax.random.normal(jax.random.key(3), (12, 5)))


def program():
    model = Graph() | FourierFeatures(4).connect(input="x")
    model += Linear(8)
    model += "gelu"
    model += Linear(2).connect(output="y")
    model |= op("sum", axis=-1).connect(a="y", output="total")
    return compile(model.expose("y"), {"x": ("b", 5)}, jax.random.key(1))


def test_values_are_the_same_bits_and_gradients_are_there():
    made = program()
    found = load_exported(graph.export(made))
    for x in (X, X[:3]):
        wanted = made.evaluate(made.params, {"x": x})
        for name, value in found(made.params, {"x": x}).items():
            assert jnp.array_equal(value, wanted[name])
    seed = {"y": np.ones((12, 2), np.float32)}
    _, wanted = made.evaluate(made.params, {"x": X}, seed)

    def total(params):
        return jnp.sum(found(params, {"x": X})["y"])

    for name, slope in jax.jit(jax.grad(total))(made.params).items():
        assert jnp.allclose(slope, wanted[name], rtol=1e-5, atol=1e-5), name


def test_frozen_parameters_are_in_the_bytes():
    made = program()
    found = load_exported(graph.export(made, frozen=True, vjp_order=0))
    assert found.arguments == "{'x': float32[b,5]}"
    assert jnp.array_equal(found({"x": X})["total"], made(x=X)["total"])
    with pytest.raises(ExportError, match=r"args\[0\]\['x'\].*with \(12, 4\)"):
        found({"x": X[:, :4]})
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(lambda x: found({"x": x})["total"].sum())(X)


OTHER = """
import sys
import numpy as np
from physax.runtime import load_exported

arrays = dict(np.load(sys.argv[2]))
x, wanted = arrays.pop("x"), arrays.pop("y")
found = load_exported(sys.argv[1])(arrays, {"x": x})
assert "physax.graph" not in sys.modules
assert np.array_equal(found["y"], wanted)
"""


@pytest.mark.slow
def test_another_process_gets_the_same_bits(tmp_path):
    made = program()
    (tmp_path / "program").write_bytes(graph.export(made, platforms=("cpu", "tpu")))
    arrays = {"x": X, "y": made(x=X)["y"], **made.params}
    np.savez(tmp_path / "arrays.npz", **arrays)
    files = [str(tmp_path / name) for name in ("program", "arrays.npz")]
    subprocess.run([sys.executable, "-c", OTHER, *files], check=True)
