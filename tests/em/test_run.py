"""Driven runs: the same bits as `simulate`, whatever interrupts them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import PhysaxWarning
from physax.grid import Grid, Layout
from physax.runtime import (
    Checkpointing,
    FingerprintError,
    MemoryLimitError,
    RunError,
    Status,
    checkpoint_steps,
    latest_step,
    load_checkpoint,
    mesh,
    no_recompile,
)
from tests.em.scenes import bared


# Most runs here are too short for their spectra.
pytestmark = pytest.mark.filterwarnings("ignore:The fields had not decayed")

CELL = 20e-9
PULSE = em.GaussianPulse(2.1e14, 0.7e14)
# Without a static part, which leaves a layer slowly.
NARROW = em.GaussianPulse(2.1e14, 0.3e14)
FREQUENCIES = jnp.array([2.0e14, 2.2e14])
SCRIPT = Path(__file__).with_name("driven_light.py")


def at(*cells):
    return tuple(CELL * cell for cell in cells)


def everything(steps=230):
    """Every kind of source and monitor, a magnetic wall, loss; decimated monitors."""
    shape = (44, 30)
    rng = np.random.default_rng(0)
    eps = jnp.asarray(rng.uniform(1.0, 2.5, shape), float).at[:, 10:20].set(9.0)
    eps = eps.at[29:32].set(1.0)  # A beam wants one medium.
    eps = bared(eps, (16, 28), (21, 27))
    port = em.Port(at(12, 15), 16 * CELL, "+x", offset=8 * CELL)
    clear = em.Port(at(30, 15), 18 * CELL, "+x")
    return em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(eps, conductivity=1e3 * (eps - 1)),
        em.Boundaries(x=em.CPML(8), y=(em.CPML(8), em.PMC())),
        polarisation="Ez",
        steps=steps,
        sources={
            "dipole": em.Dipole("Ez", at(23.6, 14), PULSE, moment=1e-6),
            "mode": em.ModeSource(port, PULSE),
            "beam": em.GaussianBeam(clear, PULSE, waist=4 * CELL),
            "wave": em.PlaneWave("+x", "Ez", at(22, 24), at(12, 6), PULSE),
        },
        monitors={
            "fields": em.FieldMonitor(("Ez",), at(26, 18), at(12, 8), FREQUENCIES),
            "flux": em.FluxMonitor("x", at(26, 18), at(0, 16), FREQUENCIES),
            "time": em.TimeMonitor(("Ez", "Hy"), at(24, 18), at(4, 0), every=7),
            "modes": em.ModeMonitor(port, FREQUENCIES),
            "energy": em.EnergyMonitor(every=5),
        },
    )


def line(steps=230, **changes):
    """A one-dimensional scene whose monitor knows no length."""
    options = {
        "boundaries": em.Boundaries.all(em.CPML(10)),
        "sources": {"dipole": em.Dipole("Ez", at(20.4), NARROW)},
        "monitors": {"flux": em.FluxMonitor("x", at(28), at(0), FREQUENCIES)},
        "steps": steps,
        **changes,
    }
    return em.Simulation(Grid.uniform((48,), CELL), **options)


def check_same_bits(got, want):
    leaves = zip(
        jax.tree_util.tree_leaves_with_path(want), jax.tree.leaves(got), strict=True
    )
    for (path, a), b in leaves:
        assert a.dtype == b.dtype
        message = jax.tree_util.keystr(path)
        np.testing.assert_array_equal(b, a, err_msg=message)


@pytest.fixture(scope="module")
def whole():
    """The uninterrupted run of `everything`. Its fields had not decayed."""
    with pytest.warns(PhysaxWarning, match="had not decayed"):
        return em.run(everything(), progress=False, chunk=1000)


@pytest.mark.slow
def test_run_gives_the_bits_of_simulate(whole):
    check_same_bits(whole.result, em.simulate(everything()))
    assert np.isfinite(whole.result.residual)
    assert whole.drive.status == Status.SUCCESSFUL
    assert whole.drive.step == 230


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [7, 100, 163])
def test_length_of_chunks_does_not_matter(whole, chunk):
    with no_recompile():
        got = em.run(everything(), progress=False, chunk=chunk)
    check_same_bits(got.result, whole.result)
    check_same_bits(got.state, whole.state)


class Crash(Exception):
    pass


def crash_at(step):
    def on_chunk(now, state, info):
        if now >= step:
            raise Crash

    return on_chunk


@pytest.mark.slow
def test_resumed_run_gives_the_same_bits(whole, tmp_path):
    keep = Checkpointing(tmp_path, 50)
    for step in (60, 130):
        with pytest.raises(Crash):
            em.run(
                everything(),
                checkpoint=keep,
                progress=False,
                chunk=20,
                on_chunk=crash_at(step),
            )
    assert latest_step(tmp_path) == 100
    got = em.run(everything(), checkpoint=keep, progress=False)
    assert got.drive.first_step == 100
    check_same_bits(got.result, whole.result)
    check_same_bits(got.state, whole.state)


def test_run_goes_on_from_a_state():
    sim = line()
    first = em.run(em.with_steps(sim, 130), progress=False, throw=False)
    second = em.run(sim, state=first.state, start=130, progress=False)
    check_same_bits(second.state, em.run(sim, progress=False).state)


def test_another_length_compiles_nothing():
    em.run(line(100), progress=False)
    with no_recompile():
        em.run(line(163), progress=False)
        em.run(line(50), progress=False, chunk=9)


def test_another_problem_of_the_same_shape_compiles_nothing():
    em.run(line(100), progress=False)
    other = line(
        150,
        medium=em.Medium(2.0),
        sources={
            "dipole": em.Dipole("Ez", at(20.4), em.GaussianPulse(2e14, 5e13), 3.0)
        },
        dt=3e-17,
    )
    with no_recompile():
        em.run(other, progress=False)


def test_simulations_with_other_numbers_compile_nothing():
    def simulate(k):
        pulse = em.GaussianPulse((2 + 0.1 * k) * 1e14, 3e13)
        sim = line(
            100,
            medium=em.Medium(1 + 0.2 * k + jnp.linspace(0.0, 1.0, 48)),
            sources={"dipole": em.Dipole("Ez", at(20.4), pulse, moment=1.0 + k)},
            dt=(3 + 0.1 * k) * 1e-17,
        )
        return em.simulate(sim).fields["Ez"]

    first = simulate(0)
    with no_recompile():
        later = [np.asarray(simulate(k)) for k in range(1, 6)]
    assert all(not np.array_equal(first, one) for one in later)


@pytest.mark.parametrize("until", [None, em.Decay(1e-5, 100)])
def test_first_run_after_warm_up_compiles_nothing(until):
    # Of a shape that no other test has compiled.
    sim = em.Simulation(
        Grid.uniform((57 if until is None else 58,), CELL),
        boundaries=em.Boundaries.all(em.CPML(10)),
        sources={"dipole": em.Dipole("Ez", at(20.4), PULSE)},
        monitors={"flux": em.FluxMonitor("x", at(28), at(0), FREQUENCIES)},
        steps=3000,
    )
    em.warm_up(sim, until=until)
    with no_recompile():
        em.run(sim, until=until, progress=False)


def test_hook_sees_every_chunk():
    seen = []

    def on_chunk(step, state, info):
        seen.append((info.start, step, state.fields["Ez"].shape))

    em.run(line(70), progress=False, chunk=30, on_chunk=on_chunk)
    assert seen == [(0, 30, (48,)), (30, 60, (48,)), (60, 70, (48,))]


UNTIL = em.Decay(1e-6, 150)


def test_decay_stops_run_and_simulate_at_the_same_step():
    sim = line(5000)
    pure = em.simulate(sim, until=UNTIL)
    driven = em.run(sim, until=UNTIL, progress=False, chunk=40)
    assert driven.drive.status == Status.DECAYED
    assert driven.drive.step % 150 == 0
    assert 750 <= driven.drive.step < 2000
    check_same_bits(driven.result, pure)
    assert driven.result.residual <= 1e-6
    # One look earlier the fields were still alive, and one more step changes them.
    shorter = em.run(em.with_steps(sim, driven.drive.step - 1), progress=False)
    assert not np.array_equal(shorter.state.fields["Ez"], driven.state.fields["Ez"])


def test_decay_stops_a_resumed_run_at_the_same_step(tmp_path):
    sim, keep = line(5000), Checkpointing(tmp_path, 70)
    want = em.run(sim, until=UNTIL, progress=False)
    with pytest.raises(Crash):
        em.run(
            sim,
            until=UNTIL,
            progress=False,
            checkpoint=keep,
            chunk=50,
            on_chunk=crash_at(300),
        )
    got = em.run(sim, until=UNTIL, progress=False, checkpoint=keep)
    assert got.drive.first_step == 280
    assert got.drive.step == want.drive.step
    check_same_bits(got.result, want.result)


@pytest.mark.slow
def test_decay_waits_for_the_first_field():
    # The magnetic current of step 0 is exactly zero: the grid is empty at the first
    # look, and its energy is no more than a fraction of its peak.
    wave = em.ContinuousWave(2e14)
    sim = line(100, sources={"dipole": em.Dipole("Hy", at(20.5), wave)})
    until = em.Decay(1e-6, 1)
    got = em.run(sim, until=until, progress=False)
    assert got.drive.status == Status.MAX_STEPS
    pure = em.simulate(sim, until=until)
    # Two programs that need not round alike.
    assert float(pure.residual) == pytest.approx(float(got.result.residual), rel=1e-5)
    assert pure.residual > 0.1


def unstable():
    sim = line(5000)
    return eqx.tree_at(lambda s: s.dt, sim, 1.3 * sim.dt)


def test_divergence_stops_the_run_and_names_the_step(tmp_path):
    keep = Checkpointing(tmp_path, 10)
    # Whichever overflows first: a field, or the energy where it is watched.
    message = r"finite\. This was at step \d+ of 5000\. `state\.\w+.*` is (inf|nan)"
    with pytest.raises(RunError, match=message) as caught:
        em.run(unstable(), progress=False, checkpoint=keep)
    assert caught.value.status == Status.DIVERGED
    # The last good state is kept.
    last = load_checkpoint(tmp_path, at_most=5000)
    assert 0 < last.step < 5000
    assert all(np.isfinite(x).all() for x in last.arrays.values())


def test_divergence_is_in_the_status():
    got = em.run(unstable(), progress=False, throw=False)
    assert got.drive.status == got.result.status == Status.DIVERGED
    assert got.drive.step < 5000
    with pytest.warns(PhysaxWarning, match="The fields are not finite"):
        assert em.simulate(unstable()).status == Status.DIVERGED


@pytest.mark.filterwarnings("error:The fields had not decayed")
def test_fields_that_had_not_decayed_are_warned_of():
    message = r"had not decayed when the run ended: .* \['flux'\] are cut off"
    with pytest.warns(PhysaxWarning, match=message):
        em.run(line(230), progress=False)
    with pytest.warns(PhysaxWarning, match=message):
        em.simulate(line(230))
    em.run(line(3000), progress=False)
    # Without spectra nothing is cut off.
    em.run(line(230, monitors={}), progress=False)


@pytest.mark.slow
def test_a_pulse_that_outlasts_the_run_is_warned_of():
    slow = em.GaussianPulse(2.1e14, 2e8)
    source = {"in": em.Dipole("Ez", at(20.4), slow, moment=1e-12)}
    seen = {"flux": em.FluxMonitor("x", at(28), at(0), [2.1e14])}
    message = r"of source 'in' with a bandwidth of 2e\+08 Hz.* \['flux'\] lack the rest"
    for call in (em.simulate, em.run):
        with pytest.warns(PhysaxWarning, match=message):
            call(line(230, sources=source, monitors=seen))
    # A length that is ample is no lateness.
    ample = em.CustomPulse(
        lambda t: jnp.exp(-(((t - 3e-14) / 5e-15) ** 2)), 2.1e14, 1.0
    )
    source = {"in": em.Dipole("Ez", at(20.4), ample)}
    em.simulate(line(3000, sources=source, monitors=seen))


@pytest.mark.slow
@pytest.mark.parametrize("which", range(2), ids=["frequency", "bandwidth"])
def test_derivatives_by_the_pulse_of_a_run_that_decayed(which):
    # Nothing is left for a warning to stop at, and the pulse it looks at is traced.
    def flux(*numbers):
        source = {"in": em.Dipole("Ez", at(20.4), em.GaussianPulse(*numbers))}
        return em.simulate(line(3000, sources=source)).monitors["flux"].flux[0]

    numbers, step = np.array([2.1e14, 0.3e14]), 3e11
    shift = step * np.eye(2)[which]
    want = (flux(*(numbers + shift)) - flux(*(numbers - shift))) / (2 * step)
    got = jax.grad(flux, which)(*map(jnp.asarray, numbers))
    assert got == pytest.approx(float(want), rel=1e-2)


def test_checkpoint_of_another_problem_is_refused(tmp_path):
    keep = Checkpointing(tmp_path, 50)
    em.run(line(100), progress=False, checkpoint=keep)
    with pytest.raises(FingerprintError, match=r"medium\.permittivity"):
        em.run(line(100, medium=em.Medium(2.0)), progress=False, checkpoint=keep)
    assert checkpoint_steps(tmp_path) == (50, 100)


def test_memory_is_checked_before_anything_is_allocated():
    huge = em.Simulation(Grid.uniform((10**5,) * 3, CELL), steps=10)
    for call in (em.run, em.simulate, em.warm_up):
        with pytest.raises(MemoryLimitError, match="the state of this simulation"):
            call(huge)


def start(folder, stop):
    command = [sys.executable, str(SCRIPT), str(folder), str(stop)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


@pytest.mark.slow
@pytest.mark.f32
def test_sigterm_ends_the_run_in_time_with_a_checkpoint(tmp_path):
    process = start(tmp_path, 10**9)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert "INTERRUPTED" in out
    assert load_checkpoint(tmp_path).step == latest_step(tmp_path)


def cut(*sizes):
    made = mesh(**dict(zip("xy", sizes, strict=False)))
    return Layout(made, **{name: name for name in "xy"[: len(sizes)]})


def check_close(got, want):
    """Compares fields, which may be padded, and what the monitors have summed."""
    # In float32 the roundings of 230 steps, in sum their root times 1.2e-7.
    tolerance = 2e-6 if jnp.result_type(float) == jnp.float32 else 1e-12
    pairs = zip(
        jax.tree.leaves((want.fields, want.monitors)),
        jax.tree.leaves((got.fields, got.monitors)),
        strict=True,
    )
    for a, b in pairs:
        inside = np.asarray(b)[tuple(map(slice, a.shape))]
        assert np.max(np.abs(inside - a)) <= tolerance * np.max(np.abs(a))


@pytest.mark.slow
@pytest.mark.devices
@pytest.mark.parametrize(
    ("first", "second"),
    [
        # 44 by 31 samples: blocks of 6 cells, thinner than a layer of 8, and padding.
        (None, (8,)),
        ((2, 4), None),
    ],
)
def test_checkpoint_is_resumed_under_another_layout(whole, tmp_path, first, second):
    keep = Checkpointing(tmp_path, 110)
    layouts = [None if sizes is None else cut(*sizes) for sizes in (first, second)]
    with pytest.raises(Crash):
        em.run(
            everything(),
            checkpoint=keep,
            progress=False,
            layout=layouts[0],
            on_chunk=crash_at(110),
        )
    # A crash in the hook comes after the checkpoint of that step.
    assert latest_step(tmp_path) == 110
    got = em.run(everything(), checkpoint=keep, progress=False, layout=layouts[1])
    assert got.drive.first_step == 110
    check_close(got.state, whole.state)


@pytest.mark.slow
@pytest.mark.devices
def test_storing_and_loading_under_a_layout_changes_no_bit(tmp_path):
    sim, layout, keep = line(200), cut(8), Checkpointing(tmp_path / "one", 90)
    want = em.run(
        sim,
        checkpoint=Checkpointing(tmp_path / "two", 90),
        progress=False,
        layout=layout,
    )
    with pytest.raises(Crash):
        em.run(
            sim, checkpoint=keep, progress=False, layout=layout, on_chunk=crash_at(90)
        )
    got = em.run(sim, checkpoint=keep, progress=False, layout=layout)
    assert got.drive.first_step == 90
    check_same_bits(got.state, want.state)


@pytest.mark.devices
def test_decay_stops_a_run_under_a_layout():
    sim = line(5000)
    alone = em.run(sim, until=UNTIL, progress=False)
    got = em.run(sim, until=UNTIL, progress=False, layout=cut(8))
    assert got.drive.status == Status.DECAYED
    assert got.drive.step == alone.drive.step
    check_close(got.state, alone.state)


@pytest.mark.devices
def test_run_under_a_layout_compiles_nothing_after_warm_up():
    layout = cut(8)
    em.warm_up(line(100), layout=layout)
    with no_recompile():
        em.run(line(130), progress=False, layout=layout)
