import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.em import SParameters, scatterer


pytestmark = pytest.mark.f32

WAVES = jnp.array([1.5e-6, 1.6e-6])
PORTS = ("in0", "in1", "out0", "out1")
SIDES = {"in0": "out0", "out0": "in0", "in1": "out1", "out1": "in1"}
ARMS = {"in0": "in1", "in1": "in0", "out0": "out1", "out1": "out0"}


def driven(*inputs):
    rng = np.random.default_rng(1)
    column = rng.normal(size=(2, 4)) + 1j * rng.normal(size=(2, 4))
    values = jnp.asarray(np.stack([column] * len(inputs), -1), jnp.complex64)
    return SParameters(values, WAVES, PORTS, inputs, {})


def test_mirrors_of_a_coupler_give_the_columns_that_were_not_driven():
    given = driven("in0")
    part = scatterer(given, [SIDES, ARMS])
    assert part.ports == PORTS
    for output in PORTS:
        expected = given(output, "in0")
        assert jnp.array_equal(part(output, "in0"), expected)
        assert jnp.array_equal(part(SIDES[output], "out0"), expected)
        assert jnp.array_equal(part(ARMS[output], "in1"), expected)
        assert jnp.array_equal(part(ARMS[SIDES[output]], "out1"), expected)


def test_all_driven_ports_need_no_symmetry():
    given = driven(*PORTS[::-1])
    assert jnp.array_equal(scatterer(given)("out1", "in0"), given("out1", "in0"))


@pytest.mark.parametrize(
    ("symmetries", "message"),
    [
        ([], "in1, out0, out1 is not"),
        ([SIDES], "in1, out1 is not"),
        ([{"in0": "in1"}], "must permute the ports"),
        ([{"a": "b", "b": "a"}], "must permute the ports"),
    ],
)
def test_columns_that_do_not_follow(symmetries, message):
    with pytest.raises(ArgumentError, match=message):
        scatterer(driven("in0"), symmetries)
