import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import (
    ConicFilter,
    erosion_threshold,
    filter_radius,
    greyness,
    robust_densities,
    subpixel_projection,
    tanh_projection,
)


pytestmark = pytest.mark.f32


def test_the_family_is_nested():
    noise = jnp.asarray(np.random.default_rng(0).random((30, 30)), float)
    smooth = ConicFilter(4.0, 1.0)(noise)
    smooth = (smooth - smooth.min()) / (smooth.max() - smooth.min())
    for projection in (tanh_projection, subpixel_projection):
        family = robust_densities(smooth, 64.0, projection=projection)
        assert jnp.mean(family.eroded) < jnp.mean(family.intermediate)
        assert jnp.mean(family.intermediate) < jnp.mean(family.dilated)
    assert jnp.all(family.eroded <= family.dilated + 1e-6)
    assert jnp.array_equal(family.intermediate, subpixel_projection(smooth, 64.0))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("ratio", [1.0, 1.2, 1.5, 1.9])
def test_the_threshold_is_the_peak_of_a_filtered_bar(ratio):
    # A bar of width l under a cone of radius R peaks at l/R - (l/R)^2 / 4 in 1-D.
    cells = 200
    bar = jnp.zeros(1001).at[500 - round(ratio * cells / 2) :].set(1.0)
    bar = bar.at[500 + round(ratio * cells / 2) :].set(0.0)
    peak = jnp.max(ConicFilter(1.0, 1 / cells)(bar))
    assert erosion_threshold(ratio, 1.0) == pytest.approx(float(peak), abs=1e-4)


@pytest.mark.parametrize("eroded", [0.55, 0.75, 0.9])
def test_the_radius_inverts_the_threshold(eroded):
    radius = filter_radius(100e-9, eroded)
    assert erosion_threshold(100e-9, radius) == pytest.approx(eroded)


def test_usual_numbers():
    assert filter_radius(1.0) == pytest.approx(1.0)
    assert erosion_threshold(3.0, 1.0) == 1.0


def test_greyness():
    assert greyness(jnp.array([0.0, 1.0, 1.0])) == 0
    assert greyness(jnp.full((3, 3), 0.5)) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: robust_densities(jnp.ones(3), 8.0, 0.5, shift=0.5), "must lie in"),
        (lambda: erosion_threshold(0.0, 1.0), "must be positive, but are 0 and 1"),
        (lambda: filter_radius(-1.0), "`length` must be positive, but is -1"),
        (lambda: filter_radius(1.0, 1.0), r"`eroded` must lie in \(0.5, 1\), but is 1"),
    ],
)
def test_bad_numbers_are_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()
