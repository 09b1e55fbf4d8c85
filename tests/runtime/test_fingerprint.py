import cmath
import enum
import logging
import math
import subprocess
import sys
from fractions import Fraction
from functools import partial, singledispatchmethod
from pathlib import Path
from threading import Lock
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from beartype import beartype
from jaxtyping import jaxtyped

from physax._checks import ArgumentError
from physax.fit import Huber
from physax.runtime import fingerprint, mesh


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Problem(eqx.Module):
    values: jax.Array
    count: int = eqx.field(static=True, default=3)
    pulse: object = eqx.field(static=True, default=None)


@jax.tree_util.register_pytree_node_class
class Flow:
    def __init__(self, rate, kind):
        self.rate, self.kind = rate, kind

    def tree_flatten(self):
        return (self.rate,), self.kind

    @classmethod
    def tree_unflatten(cls, kind, children):
        return cls(children[0], kind)


def masked(*mask):
    return np.ma.array([1, 2], mask=mask)


def amplified(gain):
    return lambda t: gain * t


def enclosing(x):
    return lambda: x


def with_rule(rule):
    function = jax.custom_jvp(amplified(2.0))
    function.defjvp(rule)
    return function


def with_rules(backward):
    function = jax.custom_vjp(amplified(2.0))
    function.defvjp(lambda t: (t, None), backward)
    return function


def recursive():
    def count(n):
        return 0 if n == 0 else 1 + count(n - 1)

    return count


def made(base: Any = eqx.Module, **attributes) -> Any:
    # As from a file that was edited: always of the same name.
    return type(base)("Made", (base,), {"__module__": __name__, **attributes})


def opaque(method):
    # Its objects hold what nothing tells.
    return type("Law", (), {"__module__": __name__, "__call__": method})


def flow(**attributes):
    return jax.tree_util.register_pytree_node_class(made(Flow, **attributes))(1, "a")


def sized(scale):
    return made(__call__=lambda self, t: scale * t)()


def in_turn(*which):
    kinds = sized(1.0), sized(2.0)
    return [kinds[i] for i in which]


ONE = np.arange(6, dtype=np.float32)

