"""The average of the permittivity by what is continuous across an interface."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid


HZ = ("Hz", "Ex", "Ey")
CELL = 50e-9


def halves(angle, shape=(9, 8), value=6.0):
    """A half space below a line through the middle, and the normal of the line."""
    normal = np.array([np.cos(angle), np.sin(angle)])
    along = np.array([-normal[1], normal[0]])
    middle = CELL * np.array([4.3, 3.9])
    far = 40 * CELL
    corners = [
        middle - far * along,
        middle + far * along,
        middle + far * (along - normal),
        middle - far * (along + normal),
    ]
    half = em.Structure(em.Polygon(np.array(corners)), em.Material(value))
    return half, Grid.uniform(shape, CELL), normal


@pytest.mark.x64
def test_plane_interface_has_the_tensor_of_a_stack_of_layers():
    half, grid, normal = halves(0.4)
    medium = em.rasterise([half], grid, em.Material(2.0), HZ, averaging="polarised")
    (beside,) = medium.off_diagonals
    whole = np.zeros(grid.shape)
    whole[tuple(slice(*span) for span in beside.box)] = beside.inverse["xy"]
    samples = {"xx": (0.5, 0.0), "yy": (0.0, 0.5), "xy": (0.0, 0.0)}
    cut = 0
    for name, stagger in samples.items():
        part = np.asarray(em.fill_fraction(half.shape, grid, stagger))
        mean, inverse = 2 + 4 * part, 1 / 2 + (1 / 6 - 1 / 2) * part
        tensor = (inverse - 1 / mean)[..., None, None] * np.outer(normal, normal)
        tensor = tensor + (1 / mean)[..., None, None] * np.eye(2)
        want = tensor[..., "xy".index(name[0]), "xy".index(name[1])]
        diagonal = medium.permittivity["E" + name[0]]
        found = whole if name == "xy" else 1 / np.asarray(diagonal)
        np.testing.assert_allclose(found, want, atol=1e-12)
        cut += np.sum((part > 0.01) & (part < 0.99))
    assert cut > 20


@pytest.mark.slow
@pytest.mark.x64
def test_field_along_an_interface_sees_the_mean():
    rod = em.Structure(em.Circle((4 * CELL, 4 * CELL), 2.7 * CELL), em.Material(6.0))
    grid = Grid.uniform((8, 8), CELL)
    names = "Ez", "Hx", "Hy"
    one = em.rasterise([rod], grid, components=names, averaging="polarised")
    other = em.rasterise([rod], grid, components=names)
    assert one.off_diagonals == ()
    np.testing.assert_allclose(
        one.permittivity["Ez"], other.permittivity["Ez"], rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.x64
def test_section_of_a_guide_has_the_averages_of_both_polarisations():
    half, grid, _ = halves(0.4)
    make = lambda names: em.rasterise(  # noqa: E731
        [half], grid, em.Material(2.0), names, averaging="polarised"
    )
    section, within, along = make(("Ex", "Ey", "Ez")), make(HZ), make(("Ez", "Hx"))
    want = within.permittivity | along.permittivity
    for name in ("Ex", "Ey", "Ez"):
        np.testing.assert_allclose(section.permittivity[name], want[name], rtol=1e-12)
    (one,), (other,) = section.off_diagonals, within.off_diagonals
    np.testing.assert_allclose(one.inverse["xy"], other.inverse["xy"], atol=1e-12)


@pytest.mark.x64
def test_interfaces_along_the_grid_need_no_tensor():
    slab = em.Structure(em.Box((4.25 * CELL, 0), (3 * CELL, np.inf)), em.Material(9.0))
    grid = Grid.uniform((9, 5), CELL)
    medium = em.rasterise([slab], grid, components=HZ, averaging="polarised")
    assert medium.off_diagonals == ()
    # 2.75 to 5.75 cells: across the layers inverses add up, along them values.
    across = np.asarray(medium.permittivity["Ex"])[:, 2]
    np.testing.assert_allclose(1 / across[2], 0.75 + 0.25 / 9, rtol=1e-12)
    np.testing.assert_allclose(across[3:5], 9.0, rtol=1e-12)
    along = np.asarray(medium.permittivity["Ey"])[:, 2]
    np.testing.assert_allclose(along[3], 0.25 + 0.75 * 9, rtol=1e-12)


def ring(radius, width, x, corner):
    """Shapes with every kind of parameter, and a polygon."""
    rod = em.Structure(em.Circle((x, 6.13 * CELL), radius), em.Material(6.0))
    block = em.Structure(
        em.Box((14.2 * CELL, 5.1 * CELL), (width, 4.36 * CELL)), em.Material(4.0)
    )
    corners = CELL * jnp.array([[9.1, 9.2], [12.3, 8.7], [11.0, 12.6]])
    wedge = em.Structure(em.Polygon(corners.at[0, 1].set(corner)), em.Material(5.0))
    return [rod, block, wedge]


# No interface lies on the border of a cell or passes its corner: there the second
# derivative jumps.
START = {
    "radius": 3.28 * CELL,
    "width": 2.63 * CELL,
    "x": 5.21 * CELL,
    "corner": 9.23 * CELL,
}


def value(sizes):
    """Light through the shapes, a smooth function of their sizes."""
    grid = Grid.uniform((18, 15), CELL)
    medium = em.rasterise(
        ring(**sizes), grid, em.Material(1.5), HZ, averaging="polarised"
    )
    at = lambda *cells: tuple(CELL * c for c in cells)  # noqa: E731
    sim = em.Simulation(
        grid,
        medium,
        em.Boundaries.all(em.Periodic()),
        steps=60,
        # Of its own, so that the step does not follow the shapes.
        dt=0.5 * CELL / 299792458.0,
        polarisation="Hz",
        sources={"in": em.Dipole("Hz", at(2.5, 2.5), em.GaussianPulse(4e14, 3e14))},
        monitors={"out": em.FieldMonitor(("Hz",), at(15, 11), at(4, 4), [4e14])},
    )
    found = em.simulate(sim, adjoint=em.LinearTape()).monitors["out"].values["Hz"]
    return jnp.sum(jnp.abs(found) ** 2) * 1e25


@pytest.mark.x64
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_gradients_by_shapes_are_those_of_differences():
    run = jax.jit(jax.value_and_grad(value))
    # All of one dtype: another would compile again.
    sizes = {name: np.asarray(x) for name, x in START.items()}
    at, slope = run(sizes)
    for name in START:

        def moved(cells, name=name):
            return float(run({**sizes, name: np.add(sizes[name], cells * CELL)})[0])

        # Differences of fourth order: exact to 1e-8 of the value.
        h = 1e-4
        near, far = moved(h) - moved(-h), moved(2 * h) - moved(-2 * h)
        want = (8 * near - far) / (12 * h)
        assert float(slope[name]) * CELL == pytest.approx(want, rel=1e-6), name
        # The remainder falls by four when the step is halved.
        steps = 1e-3 / 2.0 ** np.arange(3)
        rest = [
            abs(moved(s) - float(at) - float(slope[name]) * CELL * s) for s in steps
        ]
        orders = np.log2(np.array(rest[:-1]) / np.array(rest[1:]))
        assert np.all(abs(orders - 2) <= 0.05), (name, orders)


@pytest.mark.x64
def test_known_crystals_lie_in_their_box_under_jit():
    block = em.Structure(
        em.Box((4 * CELL,) * 2, (3 * CELL,) * 2), em.Material(crystal())
    )

    def box():
        grid = Grid.uniform((20, 20), CELL)
        return em.rasterise([block], grid, None, HZ).off_diagonals[0].box

    found = []
    jax.jit(lambda: found.append(box()))()
    assert found == [box()]
    assert max(stop for _, stop in box()) < 8


@pytest.mark.f32
def test_normals_do_not_depend_on_what_lies_elsewhere():
    # The face is in the middle of a cell fifty times as wide as the narrowest.
    edges = np.cumsum([0, *[2e-9] * 4, *np.geomspace(2e-9, 100e-9, 12), *[100e-9] * 6])
    grid = Grid.graded((np.arange(5) * 100e-9, edges))
    face = edges[-4] + 50e-9
    above = em.Structure(em.Box.from_corners((-1, face), (1, 1)), em.Material(2.0))
    dense = em.Structure(em.Box((2e-7, 4e-9), (1e-7, 3e-9)), em.Material(1e4))
    medium = em.rasterise([above, dense], grid, None, HZ, averaging="polarised")
    across = medium.permittivity["Ey"][0, -3]
    assert float(across) == pytest.approx(4 / 3, rel=1e-4)


# Of a circle whose middle, in cells, is where these are from a node.
TOUCHING = [(0, 0, 5.5), (0.5, 0, 5), (0.3, 0.1, 5.2), (0.1, 0.2, 4.9), (0.3, 0, 5.2)]


@pytest.mark.x64
@pytest.mark.parametrize("circle", TOUCHING, ids=str)
def test_gradients_of_circles_that_touch_borders_of_cells_are_finite(circle):
    # There the average has a kink, and its derivative beyond no limit.
    grid = Grid.centred((24, 24), CELL)

    def mean(sizes, name):
        x, y, radius = sizes * CELL
        rod = em.Structure(em.Circle((x, y), radius), em.Material(6.0))
        air = em.Material(1.5)
        medium = em.rasterise([rod], grid, air, HZ, averaging="polarised")
        return jnp.sum(medium.permittivity[name])

    slope, sizes = jax.jit(jax.grad(mean), static_argnums=1), jnp.asarray(circle, float)
    for name in ("Ex", "Ey"):
        found = slope(sizes, name)
        assert jnp.allclose(found, jax.jacfwd(mean)(sizes, name), atol=1e-6)
        # By a hair smaller, where it touches nothing.
        want = slope(sizes - jnp.array([0, 0, 1e-4]), name)
        assert jnp.allclose(found, want, atol=3e-3 * want[2]), name


@pytest.mark.f32
def test_gradients_by_the_middle_of_a_circle_are_finite():
    grid = Grid.centred((12, 12), CELL)

    def mean(x):
        rod = em.Structure(
            em.Circle((x * CELL, 0.07 * CELL), 3.3 * CELL), em.Material(6.0)
        )
        medium = em.rasterise([rod], grid, em.Material(1.5), HZ, averaging="polarised")
        return jnp.sum(medium.permittivity["Ex"])

    assert float(jax.grad(mean)(0.013)) == pytest.approx(
        float(mean(0.023) - mean(0.003)) / 0.02, rel=0.02
    )


def crystal(turn=0.5):
    """A tensor with its third axis along z."""
    axes = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0]])
    axes = np.vstack([axes, [0, 0, 1]])
    return axes @ np.diag([2.0, 5.0, 3.0]) @ axes.T


@pytest.mark.slow
@pytest.mark.x64
def test_layers_of_crystals_have_the_tensor_of_thin_films():
    # Across a stack of films D1, E2 and E3 are the same in all of them.
    half, grid, normal = halves(0.4)
    tensor = crystal()
    half = em.Structure(half.shape, em.Material(tensor))
    medium = em.rasterise([half], grid, em.Material(1.7), HZ)
    part = np.asarray(em.fill_fraction(half.shape, grid, (0.5, 0.0)))
    row, column = np.argwhere((part > 0.3) & (part < 0.7))[0]
    f = part[row, column]
    one, other = 1.7 * np.eye(2), tensor[:2, :2]
    along = np.array([-normal[1], normal[0]])
    # Fields in both films for D across and E along of 1: the mean of each follows.
    means = []
    for across, tangential in ((1.0, 0.0), (0.0, 1.0)):
        electric, displaced = np.zeros(2), np.zeros(2)
        for share, eps in ((1 - f, one), (f, other)):
            system = np.stack([normal @ eps, along])
            field = np.linalg.solve(system, [across, tangential])
            electric += share * field
            displaced += share * (eps @ field)
        means.append((electric, displaced))
    mean_e, mean_d = (np.stack([m[k] for m in means], axis=1) for k in range(2))
    inverse = mean_e @ np.linalg.inv(mean_d)
    found = 1 / np.asarray(medium.permittivity["Ex"])[row, column]
    assert found == pytest.approx(inverse[0, 0], rel=1e-12)
    whole = np.asarray(
        em.rasterise([], grid, em.Material(tensor), HZ).permittivity["Ex"]
    )
    np.testing.assert_allclose(whole, 1 / np.linalg.inv(tensor)[0, 0], rtol=1e-12)


def test_formulas_of_crystals_are_compiled_once():
    def lines(count):
        def paint(angles):
            structures = []
            for k, angle in enumerate(angles):
                axis = jnp.stack([jnp.cos(angle), jnp.sin(angle), jnp.zeros(())])
                tensor = em.Material(2 * jnp.eye(3) + jnp.outer(axis, axis))
                box = em.Box((4 * CELL, 4 * CELL), ((2 + 0.1 * k) * CELL, 2 * CELL))
                structures.append(em.Structure(box, tensor))
            grid = Grid.uniform((8, 8), CELL)
            return em.rasterise(structures, grid, components=HZ).permittivity

        return str(jax.make_jaxpr(paint)(jnp.linspace(0.1, 1.0, count))).count("\n")

    # Without a loop each adds some 320 lines, with it 140: shape, material and area.
    assert lines(7) - lines(3) < 4 * 200


def test_tensors_that_cannot_be_stepped_are_refused():
    skew = np.eye(3) * 2
    skew[0, 2] = skew[2, 0] = 0.3
    grid = Grid.uniform((5, 5), CELL)
    refused = r"must not couple Ex and Ez where only .*\b0\.3\b"
    with pytest.raises(ArgumentError, match=refused):
        em.rasterise([], grid, em.Material(skew), HZ)
    with pytest.raises(ArgumentError, match="smallest principal permittivity"):
        em.Material(np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]]))
    with pytest.raises(ArgumentError, match="finite and symmetric") as uneven:
        em.Material(np.array([[1.0, 0.2, 0], [0, 1, 0], [0, 0, 1]]))
    assert "entries [0, 1] and [1, 0] are 0.2 and 0. Make" in str(uneven.value)
    with pytest.raises(ArgumentError, match="finite and symmetric, but is nan"):
        em.Material(np.array([[1.0, 0.2, 0], [0.2, 1, 0], [0, 0, np.nan]]))
    with pytest.raises(ArgumentError, match=r"must be a tensor \(3, 3\), one number"):
        em.Material(np.ones((2, 3)))


@pytest.mark.slow
def test_traced_shapes_leave_room_for_design_regions():
    grid = Grid.uniform((12, 9), CELL)
    region = em.DesignRegion(((8, 11), (2, 7)), np.full((3, 5), 2.0))

    def medium(radius, box):
        rod = em.Circle((4.2 * CELL, 4.4 * CELL), radius)
        scene = [em.Structure(rod, em.Material(6.0))]
        found = em.rasterise(
            scene, grid, components=HZ, averaging="polarised", off_diagonal_box=box
        )
        return em.Medium(
            found.permittivity, regions=region, off_diagonals=found.off_diagonals
        )

    def run(radius, box):
        new = medium(radius, box)
        em.Simulation(grid, new, steps=1, polarisation="Hz")
        return new.off_diagonals[0].inverse["xy"]

    radius, box = 2.1 * CELL, ((1, 8), (1, 8))
    (known,) = medium(radius, None).off_diagonals
    whole = np.zeros(grid.shape)
    whole[tuple(slice(*span) for span in known.box)] = known.inverse["xy"]
    found = jax.jit(lambda r: run(r, box))(radius)
    np.testing.assert_allclose(found, whole[1:8, 1:8], atol=1e-6)
    with pytest.raises(
        ArgumentError, match="must not overlap a design.*`off_diagonal_box` of"
    ):
        jax.jit(lambda r: run(r, None))(radius)
    with pytest.raises(
        ArgumentError, match="`off_diagonal_box` must hold all off-diagonal entries"
    ):
        run(radius, ((1, 8), (4, 8)))
    assert np.all(np.isnan(jax.jit(lambda r: run(r, ((1, 8), (4, 8))))(radius)))
    with pytest.raises(
        ArgumentError, match="`box` of `off_diagonal_box` must lie in the grid"
    ):
        run(radius, ((1, 8), (1, 12)))
