"""Staircases of metals with poles: whole cells with all their edges."""

import jax
import numpy as np
import pytest

from physax import em
from physax._checks import PhysaxWarning
from physax.em import (
    Circle,
    Material,
    Sphere,
    Structure,
    _rasterise,
    _staircase,
    fill_fraction,
    rasterise,
)
from physax.grid import Grid
from physax.units import NANO


HZ = ("Hz", "Ex", "Ey")
METAL = Material(poles=em.Drude(2e15, 1e13))
# The same metal in numbers that only their values tell.
BOUND = Material(poles=em.Lorentz(1e4, 2e13, 1e13))
STAGGER = {"Ex": (0.5, 0.0, 0.0), "Ey": (0.0, 0.5, 0.0), "Ez": (0.0, 0.0, 0.5)}


def ball(ndim, cells, centre, material=METAL):
    """A circle or a sphere of a radius in cells, and the metal in the whole grid."""
    grid = Grid.centred((2 * cells + 8,) * ndim, NANO)
    kind = Circle if ndim == 2 else Sphere
    shape = kind(tuple(np.array(centre[:ndim]) * NANO), cells * NANO)
    return shape, grid, parts(Structure(shape, material), grid)


def parts(structure, grid, below=(), averaging="staircase"):
    """The part of metal around each sample, for each component."""
    names = HZ if grid.ndim == 2 else None
    medium = rasterise([*below, structure], grid, None, names, averaging)
    found = {}
    for one in medium.dispersions:
        if one.poles == structure.material.poles:
            for name in one.fraction:
                low = [ends[0] for ends in one.box]
                size = one.at(name).shape
                whole = np.zeros(grid.shape)
                place = zip(low, size, strict=True)
                whole[tuple(slice(a, a + n) for a, n in place)] = one.at(name)
                found[name] = whole
    return found


@pytest.mark.parametrize("ndim", [2, 3])
def test_all_edges_of_a_full_cell_are_of_metal_and_no_others(ndim):
    shape, grid, metal = ball(ndim, 7, (0.3, 0.17, 0.42))
    # A cell at the surface of a ball needs all but a corner.
    full = np.asarray(fill_fraction(shape, grid, (0.5,) * ndim)) > 1 - 0.5**ndim
    for axis, (name, found) in enumerate(metal.items()):
        expected = full
        for other in range(ndim):
            if other != axis:
                expected = expected | np.roll(expected, 1, axis=other)
        assert set(np.unique(found)) == {0, 1}
        # Metal that is thinner than a cell there is kept.
        inside = np.asarray(fill_fraction(shape, grid, STAGGER[name][:ndim])) > 0.999
        np.testing.assert_array_equal(found == 1, expected | inside)


@pytest.mark.parametrize(("ndim", "off"), [(2, 0.03), (3, 0.05)])
def test_the_metal_of_a_ball_has_its_volume(ndim, off):
    rng = np.random.default_rng(1)
    exact = {2: np.pi * 100, 3: 4 / 3 * np.pi * 1000}[ndim]
    for _ in range(3):
        _, _, metal = ball(ndim, 10, rng.uniform(-0.5, 0.5, 3))
        volume = np.mean([np.sum(part) for part in metal.values()])
        assert volume == pytest.approx(exact, rel=off)


@pytest.mark.parametrize("material", [BOUND, em.library("Ag")])
def test_metals_are_known_by_their_poles(material):
    _, _, metal = ball(2, 6, (0.2, 0.1), material)
    _, _, expected = ball(2, 6, (0.2, 0.1))
    for name, part in metal.items():
        np.testing.assert_array_equal(part, expected[name])


def test_what_is_around_does_not_matter():
    _, grid, alone = ball(3, 5, (0.3, 0.17, 0.42))
    sphere = Structure(Sphere((0.3 * NANO, 0.17 * NANO, 0.42 * NANO), 5 * NANO), METAL)
    water = Material(poles=em.Lorentz(0.8, 3e15, 0.0))
    below = [Structure(em.Box((0, 0, -9 * NANO), (1, 1, 18 * NANO)), water)]
    for name, part in parts(sphere, grid, below).items():
        np.testing.assert_array_equal(part, alone[name])


