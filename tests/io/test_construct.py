import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, ArrayLike, Bool, Float

from physax._checks import ArgumentError, as_array, at_least, positive
from physax.io import DEGREES, Dimension, PhysaxFileError, construct, read_yaml
from physax.xpcs import Diffusion, LaminarFlow, TwoTime


class AbstractShape(eqx.Module):
    """What a file chooses from."""


class Ball(AbstractShape):
    radius: Float[Array, ""] = eqx.field(converter=at_least("radius", 0.0), default=1.0)


class Block(AbstractShape):
    sides: tuple[float, float, float]
    tilt: Float[Array, ""] = eqx.field(converter=as_array, default=0.0)


class Secret(AbstractShape):
    """One that no file may choose."""


class Scene(eqx.Module):
    shape: AbstractShape
    count: int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="scene")
    angles: Float[Array, " angles"] = eqx.field(converter=as_array, default=0.0)
    flags: Bool[Array, " n"] | None = None
    dark: bool = False
    mode: Literal["fast", "exact"] = "fast"
    others: tuple[AbstractShape, ...] = ()
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    ranges: Sequence[tuple[float, float]] = ()
    free: Any = None
    lengths: Sequence[float] | None = None
    pair: tuple[float, float] = (0.0, 0.0)
    ball: Ball | None = None


REGISTRY = {"Ball": Ball, "Block": Block}


@pytest.fixture
def build(tmp_path):
    def build(text, target=Scene, **options):
        path = tmp_path / "a.yaml"
        path.write_text(text)
        return construct(read_yaml(path), target, **{"registry": REGISTRY} | options)

    return build


def test_a_file_becomes_a_module(build):
    scene = build("""
    shape: {type: Block, sides: [1, 2.5, 3e2], tilt_degrees: 45}
    count: 3
    name: "5"
    angles_degrees: [0, 90]
    flags: [true, false]
    dark: true
    mode: exact
    others:
      - {type: Ball}
      - {type: Ball, radius: 2}
    weights: {a: 1, b: 0.5}
    ranges: [[0, 1], [2, 3.5]]
    free: {x: [1, text]}
    ball: {radius: 4}
    """)
    assert scene.shape.sides == (1.0, 2.5, 300.0)
    assert scene.shape.tilt == pytest.approx(math.pi / 4)
    assert (scene.count, scene.name, scene.dark, scene.mode) == (3, "5", True, "exact")
    assert np.allclose(scene.angles, [0, math.pi / 2])
    assert scene.flags.tolist() == [True, False]
    assert [ball.radius for ball in scene.others] == [1.0, 2.0]
    assert scene.weights == {"a": 1.0, "b": 0.5}
    assert scene.ranges == ((0.0, 1.0), (2.0, 3.5))
    assert scene.free == {"x": [1, "text"]}
    assert scene.ball.radius == 4


def test_keys_may_be_left_out(build):
    scene = build("{shape: {type: Ball}, count: 1, flags: null}")
    assert scene.name == "scene"
    assert scene.flags is None


def test_the_file_names_the_constructor_of_the_whole(build):
    assert isinstance(build("{type: Ball, radius: 3}", None), Ball)
    assert isinstance(build("{type: Ball}", AbstractShape), Ball)


def test_functions_are_constructors(build):
    def add(a: float, b: float = 1.0, *, c: list[int], d: Float[ArrayLike, " n"]):
        return a + b + sum(c) + jnp.sum(d)

    assert build("{a: 1, c: [2, 3], d: [4, 5]}", add) == 16


def test_a_constructor_of_ours_is_called(build):
    text = "{c2: [[[1, 1], [1, 1]]], q: 0.01, phi_degrees: 90, times: [0, 1]}"
    data = build(text, TwoTime)
    assert data.phi[0] == pytest.approx(math.pi / 2)
    message = r"line 3: It is refused: `times` must increase"
    with pytest.raises(PhysaxFileError, match=message):
        build("c2: [[[1, 1], [1, 1]]]\nq: 0.01\ntimes: [1, 0]\nphi: 0", TwoTime)


def test_a_model_is_built(build):
    text = """
    type: LaminarFlow
    diffusion: {type: Diffusion, D0: 12000, alpha: -0.35}
    shear: {rate: 3e-3, phi0_degrees: -4}
    convention: homodyne
    """
    registry = {"LaminarFlow": LaminarFlow, "Diffusion": Diffusion}
    model = build(text, None, registry=registry)
    assert isinstance(model, LaminarFlow)
    assert model.diffusion.D0 == 12000
    assert model.shear.phi0 == pytest.approx(-4 * math.pi / 180)
    with pytest.raises(PhysaxFileError, match="line 5: It is refused: `convention`"):
        build(text.replace("homodyne", "home"), None, registry=registry)


