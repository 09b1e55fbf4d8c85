from collections.abc import Callable
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.em import (
    AbstractShape,
    Box,
    Circle,
    Debye,
    Lorentz,
    Material,
    Structure,
    Union,
    fill_fraction,
    rasterise,
)
from physax.em._rasterise import Averaging
from physax.grid import Grid
from physax.runtime import no_recompile
from physax.units import MICRO, NANO


SILICON = Material(permittivity=12.25)
GLASS = Material(permittivity=2.25)
GRID = Grid.centred((30, 24), 100 * NANO)
EZ = ("Ez", "Hx", "Hy")
HZ = ("Hz", "Ex", "Ey")


def test_uniform_properties_are_scalars():
    disc = Structure(Circle((0, 0), 1 * MICRO), SILICON)
    medium = rasterise([disc], GRID, components=EZ)
    assert medium.permittivity["Ez"].shape == GRID.shape
    assert medium.permeability.shape == ()
    assert medium.conductivity is None
    assert medium.magnetic_conductivity is None
    empty = rasterise([], GRID, GLASS, HZ)
    assert empty.permittivity == 2.25


@pytest.mark.slow
def test_structures_may_be_any_series():
    disc = Structure(Circle((0, 0), 1 * MICRO), SILICON)
    wanted = rasterise([disc], GRID, components=EZ).permittivity["Ez"]
    for given in (iter([disc]), {"disc": disc}.values()):
        found = rasterise(given, GRID, components=EZ, averaging="polarised")
        assert found.permittivity["Ez"] == pytest.approx(np.asarray(wanted))


@pytest.mark.parametrize("averaging", get_args(Averaging))
def test_media_of_known_shapes_are_the_same_under_jit(averaging):
    strange = Material(4.0, poles=[Lorentz(0.8, 5e14, 1e14)], chi3=1e-20)

    def made(eps=2.0, strength=0.8):
        silicon = Material(eps, poles=[Lorentz(strength, 5e14, 1e14)])
        disc = Structure(Circle((0.3 * MICRO, 0), 0.4 * MICRO), silicon)
        box = Structure(Box((-0.8 * MICRO, 0), (0.3 * MICRO,) * 2), strange)
        return rasterise([disc, box], GRID, components=HZ, averaging=averaging)

    def shown(*numbers):
        seen.append(made(*numbers))
        return 0.0

    seen, wanted = [], made()
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-12),
        jax.jit(made)(),
        wanted,
    )
    # What lies in boxes is known, whatever the rest is.
    jax.jit(shown)()
    jax.tree.map(np.testing.assert_array_equal, seen[0].dispersions, wanted.dispersions)
    assert all(one.box != ((0, 30), (0, 24)) for one in wanted.dispersions)
    # Only the numbers of a material are traced.
    jax.jit(shown)(2.0, 0.8)
    for one, other in zip(seen[1].dispersions, wanted.dispersions, strict=True):
        assert one.box == other.box
        jax.tree.map(np.testing.assert_array_equal, one.fraction, other.fraction)


def test_uniform_properties_are_scalars_under_jit_too():
    @jax.jit
    def run(permittivity):
        disc = Structure(Circle((0, 0), 1 * MICRO), Material(permittivity))
        medium = rasterise([disc], GRID, GLASS, EZ)
        assert medium.permeability.ndim == 0
        assert medium.conductivity is None
        return medium.permittivity["Ez"]

    wanted = rasterise(
        [Structure(Circle((0, 0), 1 * MICRO), SILICON)], GRID, GLASS, EZ
    ).permittivity["Ez"]
    # A compiled program rounds positions differently, by 1e-6 of a cell.
    assert jnp.allclose(run(12.25), wanted, rtol=1e-5)


