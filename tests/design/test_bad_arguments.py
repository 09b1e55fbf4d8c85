"""Arguments of another kind than is wanted, for everything public in `design`."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from physax import ArgumentError, design
from physax.design import (
    ConicFilter,
    Constant,
    Contours,
    EarlyStop,
    Fill,
    FixedRegions,
    GaussianFilter,
    Geometric,
    Mirror,
    MovingAsymptotes,
    NeuralDensity,
    PixelDensity,
    Replicate,
    Rotation,
    SolidPart,
    Stages,
    Surround,
    Transposition,
    optimise,
)


pytestmark = pytest.mark.f32

RHO = jnp.linspace(0.0, 1.0, 36).reshape(6, 6)
SOLID = np.asarray(RHO) > 0.5
KEY = jax.random.key(0)
NAN = float("nan")
SQUARE = [[0, 0], [1, 0], [1, 1]]

OPTIMISE = [
    ({"schedule": "x"}, "`schedule` must be a number, but is 'x'"),
    ({"schedule": Stages}, "`schedule` must be .*Stages'>. Did you forget to call it"),
    ({"schedule": True}, "`schedule` must be numbers, but holds booleans"),
    ({"schedule": NAN}, "`schedule` must be at least 0, but is nan"),
    ({"optimiser": "adam"}, r"`optimiser` must be .* `optax.adam\(0.02\)`.* is 'adam'"),
    ({"optimiser": optax.adam}, "`optimiser` must be .*. Did you forget to call it"),
    ({"optimiser": MovingAsymptotes}, "`optimiser` must .* Did you forget to call it"),
    (
        {"optimiser": optax.lbfgs()},
        "`optimiser` must step by a gradient .* 'value_fn'.* `MovingAsymptotes",
    ),
    ({"tolerance": "a"}, "`tolerance` must be a number, but is 'a'"),
    ({"tolerance": NAN}, "`tolerance` must be finite, but is nan"),
    ({"tolerance": [1e-4]}, r"`tolerance` must be one number, but has shape \(1,\)"),
    ({"steps": 2.5}, "`steps` must be an integer of at least 1, but is 2.5"),
    ({"steps": True}, "`steps` must be an integer of at least 1, but is True"),
    ({"bounds": 1.0}, r"`bounds` must be a pair, such as `\(0.0, 1.0\)`, but is a flo"),
    ({"bounds": (0.0, "1")}, "`bounds` must be a number, but is '1'"),
    ({"maximise": "no"}, "`maximise` must be True or False, but is 'no'"),
    ({"has_aux": 1}, "`has_aux` must be True or False, but is 1"),
    ({"has_aux": True}, "`objective` must return a pair with `has_aux=True`, but retu"),
    ({"feasible_start": None}, "`feasible_start` must be True or False, but is None"),
    ({"throw": "no"}, "`throw` must be True or False, but is 'no'"),
    ({"objective": lambda x, b: None}, "`objective` must return .* returned None"),
    ({"objective": lambda x, b: np.sin(x)}, "`objective` must be written with `jax.nu"),
    (
        {"constraints": lambda x, b: {"a": 1.0}, "optimiser": MovingAsymptotes()},
        "`constraints` must return a real number or .* but returned a dict",
    ),
    (
        {"constraints": lambda x, b: np.sin(x), "optimiser": MovingAsymptotes()},
        "`constraints` must be written with `jax.numpy`",
    ),
    ({"objective": 3}, "`objective` must be a function, but is an int"),
    ({"constraints": 3}, "`constraints` must be a function or None, but is an int"),
    ({"on_step": "print"}, "`on_step` must be a function or None, but is a str"),
    ({"stop": 20}, r"`stop` must be an `EarlyStop`, but is an int. Write `EarlyStop\("),
    ({"stop": EarlyStop}, "`stop` must .* the class EarlyStop. Did you forget to call"),
    ({"checkpoint": "runs"}, "`checkpoint` must be a `Checkpointing`, but is a str"),
    ({"progress": "yes"}, "`progress` must be True, False, None or a `Progress`, but"),
]


@pytest.mark.parametrize(("changed", "message"), OPTIMISE)
def test_arguments_of_optimise_of_another_kind_are_refused(changed, message):
    given = {"objective": lambda x, b: jnp.sum(x**2), "steps": 1, "progress": False}
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(optimise)(parameters=jnp.ones(3), **{**given, **changed})


def call(name, *args, **options):
    """Calls a public function as users do, without the type checks of the tests."""
    return inspect.unwrap(getattr(design, name))(*args, **options)


def narrow(which, **options):
    return call(which, RHO, RHO, 2.0, 1.0, **options)


FUNCTIONS = [
    (
        lambda: narrow("narrow_solid", eroded="a"),
        "`eroded` must be a number, but is 'a",
    ),
    (lambda: narrow("narrow_void", decay="a"), "`decay` must be a number, but is 'a'"),
    (lambda: narrow("length_constraints", limit=[1.0]), "`limit` must be one number"),
    (
        lambda: call("narrow_solid", RHO, RHO[1:], 2.0, 1.0),
        r"`projected` must have the shape of `density`, \(6, 6\), but has \(5, 6\)",
    ),
    (
        lambda: call("length_constraints", RHO, RHO, 0.1, 1e-8),
        r"`radius` must be at most 10 times .* 6e-08 m, but is 0.1 m\. .* in metres",
    ),
    (lambda: ConicFilter(0.1, 1e-8)(RHO), "`radius` must be at most 10 times .* 0.1 m"),
    (lambda: GaussianFilter(0.1, 1e-8)(RHO), "`deviation` must be at most 10 times"),
    (lambda: call("remove_narrow", SOLID, 0.1, 1e-8), "`length` must be at most 10"),
    (lambda: call("narrow_cells", SOLID, 0.1, 1e-8), "`length` must be at most 10 tim"),
    (
        lambda: call("narrow_solid", RHO, RHO, 2.0, "1"),
        "`spacing` must be a number, but is '1'",
    ),
    (
        lambda: call("tanh_projection", "rho", 8.0),
        "`density` must be a number, but is 'rho'",
    ),
    (
        lambda: call("tanh_projection", RHO + 1j, 8.0),
        "`density` must be real, but has dtype complex64",
    ),
    (
        lambda: call("tanh_projection", RHO > 0.5, 8.0),
        "`density` must be numbers, but holds booleans",
    ),
    (
        lambda: call("greyness", np.zeros((0, 2))),
        r"`density` must have at least one cell, but has shape \(0, 2\)",
    ),
    (
        lambda: call("subpixel_projection", RHO, 8.0, periodic="no"),
        "`periodic` must be True or False, but is 'no'",
    ),
    (
        lambda: call("robust_densities", RHO, 8.0, projection="tanh"),
        "`projection` must be a function, but is a str",
    ),
    (
        lambda: call("robust_densities", RHO, 8.0, shift="a"),
        "`shift` must be a number, but is 'a'",
    ),
    (lambda: call("erosion_threshold", "1", 1.0), "`length` must be a number, but is"),
    (
        lambda: call("filter_radius", 1.0, None),
        "`eroded` must be a number, but is None",
    ),
    (
        lambda: call("island_penalty", RHO, tolerance=NAN),
        "`tolerance` must be positive, but is nan",
    ),
    (
        lambda: call("island_penalty", RHO, insulation=jnp.ones(2) / 2),
        "`insulation` must be one number",
    ),
    (lambda: call("contours", RHO, None), "`spacing` must be a number, but is None"),
    (lambda: call("contours", RHO, 1.0, level="a"), "`level` must be a number, but is"),
    (
        lambda: call("contours", RHO, 1.0, origin=0.0),
        r"`origin` must be a sequence, such as `\(0.0, 0.0\)`, but is a float",
    ),
    (
        lambda: call("contours", RHO, 1.0, origin=(0.0, 0.0, 0.0)),
        "`origin` must be two finite numbers",
    ),
    (
        lambda: jax.jit(lambda x: call("contours", x, 1.0).area)(RHO),
        "`density` must be known here, but is traced",
    ),
    (
        lambda: call("grey_start", 3),
        r"`shape` must be a sequence, such as `\(64, 64\)`, but is an int",
    ),
    (
        lambda: call("grey_start", (3, 2.5)),
        "`shape` must be an integer of at least 1, but is 2.5",
    ),
    (
        lambda: call("grey_start", (3,), noise=0.1, key=0),
        r"`key` must be a key, as `jax.random.key\(0\)`, but is 0",
    ),
    (lambda: call("extrude", RHO, 1.0), "`heights` must be a sequence, such as"),
    (lambda: call("extrude", RHO, ["1"]), "`heights` must be a number, but is '1'"),
    (
        lambda: call("extrude", RHO, [1.0], angle="a"),
        "`angle` must be a number, but is",
    ),
    (
        lambda: call("extrude", RHO[0], [1.0]),
        r"`density` must be two-dimensional, but has shape \(6,\)",
    ),
    (
        lambda: call("extrude", RHO, [1.0], project=3),
        "`project` must be a function or None, but is an int",
    ),
    (
        lambda: call("offset_outline", RHO, "1", 1.0),
        "`distance` must be a number, but is '1'",
    ),
    (
        lambda: call("minimum_length", SOLID, 1.0, periodic=("no", "no")),
        "`periodic` must be True or False, but is 'no'",
    ),
    (
        lambda: call("narrow_cells", SOLID, "2", 1.0),
        "`length` must be a number, but is '2'",
    ),
    (
        lambda: call("soft_max", RHO, 10.0, axis="x"),
        "`axis` must be None, or integers from -2 to 1, but is 'x'",
    ),
    (
        lambda: call("soft_min", RHO, 10.0, axis=2),
        "`axis` must be None, or integers from -2 to 1, but is 2",
    ),
    (
        lambda: call("symmetrise", RHO, Mirror),
        "`symmetries` must .* the class Mirror. Did you forget to call it",
    ),
    (
        lambda: call("simp_material", RHO, 1.0, 2.0, [1.0, 2.0]),
        "`power` must be one number",
    ),
]


@pytest.mark.parametrize(("run", "message"), FUNCTIONS)
def test_arguments_of_functions_of_another_kind_are_refused(run, message):
    with pytest.raises(ArgumentError, match=message):
        run()


MODULES = [
    (lambda: ConicFilter("2", 1.0), "`radius` must be a number, but is '2'"),
    (
        lambda: ConicFilter(2.0, True),
        "`spacing` must be numbers, but holds boolean",
    ),
    (
        lambda: ConicFilter(2.0, ()),
        "`spacing` must have at least one entry, but is emp",
    ),
    (
        lambda: ConicFilter(2.0, 1.0, "wrap"),
        r"`boundary` must be .*\)`.*, but is 'wrap'",
    ),
    (
        lambda: ConicFilter(2.0, 1.0, [Replicate(), Replicate]),
        "`boundary` must be a boundary .* Did you forget to call it",
    ),
    (lambda: GaussianFilter(None, 1.0), "`deviation` must be a number, but is None"),
    (lambda: Fill("0"), "`value` must be a number, but is '0'"),
    (lambda: Fill(NAN), "`value` must be finite, but is nan"),
    (lambda: Surround(RHO, 1), r"`low` must be a sequence, such as `\(0, 0\)`, but is"),
    (lambda: Surround(RHO, (1, 0.5)), "`low` must be an integer of at least 0, but is"),
    (lambda: PixelDensity("x"), "`values` must be a number, but is 'x'"),
    (lambda: PixelDensity(1j * RHO), "`values` must be real, but has dtype complex64"),
    (lambda: Constant("1"), "`value` must be a number, but is '1'"),
    (
        lambda: Stages(8.0, 2),
        r"`values` must be a sequence, such as `\(8, 16, 32\)`, b",
    ),
    (lambda: Stages((8.0, None), 2), "`values` must be a number, but is None"),
    (
        lambda: Stages((8.0,), 2.5),
        "`every` must be an integer of at least 1, but is 2.5",
    ),
    (lambda: Geometric("1", 2.0, 3), "`first` must be a number, but is '1'"),
    (lambda: Geometric(1.0, 2.0, NAN), "`steps` must be an integer of at least 1, but"),
    (
        lambda: EarlyStop(True),
        "`patience` must be an integer of at least 1, but is True",
    ),
    (lambda: EarlyStop(5, "a"), "`tolerance` must be a number, but is 'a'"),
    (lambda: MovingAsymptotes(move=[0.5]), "`move` must be one number, but has shape"),
    (
        lambda: MovingAsymptotes(conservative=2.5),
        "`conservative` must be an integer of at least 0, but is 2.5",
    ),
    (lambda: Mirror("x"), "`axis` must be an integer of at least 0, but is 'x'"),
    (lambda: Mirror(-1), "`axis` must be an integer of at least 0, but is -1"),
    (
        lambda: Rotation(axes=0),
        r"`axes` must be a sequence, such as `\(0, 1\)`, but is",
    ),
    (lambda: Rotation("2"), "`order` must be an integer of at least 1, but is '2'"),
    (lambda: Transposition((0,)), r"`axes` must be two axes, but is \(0,\)"),
    (lambda: SolidPart("x"), r"`outline` must be points \(x, y\), but is not"),
    (
        lambda: SolidPart(SQUARE, None),
        "`holes` must be a sequence of loops, but is None",
    ),
    (lambda: Contours(None), "`parts` must be a sequence of `SolidPart`, but is None"),
    (lambda: Contours([SQUARE]), "`parts` must be a `SolidPart`, but is a list"),
    (
        lambda: jax.jit(lambda x: FixedRegions(x)(RHO))(SOLID),
        "`solid` must be known here, but is traced",
    ),
]


@pytest.mark.parametrize(("make", "message"), MODULES)
def test_attributes_of_another_kind_are_refused(make, message):
    # Converters see what users give before the type checks of the tests do.
    with pytest.raises(ArgumentError, match=message):
        make()


NETWORKS = [
    ({"shape": 3}, r"`shape` must be a sequence, such as `\(64, 64\)`, but is an int"),
    ({"shape": ("a",)}, "`shape` must be an integer of at least 1, but is 'a'"),
    ({"key": 0}, r"`key` must be a key, as `jax.random.key\(0\)`, but is 0"),
    ({"key": jax.random.split(KEY)}, r"`key` must be one key.* has shape \(2,\)"),
    ({"harmonics": 1.5}, "`harmonics` must be an integer of at least 0, but is 1.5"),
    ({"width": True}, "`width` must be an integer of at least 1, but is True"),
]


@pytest.mark.parametrize(("changed", "message"), NETWORKS)
def test_arguments_of_a_network_of_another_kind_are_refused(changed, message):
    given = {"shape": (3, 3), "key": KEY, **changed}
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(NeuralDensity.__init__)(object.__new__(NeuralDensity), **given)


def test_a_network_has_the_axes_it_was_made_for():
    with pytest.raises(
        ArgumentError, match="`shape` must have 2 entries, one for each"
    ):
        NeuralDensity((3, 3), key=KEY).at((4,))
