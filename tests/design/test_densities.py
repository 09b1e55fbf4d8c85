import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import NeuralDensity, PixelDensity, grey_start, optimise


pytestmark = pytest.mark.f32


def test_a_grey_start_is_uniform_or_noisy():
    assert jnp.all(grey_start((4, 5))() == 0.5)
    noisy = grey_start((40, 50), 0.4, noise=0.1, key=jax.random.key(0))()
    assert noisy.shape == (40, 50)
    assert noisy.dtype == jnp.result_type(float)
    assert 0.3 <= jnp.min(noisy) < 0.31
    assert 0.49 < jnp.max(noisy) <= 0.5


@pytest.mark.parametrize("shape", [(12,), (9, 11), (4, 5, 6)])
def test_a_network_paints_a_density(shape):
    density = NeuralDensity(shape, key=jax.random.key(0))
    found = eqx.filter_jit(density)()
    assert found.shape == shape
    assert found.dtype == jnp.result_type(float)
    assert jnp.all((found > 0) & (found < 1))


@pytest.mark.slow
def test_a_network_may_be_asked_on_a_finer_grid():
    # The middle of every third cell of the finer grid is that of a coarse cell.
    density = NeuralDensity((10, 8), key=jax.random.key(1), harmonics=2)
    fine = density.at((30, 24))
    assert jnp.allclose(fine[1::3, 1::3], density(), atol=1e-5)


@pytest.mark.slow
def test_a_network_learns_a_disc():
    x = np.linspace(-1, 1, 24)
    target = jnp.asarray(np.hypot(x[:, None], x) < 0.6, float)
    result = optimise(
        lambda density, beta: jnp.mean((density() - target) ** 2),
        NeuralDensity((24, 24), key=jax.random.key(2), harmonics=2),
        steps=150,
        progress=False,
    )
    assert isinstance(result.parameters, NeuralDensity)
    assert result.history.objective[-1] < 0.15 * result.history.objective[0]


def test_pixels_stay_within_their_bounds():
    target = jnp.array([[-1.0, 0.2], [0.6, 3.0]])
    result = optimise(
        lambda density, beta: jnp.sum((density() - target) ** 2),
        PixelDensity(jnp.full((2, 2), 0.5)),
        steps=100,
        progress=False,
    )
    assert np.allclose(result.parameters(), [[0, 0.2], [0.6, 1]], atol=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: grey_start((3,), 0.9, noise=0.2),
            r"must lie in \[0, 1\], but are 0.7",
        ),
        (lambda: grey_start((3,), noise=0.2), "`key` must be given with `noise`"),
        (
            lambda: NeuralDensity((3, 3), key=jax.random.key(0), depth=0),
            "`depth` must be an integer of at least 1, but is 0",
        ),
    ],
)
def test_bad_starts_are_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()
