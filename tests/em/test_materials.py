import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError, PhysaxWarning
from physax.em import Material, complex_permittivity


FIELDS = ["permittivity", "permeability", "conductivity", "magnetic_conductivity"]


def test_default_is_vacuum():
    vacuum = Material()
    assert vacuum.permittivity == 1
    assert vacuum.permeability == 1
    assert vacuum.conductivity == 0
    assert vacuum.magnetic_conductivity == 0


@pytest.mark.parametrize("value", [12, 12.0, (12, 1.5, 2.0), [1, 2, 3]])
def test_values_have_the_default_dtype_and_no_weak_type(value):
    permittivity = Material(permittivity=value).permittivity
    assert permittivity.dtype == jnp.zeros(()).dtype
    assert not permittivity.weak_type


def test_constants_stay_known_under_jit():
    @jax.jit
    def run(permittivity):
        material = Material(permittivity=permittivity)
        assert isinstance(material.permittivity, jax.core.Tracer)
        assert not isinstance(material.permeability, jax.core.Tracer)
        return material.permittivity

    assert run(2.0) == 2


def test_traced_entries_may_stand_beside_numbers():
    gradient = jax.grad(lambda x: Material(permittivity=(x, 2.0, 3.0)).permittivity[0])
    assert gradient(4.0) == 1


@pytest.mark.parametrize("name", FIELDS[:2])
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_permittivity_and_permeability_must_be_positive(name, bad):
    message = rf"`{name}` must be positive and finite, but is"
    with pytest.raises(ArgumentError, match=message):
        Material(**{name: bad})


@pytest.mark.parametrize("name", FIELDS[2:])
def test_conductivity_must_be_finite(name):
    with pytest.raises(ArgumentError, match=rf"`{name}` must be finite, but is nan"):
        Material(**{name: float("nan")})


@pytest.mark.parametrize("name", FIELDS[2:])
def test_gain_is_warned_of(name):
    with pytest.warns(PhysaxWarning, match=rf"`{name}` is negative \(-2\)"):
        Material(**{name: (0.0, -2.0, 1.0)})


@pytest.mark.parametrize("name", FIELDS)
def test_shape_and_type_are_checked(name):
    with pytest.raises(ArgumentError, match=r"shape \(3,\)\), but has shape \(2,\)"):
        Material(**{name: (1.0, 2.0)})
    with pytest.raises(ArgumentError, match=r"shape \(3,\)\), but has shape \(0,\)"):
        Material(**{name: []})
    with pytest.raises(ArgumentError, match="must be real, but has dtype complex"):
        Material(**{name: 1 + 1j})


def test_bad_value_poisons_under_jit():
    run = jax.jit(lambda x: Material(permittivity=x).permittivity)
    assert jnp.isnan(run(-1.0))


def test_a_name_is_no_permittivity():
    with pytest.raises(ArgumentError, match="`permittivity` must be numbers, but is '"):
        Material("Si")


TILTED = jnp.array([[2.0, 0.1, 0.0], [0.1, 2.0, 0.0], [0.0, 0.0, 3.0]])


def test_entries_beside_the_diagonal_have_no_complex_permittivity():
    with pytest.raises(ArgumentError, match=r"off-diagonal entry.* be 0, but is 0\.1"):
        complex_permittivity(Material(TILTED), 1e14)
    run = jax.jit(lambda x: complex_permittivity(Material(x), 1e14))
    assert jnp.all(jnp.isnan(run(TILTED)))
    found = complex_permittivity(Material(np.diag([2.0, 3.0, 4.0])), [1e14, 2e14])
    assert jnp.array_equal(found, jnp.array([[2.0, 3.0, 4.0]] * 2))


@pytest.mark.parametrize("name", FIELDS)
def test_a_traced_integer_counts_as_a_number(name):
    found = jax.jit(lambda x: getattr(Material(**{name: x}), name))(12)
    assert found == 12
    assert found.dtype == jnp.zeros(()).dtype


@pytest.mark.parametrize("valid", [(2e-6, 0.9e-6), (float("nan"), 1e-6)])
def test_a_range_that_is_none_is_refused(valid):
    with pytest.raises(ArgumentError, match="`valid` must be the shortest and then"):
        Material(valid=valid)