# Everything here is a problem of its own; each entry is made anew when called.
PROBLEMS = {
    "base": lambda: Problem(jnp.asarray(ONE)),
    "one bit": lambda: Problem(jnp.asarray(ONE).at[3].add(2.0**-22)),
    "sign of zero": lambda: Problem(jnp.asarray(ONE).at[0].set(-0.0)),
    "shape": lambda: Problem(jnp.asarray(ONE).reshape(2, 3)),
    "order": lambda: Problem(jnp.asarray(ONE[::-1].copy())),
    "dtype": lambda: Problem(jnp.asarray(ONE).astype(jnp.int32)),
    "static": lambda: Problem(jnp.asarray(ONE), count=4),
    "type": lambda: (jnp.asarray(ONE), 3, None),
    "list": lambda: [jnp.asarray(ONE), 3, None],
    "function": lambda: Problem(jnp.asarray(ONE), pulse=jnp.sin),
    "other function": lambda: Problem(jnp.asarray(ONE), pulse=jax.nn.relu),
    "lambda": lambda: Problem(jnp.asarray(ONE), pulse=lambda t: t + 1),
    "other lambda": lambda: Problem(jnp.asarray(ONE), pulse=lambda t: t + 2),
    "closure": lambda: Problem(jnp.asarray(ONE), pulse=amplified(1.0)),
    "other closure": lambda: Problem(jnp.asarray(ONE), pulse=amplified(2.0)),
    "partial": lambda: Problem(jnp.asarray(ONE), pulse=partial(pow, 2)),
    "recursive": recursive,
    "jit": lambda: jax.jit(amplified(3.0)),
    "vmap": lambda: enclosing(jax.vmap(amplified(3.0))),
    "vmap of another": lambda: enclosing(jax.vmap(amplified(4.0))),
    "vmap by axes": lambda: enclosing(jax.vmap(amplified(3.0), in_axes=1)),
    "vmap to axes": lambda: enclosing(jax.vmap(amplified(3.0), out_axes=1)),
    "vmap by name": lambda: enclosing(jax.vmap(amplified(3.0), axis_name="i")),
    "grad": lambda: enclosing(jax.grad(amplified(3.0))),
    "grad of another": lambda: enclosing(jax.grad(amplified(4.0))),
    "grad of arguments": lambda: enclosing(jax.grad(amplified(3.0), argnums=(0,))),
    "value and grad": lambda: enclosing(jax.value_and_grad(amplified(3.0))),
    "grad and more": lambda: jax.value_and_grad(amplified(3.0), has_aux=True),
    "jit of vmap": lambda: jax.jit(jax.vmap(amplified(3.0))),
    "jit of vmap by axes": lambda: jax.jit(jax.vmap(amplified(3.0), in_axes=1)),
    "filtered jit": lambda: eqx.filter_jit(amplified(3.0)),
    "filtered jit of another": lambda: eqx.filter_jit(amplified(4.0)),
    "rule": lambda: with_rule(lambda t, d: (t[0], d[0])),
    "other rule": lambda: with_rule(lambda t, d: (t[0], 2 * d[0])),
    "backward rule": lambda: with_rules(lambda _, d: (d,)),
    "other backward rule": lambda: with_rules(lambda _, d: (2 * d,)),
    "module": lambda: enclosing(np),
    "other module": lambda: enclosing(math),
    "registered class": lambda: Flow(1.0, "grow"),
    "another beside its children": lambda: Flow(1.0, "decay"),
    "mask": lambda: masked(True, False),
    "other mask": lambda: masked(False, True),
    "structured": lambda: np.zeros(2, "i4,f4"),
    "structured otherwise": lambda: np.zeros(2, "f4,i4"),
    "method of an array": lambda: enclosing(np.ones(2).dot),
    "method of another": lambda: enclosing(np.zeros(2).dot),
    "built-in function": lambda: enclosing(math.sin),
    "the same name elsewhere": lambda: enclosing(cmath.sin),
    "path": lambda: Path("data/one.h5"),
    "other path": lambda: Path("data/two.h5"),
    "fraction": lambda: Fraction(1, 3),
    "other fraction": lambda: Fraction(2, 3),
    "key": lambda: jax.random.key(0),
    "other key": lambda: jax.random.key(1),
    "enumeration": lambda: Colour.RED,
    "other member": lambda: Colour.BLUE,
    "methods": lambda: sized(1.0),
    "other methods": lambda: made(__call__=lambda self, t: t)(),
    "constants of code": lambda: made(__call__=lambda self, t: 2 * t)(),
    "what methods enclose": lambda: sized(2.0),
    "class": lambda: type(sized(2.0)),
    "object in an object": lambda: Problem(jnp.asarray(ONE), pulse=sized(1.0)),
    "bound method": lambda: made(at=lambda self, t: 2 * t)().at,
    "other bound method": lambda: made(at=lambda self, t: 3 * t)().at,
    "methods of a base": lambda: made(made(__call__=lambda self, t: 2 * t))(),
    "other methods of a base": lambda: made(made(__call__=lambda self, t: 3 * t))(),
    "property": lambda: made(rate=property(lambda self: 2))(),
    "other property": lambda: made(rate=property(lambda self: 3))(),
    "static method": lambda: made(rate=staticmethod(lambda t: 2 * t))(),
    "other static method": lambda: made(rate=staticmethod(lambda t: 3 * t))(),
    "jitted method": lambda: made(rate=eqx.filter_jit(lambda self, t: 2 * t))(),
    "other jitted method": lambda: made(rate=eqx.filter_jit(lambda self, t: 3 * t))(),
    "constant of a class": lambda: made(RATES=(1.0, {"a": 2}))(),
    "other constant of a class": lambda: made(RATES=(1.0, {"a": 3}))(),
    "functions of a class": lambda: made(LAWS={"a": lambda t: 2 * t})(),
    "other functions of a class": lambda: made(LAWS={"a": lambda t: 3 * t})(),
    "jitted in a class": lambda: made(LAWS={"a": jax.jit(lambda t: 2 * t)})(),
    "other jitted in a class": lambda: made(LAWS={"a": jax.jit(lambda t: 3 * t)})(),
    "partial in a class": lambda: made(LAWS=(partial(max, 1),))(),
    "other partial in a class": lambda: made(LAWS=(partial(max, 2),))(),
    "modules of a class": lambda: made(LAWS=[eqx.nn.Lambda(lambda t: 2 * t)])(),
    "other modules of a class": lambda: made(LAWS=[eqx.nn.Lambda(lambda t: 3 * t)])(),
    "member in a class": lambda: made(KIND=Colour.RED)(),
    "other member in a class": lambda: made(KIND=Colour.BLUE)(),
    "built-in function of a class": lambda: made(LAW=max)(),
    "other built-in function of a class": lambda: made(LAW=min)(),
    "lock of a class": lambda: made(LAW=Lock())(),
    "law of a class": lambda: made(LAW=opaque(lambda self, t: 2 * t)())(),
    "other law of a class": lambda: made(LAW=opaque(lambda self, t: 3 * t)())(),
    "rates by law": lambda: made(RATES={amplified(2.0): 1.0, 0: 5})(),
    "other rates by law": lambda: made(RATES={amplified(2.0): 2.0, 0: 5})(),
    "rates by another law": lambda: made(RATES={amplified(3.0): 1.0, 0: 5})(),
    "dispatched": lambda: made(at=singledispatchmethod(lambda self, t: 2 * t))(),
    "dispatched otherwise": lambda: made(at=singledispatchmethod(lambda s, t: 3 * t))(),
    "registered": lambda: flow(at=lambda self, t: 2 * t),
    "registered otherwise": lambda: flow(at=lambda self, t: 3 * t),
    "classes in turn": lambda: in_turn(0, 1, 0),
    "classes in another turn": lambda: in_turn(0, 1, 1),
    "mapping": lambda: {"b": 1, "a": 2.5j},
    "set": lambda: frozenset({"x", "y", "z"}),
    "none": lambda: None,
    "empty": lambda: (),
}


