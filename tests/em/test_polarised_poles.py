"""Cells at interfaces of media with poles, averaged at one frequency."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT


CELL = 50e-9
FREQUENCY = 2e14
HZ, EZ = ("Hz", "Ex", "Ey"), ("Ez", "Hx", "Hy")
GRID = Grid.uniform((24, 20), CELL)
DENSE = em.Material(1.5, poles=em.Lorentz(6.0, 8e14, 1e12))
GLASS = em.Material(1.2, poles=(em.Lorentz(0.5, 1e15), em.Debye(0.3, 1e-17)))
DISC = em.Circle((11.32 * CELL, 9.74 * CELL), 5.23 * CELL)
BLOCK = em.Box.from_corners((0.0, 0.0), (12.4 * CELL, 1.0))


def at_once(material):
    """The material without dispersion, as it is at the frequency."""
    return em.Material(jnp.real(em.complex_permittivity(material, FREQUENCY)))


def painted(materials, names, **options):
    block, disc = materials
    scene = [em.Structure(BLOCK, block), em.Structure(DISC, disc)]
    return em.rasterise(scene, GRID, components=names, **options)


def whole(medium, name):
    """All of the permittivity at the frequency, and what the poles are of it."""
    rest = np.broadcast_to(medium.permittivity[name], GRID.shape)
    poles = np.zeros(GRID.shape)
    for one in medium.dispersions:
        chi = sum(np.real(pole.susceptibility(FREQUENCY)) for pole in one.poles)
        poles[tuple(slice(*span) for span in one.box)] += chi * one.fraction[name]
    return rest + poles, poles


@pytest.mark.parametrize("materials", [(GLASS, DENSE), (em.Material(2.0), DENSE)])
def test_average_at_the_frequency_is_that_without_dispersion(materials):
    options = {"names": HZ, "averaging": "polarised"}
    found = painted(materials, frequency=FREQUENCY, **options)
    want = painted(list(map(at_once, materials)), **options)
    assert eqx.tree_equal(found.off_diagonals, want.off_diagonals, rtol=1e-9)
    for name in ("Ex", "Ey"):
        total, poles = whole(found, name)
        np.testing.assert_allclose(total, want.permittivity[name], rtol=1e-9)
        rest = total - poles
        assert np.min(rest) >= 1 - 1e-12
        assert np.max(poles) == pytest.approx(float(whole(found, name)[1][11, 10]))


def test_poles_act_where_no_entry_is_beside_the_diagonal():
    medium = painted((GLASS, DENSE), HZ, averaging="polarised", frequency=FREQUENCY)
    (beside,) = medium.off_diagonals
    entry = np.zeros(GRID.shape)
    entry[tuple(slice(*span) for span in beside.box)] = np.abs(beside.inverse["xy"])
    near = np.maximum(entry, np.roll(entry, -1, 0)) > 0.1
    poles = whole(medium, "Ex")[1]
    assert near.sum() > 10
    assert np.all(poles[near] == 0)
    # The straight face of the block, far from the disc.
    assert 0 < poles[12, 1] < poles[5, 1]


def test_fields_along_interfaces_see_means():
    found = painted((GLASS, DENSE), EZ, averaging="polarised", frequency=FREQUENCY)
    want = painted((GLASS, DENSE), EZ)
    np.testing.assert_allclose(
        found.permittivity["Ez"], want.permittivity["Ez"], rtol=1e-12
    )
    for one, other in zip(whole(found, "Ez"), whole(want, "Ez"), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_traced_shapes_and_materials_have_the_same_average():
    def ex(radius, strength):
        dense = em.Material(1.5, poles=em.Lorentz(strength, 8e14, 1e12))
        disc = em.Structure(em.Circle(DISC.centre[:2], radius), dense)
        medium = em.rasterise([disc], GRID, None, HZ, "polarised", frequency=FREQUENCY)
        return whole_traced(medium)

    def whole_traced(medium):
        (one,) = medium.dispersions
        chi = jnp.real(one.poles[0].susceptibility(FREQUENCY))
        inner = tuple(slice(*span) for span in one.box)
        return medium.permittivity["Ex"].at[inner].add(chi * one.fraction["Ex"])

    given = jnp.asarray(5.23 * CELL), jnp.asarray(6.0)
    np.testing.assert_allclose(jax.jit(ex)(*given), ex(*given), rtol=1e-9)
    slopes = jax.grad(lambda *x: jnp.sum(ex(*x)), (0, 1))(*given)
    h = 1e-4
    for k, slope in enumerate(slopes):
        ends = [list(given), list(given)]
        ends[0][k], ends[1][k] = given[k] * (1 - h), given[k] * (1 + h)
        low, high = (float(jnp.sum(ex(*end))) for end in ends)
        want = (high - low) / (2 * h * float(given[k]))
        assert float(slope) == pytest.approx(want, rel=1e-5)


def test_a_scene_averages_in_the_middle_of_its_band():
    disc = em.Structure(em.Circle((0.0, 0.0), 0.3e-6), DENSE)
    waves = np.array([1.4e-6, 1.6e-6])
    sim = em.scene(
        [disc], (1e-6, 1e-6), waves, polarisation="Hz", averaging="polarised"
    )
    middle = float(np.mean(SPEED_OF_LIGHT / waves))
    want = em.rasterise(
        [disc], sim.grid, None, sim.components.names, "polarised", frequency=middle
    )
    assert want.off_diagonals
    assert eqx.tree_equal(sim.medium, want)


def test_frequencies_that_cannot_serve_are_refused():
    uneven = em.Structure(
        DISC, em.Material((2.0, 3.0, 4.0), poles=em.Debye(0.3, 1e-16))
    )
    axial = em.Structure(DISC, em.Material(poles=((), [em.Debye(0.3, 1e-16)], ())))
    for structures, options, message in (
        (
            [],
            {"averaging": "volume"},
            "`frequency` must be given only with .* 'volume'",
        ),
        ([], {"frequency": -1.0}, "`frequency` must be positive, but is -1"),
        ([uneven], {}, "must not be given with an anisotropic permittivity, but one"),
        ([axial], {}, "material has one, or poles that differ along the axes"),
    ):
        options = {"averaging": "polarised", "frequency": FREQUENCY, **options}
        with pytest.raises(ArgumentError, match=message):
            em.rasterise(structures, GRID, components=HZ, **options)


@pytest.mark.filterwarnings("ignore:.*at the surface of a dispersive metal")
def test_metals_stay_averaged_by_volume():
    gold = em.Material(poles=em.Drude(2e15, 2e13))
    alone, other = (
        em.rasterise([em.Structure(DISC, gold)], GRID, None, HZ, "polarised", **options)
        for options in ({"frequency": FREQUENCY}, {})
    )
    assert eqx.tree_equal(alone, other)
    mixed = painted((GLASS, gold), HZ, averaging="polarised", frequency=FREQUENCY)
    want = painted((GLASS, gold), HZ)
    fractions = [
        one.fraction["Ex"]
        for medium in (mixed, want)
        for one in medium.dispersions
        if isinstance(one.poles[0], em.Drude)
    ]
    np.testing.assert_allclose(*fractions, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Dispersion 0 should end before the absorbing")
@pytest.mark.parametrize("thickness", [5e-9, 20e-9])
def test_films_within_a_cell_have_fractions(thickness):
    silica, film = em.library("SiO2"), em.Material(4.0)
    layers = [
        em.Structure(em.Box.from_corners((-9.0, -9.0), (9.0, 2e-9)), silica),
        em.Structure(em.Box.from_corners((-9.0, 2e-9), (9.0, 2e-9 + thickness)), film),
    ]
    sim = em.scene(
        layers,
        (2e-6, 1.5e-6),
        [1.5e-6, 1.6e-6],
        polarisation="Hz",
        averaging="polarised",
        spacing=40e-9,
    )
    (one,) = sim.medium.dispersions
    assert min(float(np.min(part)) for part in one.fraction.values()) >= 0


def test_lossy_media_stay_averaged_by_volume():
    lossy = em.Material(2.0, poles=em.Lorentz(2.0, 4e14, 2e14))
    disc = [em.Structure(DISC, lossy)]
    alone = em.rasterise(disc, GRID, None, HZ, "polarised", frequency=FREQUENCY)
    other = em.rasterise(disc, GRID, None, HZ, "polarised")
    assert eqx.tree_equal(alone, other)


def test_one_medium_everywhere_is_a_number():
    medium = em.rasterise([], GRID, GLASS, HZ, "polarised", frequency=FREQUENCY)
    assert medium.permittivity == pytest.approx(1.2)
