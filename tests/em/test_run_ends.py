"""How driven runs end: decay, divergence, and what is warned of."""

import signal
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.runtime import Checkpointing, RunError, Status, load_checkpoint

from .runs import Crash, at, check_close, check_same_bits, crash_at, cut, line


# Most runs here are too short for their spectra.
pytestmark = pytest.mark.filterwarnings("ignore:The fields had not decayed")

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


def test_series_end_with_the_last_step_that_was_made():
    monitors = {
        "bell": em.TimeMonitor(("Ez", "Hy"), at(28), at(0), 7),
        "energy": em.EnergyMonitor(4),
    }
    sim = line(3000, monitors=monitors)
    driven = em.run(sim, until=UNTIL, progress=False)
    pure = em.simulate(sim, until=UNTIL).monitors
    made = driven.drive.step
    assert made < 2000
    for name, every in (("bell", 7), ("energy", 4)):
        got = driven.result.monitors[name]
        count = -(-made // every)
        lengths = {len(one) for one in jax.tree.leaves(got.times)}
        assert lengths == {count}
        # The same without a count of steps: no record of this wave is 0 exactly.
        check_same_bits(em.recorded(pure[name]), got)
        assert len(jax.tree.leaves(pure[name].times)[0]) == -(-3000 // every)
    assert float(driven.result.monitors["energy"].energy[-1]) > 0
    # A run that goes on has all of its records again.
    rest = em.run(em.with_steps(sim, 2000), state=driven.state, progress=False)
    whole = em.run(em.with_steps(sim, 2000), progress=False)
    check_same_bits(rest.result.monitors, whole.result.monitors)


def test_zeros_at_the_end_of_a_series_are_left_out():
    # A sum that overflowed was made, and zeros before it may be of dark fields.
    energy, times = jnp.array([0, 1, 0, jnp.inf, 0, 0]), jnp.arange(6.0)
    got = em.recorded(em.EnergySeries(times, energy))
    assert np.array_equal(got.energy, energy[:4])
    assert np.array_equal(got.times, times[:4])
    dark = em.EnergySeries(jnp.arange(3.0), jnp.zeros(3))
    assert len(em.recorded(dark).energy) == 3
    with pytest.raises(ArgumentError, match=r"from one run, .* shape \(2, 3\)"):
        em.recorded(jax.tree.map(lambda x: jnp.stack([x, x]), dark))
    with pytest.raises(ArgumentError, match="`series` must be known here"):
        jax.jit(em.recorded)(dark)


@pytest.mark.parametrize("how", ["checkpoint", "state"])
def test_going_on_without_the_peak_is_warned_of(tmp_path, how):
    """Without a rule or a spectrum a run does not look at its energy."""
    sim = eqx.tree_at(lambda s: s.monitors, line(5000), {})
    half = em.with_steps(sim, 900)
    keep = Checkpointing(tmp_path, 450) if how == "checkpoint" else None
    first = em.run(half, progress=False, checkpoint=keep)
    given = {"checkpoint": keep, "state": first.state if keep is None else None}
    with pytest.warns(PhysaxWarning, match="peak, which is not known before step 900"):
        got = em.run(sim, until=UNTIL, progress=False, **given)
    want = em.run(sim, until=UNTIL, progress=False)
    assert got.drive.first_step == 900
    assert got.drive.step > want.drive.step


def test_going_on_before_the_first_look_is_not_warned_of(tmp_path):
    sim, keep = line(5000), Checkpointing(tmp_path, 140)
    em.run(em.with_steps(sim, 140), progress=False, checkpoint=keep)
    want = em.run(sim, until=UNTIL, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = em.run(sim, until=UNTIL, progress=False, checkpoint=keep)
    assert (got.drive.first_step, got.drive.step) == (140, want.drive.step)


def test_a_run_that_was_interrupted_is_not_said_to_be_too_short():
    stop = {"chunk": 100, "on_chunk": lambda *_: signal.raise_signal(signal.SIGTERM)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = em.run(line(400), progress=False, throw=False, **stop)
    assert done.drive.status == Status.INTERRUPTED
    assert done.drive.step == 100
    with pytest.warns(PhysaxWarning, match="The fields had not decayed"):
        em.run(line(400), state=done.state, progress=False)


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
    reached = caught.value.result
    assert reached.drive.status == reached.result.status == Status.DIVERGED
    assert set(reached.result.monitors) == {"flux"}
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
    message = r"had not decayed when the run ended: .* \['flux'\] are truncated"
    with pytest.warns(PhysaxWarning, match=message):
        em.run(line(230), progress=False)
    with pytest.warns(PhysaxWarning, match=message):
        em.simulate(line(230))
    em.run(line(3000), progress=False)
    # Without spectra nothing is cut off.
    em.run(line(230, monitors={}), progress=False)


def test_a_run_without_sources_is_warned_of():
    with pytest.warns(PhysaxWarning, match=r"Without `sources` .* \['flux'\] are 0\."):
        em.run(line(230, sources={}), progress=False)


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


@pytest.mark.devices
def test_decay_stops_a_run_under_a_layout():
    sim = line(5000)
    alone = em.run(sim, until=UNTIL, progress=False)
    got = em.run(sim, until=UNTIL, progress=False, layout=cut(8))
    assert got.drive.status == Status.DECAYED
    assert got.drive.step == alone.drive.step
    check_close(got.state, alone.state)