def test_permittivity_is_the_volume_average_at_each_component():
    shape = Circle((0.02 * MICRO, 0.0), 0.7 * MICRO)
    medium = rasterise([Structure(shape, SILICON)], GRID, GLASS, HZ)
    for component, stagger in {"Ex": (0.5, 0.0), "Ey": (0.0, 0.5)}.items():
        fraction = fill_fraction(shape, GRID, stagger)
        wanted = 2.25 * (1 - fraction) + 12.25 * fraction
        assert jnp.allclose(medium.permittivity[component], wanted, rtol=1e-6)
    assert set(medium.permittivity) == {"Ex", "Ey"}


def test_later_structures_overwrite_earlier_ones():
    inner, outer = Circle((0, 0), 0.4 * MICRO), Circle((0, 0), 0.9 * MICRO)
    ring = [Structure(outer, SILICON), Structure(inner, Material())]
    permittivity = rasterise(ring, GRID, components=EZ).permittivity["Ez"]
    # An annulus holds (eps - 1) pi (R^2 - r^2): what is painted over leaves no trace.
    excess = jnp.sum(permittivity - 1) * (100 * NANO) ** 2
    wanted = 11.25 * np.pi * (0.9**2 - 0.4**2) * MICRO**2
    assert excess == pytest.approx(wanted, rel=1e-5)
    assert permittivity[15, 12] == 1
    reverse = rasterise(ring[::-1], GRID, components=EZ).permittivity["Ez"]
    assert reverse[15, 12] == 12.25


def test_diagonal_materials_and_losses_reach_their_components():
    grid = Grid.uniform((4, 4, 4), 1.0)
    lossy = Material((2.0, 3.0, 4.0), 1.5, (0.0, 0.0, 7.0), 9.0)
    everywhere = Structure(Box(0.0, np.inf), lossy)
    medium = rasterise([everywhere], grid)
    for component, value in {"Ex": 2.0, "Ey": 3.0, "Ez": 4.0}.items():
        assert jnp.all(medium.permittivity[component] == value)
    assert jnp.all(medium.permeability["Hx"] == 1.5)
    assert medium.conductivity["Ex"].ndim == 0
    assert jnp.all(medium.conductivity["Ez"] == 7)
    assert jnp.all(medium.magnetic_conductivity["Hy"] == 9)


@pytest.mark.parametrize("stagger", [0.0, 0.5])
def test_control_volumes_tile_a_graded_axis(stagger):
    # Cells of a length-preserving average: the fractions times the volumes of their
    # cells add up to the length of the box, wherever its ends lie.
    edges = np.cumsum(np.concatenate([[0.0], 1.0 + 0.5 * np.sin(np.arange(20))]))
    grid = Grid.graded([edges])
    volumes = grid.dual_widths(0) if stagger == 0 else grid.cell_widths(0)
    for low, high in [(3.3, 9.1), (2.0, 2.1), (4.5, 15.0)]:
        box = Box.from_corners(low, high)
        length = jnp.sum(fill_fraction(box, grid, (stagger,)) * volumes)
        assert length == pytest.approx(high - low, rel=1e-5)


def test_mirror_symmetry():
    disc = Structure(Circle((0.0, 0.0), 0.77 * MICRO), SILICON)
    medium = rasterise([disc], GRID, components=HZ)
    ex, ey = medium.permittivity["Ex"], medium.permittivity["Ey"]
    # Centres mirror onto each other, node i onto node n - i. Rounding of a position is
    # 1e-6 of a cell in float32, times 12.
    assert jnp.allclose(ex, ex[::-1], atol=1e-4)
    assert jnp.allclose(ex[:, 1:], ex[:, :0:-1], atol=1e-4)
    assert jnp.allclose(ey, ey[:, ::-1], atol=1e-4)


