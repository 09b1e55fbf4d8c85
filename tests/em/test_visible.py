"""What structures that share cells leave of each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em._visible import beneath
from physax.grid import Grid


def glass(shape, permittivity):
    return em.Structure(shape, em.Material(permittivity=permittivity))


def half_plane(angle, offset, sign=1.0):
    """Returns what lies beyond a line at an offset along its normal."""
    along = np.array([-np.sin(angle), np.cos(angle)])
    normal = sign * np.array([np.cos(angle), np.sin(angle)])
    foot = offset * sign * normal
    corners = [foot - 50 * along, foot + 50 * along]
    corners += [corners[1] + 50 * normal, corners[0] + 50 * normal]
    return em.Polygon([tuple(c) for c in corners])


def slabs(borders, values):
    return [
        glass(em.Box.from_corners(low, high), value)
        for low, high, value in zip(borders[:-1], borders[1:], values, strict=True)
    ]


def test_layers_that_touch_leave_nothing_of_the_background():
    # Ez lies at nodes, whose cells the borders cut at 0.2, 0.7 and 0.8.
    grid = Grid.centred((12,), 1.0)
    borders = [-4.3, -0.8, 2.2, np.inf]
    found = em.rasterise(slabs(borders, (2, 3, 5)), grid).permittivity["Ez"]
    exact = [1, 1, 1.8, 2, 2, 2.3, 3, 3, 3.6, 5, 5, 5]
    assert jnp.allclose(found, jnp.asarray(exact), atol=1e-6)


def test_layers_a_little_thicker_than_a_cell_leave_nothing_of_the_background():
    # Differences across cells are much shorter than 1 then, down to 0.15 here.
    grid = Grid.centred((16,), 1.0)
    values = np.array([2.0, 5.0, 3.0, 12.0, 4.0, 7.0])
    nodes = np.arange(-8, 8)[:, None]

    @jax.jit
    def found(borders):
        scene = slabs(borders, values)
        return em.rasterise(scene, grid, components=("Ez", "Hy")).permittivity["Ez"]

    for offset in np.linspace(0.05, 0.95, 10):
        borders = np.array([-20, *(-2.75 + offset + 1.1 * np.arange(5)), 20])
        cut = np.clip(borders, nodes - 0.5, nodes + 0.5)
        exact = np.diff(cut, axis=1) @ values
        # Beyond the first node the half cells at the ends of the grid.
        assert np.allclose(found(borders)[1:-1], exact[1:-1], atol=1e-12)


def test_derivatives_are_continuous_where_a_normal_sets_in():
    # The cell from 0.5 on loses its normal as the film comes to lie inside it.
    grid = Grid.centred((6,), 1.0)

    @jax.jit
    def total(x):
        scene = slabs([-9.0, x, x + 0.4, 9.0], (2.0, 12.0, 5.0))
        medium = em.rasterise(scene, grid, components=("Ez", "Hy"))
        return jnp.sum(medium.permittivity["Ez"])

    slope = jax.jit(jax.grad(total))
    # In full up to 0.5 - sqrt(1e-3).
    onset = 0.5 - np.sqrt(1e-3)
    for x in (0.4, onset - 1e-4, onset + 1e-4, 0.48, 0.49, 0.4999, 0.55):
        away = (total(x + 1e-7) - total(x - 1e-7)) / 2e-7
        assert float(slope(x)) == pytest.approx(float(away), abs=1e-4)
    before, after = slope(onset - 1e-7), slope(onset + 1e-7)
    assert float(before) == pytest.approx(float(after), abs=0.01)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("averaging", ["volume", "polarised"])
@pytest.mark.parametrize("angle", [0.0, 0.4, np.pi / 4])
def test_half_planes_that_touch_are_one_interface(angle, averaging):
    # Beside one that lies on the other, whole plane: the ground is of neither kind.
    grid = Grid.centred((8, 8), 1.0)
    everywhere = em.Box((0, 0), (60, 60))
    shapes = (half_plane(angle, 0.3), half_plane(angle, 0.3, -1.0), everywhere)
    high, low, whole = (
        glass(s, e) for s, e in zip(shapes, (12.0, 2.0, 2.0), strict=True)
    )
    touching, over = (
        em.rasterise(
            pair, grid, em.Material(permittivity=30.0), ("Ez", "Hx", "Hy"), averaging
        )
        for pair in ((low, high), (whole, high))
    )
    # Of independent halves a quarter of the cell would stay background, and 7 remain.
    error = jnp.abs(touching.permittivity["Ez"] - over.permittivity["Ez"])[1:-1, 1:-1]
    assert float(jnp.max(error)) < 1e-5


@pytest.mark.slow
def test_two_planes_have_in_common_what_samples_count():
    # Each pair cuts the cell in the middle of nine; 0.094 were they independent.
    rng = np.random.default_rng(3)
    grid = Grid.centred((3, 3), 1.0)
    points = (np.arange(64) + 0.5) / 64 - 0.5
    points = np.stack(np.meshgrid(points, points, indexing="ij"))
    errors = []
    for _ in range(60):
        angles, offsets = rng.uniform(0, 2 * np.pi, 2), rng.uniform(-0.4, 0.4, 2)
        normals = np.stack([np.cos(angles), np.sin(angles)], 1)
        inside = np.tensordot(normals, points, 1) > offsets[:, None, None]
        planes = [half_plane(a, d) for a, d in zip(angles, offsets, strict=True)]
        found = em.fill_fraction(em.Intersection(planes, 1), grid, (0.5, 0.5))[1, 1]
        errors.append(float(found) - inside.all(0).mean())
    print(f"root mean square {np.sqrt(np.mean(np.square(errors))):.3f}")
    assert np.sqrt(np.mean(np.square(errors))) < 0.045


@pytest.mark.parametrize("component", ["Ex", "Ey"])
def test_blocks_of_metal_that_touch_leave_no_slit(component):
    grid = Grid.centred((6, 6), 1.0)
    # Up to their ends.
    blocks = [
        em.Structure(em.Box.from_corners((-2.3, -9), (0.4, 2)), em.PEC()),
        em.Structure(em.Box.from_corners((0.4, -9), (2.3, 2)), em.PEC()),
    ]
    one = [em.Structure(em.Box.from_corners((-2.3, -9), (2.3, 2)), em.PEC())]
    found, exact = (
        em.rasterise(s, grid, components=("Hz", "Ex", "Ey")).metal.open[component]
        for s in (blocks, one)
    )
    assert jnp.allclose(found, exact, atol=1e-6)


@pytest.mark.slow
def test_layers_that_move_together_have_the_derivative_of_one_border():
    grid = Grid.centred((6,), 1.0)

    def mean(x):
        layers = slabs([-9.0, x, 9.0], (2.0, 5.0))
        return jnp.sum(em.rasterise(layers, grid).permittivity["Ez"])

    assert float(jax.grad(mean)(0.2)) == pytest.approx(2.0 - 5.0, abs=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_rounding_does_not_choose_the_derivative_where_borders_coincide(sign):
    # Compiled code may round a part in another way for what is seen than for what is
    # left: of bodies that end together both must change as one border does.
    part = jnp.asarray([1.0, 0.4, 0.0])
    for roundings in (-2, 0, 2):
        far = 0.4 + roundings * 2.0**-54
        room = jnp.asarray([1.0, far, 0.0] if sign > 0 else [0.0, 1 - far, 1.0])
        own = jnp.asarray([0.0, 1.0, 0.0])
        for shift, change in ((1, 0), (0, 1), (1, sign)):
            tangents = shift * own, change * own
            _, (seen, rest) = jax.jvp(beneath, (part, room), tangents)
            want = (change + shift) / 2, (change - shift) / 2
            np.testing.assert_allclose([seen[1], rest[1]], want, atol=1e-12)


@pytest.mark.slow(after=1)
@pytest.mark.f32
@pytest.mark.parametrize("angle", [0.1, 0.7, 1.1, 1.3])
def test_rounding_leaves_no_negative_part(angle):
    # Borders that coincide on a slope; less than nothing of a metal would amplify.
    gold = em.Material(permittivity=9.0, poles=(em.Drude(2e15, 1e13),))
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])

    def bar(low, high):
        return em.Polygon(np.array([(low, -3), (high, -3), (high, 3), (low, 3)]) @ turn)

    grid = Grid.centred((20, 20), 1.0)
    pair = [em.Structure(bar(-8.0, 8.0), gold), glass(bar(0.0, 8.0), 2.1)]
    medium = em.rasterise(pair, grid, components=("Ez", "Hx", "Hy"))
    assert float(jnp.min(medium.dispersions[0].fraction["Ez"])) >= 0
    assert float(jnp.min(medium.permittivity["Ez"])) >= 1
