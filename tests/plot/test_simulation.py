import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from physax import ArgumentError
from physax.em import (
    CPML,
    PEC,
    PMC,
    Absorber,
    Apodised,
    Boundaries,
    Box,
    Circle,
    Cylindrical,
    Dipole,
    Drude,
    EnergyMonitor,
    FieldMonitor,
    FluxMonitor,
    ForceMonitor,
    GaussianBeam,
    GaussianPulse,
    HuygensSource,
    Material,
    Medium,
    ModeMonitor,
    ModeSource,
    NearFieldMonitor,
    Periodic,
    PlaneWave,
    Port,
    Simulation,
    Structure,
    rasterise,
    simulate,
)
from physax.grid import Grid
from physax.plot import simulation
from physax.units import MICRO


PULSE = GaussianPulse(1e14, 1e13)
FREQUENCIES = jnp.asarray([1e14], float)
RED, BLUE, GREEN = (to_hex(f"tab:{name}") for name in ("red", "blue", "green"))
INF = float("inf")


def flat(**options):
    """A 2-D waveguide of 4 um by 3 um, centred, with all kinds of marks."""
    grid = Grid.centred((80, 60), 0.05 * MICRO)
    core = jnp.abs(grid.centres(1)) < 0.3 * MICRO
    permittivity = jnp.broadcast_to(jnp.where(core, 4.0, 2.0), grid.shape)
    port = Port((-1 * MICRO, 0.0), 2 * MICRO, "+x", offset=0.2 * MICRO)
    defaults = {
        "medium": Medium(permittivity),
        "boundaries": Boundaries(x=(CPML(10), Absorber(20)), y=(PMC(), PEC())),
        "sources": {
            "in": ModeSource(port, PULSE),
            "dipole": Dipole("Ez", (0.5 * MICRO, 0.5 * MICRO), PULSE),
        },
        "monitors": {
            "west": ModeMonitor(port, FREQUENCIES),
            "up": FluxMonitor("y", (0.0, 1 * MICRO), (2 * MICRO, 0.0), FREQUENCIES),
            "box": FieldMonitor(("Ez",), (0.0, 0.0), (MICRO, MICRO), FREQUENCIES),
            "all": FieldMonitor(("Ez",), (0.0, 0.0), (INF, INF), FREQUENCIES),
            "energy": EnergyMonitor(),
        },
    }
    defaults |= {"polarisation": "Ez", "steps": 1}
    return Simulation(grid, **(defaults | options))


@pytest.fixture(scope="module")
def axes():
    axes = simulation(flat())
    axes.figure.draw_without_rendering()
    return axes


def texts(axes):
    return {text.get_text(): text for text in axes.texts}


def lines_of(axes, colour):
    found = [line for line in axes.lines if to_hex(line.get_color()) == colour]
    return [np.stack(line.get_data(), 1) for line in found]


def boxes_of(axes, colour):
    return {
        tuple(np.round(p.get_bbox().extents, 3))
        for p in axes.patches
        if isinstance(p, Rectangle) and to_hex(p.get_edgecolor()) == colour
    }


def test_permittivity_fills_the_grid_in_micrometres(axes):
    (image,) = axes.images
    assert image.get_extent() == pytest.approx((-2, 2, -1.5, 1.5), rel=1e-5)
    assert image.get_array().shape == (60, 80)
    # Rows of the picture are y: the core is there in each of them alike.
    assert np.array_equal(np.unique(image.get_array()[30]), [4])
    assert image.origin == "lower"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (µm)", "y (µm)")
    assert axes.get_aspect() == 1
    (bar,) = axes.child_axes
    assert bar.get_ylabel() == "relative permittivity"


def test_sources_are_red_and_point_the_way_they_send(axes):
    port, dipole = lines_of(axes, RED)
    assert port == pytest.approx(np.array([[-1, -1], [-1, 1]]), abs=1e-5)
    assert dipole == pytest.approx(np.array([[0.5, 0.5]]), abs=1e-5)
    arrows = [
        a for a in axes.texts if a.arrow_patch and a.xyann[0] == pytest.approx(-1)
    ]
    (arrow,) = arrows
    assert arrow.xy[0] > arrow.xyann[0]
    assert arrow.xy[1] == pytest.approx(0, abs=1e-5)
    assert to_hex(arrow.arrow_patch.get_edgecolor()) == RED
    assert to_hex(texts(axes)["dipole"].get_color()) == RED