def test_equal_problems_are_equal_and_others_are_not():
    digests = {name: fingerprint(make()).digest for name, make in PROBLEMS.items()}
    again = {name: fingerprint(make()).digest for name, make in PROBLEMS.items()}
    assert digests == again
    assert len(set(digests.values())) == len(PROBLEMS)


def test_host_and_device_arrays_of_any_layout_are_the_same():
    wanted = fingerprint(jnp.asarray(ONE).reshape(2, 3))
    assert fingerprint(np.asfortranarray(ONE.reshape(2, 3))) == wanted
    assert fingerprint(ONE.reshape(2, 3).astype(">f4")) == wanted


def test_bytes_between_fields_and_their_order_do_not_count():
    packed = np.array([(1, 2.0)], [("a", "i1"), ("b", "<f4")])
    aligned = np.full(8, 7, "u1").view(np.dtype("i1, <f4", align=True))
    aligned.dtype.names = "a", "b"
    aligned["a"], aligned["b"] = packed["a"], packed["b"]
    assert fingerprint(aligned) == fingerprint(packed)
    assert fingerprint(packed.astype([("a", "i1"), ("b", ">f4")])) == fingerprint(
        packed
    )


def test_order_of_a_mapping_does_not_count():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


def test_placement_does_not_count():
    placed = jax.device_put(ONE, jax.NamedSharding(mesh(1), jax.P("x")))
    assert fingerprint((placed, mesh(1))) == fingerprint((ONE, mesh(1, 1)))


def test_differences_are_named():
    here = fingerprint(PROBLEMS["base"](), steps=5)
    there = fingerprint(PROBLEMS["static"](), steps=5)
    assert here.differences(there) == {"problem.count": ("int 3", "int 4")}
    assert "tolerance" in here.differences(
        fingerprint(PROBLEMS["base"](), steps=5, tolerance=1e-3)
    )


def test_single_numbers_are_shown_and_told_by_their_last_bit():
    # Text that is read back must be the same number.
    for dtype in (np.float16, np.float32, np.float64):
        for value in (dtype(1 / 3), np.nextafter(dtype(1 / 3), dtype(1)), dtype(-0.0)):
            shown = fingerprint(np.array([value])).fields["problem"]
            kind, text = shown.split()
            assert kind == f"{np.dtype(dtype).name}[1]"
            assert dtype(text).tobytes() == value.tobytes()
    assert fingerprint(np.array(3)).fields["problem"] == "int64[] 3"
    assert "nan" not in fingerprint(np.array(np.nan)).fields["problem"]


def test_chosen_types_can_be_left_out():
    assert fingerprint((1, Colour.RED), ignore=(Colour,)) == fingerprint(
        (1, Colour.BLUE), ignore=(Colour,)
    )


def test_values_that_are_given_hide_defaults_of_their_class():
    kinds = [made(**{"__annotations__": {"n": int}, "n": n}) for n in (1, 2)]
    assert fingerprint(kinds[0](n=3)) == fingerprint(kinds[1](n=3))
    assert fingerprint(kinds[0]()) != fingerprint(kinds[1]())


