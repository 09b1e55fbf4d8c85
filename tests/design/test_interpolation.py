import jax
import jax.numpy as jnp
import pytest

from physax import PhysaxError
from physax.design import (
    index_material,
    linear_material,
    permittivity_and_conductivity,
    simp_material,
)
from physax.units import EPSILON_0


pytestmark = pytest.mark.f32

SCHEMES = [linear_material, simp_material]
DENSITY = jnp.array([0.0, 0.25, 0.5, 1.0])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("solid", [12.25, -10 + 1.5j])
def test_void_and_solid_are_reached(scheme, solid):
    found = scheme(DENSITY, 2.25, solid)
    assert found[0] == pytest.approx(2.25)
    assert found[-1] == pytest.approx(solid)
    assert found.dtype == (DENSITY * solid).dtype


def test_values_between():
    assert jnp.allclose(linear_material(DENSITY, 1, 5), 1 + 4 * DENSITY)
    assert jnp.allclose(simp_material(DENSITY, 1, 5, 2.0), 1 + 4 * DENSITY**2)
    # n = 1 + 0.5 (2 + 3i - 1) = 1.5 + 1.5i, whose square is 4.5i.
    assert index_material(DENSITY, 1.0, 2 + 3j)[2] == pytest.approx(4.5j)


@pytest.mark.parametrize("power", [1, 1.5, 3])
def test_the_gradient_is_finite_at_void(power):
    gradient = jax.grad(lambda x: jnp.sum(simp_material(x, 1.0, 5.0, power)))(DENSITY)
    assert jnp.all(jnp.isfinite(gradient))
    assert gradient[-1] == pytest.approx(4 * power)


def test_loss_becomes_conductivity():
    omega = 1e15
    permittivity, sigma = permittivity_and_conductivity(
        linear_material(DENSITY, 1.0, 4 + 0.5j), omega
    )
    assert jnp.allclose(permittivity, 1 + 3 * DENSITY)
    assert sigma[-1] == pytest.approx(0.5 * omega * EPSILON_0)
    assert sigma.dtype == DENSITY.dtype


def test_bad_numbers_are_refused():
    with pytest.raises(PhysaxError, match="`power` must be at least 1, but is 0.5"):
        simp_material(DENSITY, 1.0, 2.0, 0.5)
    with pytest.raises(PhysaxError, match="`omega` must be positive, but is 0"):
        permittivity_and_conductivity(DENSITY, 0.0)
