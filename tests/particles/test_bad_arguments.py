"""Arguments of another kind than is wanted, for everything public in `particles`."""

import inspect
from types import SimpleNamespace

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, particles
from physax.particles import (
    BoxRegion,
    CellField,
    CGridField,
    Checkpointed,
    Coast,
    CubicSpline,
    Diffrax,
    Diffusivity,
    FieldAdjoint,
    FluxWeighted,
    Gravity,
    GriddedField,
    Hold,
    Inlet,
    Land,
    LevelRegion,
    Masked,
    MaxeyRiley,
    Mesh,
    MeshField,
    Newtonian,
    Obstacle,
    OnSphere,
    OpticalForce,
    Overdamped,
    ParticleStatus,
    Pattern,
    PointCloud,
    PolygonRegion,
    Reflect,
    SlipField,
    StokesDrag,
    Variable,
    Windows,
    make_axis,
    track,
)


pytestmark = pytest.mark.f32

KEY = jax.random.key(0)
OLD_KEYS = jnp.zeros((3, 2), jnp.uint32)
NAN = float("nan")
NODES = np.linspace(0.0, 1.0, 3)
SPEEDS = np.ones((3, 3, 2))
SEEDS = np.array([[0.1, 0.2], [0.3, 0.4]])
TIMES = np.array([0.0, 1.0])
CORNER = ([0.0, 0.0], [1.0, 1.0])
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
TRIANGLE = Mesh(CORNERS, {"triangle": np.array([[0, 1, 2]])})
REGION = BoxRegion(*CORNER)
KEY_MESSAGE = r"`key` must be a key, as `jax.random.key\(0\)`, but is "


def still(t, x):
    del t
    return 0 * x


TRACKS = track(still, SEEDS, TIMES)


def call(name, *args, **options):
    """Calls a public function as users do, without the type checks of the tests."""
    return inspect.unwrap(getattr(particles, name))(*args, **options)


def make(kind, *args, **options):
    """Makes a module with an `__init__` of its own in the same way."""
    made = object.__new__(type("Bare", (), {}))
    return inspect.unwrap(kind.__init__)(made, *args, **options)


def count(wrong):
    return f"must be an integer of at least 1, but is {wrong}"


SEEDING = [
    ("seed_line", [(0.0,), (1.0,), 2.5], f"`count` {count('2.5')}"),
    ("seed_line", ["x", (1.0,), 2], "`start` must be a number, but is 'x'"),
    ("seed_grid", [*CORNER, (2, 2.5)], f"`shape` {count('2.5')}"),
    ("seed_grid", [*CORNER, "22"], "`shape` must be a list with a number of particles"),
    ("seed_grid", [(1j, 0), (1, 1), (2, 2)], "`low` must be real, but has dtype compl"),
    ("seed_random", [KEY, *CORNER, True], f"`count` {count('True')}"),
    ("seed_random", [KEY, *CORNER, "2"], f"`count` {count(repr('2'))}"),
    ("seed_random", [OLD_KEYS, *CORNER, 2], f"{KEY_MESSAGE}an array of uint32"),
    ("seed_random", [None, *CORNER, 2], f"{KEY_MESSAGE}None"),
    ("seed_sobol", [*CORNER, None], f"`count` {count('None')}"),
    ("seed_gaussian", [KEY, (0.0,), "1", 2], "`spread` must be a number, but is '1'"),
    ("seed_circle", [(0, 0), 1, 2.5], f"`count` {count('2.5')}"),
    ("seed_disk", [0, (0, 0), 1, 2], f"{KEY_MESSAGE}0"),
    (
        "seed_sphere",
        [KEY, (0, 0), [1.0, 2.0], 2],
        "`radius` must be one number, but ha",
    ),
    ("seed_ball", [KEY, (0, 0), 1, NAN], f"`count` {count('nan')}"),
    ("seed_polygon", [KEY, "x", 2], "`vertices` must be a number, but is 'x'"),
    (
        "seed_polygon",
        [KEY, [[1j, 0]], 2],
        "`vertices` must be real, but has dtype comp",
    ),
    (
        "seed_surface",
        [KEY, CORNERS, [[0.0, 1.0, 2.0]], 2],
        "`triangles` must be three integers for each triangle, but is float64",
    ),
    ("seed_surface", [KEY, 1.0, [[0, 1, 2]], 2], "`points` must have 2 or 3 coordinat"),
    ("seed_density", [KEY, np.ones(2), 1, 2], "`edges` must be a list, such as"),
    (
        "seed_mask",
        [KEY, [0, 1], [NODES], 2],
        "`mask` must hold booleans, but has dtype",
    ),
    ("check_seeds", [object()], "`seeds` must be numbers, but is not"),
]