@pytest.mark.x64
def test_gradient_in_position_size_and_material():
    weight = jax.random.normal(jax.random.key(1), GRID.shape)

    def run(p):
        structures = [
            Structure(Circle((p[0] * MICRO, 0.0), p[1] * MICRO), Material(p[2])),
            Structure(Box((0.3 * MICRO, p[0] * MICRO), 0.41 * MICRO), Material(p[3])),
        ]
        medium = rasterise(structures, GRID, Material(p[4]), EZ)
        return jnp.sum(weight * medium.permittivity["Ez"])

    p = jnp.array([0.021, 0.834, 12.0, 4.0, 2.0])
    gradient = jax.jit(jax.grad(run))(p)
    for k in range(p.size):
        step = jnp.zeros(5).at[k].set(1e-5)
        slope = (run(p + step) - run(p - step)) / 2e-5
        assert gradient[k] == pytest.approx(float(slope), rel=1e-6)


def discs_and_boxes(places):
    """Paints two kinds of shapes in turn, some over others."""
    structures = [
        Structure(
            Circle(place, 0.3 * MICRO) if k % 2 else Box(place, 0.4 * MICRO),
            Material(2.0 + k),
        )
        for k, place in enumerate(places * MICRO)
    ]
    return rasterise(structures, GRID, components=EZ).permittivity["Ez"]


def one_by_one(discs):
    return [Structure(disc, SILICON) for disc in discs]


def as_one(discs):
    return [Structure(Box(0.1 * MICRO, 0.9 * MICRO) - Union(discs), SILICON)]


@pytest.mark.parametrize(
    ("paint", "averaging"),
    [
        (one_by_one, "volume"),
        pytest.param(one_by_one, "polarised", marks=pytest.mark.slow),
        pytest.param(as_one, "volume", marks=pytest.mark.slow),
    ],
)
def test_shapes_of_one_kind_are_compiled_once(paint, averaging):
    def lines(count):
        def run(radii):
            structures = paint([Circle((0, 0), radius) for radius in radii])
            medium = rasterise(structures, GRID, None, EZ, averaging)
            return jnp.sum(medium.permittivity["Ez"])

        radii = jnp.linspace(0.9, 0.3, count) * MICRO
        return jax.jit(jax.grad(run)).lower(radii).compile().as_text().count("\n")

    few, many = lines(4), lines(12)
    # Without the loop each takes some 4000.
    assert many - few < 8 * 200


@pytest.mark.slow
def test_shapes_in_a_loop_are_those_alone():
    places = jax.random.uniform(jax.random.key(2), (7, 2), minval=-0.8, maxval=0.8)
    known, traced = discs_and_boxes(places), jax.jit(discs_and_boxes)(places)
    assert jnp.allclose(traced, known, atol=1e-12)

    weight = jax.random.normal(jax.random.key(1), GRID.shape)
    total = lambda places: jnp.sum(weight * discs_and_boxes(places))  # noqa: E731
    way = jax.random.normal(jax.random.key(3), places.shape)
    slope = (total(places + 1e-6 * way) - total(places - 1e-6 * way)) / 2e-6
    gradient = jax.jit(jax.grad(total))(places)
    assert jnp.vdot(gradient, way) == pytest.approx(float(slope), rel=1e-6)


@pytest.mark.slow
def test_gradients_without_jit_compile_once():
    total = lambda places: jnp.sum(discs_and_boxes(places) ** 2)  # noqa: E731
    gradient = jax.grad(total)
    places = jax.random.uniform(jax.random.key(4), (5, 2))
    # Two, so that what only a second call compiles is compiled as well.
    seen = [gradient(places), gradient(places / 2)]
    with no_recompile():
        seen.append(gradient(places / 3))
    assert all(jnp.any(one != 0) for one in seen)


@pytest.mark.parametrize("kinds", ["48", "84", "448", "884", "848"])
def test_shapes_of_two_precisions_share_cells(kinds):
    discs = [
        Circle(jnp.zeros(2, f"f{kind}"), jnp.asarray(5e-7, f"f{kind}"))
        for kind in kinds
    ]
    medium = rasterise([Structure(disc, GLASS) for disc in discs], GRID, None, EZ)
    assert medium.permittivity["Ez"].dtype == float


