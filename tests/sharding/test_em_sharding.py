"""The same step on any mesh: values, gradients, collectives, memory."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid, Layout
from physax.runtime import mesh
from tests.em.scenes import CELL, SCENES
from tests.em.test_linear_tape import linear


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


x64 = pytest.mark.x64
MESHES = [
    ("1-D", (8,)),
    ("3-D", (2, 2, 2)),
    ("Ez", (2, 1)),
    # A layer of 8 cells along x is thicker than a block of 6.
    pytest.param("Ez", (8, 1), marks=x64),
    ("Ez", (2, 4)),
    pytest.param("Hz", (4, 2), marks=x64),
    pytest.param("walls", (2, 4), marks=x64),
    pytest.param("bloch", (4, 2), marks=x64),
    pytest.param("absorbers", (4, 2), marks=x64),
    # A layer of 10 cells around the axis is thicker than a block of 8.
    pytest.param("rz", (4, 2), marks=x64),
    ("3-D", (1, 4, 1)),
    # A layer of 5 cells along the last axis is thicker than a block of 3.
    pytest.param("3-D", (1, 1, 4), marks=x64),
]


def cut(sizes):
    names = "xyz"[: len(sizes)]
    made = mesh(**dict(zip(names, sizes, strict=True)))
    return Layout(made, **{name: name for name in names})


def replaced(sim, eps, moment):
    if "mode" in sim.sources and eps.dtype == jnp.float32:
        # The derivative of a mode is a quotient by the gaps between eigenvalues, which
        # makes hundreds of roundings of one: in float32 leave the ports as they are.
        ports = jnp.arange(eps.shape[0])[:, None] <= 21
        eps = jnp.where(ports, jax.lax.stop_gradient(eps), eps)
    return eqx.tree_at(
        lambda s: (s.medium.permittivity, s.sources["dipole"].moment),
        sim,
        (eps, moment),
    )


def squares(result):
    """A loss that every monitor and the last fields enter, each at unit scale."""
    monitors = dict(result.monitors)
    if jnp.result_type(float) == jnp.float32:
        # Small differences of large products: their slopes have fewer sound digits.
        monitors = {k: m for k, m in monitors.items() if k not in ("flux", "modes")}
    total = 0.0
    for x in jax.tree.leaves((monitors, result.fields)):
        scale = jax.lax.stop_gradient(jnp.max(jnp.abs(x)))
        total = total + jnp.sum(jnp.abs(x / jnp.where(scale > 0, scale, 1)) ** 2)
    return total


@eqx.filter_jit
def run(sim, eps, moment, layout, adjoint=None):
    """Returns the result, and the gradient by permittivity and moment."""

    def loss(eps, moment):
        result = em.simulate(replaced(sim, eps, moment), layout=layout, adjoint=adjoint)
        return squares(result), result

    return jax.grad(loss, (0, 1), has_aux=True)(eps, moment)


def sim_of(scene):
    """Returns a scene and an adjoint that serves it."""
    # Energy is not linear in the fields, which the tape needs.
    return (SCENES[scene](), em.Direct()) if scene == "1-D" else (linear(scene), None)


_alone = {}


def on_one_device(scene):
    if scene not in _alone:
        sim, adjoint = sim_of(scene)
        moment = sim.sources["dipole"].moment
        _alone[scene] = run(sim, sim.medium.permittivity, moment, None, adjoint)
    return _alone[scene]


def check_equal(got, want):
    # Equal sums in another order: a few roundings of the largest value.
    narrow = jnp.result_type(float) == jnp.float32
    ordinary = 1e-6 if narrow else 1e-12
    leaves = zip(
        jax.tree_util.tree_leaves_with_path(want), jax.tree.leaves(got), strict=True
    )
    for (path, a), b in leaves:
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        # Fields keep the padding of the layout, whose cells never hold a field.
        inside = b[tuple(map(slice, a.shape))]
        assert np.sum(np.abs(b)) == pytest.approx(np.sum(np.abs(inside)))
        name = jax.tree_util.keystr(path)
        # A mode in float32 is known to a rounding of its matrix, of entries of 4, over
        # the gap between eigenvalues, some 0.03.
        tolerance = 1e-4 if narrow and "'modes'" in name else ordinary
        limit = tolerance * np.max(np.abs(a), initial=0.0)
        if a.dtype == bool:
            assert np.array_equal(inside, a)
            continue
        worst = np.max(np.abs(inside - a), initial=0.0)
        assert worst <= limit or np.isnan(a).all(), f"{name}: {worst} > {limit}"


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(("scene", "sizes"), MESHES)
def test_any_mesh_agrees_with_one_device(scene, sizes):
    sim, adjoint = sim_of(scene)
    eps, moment = sim.medium.permittivity, sim.sources["dipole"].moment
    got = run(sim, eps, moment, cut(sizes), adjoint)
    check_equal(got, on_one_device(scene))


KINDS = ("all-gather", "all-to-all", "collective-permute", "all-reduce")


def lines_of(text):
    """Returns the lines of a compiled program: inside its loops, and outside."""
    parts, name = {}, ""
    for line in text.splitlines():
        start = re.match(r"(?:ENTRY )?%?([\w.\-]+) .*\{$", line)
        if start:
            name = start[1]
        parts.setdefault(name, []).append(line)
    called = {
        name: set(re.findall(r"%([\w.\-]+)", " ".join(lines))) & set(parts)
        for name, lines in parts.items()
    }
    inside = set()
    todo = set(re.findall(r"(?:body|condition)=%?([\w.\-]+)", text))
    while todo:
        inside |= todo
        todo = set().union(*(called[name] for name in todo)) - inside
    found = [], []
    for name, lines in parts.items():
        found[name not in inside].extend(lines)
    return found


def collectives(text):
    """Counts collectives of a compiled program: inside its loops, and outside."""
    return [
        {
            kind: sum(bool(re.search(rf" {kind}(-start)?\(", line)) for line in lines)
            for kind in KINDS
        }
        for lines in lines_of(text)
    ]


@pytest.fixture(scope="module")
def sharded():
    """A sharded permittivity, and the compiled run and its gradient."""
    layout, sim = cut((4, 2)), SCENES["Ez"]()
    eps = jnp.pad(sim.medium.permittivity, ((0, 3), (0, 3)), mode="edge")
    grid = Grid.uniform(eps.shape, CELL)
    left_out = ("modes", "energy")
    monitors = {n: m for n, m in sim.monitors.items() if n not in left_out}
    sources = {n: m for n, m in sim.sources.items() if n != "mode"}
    sim = em.Simulation(
        grid,
        em.Medium(eps),
        sim.boundaries,
        polarisation="Ez",
        steps=30,
        sources=sources,
        monitors=monitors,
    )
    eps = jax.device_put(eps, layout.sharding(2))
    moment = sim.sources["dipole"].moment

    def value(eps, moment):
        return em.simulate(replaced(sim, eps, moment), layout=layout)

    def loss(eps, moment):
        return squares(value(eps, moment))

    forward = jax.jit(value).lower(eps, moment).compile()
    gradient = jax.jit(jax.grad(loss, (0, 1))).lower(eps, moment).compile()
    return eps, moment, forward, gradient


@pytest.mark.f32
def test_step_exchanges_one_plane_per_component_and_face(sharded):
    loop, rest = collectives(sharded[2].as_text())
    # Ez needs Hx and Hy of the neighbours before it along y and x, and they need Ez of
    # those after it: four planes cross, one per component and face.
    assert loop["collective-permute"] == 4
    # The one sum is the energy, for the look at its peak every so many steps.
    assert loop["all-reduce"] <= 1
    assert loop["all-gather"] == loop["all-to-all"] == 0
    assert rest["all-gather"] == rest["all-to-all"] == rest["collective-permute"] == 0


@pytest.mark.f32
def test_gradient_gathers_nothing_and_reduces_outside_the_loop(sharded):
    loop, rest = collectives(sharded[3].as_text())
    # Four planes forward and four back: nothing is replayed.
    assert loop["collective-permute"] == 8
    assert loop["all-reduce"] == loop["all-gather"] == loop["all-to-all"] == 0
    assert rest["all-gather"] == rest["all-to-all"] == rest["collective-permute"] == 0


@pytest.mark.f32
def test_fields_and_gradient_keep_the_sharding(sharded):
    eps, moment, forward, gradient = sharded
    for field in forward(eps, moment).fields.values():
        assert field.sharding.is_equivalent_to(eps.sharding, 2)
    slope = gradient(eps, moment)[0]
    assert slope.sharding.is_equivalent_to(eps.sharding, 2)
    assert slope.addressable_shards[0].data.shape == (12, 20)


def test_periodic_axis_that_the_mesh_does_not_divide_is_refused():
    sim = em.Simulation(
        Grid.uniform((30, 24), CELL),
        boundaries=em.Boundaries(x=em.Periodic()),
        polarisation="Ez",
        steps=1,
    )
    with pytest.raises(ValueError, match="along the periodic axis x must be a mul"):
        em.simulate(sim, layout=cut((4, 1)))
