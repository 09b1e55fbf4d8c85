import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.design import connectivity, hole_penalty, island_penalty


pytestmark = pytest.mark.f32


def scene():
    """A bar across, an island of 12 cells, and a ring with a hole of 4 cells."""
    device = np.zeros((30, 30), bool)
    device[10:14] = True
    device[3:6, 20:24] = True
    device[14:20, 4:10] = True
    device[16:18, 6:8] = False
    return device


def test_islands_and_holes_are_counted():
    found = connectivity(scene())
    assert (found.islands, found.holes) == (1, 1)
    assert found.floating.sum() == 12
    assert found.floating[3:6, 20:24].all()
    assert found.enclosed.sum() == 4


def test_anchors_and_outlets_may_be_chosen():
    left = np.zeros((30, 30), bool)
    left[:, 0] = True
    device = scene()
    device[20:25, 28:] = True
    assert connectivity(device).islands == 1
    assert connectivity(device, anchors=left).islands == 2
    # The void below the bar does not reach the outlets above it.
    above = np.zeros((30, 30), bool)
    above[0] = True
    assert connectivity(device, outlets=above).holes == 2


def test_corners_do_not_connect_and_three_dimensions_work():
    block = np.zeros((5, 5, 5), bool)
    block[2, 2, 2] = True
    block[0, 0, 0] = block[1, 1, 0] = True
    found = connectivity(block)
    assert (found.islands, found.holes) == (1, 0)
    shell = np.ones((5, 5, 5), bool)
    shell[2, 2, 2] = False
    assert connectivity(shell).holes == 1


@pytest.mark.slow
def test_a_solid_square_has_the_mean_temperature_of_the_textbook():
    # -laplace(T) = 1 in a unit square with T = 0 around it has the integral 0.0351443,
    # a quarter of the torsion constant 0.140577 (Timoshenko and Goodier, section 109).
    # Heat leaves the cells at the border into walls one cell farther out, so the square
    # is n + 1 cells wide; the temperature grows as its square.
    n = 60
    found = island_penalty(jnp.ones((n, n)))
    assert found == pytest.approx(0.0351443 * ((n + 1) / n) ** 4, rel=2e-3)


@pytest.mark.parametrize("penalty", [island_penalty, hole_penalty])
def test_islands_and_holes_are_hot(penalty):
    device = scene()
    closed = np.where(connectivity(device).floating, False, device)
    closed = closed | connectivity(device).enclosed
    bad, good = (jnp.asarray(x, float) for x in (device, closed))
    assert penalty(bad, insulation=1e-5) > 3 * penalty(good, insulation=1e-5)


def test_the_gradient_removes_the_island_or_ties_it():
    device = jnp.asarray(scene(), float)
    gradient = jax.jit(jax.grad(lambda x: island_penalty(x, insulation=1e-4)))(device)
    assert jnp.all(jnp.isfinite(gradient))
    assert jnp.all(gradient[3:6, 20:24] > 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: connectivity(np.ones((3, 3))),
            "`binary` must be an array of booleans",
        ),
        (
            lambda: connectivity(scene(), anchors=np.zeros((30, 30), bool)),
            "`anchors` must have at least one cell",
        ),
        (
            lambda: connectivity(scene(), outlets=np.ones((3, 3), bool)),
            "`outlets` must be booleans of shape",
        ),
        (
            lambda: island_penalty(jnp.ones((3, 3)), insulation=1.0),
            r"`insulation` must lie in \(0, 1\), but is 1",
        ),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()
