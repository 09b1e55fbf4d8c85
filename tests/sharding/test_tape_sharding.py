"""Adjoints on any mesh."""

import pytest

from physax import em
from tests.em import test_adjoints
from tests.em.test_adjoints import scene
from tests.em.test_linear_tape import gradient, linear
from tests.sharding.test_em_sharding import check_equal, cut


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.x64,
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


@pytest.mark.slow
def test_tape_made_again_on_a_mesh_agrees_with_one_device():
    sim = linear("bloch")
    tape = em.LinearTape(every=7)
    rule = em.Decay(0.5, check_every=5)
    want = gradient(sim, tape, until=rule)
    check_equal(gradient(sim, tape, until=rule, layout=cut((4, 2))), want)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adjoint", "kind", "sizes"),
    [
        # A layer of 5 cells along x is thicker than a block of 4.
        (em.Reversible(), "Ez", (8, 1)),
        (em.Reversible(), "3-D", (2, 2, 2)),
        (em.FrequencyDomain(), "Ez", (4, 2)),
    ],
)
def test_other_adjoints_agree_with_one_device(adjoint, kind, sizes):
    narrow = isinstance(adjoint, em.FrequencyDomain)
    sim = scene(kind, *((1500, 6e3, 5e13) if narrow else (60,)))
    want = test_adjoints.gradient(sim, adjoint)
    check_equal(test_adjoints.gradient(sim, adjoint, cut(sizes)), want)
