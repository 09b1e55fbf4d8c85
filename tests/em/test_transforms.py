"""`simulate` under jit, vmap and grad."""

import re
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.em._simulate import check_types
from physax.grid import Grid
from tests.em.scenes import (
    CELL,
    FREQUENCIES,
    PULSE,
    at,
    bared,
    random_permittivity,
)


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


SHAPE = (24, 20)


@pytest.fixture(scope="module")
def sim():
    return em.Simulation(
        Grid.uniform(SHAPE, CELL),
        em.Medium(bared(random_permittivity(SHAPE), (8, 16), (7, 13))),
        em.Boundaries.all(em.CPML(5)),
        polarisation="Ez",
        steps=40,
        sources={
            "dipole": em.Dipole("Ez", at(10, 9.4), PULSE, 1e-6),
            "wave": em.PlaneWave("+x", "Ez", at(12, 10), at(8, 6), PULSE, 1e4),
        },
        monitors={
            "fields": em.FieldMonitor(("Ez",), at(14, 10), at(4, 4), FREQUENCIES),
            "flux": em.FluxMonitor("x", at(15, 10), at(0, 8), FREQUENCIES),
            "energy": em.EnergyMonitor(every=4),
        },
    )


def replaced(sim, eps, moment, amplitude):
    return eqx.tree_at(
        lambda s: (
            s.medium.permittivity,
            s.sources["dipole"].moment,
            s.sources["wave"].amplitude,
        ),
        sim,
        (eps, moment, amplitude),
    )


def run(sim, *numbers):
    result = em.simulate(replaced(sim, *numbers))
    return result.monitors, result.fields


def numbers(sim, scale=1.0):
    eps = 1 + scale * (sim.medium.permittivity - 1)
    return eps, jnp.asarray(1e-6 * scale), jnp.asarray(1e4 * scale)


def check_close(got, want):
    # Batched programs are compiled apart: some roundings in some tens of steps.
    tiny = 100 * jnp.finfo(jnp.result_type(float)).eps
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
    for a, b in pairs:
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tiny, atol=tiny * np.max(np.abs(b)))


def test_jit_changes_nothing(sim):
    check_close(jax.jit(run)(sim, *numbers(sim)), run(sim, *numbers(sim)))


def ringing(permittivity, until=None):
    """A dipole in a dielectric between walls that absorb; snapshots at every third."""
    shape = (16, 14)
    sim = em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(jnp.broadcast_to(permittivity, shape)),
        em.Boundaries.all(em.CPML(4)),
        polarisation="Hz",
        steps=400,
        sources={"dipole": em.Dipole("Hz", at(8, 7), em.GaussianPulse(4e14, 3e14))},
        monitors={"film": em.TimeMonitor(("Ex",), at(8, 7), at(4, 4), every=3)},
    )
    result = em.simulate(sim, until=until)
    return result.monitors["film"].values["Ex"], result.residual


BATCH = jnp.array([4.0, 1.0])
UNTIL = em.Decay(1e-3, check_every=20)


@pytest.mark.slow
def test_runs_of_a_batch_stop_one_by_one():
    films, residuals = jax.jit(jax.vmap(partial(ringing, until=UNTIL)))(BATCH)
    filled = jnp.sum(jnp.any(films != 0, (-1, -2)), -1)
    assert filled[0] < filled[1] < films.shape[1]
    for i, eps in enumerate(BATCH):
        check_close((films[i], residuals[i]), ringing(eps, UNTIL))


@pytest.mark.parametrize("until", [None, UNTIL], ids=["whole", "until"])
def test_a_batch_is_written_in_place(until):
    run = partial(ringing, until=until)
    one = str(jax.make_jaxpr(run)(BATCH[0]))
    many = str(jax.make_jaxpr(jax.vmap(run))(BATCH))
    scatters = [len(re.findall("= scatter", text)) for text in (one, many)]
    # The record of a film is the only one, inside a condition that is one for all.
    assert scatters == [0, 1]
    assert len(re.findall(r"= cond\[", many)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1, 2], ids=["permittivity", "moment", "wave"])