def test_other_units_can_be_given(build):
    def lengths(gap: float, q: float):
        return gap, q

    units = {"um": 1e4, "nm_inverse": 0.1}
    assert build("{gap_um: 200, q: 1}", lengths, units=units) == (2e6, 1)


LENGTH = Dimension("a length", "metres", {"um": 1e-6}, ("gap", "sizes"))
ANGLE = Dimension("an angle", "radians", DEGREES, ("other.gap",))


def measured(gap: float = 0.0, sizes: tuple[float, ...] = (), count: int = 0):
    return gap, sizes, count


def other(gap: float):
    return gap


def test_each_key_takes_its_own_units(build):
    build = partial(build, units={}, dimensions=(ANGLE, LENGTH))
    found = build("{gap_um: 2, sizes_um: [1, 3], count: 4}", measured)
    assert found == (2e-6, (1e-6, 3e-6), 4)
    # Of one name, but of two constructors.
    assert build("gap_degrees: 180", other) == pytest.approx(math.pi)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gap_degrees: 2", "line 1: `gap_degrees` must not end in `_degrees`, but is "
         "2: `gap` is a length, in metres without a unit. With a unit it is `gap_um`."),
        ("\ncount_um: 2", "line 2: `count_um` must not end in `_um`, but is 2: `count` "
         "takes no unit: write `count`."),
        ("gap_km: 2", "It has the unknown key `gap_km`; known are gap, sizes, count. "
         "With a unit it is `gap_um`."),
        ("count_km: 2", "known are gap, sizes, count. Did you mean `count`?"),
        ("sizes: [1, 2 um]", "`sizes[1]` must be a number, but is the text '2 um'. "
         "With a unit it is `sizes_um`."),
        ("gap: 3.5um", "must be a number, but is the text '3.5um'. With a unit it is"),
        ("gap: wide", "`gap` must be a number, but is the text 'wide'."),
        ("count: 3 um", "`count` must be a whole number, but is the text '3 um'."),
    ],
)  # fmt: skip
def test_units_of_other_dimensions_are_refused(build, text, message):
    with pytest.raises(PhysaxFileError, match=re.escape(message)):
        build(text, measured, units={}, dimensions=(LENGTH, ANGLE))


def test_what_is_no_number_has_no_unit(build):
    message = "line 3: `name_degrees` must be a number, as its key ends in a unit"
    with pytest.raises(PhysaxFileError, match=message):
        build(GOOD + "name_degrees: x")