def test_methods_of_libraries_do_not_count():
    # They would make an old checkpoint useless after each change of physax.
    for tree in (Huber(1.0), eqx.nn.Identity(), optax.adam(0.1), diffrax.Tsit5()):
        places = fingerprint(tree).fields
        assert not any(".class" in place for place in places)


def test_checks_of_types_do_not_count():
    def method(self, t: float):
        return 2 * t

    checked = beartype(method), jaxtyped(typechecker=beartype)(method)
    for one in checked:
        assert fingerprint(made(at=one)()) == fingerprint(made(at=method)())


def test_objects_of_a_class_without_identity_count_by_their_type():
    kept = made(log=logging.getLogger("any"), table={"a": object()})
    fields = fingerprint(kept()).fields
    assert fields["problem.class.log"] == "logging.Logger"
    assert fields["problem.class.table['a']"] == "builtins.object"
    # What they hold is unknown, also of the method of one.
    bound = made(warn=logging.getLogger("any").warning)
    assert fingerprint(bound()) == fingerprint(
        made(warn=logging.getLogger("other").warning)()
    )


BESIDE = {
    "jit": jax.jit(max),
    "jnp": jnp.sin,
    "numpy": np.sin,
    "built-in": max,
    "partial": partial(max, 1),
    "module": eqx.nn.Lambda(jnp.sin),
    "member": Colour.RED,
    "object": object(),
    "function": amplified(2.0),
    "list": [object(), {"lock": Lock()}],
    "compiled": np.random.normal,
    "reduction": np.mean,
    "enclosing": partial(print, file=sys.stderr),
}


@pytest.mark.parametrize("law", BESIDE.values(), ids=BESIDE)
def test_a_number_in_a_table_of_a_class_counts_beside_any_entry(law):
    one, other = (made(TABLE={"rate": rate, "law": law})() for rate in (1.0, 2.0))
    place = "problem.class.TABLE['rate']"
    assert fingerprint(one).differences(fingerprint(other)) == {
        place: ("float 1.0", "float 2.0")
    }
    lists = [made(TABLE=[rate, (law,)])() for rate in (1.0, 2.0)]
    assert fingerprint(lists[0]) != fingerprint(lists[1])


def test_a_name_must_not_hide_the_tree():
    for name in ("problem", "problem.count"):
        with pytest.raises(ArgumentError, match=f"`extra` must .* is `{name}`: choose"):
            fingerprint(ONE, ignore=(), **{name: 5})


def test_object_without_identity_is_refused_by_its_place():
    with pytest.raises(
        ArgumentError, match=r"`problem.pulse` must be an array.*object"
    ):
        fingerprint(Problem(jnp.asarray(ONE), pulse=object()))
    with pytest.raises(ArgumentError, match=r"numbers or text, but has dtype object"):
        fingerprint(np.array([None, "a"], object))


@pytest.mark.parametrize("wrap", [list, jax.jit, eqx.filter_jit, staticmethod, partial])
def test_what_a_method_encloses_is_not_told_by_its_type(wrap):
    function = enclosing(object())
    kept = made(law=function if wrap is list else wrap(function))
    with pytest.raises(ArgumentError, match=r"`problem.*\['x'\]` must be.*object"):
        fingerprint(kept())
    # Whether the class has been met before, as a constant of another, or not.
    for both in ([made(KIND=kept)(), kept()], [kept(), made(KIND=kept)()]):
        with pytest.raises(ArgumentError, match=r"\['x'\]` must be"):
            fingerprint(both)


@pytest.mark.slow
def test_another_process_finds_the_same():
    # The seed of Python's own hashes differs there, so the order of sets does.
    script = (
        "from physax.runtime import fingerprint\n"
        "import equinox as eqx, jax\n"
        "def amplified(gain): return lambda t: gain * t\n"
        "mapped = jax.jit(jax.vmap(jax.grad(amplified(2.0))))\n"
        "class Made(eqx.Module):\n"
        "    kinds = {int, float, str, bytes}\n"
        "    laws = {amplified(1.0): 2, len: 3, 'a': [object(), abs, jax.jit(max)]}\n"
        "    @jax.jit\n"
        "    def __call__(self): return super().__hash__(), {'x', 'y', 'z'}\n"
        "data = frozenset('abcdefgh'), 1.5, {'x': b'1'}\n"
        "problem = [data, amplified(2.0), mapped, Made()]\n"
        "print(fingerprint(problem).digest)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert len(runs[0].stdout.strip()) == 64
    assert runs[0].stdout == runs[1].stdout
