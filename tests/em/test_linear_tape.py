"""The linear tape agrees with differentiating the loop, wherever it is valid."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.em._program import build_program
from physax.em._simulation import with_steps
from physax.em._state import rest
from physax.em._step import half_step
from physax.em._stepper import along, bends_of, psi_name, slabs_of
from physax.em._transpose import transposed_half_step
from physax.grid import Grid
from tests.em.scenes import SCENES
from tests.em.test_gradients import LEAVES, base, objective


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


def linear(scene):
    """Returns a scene without the monitors that are not linear in the fields."""
    sim = SCENES[scene]()
    kept = {n: m for n, m in sim.monitors.items() if n != "energy"}
    return eqx.tree_at(lambda s: s.monitors, sim, kept)


def leaves_of(sim, medium=None):
    """Returns what the scenes differentiate: medium, dipole and wave."""
    found = {
        "permittivity": sim.medium.permittivity,
        "moment": sim.sources["dipole"].moment,
        "frequency": sim.sources["dipole"].pulse.frequency,
    }
    if "wave" in sim.sources:
        found["amplitude"] = sim.sources["wave"].amplitude
    if sim.medium.conductivity is not None:
        found["conductivity"] = sim.medium.conductivity
    medium = em.Medium() if medium is None else medium
    for number, one in enumerate(medium.dispersions):
        own = sim.medium.dispersions[number]
        parts = own.fraction if isinstance(own.fraction, dict) else {"": own.fraction}
        found |= {f"fraction {number}{name}": part for name, part in parts.items()}
        if isinstance(one.poles[0], em.Lorentz):
            found[f"strength {number}"] = own.poles[0].strength
    for number, _ in enumerate(medium.off_diagonals):
        inverse = sim.medium.off_diagonals[number].inverse
        found |= {f"{pair} {number}": entry for pair, entry in inverse.items()}
    return found


def with_leaves(sim, leaves):
    def where(s):
        found = leaves_of(s, sim.medium)
        return [found[name] for name in leaves]

    return eqx.tree_at(where, sim, list(leaves.values()))


def squares(result):
    total = 0.0
    for x in jax.tree.leaves((result.monitors, result.fields)):
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            continue
        scale = jax.lax.stop_gradient(jnp.max(jnp.abs(x)))
        total = total + jnp.sum(jnp.abs(x / jnp.where(scale > 0, scale, 1)) ** 2)
    return total


def gradient(sim, adjoint, loss=squares, **options):
    @jax.jit
    def slopes(leaves):
        def value(leaves):
            moved = with_leaves(sim, leaves)
            return loss(em.simulate(moved, adjoint=adjoint, **options))

        return jax.grad(value)(leaves)

    return slopes(leaves_of(sim, sim.medium))


def check(got, want, tolerance=1e-10):
    for name, slope in want.items():
        gap = np.linalg.norm(np.asarray(got[name] - slope))
        assert gap <= tolerance * np.linalg.norm(np.asarray(slope)), name


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("scene", ["1-D", "walls", "bloch", "rz", "absorbers"])
def test_tape_agrees_with_the_loop_itself(scene):
    sim = linear(scene)
    want = gradient(sim, em.Direct())
    check(gradient(sim, em.LinearTape()), want)
    if scene == "bloch":
        # Made again in chunks, of which the last is shorter.
        check(gradient(sim, em.LinearTape(every=7)), want)


@pytest.mark.slow
def test_tape_of_a_run_that_stops_early_agrees():
    sim = eqx.tree_at(
        lambda s: s.medium.conductivity,
        with_steps(base(), 200),
        replace_fn=lambda c: 10 * c,
    )
    # With ten times the loss the energy falls as soon as the pulse does.
    rule = em.Decay(0.9, check_every=10)
    assert em.run(sim, until=rule, progress=False).drive.step == 150

    def slope(adjoint):
        def value(eps):
            new = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
            return objective(em.simulate(new, adjoint=adjoint, until=rule))

        return jax.jit(jax.grad(value))(sim.medium.permittivity)

    want = slope(em.Direct())
    for adjoint in (em.LinearTape(), em.LinearTape(every=5)):
        np.testing.assert_allclose(
            slope(adjoint), want, atol=1e-10 * np.abs(want).max()
        )


@pytest.mark.slow
def test_design_regions_get_the_gradient_of_their_cells():
    sim = base()
    eps = sim.medium.permittivity
    boxes = (((2, 9), (0, 12)), ((12, 20), (8, 17)))
    regions = tuple(
        em.DesignRegion(box, eps[tuple(slice(*span) for span in box)]) for box in boxes
    )
    hidden = em.Medium(eps, conductivity=sim.medium.conductivity, regions=regions)

    def value(medium):
        return objective(
            em.simulate(
                eqx.tree_at(lambda s: s.medium, sim, medium), adjoint=em.LinearTape()
            )
        )

    plain, whole = jax.jit(jax.value_and_grad(value))(sim.medium)
    same, parts = jax.jit(jax.value_and_grad(value))(hidden)
    assert same == pytest.approx(float(plain), rel=1e-12)
    rest_of_grid = whole.permittivity
    for box, region in zip(boxes, parts.regions, strict=True):
        index = tuple(slice(*span) for span in box)
        want = whole.permittivity[index]
        scale = np.abs(want).max()
        np.testing.assert_allclose(region.permittivity, want, atol=1e-12 * scale)
        rest_of_grid = rest_of_grid.at[index].set(0)
    # What a region hides has no influence.
    np.testing.assert_allclose(
        parts.permittivity, rest_of_grid, atol=1e-12 * np.abs(rest_of_grid).max()
    )


@pytest.mark.slow
def test_narrow_tape_changes_the_gradient_by_less_than_one_per_cent():
    sim = base()

    def slope(adjoint):
        def value(eps):
            new = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
            return objective(em.simulate(new, adjoint=adjoint))

        return jax.jit(jax.grad(value))(sim.medium.permittivity)

    want = slope(em.LinearTape())
    gap = np.linalg.norm(slope(em.LinearTape("bfloat16")) - want)
    assert 1e-5 < gap / np.linalg.norm(want) < 1e-2
    gap = np.linalg.norm(slope(em.LinearTape("float32")) - want)
    assert gap / np.linalg.norm(want) < 1e-6


@pytest.mark.slow
def test_forward_mode_and_second_derivatives_agree():
    sim = with_steps(base(), 40)
    eps = sim.medium.permittivity
    direction = jnp.asarray(np.random.default_rng(4).normal(size=eps.shape))

    def value(eps, adjoint):
        new = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
        return objective(em.simulate(new, adjoint=adjoint)) * 1e6

    def along(f):
        return jax.jit(lambda e, d: jax.jvp(f, (e,), (d,))[1])(eps, direction)

    tape, loop = (partial(value, adjoint=a) for a in (em.LinearTape(), em.Direct()))
    first, bent = along(tape), along(jax.grad(tape))
    want_first, want_bent = along(jax.value_and_grad(loop))
    np.testing.assert_allclose(first, want_first, rtol=1e-10)
    np.testing.assert_allclose(bent, want_bent, atol=1e-10 * np.abs(want_bent).max())


@pytest.mark.slow
def test_what_no_component_sees_has_no_derivative():
    eps = {name: jnp.full((20, 20), 2.0) for name in ("Ex", "Ez")}

    def energy(ex):
        sim = em.Simulation(
            Grid.uniform((20, 20), 2e-8),
            em.Medium({"Ex": ex, "Ez": eps["Ez"]}),
            sources={"in": em.Dipole("Ez", (2e-7, 2e-7), em.GaussianPulse(3e14, 2e14))},
            steps=20,
            polarisation="Ez",
        )
        return jnp.sum(em.simulate(sim).fields["Ez"] ** 2)

    assert not jnp.any(jax.grad(energy)(eps["Ex"]))


@pytest.mark.slow
def test_gradients_batch():
    sim = with_steps(base(), 40)
    eps = sim.medium.permittivity
    batch = jnp.stack([eps, eps[::-1], 2 * eps])

    def value(eps):
        new = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
        return objective(em.simulate(new, adjoint=em.LinearTape())) * 1e6

    slope = jax.jit(jax.grad(value))
    want = jnp.stack([slope(one) for one in batch])
    got = jax.jit(jax.vmap(jax.grad(value)))(batch)
    np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(want).max())


@pytest.mark.slow
def test_gradient_outside_of_jit_keeps_no_states():
    sim = linear("Ez")

    def value(eps):
        new = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
        return em.simulate(new).monitors["flux"].flux[0]

    _, pull = jax.vjp(value, sim.medium.permittivity)
    kept = sum(x.nbytes for x in jax.tree.leaves(pull))
    assert kept <= em.adjoint_bytes(sim, em.LinearTape())


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("electric", [True, False])
@pytest.mark.parametrize("scene", SCENES)
def test_transposed_half_step_is_the_transpose(scene, electric):
    program = build_program(SCENES[scene]())
    state, stepper = rest(program), program.stepper
    back = eqx.tree_at(lambda s: s.block, stepper, stepper.block.mirrored())
    rows, parts = stepper.rows, stepper.components
    driven = parts.electric if electric else parts.magnetic

    def scaled(cotangents):
        return {name: rows[name].drive(ct) for name, ct in cotangents.items()}

    # What the layers remember has its cotangent times c / b, and none where c is 0.
    scales = {name: jnp.ones_like(x) for name, x in state.psi.items()}
    for term in parts.electric_terms if electric else parts.magnetic_terms:
        for side, _, layer in slabs_of(stepper.axes[term.axis], electric=electric):
            b, c = (along(x, term.axis, parts.ndim) for x in (layer.b, layer.c))
            scales[psi_name(term, side)] = jnp.where(b > 0, c / b, 0)
    for bend in bends_of(stepper, electric=electric):
        scales[bend.memory] = jnp.where(bend.b > 0, bend.c / bend.b, 0)

    def times(psi, power):
        return {
            name: jnp.where(scales[name] == 0, 0, x * scales[name] ** power)
            for name, x in psi.items()
        }

    random = np.random.default_rng(0)

    def noise(leaf):
        values = random.normal(size=(100, *leaf.shape))
        if jnp.iscomplexobj(leaf):
            values = values + 1j * random.normal(size=values.shape)
        return jnp.asarray(values, leaf.dtype)

    @jax.jit
    def gap(pair):
        x, y = ((fields, times(psi, 0)) for fields, psi in pair)
        forward = half_step(stepper, *x, electric=electric)
        fields, psi = transposed_half_step(
            back, scaled(y[0]), times(y[1], 1), electric=electric
        )
        psi = times(psi, -1)
        for name in driven:
            fields[name] = rows[name].kept(fields[name])
        # Undo the scale: `drive` divides by the row.
        fields = {
            name: ct / rows[name].drive(jnp.ones_like(ct))
            for name, ct in fields.items()
        }
        dot = lambda a, b: sum(  # noqa: E731
            jnp.sum(p * q)
            for p, q in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
        )
        norm = lambda a: jnp.sqrt(  # noqa: E731
            sum(jnp.sum(jnp.abs(p) ** 2) for p in jax.tree.leaves(a))
        )
        left, right = dot(forward, y), dot(x, (fields, psi))
        return jnp.abs(left - right) / (norm(forward) * norm(y))

    pairs = [jax.tree.map(noise, (state.fields, state.psi)) for _ in range(2)]
    gaps = jax.lax.map(gap, pairs)
    assert np.max(gaps) <= 1e-12


@pytest.mark.slow
def test_what_a_tape_cannot_do_is_refused_by_name():
    sim = with_steps(base(), 10)

    def grad(name):
        def value(leaf):
            new = eqx.tree_at(LEAVES[name], sim, leaf)
            return objective(em.simulate(new, adjoint=em.LinearTape()))

        return jax.grad(value)(LEAVES[name](sim))

    with pytest.raises(ArgumentError, match="time step or the layers.*Checkpointed"):
        grad("dt")
    with pytest.raises(ArgumentError, match="frequencies of a monitor.*Checkpointed"):
        grad("monitor")
    with pytest.raises(ArgumentError, match="'energy' records energy.*Checkpointed"):
        jax.grad(
            lambda moment: jnp.sum(
                em.simulate(
                    eqx.tree_at(
                        lambda s: s.sources["dipole"].moment, SCENES["Ez"](), moment
                    ),
                    adjoint=em.LinearTape(),
                )
                .monitors["time"]
                .values["Ez"]
            )
        )(1.0)
    with pytest.raises(ArgumentError, match="`dtype` of a tape.*'float16'"):
        em.LinearTape("float16")
    with pytest.raises(ArgumentError, match="`every` must be an integer"):
        em.LinearTape(every=0)


def test_design_regions_that_do_not_fit_are_refused():
    sim = base()
    eps = jnp.ones((4, 4))

    def build(*regions):
        em.Simulation(sim.grid, em.Medium(regions=regions), polarisation="Ez", steps=1)

    with pytest.raises(ArgumentError, match=r"must have the shape \(4, 5\)"):
        em.DesignRegion(((0, 4), (0, 5)), eps)
    with pytest.raises(ArgumentError, match="at least one cell"):
        em.DesignRegion(((4, 4), (0, 4)), eps)
    with pytest.raises(ArgumentError, match="pair of integers"):
        em.DesignRegion(((0, 4.5), (0, 4)), eps)
    with pytest.raises(ArgumentError, match="must be given"):
        em.DesignRegion(((0, 4), (0, 4)))
    with pytest.raises(ArgumentError, match=r"design region 0 must lie in the grid"):
        build(em.DesignRegion(((24, 28), (0, 4)), eps))
    with pytest.raises(ArgumentError, match="must not overlap"):
        build(
            em.DesignRegion(((0, 4), (0, 4)), eps),
            em.DesignRegion(((3, 7), (3, 7)), eps),
        )
    with pytest.raises(ArgumentError, match=r"positive and finite.*in cell \(1, 2\)"):
        em.DesignRegion(((0, 4), (0, 4)), eps.at[1, 2].set(-1))