GOOD = "shape: {type: Ball}\ncount: 1\n"
FAULTS = {
    "unknown": (GOOD + "colour: red", r"line 3: It has the unknown key `colour`; known "
                r"are shape, count, name"),
    "nearest": (GOOD + "angle: [1]", r"unknown key `angle`.* you mean `angles`\?"),
    "inner": ("count: 1\nshape:\n  type: Ball\n  radios: 1",
              r"line 4: `shape` has the unknown key `radios`; .* `radius`\?"),
    "unit": (GOOD + "angles_gradian: [1]", "unknown key `angles_gradian`; known are "
             r".*\. With a unit it is `angles_degrees`\.$"),
    "missing": ("shape: {type: Ball}", "line 1: It must have the keys `count`, but"),
    "whole": (GOOD.replace("1", "1.5"),
              "line 2: `count` must be a whole number, but is 1.5"),
    "truth is no number": (GOOD.replace("1", "true"), "a whole number, but is true"),
    "text for number": ("shape: {type: Ball, radius: one}\ncount: 1",
                        "line 1: `shape.radius` must be a number, but is the text"),
    "list for number": ("shape: {type: Ball, radius: [1]}\ncount: 1",
                        "`shape.radius` must be a number, but is a list"),
    "nothing for number": ("shape: {type: Ball, radius: }\ncount: 1",
                           "`shape.radius` must be a number, but is null"),
    "number for text": (GOOD + "name: 5", "line 3: `name` must be a text, but is 5"),
    "yes": (GOOD + "dark: yes", "`dark` must be true or false, but is the text 'yes'"),
    "choice": (GOOD + "mode: slow", "`mode` must be one of 'fast', 'exact', but is"),
    "mapping": (GOOD + "others: {a: 1}", "`others` must be a list, but is a mapping"),
    "name for mapping": (GOOD + "ball: Ball", "`ball` must be a mapping or null, but "
                         r"is the text 'Ball'. Write `{type: Ball}`\.$"),
    "number for list": (GOOD + "lengths: 3", r"`lengths` must .* is 3. Write `\[3\]`"),
    "number for pair": (GOOD + "pair: 3", r"`pair` must be a list, but is 3\.$"),
    "scalar for mapping": (GOOD + "weights: 3", "`weights` must be a mapping, but is"),
    "entry": (GOOD + "angles: [1, x]", r"`angles\[1\]` must be a number, but is the"),
    "flag": (GOOD + "flags: [1]", r"`flags\[0\]` must be true or false, but is 1"),
    "ragged": (
        GOOD + "angles: [[1], [2, 3]]",
        "`angles` must have rows of equal length",
    ),
    "length": (GOOD + "ranges: [[1]]", r"`ranges\[0\]` must have 2 entries, but has 1"),
    "value": (GOOD + "weights: {a: x}", "`weights.a` must be a number"),
    "union": (GOOD + "ball: 3", "`ball` must be a mapping or null, but is 3"),
    "twice": (GOOD + "angles: [1]\nangles_degrees: [1]",
              "line 4: It gives `angles` twice, also as `angles_degrees`"),
    "twice, unit first": (GOOD + "angles_degrees: [1]\nangles: [1]",
                          "line 4: It gives `angles_degrees` twice, also as `angles`"),
    "no type": ("shape: {}\ncount: 1", "line 1: `shape` must have the key `type`, one "
                "of Ball, Block"),
    "wrong type": ("shape: {type: Bal}\ncount: 1",
                   r"`shape.type` must be one of Ball, Block, but is 'Bal'.*`Ball`\?"),
    "not allowed": ("shape: {type: Secret}\ncount: 1", "must be one of Ball, Block"),
    "by path": ("shape: {type: os.system}\ncount: 1", "but is 'os.system'"),
    "other kind": (GOOD + "ball: {type: Block, sides: [1, 1, 1]}",
                   "`ball.type` must be one of Ball, but is 'Block'"),
    "type of a kind without others": (GOOD + "type: X", "line 3: It has the unknown "
                                      "key `type`; known are shape, count"),
    "near of its kind": (GOOD + "ball: {type: Black}", "of Ball, but is 'Black'[.]$"),
    "arrays": (GOOD + "angles: x", "must be a number or a list of numbers, but is"),
    "refused": ("count: 1\nshape:\n  type: Ball\n  radius: -1",
                "line 4: `shape` is refused: `radius` must be at least 0, but is -1"),
    "list": ("[1, 2]", "line 1: It must be a mapping, but is a list"),
    "empty": ("", "line 1: It must be a mapping, but is null"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_does_not_fit_is_named_with_its_line(build, name):
    text, message = FAULTS[name]
    with pytest.raises(PhysaxFileError, match=message):
        build(text)


def test_a_whole_without_type_needs_one(build):
    with pytest.raises(PhysaxFileError, match="must have the key `type`, one of Ball"):
        build("{radius: 1}", None)


def test_a_refusal_that_names_nothing_has_the_line_of_the_whole(build):
    def refuse(a: float):
        raise ArgumentError("Not today.")

    with pytest.raises(PhysaxFileError, match=r"line 1: It is refused: Not today\."):
        build("a: 1", refuse)


def test_a_refusal_has_the_line_of_the_first_key_that_it_names(build):
    def refuse(a: float, width: float, widths: float):
        raise ArgumentError("`Taper` must have `at.widths`, not `a`.")

    with pytest.raises(PhysaxFileError, match=r"line 3: It is refused: `Taper`"):
        build("a: 1\nwidth: 1\nwidths: 2", refuse)


def test_a_converted_key_is_found_by_the_name_of_its_parameter(build):
    def wants(phi0: float):
        return positive(phi0, "phi0")

    message = "line 2: It is refused: `phi0` must be positive"
    with pytest.raises(PhysaxFileError, match=message):
        build("\nphi0_degrees: -1", wants)


def test_a_value_that_no_file_can_hold_is_refused(build):
    def wants(function: Callable[[float], float]):
        return function

    with pytest.raises(PhysaxFileError, match="`function` must be a mapping, but is 3"):
        build("function: 3", wants)
