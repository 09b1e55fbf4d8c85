"""Poles and tensors on any mesh: values, gradients, and runs that go on elsewhere."""

import jax
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.runtime import Checkpointing
from tests.em.scenes import CELL, PULSE, at, dispersive, enclosed, skewed
from tests.em.test_linear_tape import gradient
from tests.em.test_nonlinear import block
from tests.sharding.test_em_sharding import check_equal, cut


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
    # They end long before a wave could grow.
    pytest.mark.filterwarnings("ignore:Dispersion 1 should end before the abs"),
]


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(
    ("scene", "sizes"),
    [("walls", (2, 4)), ("bloch", (4, 2)), ("3-D", (2, 2, 2)), ("axial", (2, 2, 2))],
)
def test_any_mesh_agrees_with_one_device(scene, sizes):
    sim, tape = dispersive(scene), em.LinearTape()
    check_equal(gradient(sim, tape, layout=cut(sizes)), gradient(sim, tape))
    if scene == "walls":
        got = em.simulate(sim, layout=cut(sizes))
        check_equal(got.fields, em.simulate(sim).fields)


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize(("scene", "sizes"), [("walls", (2, 4)), ("3-D", (2, 2, 2))])
def test_tensors_on_any_mesh_agree_with_one_device(scene, sizes):
    sim, tape = skewed(scene, poles=scene == "walls"), em.LinearTape()
    check_equal(gradient(sim, tape, layout=cut(sizes)), gradient(sim, tape))


@pytest.mark.x64
def test_a_pair_of_axes_of_which_a_mesh_cuts_the_third_agrees_with_one_device():
    entries = np.random.default_rng(0).uniform(-0.1, 0.1, (6, 5, 8))
    entries[0] = entries[:, 0] = 0
    tensor = em.OffDiagonal(((0, 6), (0, 5), (0, 8)), {"xy": entries})
    sim = em.Simulation(
        Grid.uniform(entries.shape, CELL),
        em.Medium(2.0, off_diagonals=tensor),
        steps=10,
        sources={"in": em.Dipole("Ex", at(3, 3, 4), PULSE)},
    )
    got = em.simulate(sim, layout=cut((1, 1, 4)))
    check_equal(got.fields, em.simulate(sim).fields)


@pytest.mark.slow
@pytest.mark.x64
def test_a_wave_about_poles_and_tensors_on_a_mesh_agrees_with_one_device():
    sim, tape = enclosed(), em.LinearTape()
    check_equal(gradient(sim, tape, layout=cut((2, 4))), gradient(sim, tape))


@pytest.mark.slow
@pytest.mark.x64
def test_nonlinear_media_on_any_mesh_agree_with_one_device():
    one, chi3 = block()
    many, _ = block(layout=cut((4, 2)))
    want, slope = jax.jit(jax.value_and_grad(one))(chi3)
    found, cut_slope = jax.jit(jax.value_and_grad(many))(chi3)
    assert float(found) == pytest.approx(float(want), rel=1e-12)
    assert float(cut_slope) == pytest.approx(float(slope), rel=1e-10)


@pytest.mark.slow
@pytest.mark.f32
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(
    ("scene", "before", "after"),
    [("walls", (2, 4), None), ("walls", None, (2, 4)), ("rz", (2, 4), None)],
)
def test_run_goes_on_with_other_devices(scene, before, after, tmp_path):
    sim, before, after = dispersive(scene), before and cut(before), after and cut(after)
    want = em.run(sim, progress=False)

    class Stopped(Exception):
        pass

    def stop(step, state, info):
        del state, info
        if step >= 10:
            raise Stopped

    keep = Checkpointing(tmp_path, 5)
    with pytest.raises(Stopped):
        em.run(
            sim,
            progress=False,
            layout=before,
            checkpoint=keep,
            chunk=5,
            on_chunk=stop,
        )
    got = em.run(sim, progress=False, layout=after, checkpoint=keep)
    assert got.drive.step == want.drive.step
    for name, field in want.result.fields.items():
        found, field = np.asarray(got.result.fields[name]), np.asarray(field)
        # Fields keep the padding of the layout.
        gap = np.abs(found[tuple(map(slice, field.shape))] - field).max()
        assert gap <= 1e-6 * np.abs(field).max()