def test_monitors_are_blue_where_they_measure(axes):
    # The mode is measured half a cell before the node that lies 0.2 um from the port.
    west, up = lines_of(axes, BLUE)
    assert west[:, 0] == pytest.approx(-0.825, abs=1e-5)
    # The flux counts at a node.
    assert up[:, 1] == pytest.approx(1, abs=0.026)
    (box,) = boxes_of(axes, BLUE)
    assert box == pytest.approx((-0.5, -0.5, 0.5, 0.5), abs=0.03)
    assert {"west", "up", "box"} <= texts(axes).keys()


def test_faces_of_a_near_field_across_one_axis_are_drawn_where_they_are():
    # From -0.5 to 1 along x, within half a cell; there is no face along y.
    near = NearFieldMonitor((0.25 * MICRO, 0.0), (1.5 * MICRO, INF), FREQUENCIES)
    axes = simulation(
        flat(boundaries=Boundaries(y=Periodic()), sources={}, monitors={"n": near})
    )
    (box,) = boxes_of(axes, BLUE)
    assert box == pytest.approx((-0.5, -1.5, 1, 1.5), abs=0.026)


def test_the_box_of_a_force_is_drawn_without_the_samples_beside_it():
    force = ForceMonitor((0.25 * MICRO, 0.0), (1.5 * MICRO, MICRO), FREQUENCIES)
    axes = simulation(
        flat(medium=None, boundaries=Boundaries(), sources={}, monitors={"f": force})
    )
    (box,) = boxes_of(axes, BLUE)
    assert box == pytest.approx((-0.5, -0.5, 1, 0.5), abs=1e-6)


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_equivalent_currents_are_drawn_on_the_faces_of_their_record():
    place = (0.4 * MICRO, 0.2 * MICRO), (MICRO, 0.6 * MICRO), FREQUENCIES
    faces = {"box": None, "side": ("-x",)}
    first = flat(
        sources={"d": Dipole("Ez", (0.4 * MICRO, 0.2 * MICRO), PULSE)},
        monitors={k: NearFieldMonitor(*place, which) for k, which in faces.items()},
        steps=2,
    )
    records = simulate(first).monitors
    sources = {k: HuygensSource(near, PULSE) for k, near in records.items()}
    axes = simulation(flat(sources=sources, monitors={}))
    assert to_hex(texts(axes)["box"].get_color()) == RED
    assert boxes_of(axes, RED) == {(-0.1, -0.1, 0.9, 0.5)}
    (line,) = lines_of(axes, RED)
    assert line == pytest.approx(np.array([[-0.1, -0.1], [-0.1, 0.5]]), abs=1e-5)
    # The side sends out of the box.
    outward = [a for a in axes.texts if a.arrow_patch and a.xyann[0] == line[0, 0]]
    assert [a.xy[0] < -0.1 for a in outward] == [True]


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_sources_around_an_axis_are_drawn_in_r_and_z():
    def around(**options):
        return Simulation(
            Grid.uniform((40, 60), 0.05 * MICRO, origin=(0.0, -1.5 * MICRO)),
            boundaries=Boundaries(r=CPML(8), z=CPML(8)),
            cylindrical=Cylindrical(1),
            steps=1,
            **options,
        )

    top = NearFieldMonitor((0.0, MICRO), (MICRO, 0.0), FREQUENCIES, "+z")
    dipole = Dipole("Er", (0.0, 0.0), PULSE)
    first = around(sources={"dipole": dipole}, monitors={"top": top})
    sources = {
        "beam": GaussianBeam(Port((0.0, -MICRO), 3 * MICRO, "-z"), PULSE, MICRO / 3),
        "again": HuygensSource(simulate(first).monitors["top"], PULSE),
    }
    across = Port((0.0, 0.5 * MICRO), 2 * MICRO, "+z")
    mode = {"mode": ModeMonitor(across, FREQUENCIES)}
    axes = simulation(around(sources=sources, monitors=mode), ports={"in": across})
    (seen,), (port,) = lines_of(axes, BLUE), lines_of(axes, GREEN)
    assert port == pytest.approx(np.array([[0, 0.5], [1, 0.5]]), abs=1e-5)
    assert seen == pytest.approx(port, abs=0.03)
    beam, again = lines_of(axes, RED)
    assert beam == pytest.approx(np.array([[0, -1], [1.5, -1]]), abs=1e-5)
    assert again == pytest.approx(np.array([[0.025, 1], [0.475, 1]]), abs=0.03)
    ways = [a.xy[1] - a.xyann[1] for a in axes.texts if a.arrow_patch]
    assert [np.sign(way) for way in ways] == [1, -1, 1]


