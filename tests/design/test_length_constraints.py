import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import (
    ConicFilter,
    length_constraints,
    minimum_length,
    narrow_solid,
    narrow_void,
    subpixel_projection,
)
from physax.units import NANO


pytestmark = pytest.mark.f32

RADIUS, SPACING = 100 * NANO, 10 * NANO
FILTER = ConicFilter(RADIUS, SPACING)


def bar(width):
    """A bar of so many cells, filtered and projected."""
    density = (
        jnp.zeros((100, 20)).at[50 - width // 2 : 50 - width // 2 + width].set(1.0)
    )
    smooth = FILTER(density)
    return smooth, subpixel_projection(smooth, jnp.inf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("measure", "flip"), [(narrow_solid, False), (narrow_void, True)]
)
def test_bars_as_wide_as_the_radius_are_allowed_and_thinner_ones_not(measure, flip):
    def of(width):
        smooth, projected = bar(width)
        if flip:
            smooth, projected = 1 - smooth, 1 - projected
        return float(measure(smooth, projected, RADIUS, SPACING))

    # The half width of a cell decides: 10 cells are the radius.
    assert of(7) > of(8) > of(9) > 1e-6
    assert all(of(width) < 1e-9 for width in (10, 11, 14, 30))


def test_constraints_agree_with_the_measured_lengths():
    for width in (8, 9, 10, 12):
        smooth, projected = bar(width)
        solid, void = length_constraints(smooth, projected, RADIUS, SPACING)
        measured = minimum_length(np.asarray(projected) > 0.5, SPACING)
        assert (solid <= 0) == (measured.solid >= RADIUS * (1 - 1e-6))
        assert void <= 0


def test_three_dimensions_and_dtype():
    density = jnp.full((6, 6, 6), 0.6)
    found = jax.jit(lambda x: length_constraints(x, x, RADIUS, SPACING))(density)
    assert found.shape == (2,)
    assert found.dtype == density.dtype


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eroded": 0.4}, r"`eroded` must lie in \(0.5, 1\), but is 0.4"),
        ({"decay": 0.0}, "`decay` must be positive, but is 0"),
        ({"limit": -1.0}, "`limit` must be positive, but is -1"),
    ],
)
def test_bad_numbers_are_refused(options, message):
    with pytest.raises(PhysaxError, match=message):
        length_constraints(*bar(10), RADIUS, SPACING, **options)
