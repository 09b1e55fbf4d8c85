"""Arguments of another kind than is wanted, and numbers that are masked or complex."""

import inspect
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.grid import Clamp, Fill, Linear
from physax.particles import (
    Box,
    CGridField,
    FieldAdjoint,
    GriddedField,
    Leave,
    Mesh,
    MeshField,
    ParticleStatus,
    PointCloud,
    Reflect,
    SlipField,
    Windows,
    fill_land,
    seed_ball,
    seed_gaussian,
    seed_grid,
    seed_random,
    seed_sobol,
    track,
)
from tests.particles import particle_run


pytestmark = pytest.mark.f32

NODES = np.linspace(0.0, 1.0, 3)
SPEEDS = np.ones((3, 3, 2))
TRIANGLE = Mesh(
    np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), {"triangle": np.array([[0, 1, 2]])}
)


def make(kind, *args, **options):
    """Makes a field as users do, without the type checks of the tests."""
    inspect.unwrap(kind.__init__)(SimpleNamespace(), *args, **options)


FIELDS = {
    "gridded": lambda **o: make(GriddedField, SPEEDS, (NODES, NODES), **o),
    "slip": lambda **o: make(SlipField, SPEEDS, (NODES, NODES), **o),
    "faces": lambda **o: make(CGridField, (np.ones(3),), (NODES,), **o),
    "mesh": lambda **o: make(MeshField, TRIANGLE, np.ones((3, 2)), **o),
    "cloud": lambda **o: make(PointCloud, np.eye(2), np.ones((2, 2)), **o),
}


@pytest.mark.parametrize("wrong", [Leave, "leave", 0.0, np.nan], ids=str)
@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("gridded", "outside"),
        ("slip", "outside"),
        ("faces", "outside"),
        *((name, "time_outside") for name in FIELDS),
    ],
)
def test_what_is_no_rule_for_outside_is_refused(field, name, wrong):
    with pytest.raises(ArgumentError) as caught:
        FIELDS[field](**{name: wrong})
    message = str(caught.value)
    kind = "the class Leave" if wrong is Leave else f"a {type(wrong).__name__}"
    assert message.startswith(f"`{name}` must be a `Leave`")
    assert f", but is {kind}." in message
    assert message.endswith("Did you forget to call it?") == isinstance(wrong, type)


def test_rules_that_a_field_cannot_follow_are_refused():
    for field, name in (("slip", "outside"), ("faces", "outside")):
        with pytest.raises(
            ArgumentError,
            match=rf"`{name}` must be a `Leave` or `Clamp`, but is a Fill",
        ):
            FIELDS[field](**{name: Fill(0.0)})
    with pytest.raises(
        ArgumentError,
        match="`time_outside` must be a `Leave` or `Clamp`, but is a Fill",
    ):
        FIELDS["slip"](time_outside=Fill(0.0))
    CGridField((np.ones(3),), (NODES,), outside=Clamp(), time_outside=Fill(0.0))


@pytest.mark.parametrize("wrong", [Linear, "linear", 1], ids=str)
@pytest.mark.parametrize(
    ("field", "name"),
    [("gridded", "method"), *((f, "time_method") for f in FIELDS if f != "slip")],
)
def test_what_is_no_interpolation_is_refused(field, name, wrong):
    with pytest.raises(ArgumentError) as caught:
        FIELDS[field](**{name: wrong})
    message = str(caught.value)
    kind = "the class Linear" if wrong is Linear else type(wrong).__name__
    assert message.startswith(f"`{name}` must be a `Nearest`, `Linear`, `Cubic` or `Cu")
    assert f"{kind}." in message.partition(", but is ")[2]


@pytest.mark.parametrize("field", ["gridded", "faces"])
def test_one_number_is_no_list_of_periods(field):
    with pytest.raises(ArgumentError, match=r"`periods` must be a list .*but is 2\.0"):
        FIELDS[field](periods=2.0)


def test_windows_of_something_else_than_fields_are_refused():
    series = particle_run.Snapshots()
    with pytest.raises(ArgumentError, match="`make` must be a function of values and"):
        inspect.unwrap(Windows.__init__)(object.__new__(Windows), series, GriddedField)
    windows = Windows(series, lambda values, times: jnp.sum(values))
    with pytest.raises(ArgumentError, match="`make` must return a field, as `Gridded"):
        windows.field(0)


@pytest.mark.slow
@pytest.mark.parametrize("jit", [jax.jit, lambda f: f])
def test_a_field_in_the_closure_of_a_function_is_refused_by_the_field_adjoint(jit):
    def loss(values, wrap):
        field = GriddedField(values, (NODES,))
        velocity = (lambda t, x: field(t, x)) if wrap else field
        tracks = track(velocity, [[0.2]], [0.0, 0.1], adjoint=FieldAdjoint())
        return tracks.positions[-1].sum()

    slope = jax.grad(jit(lambda values: loss(values, wrap=False)))(jnp.ones((3, 1)))
    assert np.isclose(slope.sum(), 0.1)
    with pytest.raises(ArgumentError, match=r"itself, .* but is a function that encl"):
        jax.grad(jit(lambda values: loss(values, wrap=True)))(jnp.ones((3, 1)))


def test_complex_velocities_and_seeds_are_refused():
    with pytest.raises(ArgumentError, match="`velocity` must return real .* complex64"):
        track(lambda t, x: 1j * x, [[0.2]], [0.0, 1.0])
    for seeds in (np.array([[1j]]), [[1j]], jnp.asarray([[1j]])):
        with pytest.raises(ArgumentError, match="`seeds` must be real .* are complex"):
            track(lambda t, x: x, seeds, [0.0, 1.0])


