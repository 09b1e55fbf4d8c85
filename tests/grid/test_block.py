from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from physax.grid import Block
from physax.runtime import mesh


def sample(shape, *, imaginary=False):
    random = np.random.default_rng(1)
    values = random.normal(size=shape)
    if imaginary:
        values = values + 1j * random.normal(size=shape)
    return jnp.asarray(values, complex if imaginary else float)


def alone(shape, periodic=(False, False), phase=(None, None)):
    return Block(shape, (None,) * len(shape), (1,) * len(shape), periodic, phase)


def differences(block, values, axis, *, forward, start=0, stop=None):
    beyond = block.after if forward else block.before
    stop = block.shape[axis] if stop is None else stop
    plane = beyond(values, axis)
    return block.difference(values, axis, plane, start, stop, forward=forward)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 2), (1, 3), (3, None)])
def test_beyond_a_wall_the_field_is_zero(axis, forward, start, stop):
    values = sample((5, 6))
    width = [(0, 0), (0, 0)]
    width[axis] = (0, 1) if forward else (1, 0)
    expected = np.diff(np.pad(values, width), axis=axis)
    got = differences(
        alone((5, 6)), values, axis, forward=forward, start=start, stop=stop
    )
    cut = (slice(None),) * axis + (slice(start, stop),)
    np.testing.assert_array_equal(got, expected[cut])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("forward", [True, False])
def test_period_wraps(axis, forward):
    values = sample((5, 6))
    block = alone((5, 6), periodic=(True, True))
    shifted = np.roll(values, -1 if forward else 1, axis)
    expected = shifted - values if forward else values - shifted
    got = differences(block, values, axis, forward=forward)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("forward", [True, False])
def test_bloch_wave_is_an_eigenvector_of_its_difference(forward):
    # exp(i k j) over n cells returns with the phase exp(i k n), whatever k is.
    cells, k = 7, 0.4
    wave = jnp.exp(1j * k * jnp.arange(cells))
    phase = jnp.exp(jnp.asarray(1j * k * cells))
    block = Block((cells,), (None,), (1,), (True,), (phase,))
    expected = (np.exp(1j * k) - 1 if forward else 1 - np.exp(-1j * k)) * wave
    got = differences(block, wave, 0, forward=forward)
    np.testing.assert_allclose(got, expected, atol=8 * jnp.finfo(wave.dtype).eps)


def test_backward_is_minus_the_transpose_of_forward():
    # Of this the energy theorem of the scheme, and its adjoint, are made.
    a, b = sample((5, 6)), jnp.flip(sample((5, 6)))
    for periodic in ((False, False), (True, True)):
        block = alone((5, 6), periodic)
        for axis in (0, 1):
            left = jnp.sum(b * differences(block, a, axis, forward=True))
            right = -jnp.sum(a * differences(block, b, axis, forward=False))
            np.testing.assert_allclose(left, right, rtol=2e-5)


def test_read_returns_the_box_and_add_adds_there():
    values, box = sample((5, 6)), ((1, 3), (2, 6))
    block = alone((5, 6))
    np.testing.assert_array_equal(block.read(values, box), values[1:3, 2:6])
    added = block.add(values, box, jnp.ones((2, 1)))
    np.testing.assert_array_equal(added, values.at[1:3, 2:6].add(1))


