"""Spectra of short records, beside those of long ones and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT, TERA


MODES = [(100 * TERA, 1 * TERA, 1.0), (123 * TERA, 0.7 * TERA, 0.6)]
DT = 1e-15
FREQUENCIES = np.linspace(90, 130, 41) * TERA


def ringing(count, dtype=float):
    """A record that rings at two frequencies, and its transform if it went on."""
    t = np.arange(count) * DT
    record, exact = np.zeros(count), 0
    z = np.exp(2j * np.pi * FREQUENCIES * DT)
    for f, decay, amplitude in MODES:
        record += amplitude * np.exp(-decay * t) * np.cos(2 * np.pi * f * t)
        for sign in (1, -1):
            one = np.exp((2j * np.pi * f * sign - decay) * DT)
            exact = exact + amplitude * DT / 2 / (1 - one * z)
    return record.astype(dtype), exact


def series(record, start=0.0):
    times = jnp.asarray(start + np.arange(len(record)) * DT)
    point = (jnp.zeros(1),)
    values = {"Ez": jnp.asarray(record)[:, None]}
    return em.TimeSeries(values, {"Ez": times}, {"Ez": point})


def test_short_record_gives_the_spectrum_of_all_the_ringing():
    record, exact = ringing(300)
    found = em.pade(series(record), FREQUENCIES)
    z = np.exp(2j * np.pi * FREQUENCIES * DT)
    transform = DT * np.polyval(record[::-1], z)
    peak = np.abs(exact).max()
    # 300 fs are a quarter of a lifetime.
    assert np.abs(transform - exact).max() > 0.7 * peak
    single = jnp.result_type(float) == jnp.float32
    tolerance = 2e-3 if single else 1e-8
    error = np.abs(np.asarray(found.fields.values["Ez"][:, 0]) - exact)
    assert error.max() < tolerance * peak
    assert np.max(np.asarray(found.change)) < tolerance
    # A time that does not begin at 0 turns the phase.
    late = em.pade(series(record, 20 * DT), FREQUENCIES).fields.values["Ez"][:, 0]
    turned = exact * np.exp(2j * np.pi * FREQUENCIES * 20 * DT)
    assert np.abs(np.asarray(late) - turned).max() < tolerance * peak


def test_a_record_that_is_too_short_says_so():
    random = np.random.default_rng(1).normal(size=60)
    assert np.max(np.asarray(em.pade(series(random), FREQUENCIES).change)) > 0.1


@pytest.mark.x64
@pytest.mark.parametrize("noise", [1e-5, 1e-3])
def test_the_error_is_as_large_as_it_says(noise):
    # With the last tenth alone left out it is up to 22 times as large.
    record, exact = ringing(100)
    ratios = []
    for seed in range(20):
        rough = record + noise * np.random.default_rng(seed).normal(size=100)
        found = em.pade(series(rough), FREQUENCIES)
        error = np.abs(np.asarray(found.fields.values["Ez"][:, 0]) - exact)
        ratios.append(error.max() / np.abs(exact).max() / float(found.change.max()))
    assert 0.1 < np.median(ratios) < 1
    assert max(ratios) < 7


def cavity(steps):
    """A half-wave gap between mirrors of two layers of index 3, from a pulse inside."""
    grid = Grid.centred((200,), MICRO / 60)
    glass = em.Material(9.0)
    scene = [
        em.Structure(em.Box(side * (0.25 + 1 / 24 + i / 3) * MICRO, MICRO / 12), glass)
        for side in (-1, 1)
        for i in (0, 1)
    ]
    unit = SPEED_OF_LIGHT / MICRO
    frequencies = unit * np.linspace(0.9, 1.1, 41)
    where = (0.1 * MICRO,), (0.0,)
    sim = em.Simulation(
        grid,
        em.rasterise(scene, grid),
        em.Boundaries.all(em.CPML(20)),
        sources={"dot": em.Dipole("Ez", (0.0,), em.GaussianPulse(unit, 0.1 * unit))},
        monitors={
            "bell": em.TimeMonitor(("Ez",), *where, every=6),
            "long": em.FieldMonitor(("Ez",), *where, frequencies),
        },
        steps=steps,
    )
    return frequencies, em.simulate(sim).monitors


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_spectrum_of_a_cavity_from_a_tenth_of_the_run():
    frequencies, whole = cavity(20_000)
    _, brief = cavity(2_000)
    wanted = np.asarray(whole["long"].values["Ez"]).ravel()
    cut = np.asarray(brief["long"].values["Ez"]).ravel()
    found = em.pade(brief["bell"], frequencies)
    seen = np.asarray(found.fields.values["Ez"]).ravel()
    peak = np.abs(wanted).max()
    change = float(found.change.max())
    if jnp.result_type(float) == jnp.float64:
        # The last tenth alone moves it by 1e-7. In float32 the long run rounds.
        assert np.abs(seen - wanted).max() < 3 * peak * change
        assert change < 1e-4
    else:
        # What is left out in turn is rounded, too: 2e-3, by how it is compiled.
        assert change < 1e-2
    assert np.abs(cut - wanted).max() > 0.2 * peak
    assert np.abs(seen - wanted).max() < 1e-3 * peak
    assert found.fields.coordinates["Ez"][0] == brief["bell"].coordinates["Ez"][0]


def test_what_is_refused():
    record, _ = ringing(300)
    with pytest.raises(ArgumentError, match="from 20 to 2000 records .* Ez has 10"):
        em.pade(series(record[:10]), FREQUENCIES)
    with pytest.raises(ArgumentError, match="Ez has 0"):
        em.pade(series(0 * record), FREQUENCIES)
    with pytest.raises(ArgumentError, match="must be finite"):
        em.pade(series(np.where(record > 1, np.nan, record)), FREQUENCIES)
    with pytest.raises(ArgumentError, match="half the sampling rate"):
        em.pade(series(record), [6e14])
    with pytest.raises(ArgumentError, match="`series` must be known .* outside"):
        jax.jit(lambda s: em.pade(s, FREQUENCIES).change)(series(record))