def test_seeds_of_no_shape_and_no_key_are_refused():
    with pytest.raises(ArgumentError, match=r"`shape` must be .* as `\(5, 5\)`, but "):
        inspect.unwrap(seed_grid)([0.0, 0.0], [1.0, 1.0], 5)
    box = ([0.0], [1.0], 3)
    for draw in (
        lambda: inspect.unwrap(seed_random)(0, *box),
        lambda: inspect.unwrap(seed_sobol)(*box, key=0),
        lambda: inspect.unwrap(seed_gaussian)(0, [0.0], 1.0, 3),
        lambda: inspect.unwrap(seed_ball)(0, [0.0, 0.0, 0.0], 1.0, 3),
    ):
        with pytest.raises(
            ArgumentError, match=r"`key` must be a key, as `jax.random.key\(0\)`, but "
        ):
            draw()


LAND = np.ma.masked_equal(np.array([0.5, 0.5, 1e20]), 1e20)


def masked_fields():
    wide = np.ma.masked_greater(np.array([[0.0], [0.0], [1e20]]), 1e19)
    corners = np.ma.array(np.zeros((3, 2)), mask=[[0, 0], [1, 1], [0, 0]])
    return {
        "gridded": GriddedField(LAND[:, None], (NODES,)),
        "whole": GriddedField(
            np.ma.masked_equal([[1], [1], [7]], 7), (NODES,), method=Linear()
        ),
        "mesh": MeshField(TRIANGLE, corners),
        "cloud": PointCloud(NODES[:, None], wide, neighbours=2),
    }


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("name", ["gridded", "whole", "mesh", "cloud"])
def test_masked_samples_are_not_numbers(name):
    field = masked_fields()[name]
    x = jnp.asarray([0.8, 0.1] if name == "mesh" else [0.8])
    assert np.all(np.isnan(field(0.0, x)))
    if name in ("gridded", "whole"):
        assert np.all(np.isfinite(field(0.0, 0.5 * x)))
    tracks = track(field, x[None], [0.0, 0.1])
    assert tracks.status.tolist() == [ParticleStatus.NOT_FINITE]


def test_masked_samples_are_land_where_fields_know_land():
    faces = CGridField((LAND,), (NODES,))
    assert faces(0.0, [1.0]) == 0
    values = np.ma.array(np.ones((3, 3, 2)))
    values[2] = np.ma.masked
    slip = SlipField(values, (NODES, NODES), slip=0.0)
    assert slip.dry.tolist() == [[False] * 3] * 2 + [[True] * 3]
    filled, land = fill_land(LAND, (NODES,))
    assert filled.tolist() == [0.5, 0.5, 0]
    assert land is not None
    assert land.mask.tolist() == [False, False, True]


def test_masked_snapshots_are_not_numbers_either():
    class Series:
        times = np.arange(3.0)

        def __call__(self, number):
            return LAND[:, None]

    windows = Windows(Series(), lambda v, t: GriddedField(v, (NODES,), t), size=3)
    assert np.isnan(windows.field(0)(0.5, [0.9])[0])
    with pytest.raises(ArgumentError, match=r"but is a `Windows`, which needs `run\("):
        track(windows, [[0.1]], [0.0, 1.0])


def test_masked_places_and_times_are_refused():
    seeds = np.ma.masked_equal([[0.1], [0.2]], 0.2)
    with pytest.raises(ArgumentError, match=r"`seeds` must be known .* \[1, 0\] is ma"):
        track(lambda t, x: x, seeds, [0.0, 1.0])
    with pytest.raises(ArgumentError, match=r"`times` must be known .* \[1\] is ma"):
        track(lambda t, x: x, [[0.1]], np.ma.masked_equal([0.0, 1.0], 1.0))
    with pytest.raises(ArgumentError, match=r"`axes\[0\]` must be known .* \[2\] is"):
        GriddedField(np.ones(3), (LAND,))
    with pytest.raises(ArgumentError, match=r"`points` must be known .* \[2, 0\] is"):
        PointCloud(LAND[:, None], np.ones(3))
    nothing = np.ma.array(NODES[:, None])
    assert track(lambda t, x: x, nothing, [0.0, 1.0]).alive.all()


@jax.jit
def status_and_places(seeds, times):
    box = Box([0.0], [1.0], Reflect())
    tracks = track(lambda t, x: 0.1 + 0 * x, seeds, times, boundary=box)
    return tracks.status, tracks.positions


def test_what_is_refused_on_the_host_ends_particles_under_jit():
    seeds, times = jnp.asarray([[0.5], [1.5]]), jnp.asarray([0.0, 1.0, 2.0])
    status, places = status_and_places(seeds, times)
    assert status.tolist() == [ParticleStatus.ALIVE, ParticleStatus.NOT_FINITE]
    assert np.allclose(places[:, 0, 0], [0.5, 0.6, 0.7])
    assert np.all(np.isnan(places[:, 1]))
    for wrong in ([0.0, 2.0, 1.0], [0.0, 1.0, 1.0], [2.0, 0.0, 1.0]):
        status, _ = status_and_places(seeds, jnp.asarray(wrong))
        assert status.tolist() == [ParticleStatus.NOT_FINITE] * 2
    backward, _ = status_and_places(seeds, times[::-1])
    assert backward[0] == ParticleStatus.ALIVE


def test_a_seed_that_ends_under_jit_outside_a_box_of_samples_is_not_finite():
    field = GriddedField(np.ones((3, 1)), (NODES,))
    last = jax.jit(
        lambda seeds: (
            track(
                field, seeds, [0.0, 0.1], boundary=Box([0.0], [1.0], Reflect())
            ).status
        )
    )(jnp.asarray([[0.5], [-0.5]]))
    assert last.tolist() == [ParticleStatus.ALIVE, ParticleStatus.NOT_FINITE]