def test_a_window_in_time_leaves_the_arrow_of_a_flux():
    flux = FluxMonitor("y", (0.0, 1 * MICRO), (2 * MICRO, 0.0), FREQUENCIES)
    seen = Apodised(flux, centre=0.0, width=1e-15)
    axes = simulation(flat(sources={}, monitors={"up": seen}))
    (arrow,) = [a for a in axes.texts if a.arrow_patch]
    assert arrow.xy[1] > arrow.xyann[1]


def test_layers_are_hatched_and_walls_black(axes):
    hatched = [p for p in axes.patches if p.get_hatch()]
    spans = sorted((p.get_x(), p.get_x() + p.get_width()) for p in hatched)
    assert np.array(spans) == pytest.approx(np.array([[-2, -1.5], [1.0, 2]]), abs=1e-5)
    pmc, pec = (line for line in axes.lines if line.get_color() == "k")
    assert (pmc.get_linestyle(), pmc.get_ydata()[0]) == ("--", pytest.approx(-1.5))
    assert (pec.get_linestyle(), pec.get_ydata()[0]) == ("-", pytest.approx(1.5))


def test_legend_explains_and_names_what_is_everywhere(axes):
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [
        *("source", "monitor", "absorbing layer", "PEC", "PMC"),
        "everywhere: all",
    ]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("shape", [(12,), (12, 10), (12, 10, 8)])
def test_perfect_metal_is_black(shape):
    grid = Grid.uniform(shape, 1.0)
    plate = Structure(Box.from_corners((3.0,), (6.0,)), PEC())
    names = ("Ez", "Hx", "Hy") if len(shape) == 2 else None
    medium = rasterise([plate], grid, components=names)
    kind = "Ez" if len(shape) == 2 else None
    axes = simulation(Simulation(grid, medium, polarisation=kind, steps=1))
    axes.figure.draw_without_rendering()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[0] == "perfect metal"
    if len(shape) == 1:
        metal = axes.patches[-1].get_data().values
    else:
        image = axes.images[1]
        metal = image.get_array()[2]
        assert image.cmap(image.norm(1.0)) == (0, 0, 0, 1)
        assert image.cmap(image.norm(0.0))[3] == 0
    # The nodes 3 to 6, and one that repeats the last.
    assert np.array_equal(np.flatnonzero(metal), [3, 4, 5, 6])


def test_components_are_drawn_around_their_points():
    ez = jnp.full((80, 60), 3.0).at[0].set(5.0)
    sim = flat(medium=Medium({"Ez": ez}))
    axes = simulation(sim)
    (image,) = axes.images
    # Nodes start at the edge of the grid, and their cells half a cell before it.
    assert image.get_extent()[0] == pytest.approx(-2.025, rel=1e-5)
    assert axes.get_xlim() == pytest.approx((-2, 2), rel=1e-5)
    assert np.all(image.get_array()[:, 0] == 5)
    assert axes.child_axes[0].get_ylabel() == "relative permittivity at Ez"


def test_a_uniform_medium_is_drawn():
    axes = simulation(flat(medium=None))
    assert axes.images[0].get_clim() == (0.5, 1.5)


