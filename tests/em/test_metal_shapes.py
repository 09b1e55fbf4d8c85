"""What metal leaves of edges and faces, for every shape, and beside mirror planes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em._overlap import Intervals
from physax.em._sections import Cut, shape_of
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT
from tests.em.shape_checks import cells
from tests.em.test_metal import NAMES
from tests.em.test_shape_derivatives import SHAPES


@pytest.mark.slow
def test_polygon_leaves_the_same_open_as_a_box():
    grid = Grid.uniform((9, 8, 7), 1.0)
    box = em.Box.from_corners((1.3, 2.4, 1.6), (6.2, 5.7, 4.4))
    corners = [(1.3, 2.4), (6.2, 2.4), (6.2, 5.7), (1.3, 5.7)]
    prism = em.Polygon(corners, low=1.6, high=4.4)
    side = [(1.3, 1.6), (1.3, 4.4), (6.2, 4.4), (6.2, 1.6)]
    other = em.Polygon(side, axis="y", low=2.4, high=5.7)
    sloped = em.Prism(corners, 1.6, 4.4, sidewall=0.0)
    first, *rest = (
        em.rasterise([em.Structure(shape, em.PEC())], grid).metal.open
        for shape in (box, prism, other, sloped)
    )
    for name, want in first.items():
        for found in rest:
            assert np.allclose(found[name], want, rtol=0, atol=1e-12)


# In thin cells turned shapes and balls are sums over sections, and prisms must touch.
@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", sorted({*SHAPES} - {"turned", "ellipsoid", "prism"}))
def test_lines_and_faces_are_the_limit_of_thin_cells(name):
    make, numbers, ndim = SHAPES[name]
    shape = make(jnp.asarray(numbers))
    covered, whole = jax.jit(lambda c: shape.covered(c)), cells(ndim)
    for thin in ((0,), (1, 2), (2, 0), (0, 1)):
        lines, slabs = list(whole), list(whole)
        for axis in (a for a in thin if a < ndim):
            at = whole[axis].position
            lines[axis] = Cut(at)
            if name in ("polygon", "stretched and mirrored"):
                # Cells that do not touch each other.
                at = at + jnp.zeros(shape_of(whole))
            slabs[axis] = Intervals(at, 1e-9 + 0 * at, 1e-9 + 0 * at)
        found, wanted = covered(lines), covered(slabs)
        assert np.allclose(found, wanted, rtol=0, atol=1e-6), thin


@pytest.mark.slow
@pytest.mark.parametrize("side", ["low", "high"])
def test_half_of_a_scene_beside_a_magnetic_wall_is_that_of_the_whole(side):
    rod, plate = em.Circle((4.3, 1.2), 2.3), em.Box((0.0, -5.3), (5.2, 1.7))
    shapes = [rod, em.mirror(rod, "x"), plate]
    structures = [em.Structure(shape, em.PEC()) for shape in shapes]
    pulse = em.GaussianPulse(SPEED_OF_LIGHT / 12, SPEED_OF_LIGHT / 30)

    def run(cells, low, places, boundaries):
        grid = Grid.uniform((cells, 16), 1.0, (low, -8.0))
        sim = em.Simulation(
            grid,
            em.rasterise(structures, grid, components=NAMES["Ez"]),
            boundaries,
            sources={f"at {x}": em.Dipole("Ez", (x, -2.0), pulse) for x in places},
            polarisation="Ez",
            dt=0.35 / SPEED_OF_LIGHT,
            steps=60,
        )
        return em.simulate(sim).fields["Ez"]

    whole = run(20, -10.0, (-5.0, 5.0), None)
    faces, start = (em.PMC(), em.PEC()), 0.0
    whole = whole[10:] if side == "low" else whole[:10]
    if side == "high":
        faces, start = faces[::-1], -10.0
    place = start + 5.0
    half = run(10, start, (place,), em.Boundaries(x=faces, y=em.PEC()))
    size = float(jnp.max(jnp.abs(whole)))
    assert size > 0
    assert np.allclose(half[:10], whole, rtol=0, atol=1e-12 * size)
