import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, PartitionSpec

from physax import PhysaxError
from physax.grid import Layout, crop, pad


def mesh(*shape):
    devices = np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape)
    names = ("a", "b", "c")[: len(shape)]
    return Mesh(devices, names, axis_types=(AxisType.Auto,) * len(shape))


def test_spec_puts_grid_axes_last():
    layout = Layout(mesh(1, 1), x="a", z="b")
    assert layout.spec(3) == PartitionSpec("a", None, "b")
    assert layout.spec(3, leading=2) == PartitionSpec(None, None, "a", None, "b")
    assert layout.sharding(3).spec == layout.spec(3)
    assert Layout(mesh(1)).spec(2) == PartitionSpec(None, None)


def test_layout_is_static():
    layout = Layout(mesh(1), x="a")
    assert jax.tree.leaves(layout) == []
    assert hash(layout) == hash(Layout(mesh(1), x="a"))
    assert eqx.tree_equal(layout, Layout(mesh(1), x="a"))
    assert not eqx.tree_equal(layout, Layout(mesh(1), y="a"))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.complex64, jnp.bool_])
def test_crop_undoes_pad(dtype):
    values = jnp.arange(24).reshape(2, 3, 4).astype(dtype)
    padded = pad(values, (5, 4), fill=1)
    assert padded.shape == (2, 5, 4)
    assert padded.dtype == dtype
    np.testing.assert_array_equal(padded[:, 3:], jnp.ones((2, 2, 4), dtype))
    np.testing.assert_array_equal(crop(padded, (3, 4)), values)


def test_pad_and_crop_transform():
    values = jnp.arange(6.0).reshape(2, 3)

    def energy(v):
        return jnp.sum(crop(pad(v, (4,)) ** 2, (3,)))

    np.testing.assert_allclose(
        jax.jit(jax.vmap(energy))(values), jnp.sum(values**2, 1), rtol=1e-6
    )
    np.testing.assert_allclose(jax.grad(energy)(values[1]), 2 * values[1])


@pytest.mark.slow(after=1)
@pytest.mark.devices
@pytest.mark.parametrize(
    ("shape", "axes", "grid", "padded"),
    [
        ((8,), {"x": "a"}, (21,), (24,)),
        ((2, 4), {"x": "a", "y": "b"}, (21, 17), (22, 20)),
        ((4, 2), {"y": "a"}, (5, 6), (5, 8)),
        ((2, 2, 2), {"x": "c", "y": "b", "z": "a"}, (5, 6, 7), (6, 6, 8)),
    ],
)
def test_padded_values_lie_on_the_devices_in_equal_blocks(shape, axes, grid, padded):
    layout = Layout(mesh(*shape), **axes)
    assert layout.padded_shape(grid) == padded
    values = jax.random.normal(jax.random.key(0), (3, *grid))
    sharding = layout.sharding(len(grid), leading=1)
    put = jax.device_put(pad(values, padded), sharding)
    blocks = {shard.data.shape for shard in put.addressable_shards}
    assert blocks == {(3, *layout.block_shape(padded))}
    for axis, cells in enumerate(padded):
        assert layout.block_shape(padded)[axis] * layout.parts(axis) == cells
    np.testing.assert_array_equal(crop(put, grid), values)
    doubled = jax.jit(lambda v: 2 * v)(put)
    assert doubled.sharding.is_equivalent_to(sharding, doubled.ndim)


@pytest.mark.devices
def test_uneven_grid_is_refused_by_axis_and_multiple():
    layout = Layout(mesh(2, 4), x="a", y="b")
    message = r"`shape` along y must be a multiple of 4, .* mesh axis 'b', but is 6"
    with pytest.raises(PhysaxError, match=message):
        layout.block_shape((6, 6))


def test_bad_layout_is_refused():
    with pytest.raises(PhysaxError, match=r"`y` must be None or .* but is 'q'"):
        Layout(mesh(1), y="q")
    with pytest.raises(PhysaxError, match="'a' cuts x and z"):
        Layout(mesh(1), x="a", z="a")
    with pytest.raises(PhysaxError, match="`z` must be None for a grid of 2 axes"):
        Layout(mesh(1), z="a").spec(2)


def test_wrong_direction_is_refused():
    values = jnp.ones((3, 4))
    with pytest.raises(PhysaxError, match=r"along y must be at least 4, .* but is 3"):
        pad(values, (3, 3))
    with pytest.raises(PhysaxError, match=r"along x must be at most 3, .* but is 4"):
        crop(values, (4, 4))
    with pytest.raises(PhysaxError, match="not more than `values`, but is"):
        pad(values, (3, 4, 5))