def test_metal_with_poles_leaves_the_greys_to_dielectrics():
    # -3 from a Drude pole at the frequency of the source, beside glass of 4 in air.
    grid = Grid.centred((80, 60), 0.05 * MICRO)
    drude = Drude(2e14, 0.0)
    scene = [
        Structure(Box((MICRO, 0.0), (0.5 * MICRO, INF)), Material(4.0)),
        Structure(Box((-MICRO, 0.0), (0.5 * MICRO, INF)), Material(poles=(drude,))),
    ]
    medium = rasterise(scene, grid, components=("Ez", "Hx", "Hy"))
    axes = simulation(flat(medium=medium, monitors={}))
    (image,) = axes.images
    assert np.min(image.get_array()) == pytest.approx(-3, rel=1e-3)
    assert image.get_clim() == pytest.approx((1, 4))
    shown = image.cmap(image.norm(np.array([-3.0, 1.0])))
    assert to_hex(shown[0]) not in ("#ffffff", to_hex(shown[1]))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "permittivity < 0" in labels
    assert axes.child_axes[0].get_ylabel() == "permittivity, 100 THz, Ez"


@pytest.mark.parametrize("shape", [(40, 40), (210, 30)])
def test_labels_are_inside_the_picture(shape):
    grid = Grid.centred(shape, 0.02 * MICRO)
    gold = Material(poles=(Drude(2e14, 0.0),))
    wire = Structure(Circle((0.0, 0.0), 0.1 * MICRO), gold)
    medium = rasterise([wire], grid, components=("Ez", "Hx", "Hy"))
    sources = {"d": Dipole("Ez", (0.0, 0.0), PULSE)}
    sim = Simulation(grid, medium, polarisation="Ez", sources=sources, steps=1)
    axes = simulation(sim)
    renderer = FigureCanvasAgg(axes.figure).get_renderer()
    # Once, as `savefig` does.
    axes.figure.draw(renderer)
    whole = axes.figure.bbox
    for label in (axes.xaxis.label, axes.yaxis.label, axes.child_axes[0].yaxis.label):
        box = label.get_window_extent(renderer)
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1


def test_names_do_not_stand_on_the_legend_or_the_numbers():
    whole = (INF, 0.0), (0.0, INF)
    monitors = {
        name: FieldMonitor(("Ez",), (x, 0.0), size, FREQUENCIES)
        for name, x, size in zip("ab", (0.3 * MICRO, 0.0), whole[::-1], strict=True)
    }
    axes = simulation(flat(sources={}, monitors=monitors))
    upright, level = (texts(axes)[name] for name in "ab")
    # One ends at the top of the picture, the other in its middle.
    assert (upright.xy[1], upright.get_va()) == (pytest.approx(1.475, abs=0.03), "top")
    assert (level.xy[1], level.get_va()) == (pytest.approx(0, abs=0.03), "bottom")


def test_graded_cells_have_their_own_borders():
    edges = np.array([0, 1, 2, 3, 5, 7, 10, 13, 16.0]) * MICRO
    sim = Simulation(Grid.graded((edges, edges)), polarisation="Hz", steps=1)
    (mesh,) = simulation(sim).collections
    assert np.allclose(mesh.get_coordinates()[0, :, 0], edges / MICRO)


def test_one_dimension_is_a_line():
    grid = Grid.uniform((100,), 0.02 * MICRO)
    x = grid.centres(0) / MICRO
    sim = Simulation(
        grid,
        Medium(jnp.where((x > 1) & (x < 1.4), 4.0, 1.0)),
        Boundaries(x=(CPML(10), PEC())),
        steps=1,
        sources={"wave": PlaneWave("-x", "Ez", (MICRO,), (1.2 * MICRO,), PULSE)},
        monitors={"T": FluxMonitor("x", (0.5 * MICRO,), (0.0,), FREQUENCIES)},
    )
    axes = simulation(sim)
    assert axes.get_xlabel() == "x (µm)"
    assert axes.get_ylabel() == "relative permittivity"
    stairs = axes.patches[0]
    assert np.allclose(stairs.get_data().values, [1] * 50 + [4] * 20 + [1] * 30)
    assert {"wave", "T"} <= texts(axes).keys()
    backward = [a for a in axes.texts if a.arrow_patch and a.xy[0] < a.xyann[0]]
    assert len(backward) == 1


