"""Driven runs: the same bits as `simulate`, whatever interrupts them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from physax.runtime import (
    Checkpointing,
    FingerprintError,
    MemoryLimitError,
    Status,
    checkpoint_steps,
    latest_step,
    load_checkpoint,
    no_recompile,
)
from tests.em.scenes import bared

from .runs import (
    CELL,
    FREQUENCIES,
    PULSE,
    Crash,
    at,
    check_close,
    check_same_bits,
    crash_at,
    cut,
    line,
)


# Most runs here are too short for their spectra.
pytestmark = pytest.mark.filterwarnings("ignore:The fields had not decayed")

SCRIPT = Path(__file__).with_name("driven_light.py")


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
    second = em.run(sim, state=first.state, progress=False)
    check_same_bits(second.state, em.run(sim, progress=False).state)


def with_series():
    trace = em.TimeMonitor(("Ez",), at(30.4), (0.0,), every=7)
    return line(monitors={"trace": trace, "energy": em.EnergyMonitor(every=4)})


@pytest.mark.parametrize("steps", [130, 200])
def test_time_series_grow_with_a_run_that_goes_on(steps):
    sim = with_series()
    first = em.run(em.with_steps(sim, steps), progress=False, throw=False)
    second = em.run(sim, state=first.state, progress=False)
    whole = em.run(sim, progress=False)
    check_same_bits(second.result, whole.result)
    check_same_bits(second.state, whole.state)


def test_a_state_whose_memory_was_reused_is_refused():
    sim = with_series()
    state = em.initial_state(sim)
    copy = jax.tree.map(jnp.copy, state)
    em.advance(sim, state, 0, 2)
    with pytest.raises(ArgumentError, match=r"`state` must not be used twice"):
        em.run(sim, state=state, progress=False)
    em.run(em.with_steps(sim, 4), state=copy, progress=False, throw=False)


def test_a_state_of_another_simulation_is_refused():
    other = em.run(line(100), progress=False)
    with pytest.raises(ArgumentError, match=r"its `monitors\.\w+\.\w+` is missing"):
        em.run(with_series(), state=other.state, progress=False)


def test_steps_of_a_state_of_another_grid_are_refused():
    state = em.initial_state(line(100))
    wider = em.Simulation(Grid.uniform((90,), CELL), em.Medium(1.0), steps=4)
    with pytest.raises(
        ArgumentError, match=r"its `fields\.\w+` is float32\[\d+\], and"
    ):
        em.advance(wider, state, 0, 2)


def test_a_series_with_more_records_than_were_made_is_refused():
    first = em.run(em.with_steps(with_series(), 100), progress=False, throw=False)
    often = em.TimeMonitor(("Ez",), at(30.4), (0.0,), every=3)
    sim = line(monitors={"trace": often, "energy": em.EnergyMonitor(every=4)})
    message = "`every` of the monitor 'trace' must be that .* 34 records, and .* are 15"
    with pytest.raises(ArgumentError, match=message):
        em.run(sim, state=first.state, progress=False)


@pytest.mark.parametrize(("before", "after"), [(2, 4), (2, 3), (1, 7)])
def test_a_series_with_fewer_records_than_were_made_is_refused(before, after):
    def every(steps):
        trace = em.TimeMonitor(("Ez",), at(30.4), (0.0,), every=steps)
        return line(monitors={"trace": trace})

    first = em.run(em.with_steps(every(before), 100), progress=False, throw=False)
    least = -(-100 // after)
    message = rf"the monitor 'trace' must be that .* {least} records, .* are more\."
    with pytest.raises(ArgumentError, match=message):
        em.run(every(after), state=first.state, progress=False)


def test_a_run_does_not_go_back():
    first = em.run(em.with_steps(line(), 100), progress=False, throw=False)
    with pytest.raises(ArgumentError, match=r"`sim.steps` .* 100, .* but is 60\."):
        em.run(em.with_steps(line(), 60), state=first.state, progress=False)


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
def test_run_under_a_layout_compiles_nothing_after_warm_up():
    layout = cut(8)
    em.warm_up(line(100), layout=layout)
    with no_recompile():
        em.run(line(130), progress=False, layout=layout)