def test_faces_on_nodes_keep_half_of_what_is_along_them():
    grid = Grid.centred((20, 20), NANO)
    square = Structure(em.Box((0, 0), (8 * NANO,) * 2), METAL)
    smooth, stepped = parts(square, grid, (), "volume"), parts(square, grid)
    for name in ("Ex", "Ey"):
        np.testing.assert_allclose(stepped[name], smooth[name], atol=1e-4)


def test_flat_faces_between_nodes_do_not_move_outwards():
    grid = Grid.centred((20, 20), NANO)
    for width, cells in ((6.8, 6), (7.2, 8)):
        sheet = Structure(em.Box((0, 0), (1, width * NANO)), METAL)
        found = parts(sheet, grid)
        assert np.sum(found["Ey"][10]) == cells
        assert np.sum(found["Ex"][10]) == 7


def test_a_wire_of_one_cell_does_not_vanish():
    grid = Grid.centred((12, 12, 12), NANO)
    wire = Structure(em.Box((0, 0, 0), (1.6 * NANO, 1.6 * NANO, 6 * NANO)), METAL)
    found = parts(wire, grid)
    assert np.sum(found["Ez"]) == 6


def test_the_staircase_is_the_same_under_jit():
    _, grid, outside = ball(2, 6, (0.2, 0.1))

    @jax.jit
    def total(x):
        shape = Circle((x * NANO, 0.1 * NANO), 6 * NANO)
        (one,) = rasterise(
            [Structure(shape, METAL)], grid, None, HZ, "staircase"
        ).dispersions
        return {name: one.at(name).sum() for name in one.fraction}

    for name, found in total(0.2).items():
        assert float(found) == np.sum(outside[name])


def test_many_equal_metals_are_compared_once_each(monkeypatch):
    asked = []

    def counted(ask):
        return lambda *args: asked.append(ask.__name__) or ask(*args)

    monkeypatch.setattr(_staircase, "same", counted(_staircase.same))
    monkeypatch.setattr(_rasterise, "is_metal", counted(_rasterise.is_metal))
    grid = Grid.centred((60, 8), NANO)
    spots = [em.Box((x * NANO, 0), (2 * NANO, 2 * NANO)) for x in range(-27, 28, 6)]
    apart = [Material(poles=em.Drude(2e15, 1e13)) for _ in spots]
    blocks = list(map(Structure, spots, apart))
    found = rasterise(blocks, grid, None, HZ, "staircase").dispersions
    # Boxes far from each other are not merged, so their poles need no comparison.
    assert len(found) == len(spots) == 10
    assert asked.count("is_metal") == 2
    assert asked.count("same") <= 2 * len(spots)
    single = [Structure(spot, METAL) for spot in spots]
    (one,) = rasterise(single, grid, None, HZ, "staircase").dispersions
    for name, part in one.fraction.items():
        assert np.sum(part) == sum(np.sum(each.fraction[name]) for each in found)


def test_a_metal_without_a_sample_is_warned_of():
    grid = Grid.centred((12, 12), NANO)
    glass = Structure(em.Box((0, 0), (8 * NANO,) * 2), Material(2.25))

    def film(thick, *above, metal=METAL):
        box = em.Box((0.5 * NANO, 0), (thick * NANO, 6 * NANO))
        blocks = [glass, Structure(box, metal), *above]
        return rasterise(blocks, grid, None, HZ, "staircase").dispersions

    message = r"`structures\[1\]` is of a metal and fills at most 0.3 of a cell"
    with pytest.warns(PhysaxWarning, match=message):
        assert film(0.3) == ()
    with pytest.warns(PhysaxWarning, match=message):
        assert jax.jit(lambda: film(0.3))() == ()
    # Once, whatever its axes have.
    layered = Material(poles=([em.Drude(2e15, 1e13)], [em.Drude(1e15, 1e13)], []))
    with pytest.warns(PhysaxWarning, match=message) as told:
        assert film(0.3, metal=layered) == ()
    assert len(told) == 1
    # Enough of it, or none to be seen: nothing to tell.
    assert len(film(0.9)) == 1
    assert film(0.3, glass) == ()
    beside = em.Box((2.65 * NANO, 0), (4 * NANO, 6 * NANO))
    assert len(film(0.3, Structure(beside, Material(poles=em.Drude(2e15, 1e13))))) == 1