def solid():
    grid = Grid.centred((20, 24, 28), 0.1 * MICRO)
    z = jnp.arange(28.0)
    return Simulation(
        grid,
        Medium(jnp.broadcast_to(1 + z / 8, grid.shape)),
        steps=1,
        sources={"d": Dipole("Ez", (0.0, 0.0, 0.0), PULSE)},
        monitors={
            "far": FieldMonitor(
                ("Ez",), (0.0, 0.0, 1 * MICRO), (MICRO, MICRO, 0.0), FREQUENCIES
            )
        },
    )


def test_a_volume_is_cut_where_asked():
    axes = simulation(solid(), plane=("z", 0.95 * MICRO))
    (image,) = axes.images
    assert image.get_extent() == pytest.approx((-1, 1, -1.2, 1.2), rel=1e-5)
    assert np.all(image.get_array() == 1 + 23 / 8)
    assert "z = 0.950 µm" in texts(axes)
    axes = simulation(solid(), plane=("y", 0))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (µm)", "z (µm)")
    assert axes.images[0].get_array().shape == (28, 20)


def test_what_the_cut_misses_is_faint():
    names = texts(simulation(solid()))
    assert names["far"].get_alpha() < names["d"].get_alpha() == 1
    # The moment of the dipole points out of the picture.
    assert r"$\odot$" in names


def test_given_axes_are_used_and_pyplot_stays_clean():
    axes = Figure().add_subplot()
    assert simulation(flat(), axes) is axes
    simulation(flat())
    assert plt.get_fignums() == []


def test_the_picture_can_be_saved(tmp_path):
    simulation(flat()).figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (flat, {"plane": ("z", 0.0)}, "`plane` must be None in 2-D"),
        (flat, {"component": "Ex"}, r"`component` must be one of \('Ez',\)"),
        (solid, {"plane": ("w", 0.0)}, "`plane` must name one of the axes"),
        (solid, {"plane": ("z", 1.0)}, "`plane` must lie between -1.4e-06 and 1.4e-06"),
    ],
)
def test_bad_arguments_are_refused(make, options, message):
    with pytest.raises(ArgumentError, match=message):
        simulation(make(), **options)


def test_ports_are_green_and_point_into_the_device():
    ports = {
        "west": Port((-1 * MICRO, 0.0), 2 * MICRO, "+x"),
        "south": Port((0.5 * MICRO, -1 * MICRO), 1 * MICRO, "+y"),
    }
    axes = simulation(flat(sources={}, monitors={}), ports=ports)
    axes.figure.draw_without_rendering()
    west, south = lines_of(axes, GREEN)
    assert west == pytest.approx(np.array([[-1, -1], [-1, 1]]), abs=1e-5)
    assert south == pytest.approx(np.array([[0, -1], [1, -1]]), abs=1e-5)
    arrows = [a for a in axes.texts if a.arrow_patch]
    steps = [np.subtract(a.xy, a.xyann) for a in arrows]
    assert [to_hex(a.arrow_patch.get_edgecolor()) for a in arrows] == [GREEN] * 2
    assert steps[0][0] > 0
    assert steps[1][1] > 0
    assert {"west", "south"} <= texts(axes).keys()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "port" in labels


def test_ports_must_fit_the_grid():
    port = Port((0.0, 0.0, 0.0), MICRO, "+x")
    with pytest.raises(ArgumentError, match="`centre` of port 'a' must have one entry"):
        simulation(flat(), ports={"a": port})
    line = Simulation(Grid.centred((80,), 0.05 * MICRO), steps=1)
    with pytest.raises(ArgumentError, match="`ports` must be left out in 1-D, but"):
        simulation(line, ports={"a": port})
