import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import FixedRegions


pytestmark = pytest.mark.f32

SOLID = np.zeros((4, 5), bool)
SOLID[0] = True
VOID = np.zeros((4, 5), bool)
VOID[3, 2:] = True


def test_fixed_cells_have_their_values_and_no_gradient():
    fixed = FixedRegions(SOLID, VOID)
    density = jnp.full((4, 5), 0.3)
    found = eqx.filter_jit(fixed)(density)
    assert jnp.all(found[SOLID] == 1)
    assert jnp.all(found[VOID] == 0)
    assert jnp.all(found[~(SOLID | VOID)] == density[0, 0])
    gradient = jax.grad(lambda x: jnp.sum(fixed(x)))(density)
    assert jnp.array_equal(gradient, (~(SOLID | VOID)).astype(gradient.dtype))


def test_one_mask_or_none_will_do():
    density = jnp.full((4, 5), 0.3)
    assert jnp.array_equal(FixedRegions()(density), density)
    assert jnp.sum(FixedRegions(void=VOID)(density) == 0) == VOID.sum()


def test_masks_that_conflict_are_refused():
    void = VOID.copy()
    void[0, 1:3] = True
    with pytest.raises(
        PhysaxError,
        match=r"no cell in common, but share 2, the first at \(0, 1\)",
    ):
        FixedRegions(SOLID, void)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: FixedRegions(SOLID, VOID[:2]),
            "`solid` and `void` must have one shap",
        ),
        (
            lambda: FixedRegions(SOLID.astype(float)),
            "`solid` must hold booleans, but holds flo",
        ),
        (
            lambda: FixedRegions(SOLID)(jnp.ones(3)),
            "`solid` must have the shape of the",
        ),
    ],
)
def test_bad_masks_are_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()