@pytest.mark.parametrize(("name", "args", "message"), SEEDING)
def test_arguments_of_seeds_of_another_kind_are_refused(name, args, message):
    with pytest.raises(ArgumentError, match=message):
        call(name, *args)


RUNS = [
    ({"steps": True}, f"`steps` {count('True')}"),
    ({"steps": "2"}, f"`steps` {count(repr('2'))}"),
    ({"dt": 1j}, "`dt` must be real, but has dtype complex64"),
    ({"key": "seed"}, f"{KEY_MESSAGE}'seed'"),
    ({"key": OLD_KEYS}, f"{KEY_MESSAGE}an array of uint32"),
]
TRACK = [({"batch": True}, f"`batch` {count('True')}"), *RUNS]
RUN = [
    ({"chunk": 2.5}, f"`chunk` {count('2.5')}"),
    ({"sink": "rows.npy"}, "`sink` must be a function or None, but is a str"),
    ({"on_chunk": 3}, "`on_chunk` must be a function or None, but is an int"),
    (
        {"checkpoint": "runs"},
        r"`checkpoint` must be a `Checkpointing`, but is a str. W",
    ),
    (
        {"progress": "yes"},
        "`progress` must be True, False, None or a `Progress`, but is a st",
    ),
    ({"throw": "no"}, "`throw` must be True or False, but is 'no'"),
    *RUNS,
]


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [*(("track", *row) for row in TRACK), *(("run", *row) for row in RUN)],
)
def test_arguments_of_runs_of_another_kind_are_refused(name, changed, message):
    options = {"progress": False, **changed} if name == "run" else changed
    with pytest.raises(ArgumentError, match=message):
        call(name, still, SEEDS, TIMES, **options)


FIELDS = [
    (
        GriddedField,
        [SPEEDS, 1.0],
        {},
        "`axes` must be a list, such as .*, but is a flo",
    ),
    (
        GriddedField,
        [SPEEDS, (NODES, NODES)],
        {"periods": ("2", None)},
        "`periods` must be a number, but is '2'",
    ),
    (
        GriddedField,
        [SPEEDS, (NODES, NODES)],
        {"time_period": "2"},
        "`time_period` must be a number, but is '2'",
    ),
    (
        GriddedField,
        [SPEEDS, (NODES, NODES)],
        {"at_once": "no"},
        "`at_once` must be True or False, but is 'no'",
    ),
    (CGridField, [1.0, (NODES,)], {}, "`components` must be a list, such as"),
    (SlipField, [1.0, (NODES,)], {}, "`values` must have an axis for each of `axes`"),
    (
        SlipField,
        [SPEEDS, (NODES, NODES)],
        {"slip": [0.1, 0.2]},
        "`slip` must be one number",
    ),
    (
        SlipField,
        [SPEEDS, (NODES, NODES)],
        {"dry": np.zeros((3, 3))},
        "`dry` must hold booleans, but has dtype float64",
    ),
    (MeshField, ["mesh", CORNERS], {}, "`mesh` must be a `Mesh`, but is a str"),
    (CellField, [None, CORNERS], {}, "`mesh` must be a `Mesh`, but is None"),
    (
        CellField,
        [TRIANGLE, np.ones((1, 2))],
        {"constant": 1},
        "`constant` must be True or False, but is 1",
    ),
    (
        Mesh,
        [CORNERS, {}],
        {"orient": "no"},
        "`orient` must be True or False, but is 'n",
    ),
    (PointCloud, ["x", SPEEDS], {}, "`points` must be a number, but is 'x'"),
    (
        PointCloud,
        [CORNERS, CORNERS],
        {"neighbours": 1.5},
        "`neighbours` must be an integer of at least 0, but is 1.5",
    ),
    (
        PointCloud,
        [CORNERS, CORNERS],
        {"reach": -1.0},
        "`reach` must be at least 0, but is -1",
    ),
    (
        Land,
        [np.ones((3, 3)), (NODES, NODES)],
        {},
        "`mask` must hold booleans, but has d",
    ),
    (
        Windows,
        [3, still],
        {},
        "`series` must have `times` and return .*, but is an int",
    ),
]


