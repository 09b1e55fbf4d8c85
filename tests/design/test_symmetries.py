import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import Mirror, Rotation, Transposition, symmetrise


pytestmark = pytest.mark.f32


def noise(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).random(shape), float)


CASES = [
    ([Mirror(0)], [lambda x: x[::-1]]),
    ([Mirror(1)], [lambda x: x[:, ::-1]]),
    ([Rotation()], [lambda x: x[::-1, ::-1]]),
    ([Rotation(4)], [jnp.rot90, lambda x: jnp.rot90(x, 3)]),
    ([Transposition()], [lambda x: x.T]),
    ([Mirror(0), Mirror(1)], [lambda x: x[::-1], lambda x: x[:, ::-1]]),
    ([Mirror(1), Transposition()], [lambda x: x.T, lambda x: x[::-1], jnp.rot90]),
    ([Rotation(4), Mirror(0)], [lambda x: x.T, lambda x: x[:, ::-1], jnp.rot90]),
]


@pytest.mark.parametrize(("symmetries", "images"), CASES)
@pytest.mark.parametrize("cells", [8, 9])
def test_designs_equal_their_images_to_the_last_bit(symmetries, images, cells):
    found = symmetrise(noise((cells, cells)), *symmetries)
    for image in images:
        assert jnp.array_equal(image(found), found)


@pytest.mark.parametrize(("symmetries", "images"), CASES)
def test_symmetric_designs_stay_and_the_mean_is_kept(symmetries, images):
    del images
    density = noise((9, 9))
    once = symmetrise(density, *symmetries)
    assert jnp.allclose(symmetrise(once, *symmetries), once, atol=1e-7)
    assert jnp.mean(once) == pytest.approx(float(jnp.mean(density)), rel=1e-5)


@pytest.mark.parametrize(("symmetries", "images"), CASES)
def test_the_gradient_is_symmetric_too(symmetries, images):
    del images
    weights = noise((8, 8), 1)
    gradient = jax.grad(lambda x: jnp.sum(weights * symmetrise(x, *symmetries)))(
        noise((8, 8))
    )
    assert jnp.allclose(gradient, symmetrise(weights, *symmetries), atol=1e-6)


def test_three_dimensions():
    found = symmetrise(noise((6, 6, 5)), Mirror(2), Rotation(4), Transposition((0, 1)))
    for image in (found[:, :, ::-1], jnp.rot90(found), jnp.swapaxes(found, 0, 1)):
        assert jnp.array_equal(image, found)


def test_no_symmetry_changes_nothing():
    density = noise((3, 4))
    assert jnp.array_equal(symmetrise(density), density)


@pytest.mark.parametrize(
    ("shape", "symmetries", "message"),
    [
        ((4, 5), [Transposition()], "the same number of cells along axes"),
        ((4, 5), [Rotation(4)], "the same number of cells along axes"),
        ((4, 4), [Mirror(2)], "must be different and lie between 0 and 1"),
        ((4, 4), [Transposition((1, 1))], "must be different and lie between"),
        (
            (4, 4, 4),
            [Transposition((0, 1)), Transposition((1, 2))],
            "must not permute three axes cyclically",
        ),
    ],
)
def test_impossible_symmetries_are_refused(shape, symmetries, message):
    with pytest.raises(PhysaxError, match=message):
        symmetrise(noise(shape), *symmetries)


def test_thirds_of_a_turn_are_refused():
    with pytest.raises(PhysaxError, match="`order` must be 2 or 4, but is 3"):
        Rotation(3)