def test_vmap_stacks_runs(sim, which):
    one, two = numbers(sim), numbers(sim, 0.5)
    batch = list(one)
    batch[which] = jnp.stack([one[which], two[which]])
    axes = [0 if i == which else None for i in range(3)]
    got = jax.jit(jax.vmap(run, (None, *axes)))(sim, *batch)
    other = list(one)
    other[which] = two[which]
    alone = [run(sim, *one), run(sim, *other)]
    want = jax.tree.map(lambda *leaves: jnp.stack(leaves), *alone)
    check_close(got, want)


@pytest.mark.slow
def test_gradient_of_a_batch_is_the_batch_of_gradients(sim):
    # The default adjoint wants monitors that are linear in the fields.
    linear = {n: m for n, m in sim.monitors.items() if n != "energy"}
    sim = eqx.tree_at(lambda s: s.monitors, sim, linear)

    def loss(eps):
        monitors, fields = run(sim, eps, *numbers(sim)[1:])
        spectrum = jnp.sum(jnp.abs(monitors["fields"].values["Ez"] * 1e11) ** 2)
        return spectrum + jnp.sum((fields["Ez"] / 1e4) ** 2)

    eps = jnp.stack([numbers(sim)[0], numbers(sim, 0.5)[0]])
    got = jax.jit(jax.grad(lambda e: jnp.sum(jax.vmap(loss)(e))))(eps)
    slope = jax.jit(jax.grad(loss))
    check_close(got, jnp.stack([slope(one) for one in eps]))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_results_have_the_precision_of_the_run(polarisation):
    sim = em.Simulation(
        Grid.uniform((12, 12), CELL),
        boundaries=em.Boundaries.all(em.CPML(4)),
        polarisation=polarisation,
        steps=2,
        sources={"dipole": em.Dipole(polarisation, at(6, 6), PULSE)},
        monitors={
            "fields": em.FieldMonitor((polarisation,), at(6, 6), at(2, 2), FREQUENCIES)
        },
    )
    result = em.simulate(sim)
    real = jnp.result_type(float)
    assert {field.dtype for field in result.fields.values()} == {real}
    value = result.monitors["fields"].values[polarisation]
    assert value.dtype == jnp.result_type(real, jnp.complex64)


def test_simulation_may_be_built_inside_jit_around_a_traced_source():
    grid = Grid.uniform((40,), 2e-8)
    boundaries = em.Boundaries.all(em.CPML(10))
    pulse = em.GaussianPulse(3e14, 1e14)

    def last(moment):
        source = em.Dipole("Ez", (4e-7,), pulse, moment=moment)
        sim = em.Simulation(
            grid, em.Medium(2.0), boundaries, steps=60, sources={"in": source}
        )
        return em.simulate(sim).fields["Ez"]

    moment = jnp.asarray(1e-6)
    want = last(moment)
    near = 1e-6 * jnp.max(jnp.abs(want))
    np.testing.assert_allclose(jax.jit(last)(moment), want, atol=near)


KNOWN = [("adjoint", em.LinearTape()), ("until", None)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adjoint": em.LinearTape}, "`adjoint` must be .* forget to call it"),
        (
            {"adjoint": "direct"},
            "`adjoint` must be an `AbstractAdjoint`, but is a str. Write",
        ),
        ({"until": 1e-6}, "`until` must be a `Decay`, but is a float. Write `Decay"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused(options, message):
    sim = em.Simulation(
        Grid.uniform((30,), 2e-8), boundaries=em.Boundaries.all(em.CPML(10)), steps=3
    )
    with pytest.raises(ArgumentError, match=message):
        # Not by `simulate`: the type checker of the tests would be faster.
        check_types(sim, *(options.get(name, known) for name, known in KNOWN))


@pytest.mark.parametrize("every", [0, True])
def test_number_of_steps_that_is_none_is_refused(every):
    for adjoint in (em.LinearTape, em.Checkpointed):
        with pytest.raises(ArgumentError, match="`every` must be an integer of at"):
            adjoint(every=every)