@pytest.mark.parametrize(("kind", "args", "options", "message"), FIELDS)
def test_arguments_of_fields_of_another_kind_are_refused(kind, args, options, message):
    with pytest.raises(ArgumentError, match=message):
        make(kind, *args, **options)


MODULES = [
    (lambda: Checkpointed(2.5), f"`every` {count('2.5')}"),
    (lambda: Checkpointed(0), f"`every` {count('0')}"),
    (lambda: FieldAdjoint("all"), f"`points` {count(repr('all'))}"),
    (lambda: Obstacle(jnp.sum, Hold(), 1.5), f"`bounces` {count('1.5')}"),
    (lambda: Reflect([0.5, 0.6]), "`restitution` must be one number, but has shape"),
    (
        lambda: Inlet("uniform"),
        "`placement` must be an `AbstractPlacement`, but is a st",
    ),
    (
        lambda: FluxWeighted(1.0, [1.0], 0),
        "`axes` must be a list, such as .* is a float",
    ),
    (lambda: FluxWeighted((NODES,), [1.0, 1.0], 0.5), "`normal` must be an integer of"),
    (lambda: Pattern(1j * SEEDS), "`places` must be real, but has dtype complex64"),
    (
        lambda: Coast(Land),
        "`land` must be a `Land`, .* Land. Did you forget to call it",
    ),
    (lambda: BoxRegion("x", 1.0), "`low` must be a number, but is 'x'"),
    (lambda: PolygonRegion(1.0), r"`vertices` must be at least 3 .* have shape \(\)"),
    (
        lambda: LevelRegion(3.0),
        r"`function` must be a function, `phi\(x\)`, but is 3.0",
    ),
    (
        lambda: Masked(still, 2.0),
        r"`factor` must be a function, `m\(t, x\)`, but is 2.0",
    ),
    (lambda: OnSphere(still, [1.0]), "`radius` must be one number, but has shape"),
    (lambda: Gravity(1j, [0.0]), "`mass` must be real, but has dtype complex64"),
    (lambda: StokesDrag(still, [1.0, 2.0]), "`coefficient` must be one number"),
    (lambda: OpticalForce(still, [1.0]), "`polarizability` must be one number"),
    (
        lambda: MaxeyRiley(still, 1.0, gravity=[1j]),
        "`gravity` must be real, but has dt",
    ),
    (lambda: Newtonian([], [1.0, 2.0]), "`mass` must be one number, but has shape"),
    (
        lambda: Newtonian([], 1.0, GriddedField),
        "`velocity` .* Did you forget to call it",
    ),
    (
        lambda: Overdamped(still, [], [1.0]),
        "`mobility` must be one number, but has sha",
    ),
    (
        lambda: Variable(GriddedField),
        r"`rate` must be a function `rate\(t, x, value\)`",
    ),
    (lambda: Variable(still, 1j), "`initial` must be real, but has dtype complex64"),
    (lambda: Diffusivity("1"), "`diffusivity` must be a number, but is '1'"),
    (lambda: Diffrax(diffrax.Tsit5), "`solver` must be .* Did you forget to call it"),
    (lambda: Diffrax(diffrax.Tsit5(), "a"), "`rtol` must be a number, but is 'a'"),
    (lambda: Diffrax(diffrax.Tsit5(), atol=NAN), "`atol` must be positive, but is nan"),
    (
        lambda: Diffrax(diffrax.Tsit5(), each=1),
        "`each` must be True or False, but is 1",
    ),
    (lambda: Diffrax(diffrax.Tsit5(), max_steps=1.5), f"`max_steps` {count('1.5')}"),
    (
        lambda: Diffrax(diffrax.Tsit5(), adjoint="forward"),
        "`adjoint` must be an adjoint of diffrax, .*, but is 'forward'",
    ),
    (lambda: make_axis(1j * NODES, "x"), "`x` must be real, but has dtype complex128"),
]


@pytest.mark.parametrize(("made", "message"), MODULES)
def test_attributes_of_another_kind_are_refused(made, message):
    # Converters see what users give before the type checks of the tests do.
    with pytest.raises(ArgumentError, match=message):
        made()


