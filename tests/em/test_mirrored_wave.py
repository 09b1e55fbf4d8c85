"""Half and quarter bodies in a plane wave whose box ends at mirrors."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid


pytestmark = pytest.mark.x64

CELL = 10e-9
PULSE = em.GaussianPulse(1.6e15, 1.6e15)
HALF = 40  # Cells from the middle to the border.
BOX = 10  # Cells from the middle to a face.


def mirror_of(component, axis):
    return em.PEC() if component[1] == "xyz"[axis] else em.PMC()


def scattered(component, cut, steps=58, at_high=False, index=1.7):
    """Returns the fields around a ball of glass, halved along some axes.

    Before anything comes back from the layers of the other half, which are no mirror
    image to the last digit: 27 cells to them, 32 from there, and a cell a step.
    """
    solid = len(cut) == 3
    halves = [HALF if mirrored else 2 * HALF for mirrored in cut]
    origin = [0.0 if mirrored and not at_high else -HALF * CELL for mirrored in cut]
    grid = Grid.uniform(tuple(halves), CELL, tuple(origin))
    middle, radius = (0.0,) * len(cut), 5 * CELL
    body = em.Sphere(middle, radius) if solid else em.Circle(middle, radius)
    names = {"Ez": ("Ez", "Hx", "Hy"), "Ey": ("Hz", "Ex", "Ey")}[component]
    medium = em.rasterise(
        [em.Structure(body, em.Material(index**2))],
        grid,
        components=None if solid else names,
    )
    faces, centre, size = {}, [], []
    for axis, mirrored in enumerate(cut):
        layer, wall = em.CPML(8), mirror_of(component, axis)
        pair = (layer, wall) if at_high else (wall, layer)
        faces["xyz"[axis]] = pair if mirrored else layer
        side = -0.5 if at_high else 0.5
        centre.append(side * BOX * CELL if mirrored else 0.0)
        size.append((BOX if mirrored else 2 * BOX) * CELL)
    wave = em.PlaneWave("+x", component, tuple(centre), tuple(size), PULSE)
    sim = em.Simulation(
        grid,
        medium,
        em.Boundaries(**faces),
        sources={"wave": wave},
        polarisation=None if solid else ("Ez" if component == "Ez" else "Hz"),
        steps=steps,
    )
    return em.simulate(sim).fields


@pytest.mark.parametrize(
    ("component", "cut"),
    [
        ("Ez", (False, True)),
        ("Ey", (False, True)),
        ("Ey", (False, True, True)),
        ("Ez", (False, True, False)),
    ],
)
def test_a_mirrored_part_is_a_part_of_the_whole(component, cut):
    whole = scattered(component, (False,) * len(cut))
    part = scattered(component, cut)
    for name, values in part.items():
        # Of the whole, the samples from the mirror on.
        upper = whole[name]
        for axis, mirrored in enumerate(cut):
            if mirrored:
                upper = jnp.take(upper, np.arange(HALF, upper.shape[axis]), axis)
        inner = tuple(slice(0, n) for n in np.minimum(upper.shape, values.shape))
        scale = max(float(jnp.abs(x).max()) for x in whole.values())
        assert jnp.abs(values[inner] - upper[inner]).max() < 1e-12 * scale
        assert jnp.abs(values).max() > 0 or name not in ("Ez", "Ey")


@pytest.mark.parametrize("component", ["Ez", "Ey"])
def test_a_mirror_may_be_at_the_upper_end(component):
    # Without a body: at a magnetic wall behind the last cell it would be that cell's.
    whole = scattered(component, (False, False), index=1.0)
    part = scattered(component, (False, True), at_high=True, index=1.0)
    scale = max(float(jnp.abs(x).max()) for x in whole.values())
    for name, values in part.items():
        inner = slice(0, HALF)
        gap = values[:, inner] - whole[name][:, inner]
        assert jnp.abs(gap).max() < 1e-12 * scale


@pytest.mark.parametrize(
    ("component", "walls", "centre", "message"),
    [
        ("Ez", {"y": (em.PEC(), em.CPML(8))}, (20, 5), "grid along y, at a `PMC`"),
        (
            "Ez",
            {"y": em.CPML(8)},
            (20, 35),
            "at a `PMC` face, or be `inf`, .* 30 to 40 of 40",
        ),
        ("Ey", {"y": (em.PMC(), em.CPML(8))}, (20, 5), "grid along y, at a `PEC`"),
        ("Ez", {"x": em.PMC()}, (5, 20), "inside the grid along x, but spans"),
        (
            "Ez",
            {"y": (em.PMC(), em.CPML(8))},
            (20, 0),
            "along y, but is at -5e-08 m.* If the `PMC` face there is a mirror, end it",
        ),
        ("Ez", {"y": (em.PMC(), em.CPML(8))}, (20, 38), r"larger grid\.$"),
        ("Ez", {"x": em.PMC()}, (2, 20), r"larger grid\.$"),
    ],
)
def test_a_box_that_ends_at_another_border_is_refused(
    component, walls, centre, message
):
    wave = em.PlaneWave(
        "+x", component, tuple(n * CELL for n in centre), (10 * CELL,) * 2, PULSE
    )
    with pytest.raises(ArgumentError, match=message):
        em.Simulation(
            Grid.uniform((40, 40), CELL),
            em.Medium(),
            em.Boundaries(**{"x": em.CPML(8), "y": em.CPML(8)} | walls),
            sources={"wave": wave},
            polarisation="Ez" if component == "Ez" else "Hz",
            steps=10,
        )


@pytest.mark.parametrize(("direction", "centre"), [("+x", 30), ("-x", 10)])
def test_a_wave_without_an_exit_may_end_at_the_border(direction, centre):
    """There is no face there, wherever the box ends."""
    fields = []
    for reach in (20, 10):
        middle = centre + (20 - reach) / 2 * (-1 if direction == "+x" else 1)
        wave = em.PlaneWave(
            direction,
            "Ez",
            (middle * CELL, 0),
            (reach * CELL, float("inf")),
            PULSE,
            exit=False,
        )
        sim = em.Simulation(
            Grid.uniform((40, 4), CELL),
            em.Medium(),
            em.Boundaries(x=em.CPML(8), y=em.Periodic()),
            sources={"wave": wave},
            polarisation="Ez",
            steps=60,
        )
        fields.append(em.simulate(sim).fields["Ez"])
    assert jnp.abs(fields[0]).max() > 0.05
    assert jnp.allclose(*fields, rtol=0, atol=1e-12)
