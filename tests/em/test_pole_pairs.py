"""Poles that are stepped once in two steps do what they do in each."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em import _pole_pairs
from physax.em._march import leap_of
from physax.em._program import build_program
from physax.em._simulation import with_steps
from tests.em.scenes import dispersive


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.x64,
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
    pytest.mark.filterwarnings("ignore:Dispersion 1 should end before the abs"),
]

# Derivatives by this adjoint are those of the steps one by one, and so is its run.
ONE_BY_ONE = em.Direct()


def agree(got, want, tolerance=1e-12):
    got, want = (jax.tree.leaves(eqx.filter(x, eqx.is_array)) for x in (got, want))
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        gap = np.linalg.norm(np.ravel(np.asarray(one) - np.asarray(other)))
        assert gap <= tolerance * np.linalg.norm(np.ravel(np.asarray(other)))


def answer(sim, **options):
    result = em.simulate(sim, **options)
    return result.fields, result.monitors


def stronger(sim, factor):
    return eqx.tree_at(
        lambda s: s.medium.dispersions[0].poles[0].strength,
        sim,
        replace_fn=lambda strength: factor * strength,
    )


@pytest.mark.parametrize(
    "scene",
    [
        "bloch",
        pytest.param("3-D", marks=pytest.mark.slow),
        pytest.param("rz", marks=pytest.mark.slow),
    ],
)
def test_pairs_of_steps_agree_with_steps_one_by_one(scene, monkeypatch):
    monkeypatch.setattr(_pole_pairs, "default_platform", lambda: "cpu")
    sim = with_steps(dispersive(scene), 31)
    assert leap_of(build_program(sim)) is not None
    # In pieces, of which all but the last end behind the first step of a pair.
    got = answer(sim, until=em.Decay(1e-30, check_every=7))
    agree(got, answer(sim, adjoint=ONE_BY_ONE))


@pytest.mark.slow
def test_batches_and_derivatives_of_pairs_are_those_of_each():
    sim = with_steps(dispersive("walls"), 9)
    factors = jnp.array([0.5, 2.0])
    got = jax.vmap(lambda factor: answer(stronger(sim, factor)))(factors)
    for i, factor in enumerate(factors):
        one = answer(stronger(sim, factor), adjoint=ONE_BY_ONE)
        agree(jax.tree.map(lambda x, i=i: x[i], got), one)

    def moved(**options):
        one = lambda factor: answer(stronger(sim, factor), **options)  # noqa: E731
        return jax.jvp(one, (1.0,), (1.0,))[1]

    agree(moved(), moved(adjoint=ONE_BY_ONE), 1e-10)