STATISTICS = [
    ("histogram_density", [SEEDS, 1.0], {}, "`edges` must be a list, such as"),
    (
        "histogram_density",
        [1j * SEEDS, [NODES] * 2],
        {},
        "`points` must be real, but ha",
    ),
    (
        "cloud_in_cell",
        [SEEDS, [NODES] * 2],
        {"periodic": None},
        "`periodic` must hold names of axes, .*, but is None",
    ),
    (
        "kernel_density",
        [SEEDS, SEEDS, 1.0],
        {"walls": "x"},
        "`walls` must give ends by axis, .*, but is a str",
    ),
    (
        "kernel_density",
        [SEEDS, SEEDS, 1.0],
        {"periodic": {"x": 1.0}},
        r"`periodic\['x'\]` must be a list, such as `\(0.0, 1.0\)`, but is a float",
    ),
    (
        "kernel_density",
        [SEEDS, SEEDS, "scott"],
        {},
        "`bandwidth` must be a number, but",
    ),
    ("sph_density", [SEEDS, SEEDS, 1.0, CubicSpline], {}, "`kernel` .* Did you forget"),
    ("mix_norm", [SEEDS, [0, 1], *CORNER], {"modes": 2.5}, f"`modes` {count('2.5')}"),
    (
        "mixing_entropy",
        [SEEDS, [0, 1], [NODES] * 2, 1.5],
        {},
        "`count` must be an integer of at least 2, but is 1.5",
    ),
    (
        "mixing_entropy",
        [SEEDS, [0.0, 1.0], [NODES] * 2, 2],
        {},
        "`kinds` must hold integers, but has dtype float32",
    ),
    ("cauchy_green", [1.0], {}, r"`gradient` must have square matrices .* shape \(\)"),
    ("flow_map_gradient_on_grid", [SPEEDS, 1.0], {}, "`axes` must be a list, such as"),
    (
        "flow_map_gradient_on_grid",
        [np.zeros((3, 3, 2)), [np.arange(3.0)] * 2],
        {"spherical": "no"},
        "`spherical` must be True or False, but is 'no'",
    ),
    ("neighbour_pairs", [SEEDS, "1"], {}, "`distance` must be a number, but is '1'"),
    ("neighbour_pairs", [SEEDS, -1.0], {}, "`distance` must be positive, but is -1"),
    (
        "relative_dispersion",
        [TRACKS, [[0.0, 1.0]]],
        {},
        "`pairs` must hold integers, but has dtype float64",
    ),
    ("unwrap_periodic", [TRACKS, -1.0], {}, "`periods` must be positive, but is -1"),
    (
        "lifetimes",
        [TRACKS, "low x"],
        {},
        "`face` must be an integer of at least 0, but",
    ),
    ("wrap_globe", [1.0], {}, "Positions must be longitude and latitude, .* 0 coordin"),
    ("wrap_globe", [SEEDS, "west"], {}, "`west` must be a number, but is 'west'"),
    (
        "connectivity_matrix",
        [TRACKS, 3, [REGION]],
        {},
        "`sources` must be a list, such as .*, but is an int",
    ),
    (
        "connectivity_matrix",
        [TRACKS, [REGION], [REGION]],
        {"count": ("alive",)},
        "`count` must be a `ParticleStatus`, but is a str",
    ),
    (
        "connectivity_matrix",
        [TRACKS, [REGION], [REGION]],
        {"count": (ParticleStatus.ALIVE,), "weights": [1.0]},
        r"`weights` must be one number for each of 2 particles, but has shape \(1,\)",
    ),
    (
        "fill_land",
        [["a"], (NODES,)],
        {},
        "`values` must be numbers with at least 0 axes, but is <U1",
    ),
    (
        "fill_land",
        [NODES, (NODES,)],
        {"leading": -1},
        "`leading` must be an integer of at least 0, but is -1",
    ),
]


@pytest.mark.parametrize(("name", "args", "options", "message"), STATISTICS)
def test_arguments_of_statistics_of_another_kind_are_refused(
    name, args, options, message
):
    with pytest.raises(ArgumentError, match=message):
        call(name, *args, **options)


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("absolute_dispersion", []),
        ("cloud_covariance", []),
        ("relative_dispersion", [[[0, 1]]]),
        ("unwrap_periodic", [1.0]),
        ("ages", []),
        ("lifetimes", []),
        ("residence_time", [REGION]),
        ("first_passage", [REGION]),
        ("inside_region", [REGION]),
        ("connectivity_matrix", [[REGION], [REGION]]),
    ],
)
def test_the_result_of_a_run_is_not_its_tracks(name, rest):
    result = SimpleNamespace(tracks=TRACKS)
    with pytest.raises(
        ArgumentError,
        match="`tracks` must be a `Tracks`, but is a SimpleNamespace. From a result of",
    ):
        call(name, result, *rest)