def cut(sizes, shape, periodic=(False, False), phase=(None, None)):
    """Returns the block of a mesh, and a function that runs on all its devices."""
    made = mesh(**dict(zip("xy", sizes, strict=True)))
    local = tuple(n // k for n, k in zip(shape, sizes, strict=True))
    block = Block(local, ("x", "y"), sizes, periodic, phase)
    everywhere = PartitionSpec("x", "y")
    wrap = partial(jax.shard_map, mesh=made, in_specs=everywhere, out_specs=everywhere)
    return block, lambda function: jax.jit(wrap(function))


def all_differences(block, values):
    """Sums all four, each with a factor of its own."""
    total = jnp.zeros_like(values)
    for axis in (0, 1):
        for forward in (True, False):
            factor = 1 + axis + 2 * forward
            total += factor * differences(block, values, axis, forward=forward)
    return total


@pytest.mark.devices
@pytest.mark.parametrize("sizes", [(4, 2), (1, 4)])
@pytest.mark.parametrize("kind", ["walls", "periodic", "bloch"])
def test_blocks_difference_as_the_whole(sizes, kind):
    shape, values = (8, 12), sample((8, 12), imaginary=True)
    phase, wraps = (None, None), (kind != "walls",) * 2
    if kind == "bloch":
        phase = tuple(jnp.asarray(np.exp(1j * x), values.dtype) for x in (0.7, 2.0))
    block, on_all = cut(sizes, shape, wraps, phase)

    def both_modes(function):
        got, pull = jax.vjp(function, values)
        return got, *pull(values)

    # A product with a phase may be rounded once or twice.
    tiny = 20 * jnp.finfo(values.dtype).eps
    many = jax.jit(partial(both_modes, on_all(partial(all_differences, block))))()
    one = both_modes(partial(all_differences, alone(shape, wraps, phase)))
    for left, right in zip(many, one, strict=True):
        np.testing.assert_allclose(left, right, rtol=tiny, atol=10 * tiny)


@pytest.mark.devices
@pytest.mark.parametrize("sizes", [(2, 1), (2, 4)])
def test_box_across_borders_is_read_in_parts_and_written_once(sizes):
    shape, box = (8, 12), ((1, 7), (2, 3))
    values, what = sample(shape), jnp.arange(6.0).reshape(6, 1) + 1
    block, on_all = cut(sizes, shape)
    added = on_all(lambda v: block.add(v, box, what))(values)
    np.testing.assert_array_equal(added, alone(shape).add(values, box, what))
    read = on_all(
        lambda v: jax.lax.psum(block.read(v, box), ("x", "y")) + 0 * v[:1, :1]
    )
    got = read(values)[:6, :1]
    np.testing.assert_array_equal(got, values[1:7, 2:3])


@pytest.mark.devices
def test_samples_of_other_blocks_are_filled():
    block, on_all = cut((4, 1), (8, 2))
    read = on_all(lambda v: block.read(v, ((2, 5), (0, 1)), 7.0))
    got = read(jnp.arange(16.0).reshape(8, 2)).reshape(4, 3)
    # Rows 2, 3 | 4 of the whole lie on the second and the third device.
    expected = [[7, 7, 7], [4, 6, 7], [7, 7, 8], [7, 7, 7]]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.devices
def test_start_numbers_the_cells_of_the_whole_grid():
    block, on_all = cut((2, 4), (8, 12))
    numbers = on_all(lambda v: 0 * v + 100.0 * block.start(0) + block.start(1))
    got = numbers(jnp.zeros((8, 12)))
    assert got[0, 0] == 0
    assert got[7, 11] == 409


# A small plane, a large one and a volume take their zero in two ways.
@pytest.mark.parametrize("shape", [(5, 6), (400, 300), (5, 6, 7)])
@pytest.mark.parametrize("barriers", [True, False])
def test_turns_of_a_loop_add_in_place_and_compute_once(shape, barriers, monkeypatch):
    monkeypatch.setattr(Block, "keeps_barriers", barriers)
    periods = (False,) * len(shape)
    block = alone(shape, periods, (None,) * len(shape))
    box = tuple((1, 4) for _ in shape)

    def turn(n, values):
        here = block.within(n)
        values = here.once(lambda v: 2 * v, values)
        return here.add_here(values, box, jnp.ones((3,) * len(shape)))

    got = jax.jit(lambda v: jax.lax.fori_loop(0, 3, turn, v))(jnp.ones(shape))
    want = np.full(shape, 8.0)
    want[(slice(1, 4),) * len(shape)] += 4 + 2 + 1
    np.testing.assert_array_equal(got, want)