class Halves(AbstractShape):
    """A user's shape, with attributes that are no arrays."""

    place: jax.Array
    upper: bool
    of: Callable

    def covered(self, cells):
        part = self.of((cells[0].position - self.place) * 1e9)
        return part if self.upper is True else 1 - part

    def bounds(self):
        return -jnp.full(3, jnp.inf), jnp.full(3, jnp.inf)


@pytest.mark.slow
@pytest.mark.parametrize("averaging", ["volume", "polarised"])
def test_shapes_of_users_may_hold_anything(averaging):
    def painted(place):
        shapes = [Halves(place, upper, jax.nn.sigmoid) for upper in (True, False, True)]
        structures = [Structure(s, Material(2.0 + k)) for k, s in enumerate(shapes)]
        return rasterise(structures, GRID, None, EZ, averaging).permittivity["Ez"]

    known, traced = painted(jnp.zeros(())), jax.jit(painted)(jnp.zeros(()))
    assert jnp.allclose(known, traced, atol=1e-12)
    x = GRID.coordinates(0, 0.0)
    far = jnp.abs(x) > 0.1 * MICRO
    expected = jnp.where(x > 0, 4.0, 3.0)[:, None]
    assert jnp.allclose(known[far], jnp.broadcast_to(expected, known.shape)[far])


@pytest.mark.slow
def test_vmap_over_designs():
    def run(r):
        disc = Structure(Circle((0, 0), r), SILICON)
        return rasterise([disc], GRID, components=EZ).permittivity["Ez"]

    radii = jnp.array([0.3, 0.5]) * MICRO
    assert jnp.allclose(jax.vmap(run)(radii)[1], run(radii[1]), rtol=1e-5)


@pytest.mark.parametrize("ndim", [1, 3])
def test_default_components(ndim):
    grid = Grid.uniform((4,) * ndim, 1.0)
    half = Structure(Box.from_corners(-np.inf, 2.0), SILICON)
    names = {1: {"Ez"}, 3: {"Ex", "Ey", "Ez"}}
    assert set(rasterise([half], grid).permittivity) == names[ndim]


def test_each_cell_of_a_staircase_is_of_what_has_most_of_it():
    lossy = Material(permittivity=4.0, conductivity=3.0)
    disc = Structure(Circle((0.3 * MICRO, 0), 0.7 * MICRO), lossy)
    half = Structure(Box.from_corners((-9e-6, -9e-6), (0.13 * MICRO, 9e-6)), GLASS)
    smooth, stepped = (
        rasterise([half, disc], GRID, SILICON, HZ, averaging)
        for averaging in ("volume", "staircase")
    )
    for name, stagger in (("Ex", (0.5, 0.0)), ("Ey", (0.0, 0.5))):
        round_part = fill_fraction(disc.shape, GRID, stagger)
        seen = np.asarray(stepped.permittivity[name])
        assert set(np.unique(seen)) == {2.25, 4.0, 12.25}
        np.testing.assert_array_equal((seen == 4.0)[round_part > 0.5], True)
        alone = np.asarray(fill_fraction(half.shape, GRID, stagger)) * (round_part == 0)
        np.testing.assert_array_equal((seen == 2.25)[alone > 0.5], True)
        # All properties of a cell are of one material.
        np.testing.assert_array_equal(
            stepped.conductivity[name], np.where(seen == 4.0, 3.0, 0.0)
        )
        assert np.max(np.abs(seen - smooth.permittivity[name])) > 1


@pytest.mark.f32
@pytest.mark.parametrize("halves", [2, 4, 6, 7, 8])
def test_faces_on_nodes_are_no_steps(halves):
    block = [Structure(Box((0, 0), (200 * halves * NANO,) * 2), SILICON)]
    smooth = rasterise(block, GRID, components=HZ).permittivity
    stepped = rasterise(block, GRID, None, HZ, "staircase").permittivity
    for name in ("Ex", "Ey"):
        np.testing.assert_allclose(stepped[name], smooth[name], atol=1e-4)


