import math

import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import extrude, offset_outline, subpixel_projection


pytestmark = pytest.mark.f32

CELLS = 80
X = (np.arange(CELLS) + 0.5) - CELLS / 2


def disc(radius, slope=0.08, centre=(0.0, 0.0)):
    """A density that is one half at a radius, in cells, and smooth around it."""
    r = np.hypot(X[:, None] - centre[0], X[None, :] - centre[1])
    return jnp.asarray(np.clip(0.5 - slope * (r - radius), 0, 1), float)


def area(density):
    return float(jnp.sum(subpixel_projection(density, math.inf)))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("distance", [-6.3, -1.7, 0.4, 3.0, 7.9])
@pytest.mark.parametrize("slope", [0.03, 0.08])
def test_the_outline_of_a_disc_moves_by_the_distance(distance, slope):
    # The scheme is second order, and a contour of radius 10 and more curves little in a
    # cell: the radius is right to 0.05 cells.
    found = offset_outline(disc(20.0, slope), distance, 1.0)
    radius = math.sqrt(area(found) / math.pi)
    assert radius == pytest.approx(20 - distance, abs=0.05)


def test_distances_are_in_metres_and_cells_may_be_oblong():
    r = np.hypot(X[:, None], X[None, :] * 1.5)
    density = jnp.asarray(np.clip(0.5 - 0.05 * (r - 24), 0, 1), float)
    found = offset_outline(density, 5e-9, (1e-9, 1.5e-9))
    assert math.sqrt(area(found) * 1.5 / math.pi) == pytest.approx(19, abs=0.06)


def test_thin_parts_vanish_and_narrow_gaps_close():
    bar = np.clip(0.5 - 0.1 * (np.abs(X)[:, None] - 3), 0, 1) + 0 * X
    density = jnp.asarray(bar, float)
    assert jnp.max(offset_outline(density, 3.6, 1.0)) < 0.5
    assert jnp.min(offset_outline(1 - density, -3.6, 1.0)) > 0.5


@pytest.mark.slow
def test_a_cone_has_its_radius_at_every_height():
    # 10 layers of 2 cells, the mask at the bottom: r(z) = 30 - z tan(a).
    angle = math.radians(20)
    layers = extrude(
        disc(30.0),
        [2.0] * 10,
        angle=angle,
        reference=0.0,
        project=lambda rho: subpixel_projection(rho, math.inf),
    )
    assert layers.shape == (CELLS, CELLS, 10)
    z = np.arange(10) * 2 + 1.0
    radius = np.sqrt(np.asarray(jnp.sum(layers, axis=(0, 1))) / math.pi)
    assert np.abs(radius - (30 - z * math.tan(angle))).max() < 0.06


@pytest.mark.parametrize("angle", [0.2, -0.2])
def test_the_mask_lies_at_the_reference_height(angle):
    density = disc(20.0)
    layers = extrude(density, [1.0, 2.0, 1.0, 3.0, 1.0], angle=angle, reference=0.4375)
    # The middle of the third layer is at 3.5 of 8.
    assert jnp.array_equal(layers[:, :, 2], density)
    wider = jnp.sum(layers[:, :, 0]) - jnp.sum(layers[:, :, 4])
    assert jnp.sign(wider) == jnp.sign(angle)


def test_upright_walls_repeat_the_design():
    density = disc(15.0)
    layers = extrude(density, [1.0, 1.0, 1.0])
    assert jnp.array_equal(layers, jnp.stack([density] * 3, axis=-1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: extrude(disc(5.0), []),
            "`heights` must have at least one entry, but is empty",
        ),
        (lambda: extrude(disc(5.0), [1.0, 0.0]), "`heights` must be positive"),
        (
            lambda: extrude(disc(5.0), [1.0], angle=1.5),
            r"`angle` must lie in \[-pi / 3, pi / 3\], but is",
        ),
        (
            lambda: extrude(disc(5.0), [1.0], reference=2.0),
            r"`reference` must lie in \[0, 1\], but is 2",
        ),
        (
            lambda: offset_outline(disc(5.0), float("nan"), 1.0),
            "`distance` must be a finite number",
        ),
    ],
)
def test_bad_layers_are_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()
