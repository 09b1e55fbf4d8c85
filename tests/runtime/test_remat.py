import ctypes
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

from physax._checks import ArgumentError
from physax.runtime import explain_remat, remat


LAYERS, WIDTH = 32, 64


def problem(rows, width=WIDTH):
    keys = jax.random.split(jax.random.key(0))
    weights = jax.random.normal(keys[0], (LAYERS, width, width)) / width**0.5
    return weights, jax.random.normal(keys[1], (rows, width))


def loss(policy, weights, x):
    named = {"names": ("product",)} if "names" in policy else {}
    if policy == "save_and_offload_only_these_names":
        named = {"names": ("hidden",), "offloaded": ("product",)}

    def layer(x, weight):
        product = checkpoint_name(x @ weight, "product")
        hidden = checkpoint_name(jnp.tanh(product), "hidden")
        return jnp.sin(hidden) * hidden + x

    block = remat(layer, policy, **named)
    x, _ = jax.lax.scan(lambda x, weight: (block(x, weight), None), x, weights)
    return jnp.mean(x**2)


POLICIES = [
    "none",
    "everything_saveable",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "nothing_saveable",
    "save_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
]


@pytest.mark.slow(after=3)
@pytest.mark.x64
@pytest.mark.parametrize("policy", POLICIES[1:])
def test_values_and_gradients_stay(policy):
    weights, x = problem(8)
    run = jax.jit(jax.value_and_grad(loss, argnums=1), static_argnums=0)
    for found, expected in zip(
        run(policy, weights, x), run("none", weights, x), strict=True
    ):
        # The same operations, fused otherwise; 32 layers make rounding grow.
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=1e-13 * np.max(np.abs(expected))
        )


@pytest.mark.slow
def test_bytes_are_those_of_what_each_policy_keeps():
    rows = 512
    rows_of = {
        row.policy: row for row in explain_remat(loss, *problem(rows), repeats=1)
    }
    kept = LAYERS * rows * WIDTH * 4
    # Of each layer: its input; besides, its product; without a policy, four values
    # that the slopes of sine, tangent and product need, or more.
    for policy, count in (
        ("nothing_saveable", 1),
        ("dots_saveable", 2),
        ("dots_with_no_batch_dims_saveable", 2),
    ):
        # One layer's own values come on top, and the gradient of the weights.
        assert rows_of[policy].temporary == pytest.approx(count * kept, rel=0.2)
    assert rows_of["none"].temporary > 3.5 * kept
    assert all(row.seconds > 0 for row in rows_of.values())


def _status(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise AssertionError(name)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("policy", ["none", "dots_saveable", "nothing_saveable"])
def test_bytes_agree_with_the_memory_that_the_process_takes(policy):
    problem_ = problem(2048, width=128)
    (row,) = explain_remat(loss, *problem_, policies=[policy], repeats=1)
    run = jax.jit(jax.value_and_grad(loss, argnums=1), static_argnums=0)
    run = run.lower(policy, *problem_).compile()
    grown = []
    for _ in range(3):
        # What was freed goes back to the system first, else it would be taken again.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        jax.block_until_ready(run(*problem_))
        grown.append(_status("VmHWM") - before)
    # Some of it may have stayed with the process in one of the runs.
    assert max(grown) == pytest.approx(row.temporary, rel=0.2)


def test_modules_are_wrapped():
    mlp = eqx.nn.MLP(4, 4, 8, 2, key=jax.random.key(2))
    x = jnp.ones(4)
    np.testing.assert_allclose(remat(mlp)(x), mlp(x), rtol=1e-6)


def test_unknown_policy_is_refused_with_the_names():
    with pytest.raises(
        ArgumentError, match="must be one of none, .*nothing_saveable.*, but is most"
    ):
        remat(jnp.sin, "most")


def test_names_and_policy_must_fit():
    with pytest.raises(ArgumentError, match=r"must have no entries .* is \['a'\]"):
        remat(jnp.sin, "dots_saveable", ["a"])
    with pytest.raises(
        ArgumentError, match=r"must have at least one entry for .* \[\]"
    ):
        remat(jnp.sin, "save_only_these_names")


@pytest.mark.parametrize("policy", POLICIES[-2:])
def test_values_that_are_offloaded_go_to_the_host_and_back(policy):
    weights, x = problem(8)
    text = str(jax.make_jaxpr(jax.grad(loss, argnums=1), static_argnums=0)(
        policy, weights, x
    ))  # fmt: skip
    # The stacked products of all layers, and the one that a layer's gradient reads.
    assert f"<host>[{LAYERS},8,{WIDTH}]" in text
    assert text.count("device_put") == 2
    assert "host" not in str(
        jax.make_jaxpr(jax.grad(loss, argnums=1), static_argnums=0)(
            "dots_with_no_batch_dims_saveable", weights, x
        )
    )


def test_offloading_is_explained_as_the_others_are():
    kept, moved = explain_remat(
        loss,
        *problem(8),
        policies=["dots_with_no_batch_dims_saveable", "offload_dot_with_no_batch_dims"],
        repeats=1,
    )
    assert moved.policy == "offload_dot_with_no_batch_dims"
    # The memory of a CPU is that of the host.
    if jax.default_backend() == "cpu":
        assert moved.temporary == pytest.approx(kept.temporary, rel=0.01)


def test_a_device_without_memory_of_the_host_is_named(monkeypatch):
    class Memory:
        kind = "device"

    class Device:
        platform = "tile"

        def addressable_memories(self):
            return [Memory()]

    monkeypatch.setattr(jax, "local_devices", lambda: [Device()])
    with pytest.raises(ArgumentError, match="no memory pinned_host.*tile has only dev"):
        remat(jnp.sin, "offload_dot_with_no_batch_dims")
    assert remat(jnp.sin, "dots_saveable")(0.0) == 0


def test_names_that_are_offloaded_and_policy_must_fit():
    with pytest.raises(ArgumentError, match=r"`offloaded` must have no entries"):
        remat(jnp.sin, "dots_saveable", offloaded=["a"])
    with pytest.raises(ArgumentError, match=r"`offloaded` must have at least one"):
        remat(jnp.sin, "save_and_offload_only_these_names", ["a"])