def test_faces_in_the_middle_of_cells_move_alike():
    sheet = [Structure(Box((0, 0), (1, 700 * NANO)), SILICON)]
    found = np.asarray(rasterise(sheet, GRID, None, HZ, "staircase").permittivity["Ey"])
    assert set(np.unique(found)) == {1.0, 12.25}
    np.testing.assert_array_equal(found, found[:, ::-1])
    # What is painted last gets the cells, equal to the ground or not.
    assert np.sum(found[10] > 1) == 8
    for trench in (1.0, 1.0001):
        cut = [*sheet, Structure(Box((0, 0), (1, 100 * NANO)), Material(trench))]
        found = rasterise(cut, GRID, None, HZ, "staircase").permittivity["Ey"]
        assert np.sum(np.asarray(found)[10] > 2) == 6


@pytest.mark.parametrize("high", [320 * NANO, 420 * NANO])
def test_pieces_of_one_material_are_one_in_a_staircase(high):
    pieces = [Box((s * MICRO, 0), (2 * MICRO, high)) for s in (-1, 1)]
    one = [Structure(Union(pieces), Material(4.0))]
    each = [Structure(piece, Material(4.0)) for piece in pieces]
    whole, parts = (
        rasterise(s, Grid.centred((21, 24), 100 * NANO), None, HZ, "staircase")
        for s in (one, each)
    )
    for name in ("Ex", "Ey"):
        np.testing.assert_array_equal(
            parts.permittivity[name], whole.permittivity[name]
        )


def test_equal_poles_share_a_box_where_that_is_no_larger():
    def blocks(*corners):
        glass = [Material(p, poles=Debye(0.5, 1e-16)) for p in (1.0, 1.0, 2.0)]
        places = [Box((x * NANO, 0), (400 * NANO,) * 2) for x in corners]
        return rasterise(map(Structure, places, glass), GRID, components=HZ).dispersions

    (whole,) = blocks(-370, 30, 430)
    # At the ends of a seam some of what is beneath stays.
    assert np.sum(whole.fraction["Ex"]) == pytest.approx(3 * 16, rel=1e-2)
    assert np.max(whole.fraction["Ex"]) <= 1 + 1e-12
    apart = blocks(-1000, 0, 1000)
    assert len(apart) == 3
    assert np.sum(apart[2].fraction["Ex"]) == pytest.approx(16, rel=1e-5)


def test_axes_of_one_cell_do_not_matter_to_a_staircase():
    block = [Structure(Box((0, 0), (800 * NANO,) * 2), SILICON)]
    flat = rasterise(block, GRID, None, EZ, "staircase").permittivity["Ez"]
    assert len(np.unique(np.round(flat, 3))) == 3
    thin = Grid.centred((*GRID.shape, 1), 100 * NANO)
    deep = rasterise(block, thin, None, None, "staircase").permittivity
    np.testing.assert_allclose(deep["Ez"][..., 0], flat, rtol=1e-5)


def test_bad_arguments_are_refused():
    crystal = Structure(Circle((0, 0), 1e-7), Material(2 * np.eye(3)))
    with pytest.raises(ArgumentError, match="`averaging` must be .* is 'staircase'"):
        rasterise([crystal], GRID, components=HZ, averaging="staircase")
    with pytest.raises(ArgumentError, match="`components` must be given on a 2-D grid"):
        rasterise([], GRID)
    with pytest.raises(ArgumentError, match="`components` must be among .* has 'Bz'"):
        rasterise([], GRID, components=("Bz",))
    with pytest.raises(ArgumentError, match=r"one entry per axis \(2\), but has 3"):
        fill_fraction(Circle((0, 0), 1.0), GRID, (0.0, 0.0, 0.0))
    with pytest.raises(ArgumentError, match="`stagger` must be 0 or 0.5, but is 0.3"):
        fill_fraction(Circle((0, 0), 1.0), GRID, (0.3, 0.0))
