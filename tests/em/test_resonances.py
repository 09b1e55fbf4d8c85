"""Resonances of made-up records, whose poles are known, and what is no record."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._status import RunError, Status
from physax.units import FEMTO, TERA


# The analysis is NumPy's, in float64 in every session.
pytestmark = pytest.mark.f32

DT = 0.2 * FEMTO
BAND = (150 * TERA, 250 * TERA)


def ringing(modes, count, noise=0.0, seed=0, dt=DT):
    """Returns the real sum of modes (frequency, Q, amplitude) in THz, and noise."""
    t = dt * np.arange(count)
    noise = noise * np.random.default_rng(seed).standard_normal(count)
    return sum(np.real(a * np.exp(pole(f, q) * t)) for f, q, a in modes) + noise


def pole(frequency, quality):
    """Returns the rate of a mode of a frequency in THz, exp(rate t)."""
    return -2j * np.pi * TERA * frequency * (1 - 0.5j / quality)


def series(values, times, name="Ez"):
    values, times = jnp.asarray(values), jnp.asarray(times)
    return em.TimeSeries({name: values}, {name: times}, {name: ()})


def batch():
    return jax.vmap(lambda values: series(values, jnp.arange(30.0)))(jnp.ones((2, 30)))


@pytest.mark.parametrize("count", [300, 3_000, 50_000])
def test_poles_of_a_clean_record_are_found_to_rounding(count):
    modes = [(180.0, 400.0, 1.0), (200.0, 3_000.0, 0.1j), (230.0, 900.0, -0.5)]
    found = em.resonances(ringing(modes, count), BAND, dt=DT)
    f, q, a = map(np.array, zip(*modes, strict=True))
    np.testing.assert_allclose(found.frequency, f * TERA, rtol=1e-10)
    np.testing.assert_allclose(found.quality, q, rtol=1e-7)
    np.testing.assert_allclose(found.decay, np.pi * f * TERA / q, rtol=1e-7)
    # s(t) = Re a exp(-i w t): phases too.
    np.testing.assert_allclose(found.amplitude[:, 0], a, rtol=1e-7)
    np.testing.assert_allclose(np.exp(1j * found.phase[:, 0]), a / abs(a), rtol=1e-7)
    np.testing.assert_array_equal(
        found.complex_frequency, found.frequency - 0.5j * found.decay / np.pi
    )
    assert found.time == 0
    assert np.all(found.error < 1e-10 * found.frequency)


def test_lines_closer_than_the_resolution_are_told_apart():
    # 3,000 samples over 600 fs resolve 1.7 THz in a spectrum.
    modes = [(200.0, 2_000.0, 1.0), (200.4, 2_500.0, 0.7)]
    found = em.resonances(ringing(modes, 3_000, 1e-6), BAND, dt=DT)
    np.testing.assert_allclose(found.frequency / TERA, [200.0, 200.4], atol=1e-4)


@pytest.mark.parametrize("noise", [1e-7, 1e-2])
def test_a_dense_spectrum_is_resolved(noise):
    # 40 modes, three widths of the resolution apart.
    step = 3 / (20_000 * DT) / TERA
    f = 200 + step * np.arange(40)
    record = ringing([(one, 2_000.0, 1.0) for one in f], 20_000, noise)
    found = em.resonances(record, ((f[0] - step) * TERA, (f[-1] + step) * TERA), dt=DT)
    np.testing.assert_allclose(found.frequency / TERA, f, atol=step / 20)
    np.testing.assert_allclose(found.amplitude, 1, atol=0.5 * noise + 1e-6)


def test_errors_are_those_that_noise_makes():
    modes = [(190.0, 500.0, 1.0), (210.0, 800.0, 0.5)]
    shift, claimed = [], []
    for seed in range(16):
        found = em.resonances(ringing(modes, 3_000, 0.1, seed), BAND, dt=DT)
        exact = 1j * np.array([pole(f, q) for f, q, _ in modes]) / (2 * np.pi)
        shift.append(np.abs(found.complex_frequency - exact))
        claimed.append(found.error)
    # The size of a complex error is sqrt(2) standard deviations of each part, of which
    # the claim also counts how poles move with the windows.
    ratio = np.sqrt(np.mean(np.square(shift), 0) / np.mean(np.square(claimed), 0))
    assert np.all((ratio > 0.5) & (ratio < 1.5))


@pytest.mark.parametrize("count", [200, 2_000])
def test_noise_has_no_resonances(count):
    for seed in range(6):
        noise = np.random.default_rng(seed).standard_normal(count)
        with pytest.raises(RunError, match="No resonance was found from 150 to 250"):
            em.resonances(noise, BAND, dt=DT)


def test_noise_adds_no_modes_to_a_record():
    for seed in range(6):
        record = ringing([(200.0, 1_000.0, 1.0)], 3_000, 0.3, seed)
        assert len(em.resonances(record, BAND, dt=DT).frequency) == 1


@pytest.mark.parametrize("parts", [2, 3, 4, 7])
def test_a_mode_on_the_border_of_two_parts_of_the_band_is_found_once(parts):
    # The band is cut into parts of 80 widths of the resolution.
    count = 40_000
    half = 0.5 * (80 * parts - 1) / (count * DT)
    band = np.array([200 * TERA - half, 200 * TERA + half])
    borders = np.linspace(*band, parts + 1)[1:-1] / TERA
    record = ringing([(f, 5_000.0, 1.0) for f in borders], count, 1e-3)
    found = em.resonances(record, band, dt=DT)
    np.testing.assert_allclose(found.frequency / TERA, borders, atol=1e-4)


def test_strong_modes_outside_of_the_band_do_not_disturb():
    modes = [(200.0, 1_000.0, 1e-3), (300.0, 3_000.0, 1.0), (20.0, 50.0, 10.0)]
    record = ringing(modes, 5_000) + 100.0
    found = em.resonances(record, BAND, dt=DT)
    assert found.frequency.shape == (1,)
    assert found.quality[0] == pytest.approx(1_000, rel=1e-4)
    assert abs(found.amplitude[0, 0]) == pytest.approx(1e-3, rel=1e-4)


def test_what_does_not_decay_and_what_grows_is_found():
    modes = [(180.0, np.inf, 1.0), (220.0, -1_000.0, 0.01)]
    found = em.resonances(ringing(modes, 3_000), BAND, dt=DT)
    assert abs(found.decay[0]) < 1e-9 * found.frequency[0]
    assert abs(found.quality[0]) > 1e9
    assert found.quality[1] == pytest.approx(-1_000, rel=1e-6)


def test_complex_records_tell_the_sign_of_the_frequency():
    t = DT * np.arange(3_000)
    record = 2 * np.exp(pole(200.0, 500.0) * t) + np.exp(-np.conj(pole(180.0, 300)) * t)
    record = record + np.exp(np.conj(pole(190.0, 400.0)) * t)
    found = em.resonances(record, BAND, dt=DT)
    np.testing.assert_allclose(found.frequency / TERA, [180.0, 200.0], rtol=1e-9)
    assert found.amplitude[1, 0] == pytest.approx(2, rel=1e-7)
    found = em.resonances(record, (-BAND[1], -BAND[0]), dt=DT)
    np.testing.assert_allclose(found.frequency / TERA, [-190.0], rtol=1e-9)
    assert found.quality[0] == pytest.approx(400, rel=1e-6)


@pytest.mark.parametrize("probes", [3, 40])
def test_probes_share_their_poles_and_have_amplitudes_of_their_own(probes):
    pattern = np.random.default_rng(0).standard_normal((2, probes))
    # Each mode has a node at one probe.
    pattern[0, 0] = pattern[1, 1] = 0
    values = [
        ringing([(190.0, 500.0, a), (191.0, 700.0, b)], 3_000, 1e-3, seed)
        for seed, (a, b) in enumerate(pattern.T)
    ]
    found = em.resonances(np.stack(values, axis=1), BAND, dt=DT)
    np.testing.assert_allclose(found.frequency / TERA, [190, 191], atol=2e-3)
    np.testing.assert_allclose(found.amplitude, pattern, atol=0.02)


def test_single_precision_is_enough():
    modes = [(190.0, 500.0, 1.0), (210.0, 800.0, 0.01)]
    record = ringing(modes, 5_000).astype(np.float32)
    found = em.resonances(jnp.asarray(record), BAND, dt=np.float32(DT))
    assert found.frequency.dtype == np.float64
    np.testing.assert_allclose(found.frequency / TERA, [190, 210], rtol=1e-6)
    np.testing.assert_allclose(found.quality, [500, 800], rtol=1e-4)


def test_times_of_a_series_are_used():
    modes = [(190.0, 500.0, 1j), (210.0, 800.0, 2.0)]
    electric = ringing(modes, 3_000).reshape(-1, 1, 1)
    # H half a step before E, and zeros from a run that stopped early.
    shifted = [(f, q, a * np.exp(-pole(f, q) * DT / 2)) for f, q, a in modes]
    magnetic = ringing(shifted, 3_000).reshape(-1, 1, 1)
    empty = np.zeros((500, 1, 1))
    t = DT * np.arange(3_500)
    both = (
        series(np.r_[electric, empty], t),
        series(np.r_[magnetic, empty], t - DT / 2, "Hx"),
    )
    signal = em.TimeSeries(
        *(
            {k: v for one in both for k, v in getattr(one, name).items()}
            for name in ("values", "times", "coordinates")
        )
    )
    found = em.resonances(signal, BAND, start=100 * DT)
    # The first sample that is not before the start is one of H.
    assert found.time == pytest.approx(100.5 * DT, rel=1e-4, abs=0)
    rates = np.array([pole(f, q) for f, q, _ in modes])
    expected = np.array([1j, 2.0]) * np.exp(rates * 100.5 * DT)
    np.testing.assert_allclose(found.amplitude, np.stack([expected] * 2, 1), rtol=1e-4)


def test_a_pulse_is_no_resonance_and_does_not_hide_one():
    t = np.arange(5_000) - 800
    pulse = np.exp(-((t / 120) ** 2) / 2) * np.cos(2 * np.pi * 0.04 * t)
    with pytest.raises(RunError):
        em.resonances(pulse, BAND, dt=DT)
    late = np.where(t > 0, np.exp(pole(200.0, 900.0) * DT * t).real, 0)
    found = em.resonances(pulse + late, BAND, dt=DT)
    assert found.quality[np.argmin(found.error)] == pytest.approx(900, rel=1e-3)


def test_long_records_are_cheap(monkeypatch):
    sizes, svd = [], np.linalg.svd

    def counted(matrix, **options):
        sizes.append(matrix.size)
        return svd(matrix, **options)

    monkeypatch.setattr(np.linalg, "svd", counted)
    record = ringing([(200.0, 5_000.0, 1.0)], 50_000, 1e-3)
    em.resonances(record, (190 * TERA, 210 * TERA), dt=DT)
    # A pencil of the whole record would have some 5e8 entries.
    assert 0 < max(sizes) < 1e6


def test_the_table_says_what_was_found():
    record = ringing([(200.0, 1_000.0, 1.0), (220.0, 500.0, 0.5)], 3_000)
    head, names, first, second = str(em.resonances(record, BAND, dt=DT)).splitlines()
    assert head == "2 resonances"
    assert "frequency (THz)" in names
    assert first.split()[0] == "200"
    assert first.split()[2:4] == ["1498.9623", "1000"]
    assert first.split()[5:] == ["0.62832", "1"]
    assert second.split()[3] == "500"


def test_a_loss_below_its_error_gives_a_bound_of_the_quality_factor():
    """A hundred periods of a loss that takes a million, in noise."""
    lines = [(200.0, 3e6, 1.0), (220.0, 500.0, 1.0)]
    record = ringing(lines, 3_000, 1e-3)
    found = em.resonances(record, BAND, dt=DT)
    assert found.quality_error / np.abs(found.quality) == pytest.approx(
        2 * np.pi * found.error / np.abs(found.decay), rel=1e-9
    )
    long, short = str(found).splitlines()[2:]
    quality, error = (float(x) for x in short.split()[3:5])
    assert abs(quality - 500) < 4 * error < 4
    assert long.split()[3] == ">"
    assert 1e5 < float(long.split()[4]) < 3e6
    # Ten times as long it is known, with its error.
    found = em.resonances(ringing(lines, 30_000, 1e-3), BAND, dt=DT)
    assert abs(found.quality[0] - 3e6) < 4 * found.quality_error[0] < 6e5
    assert ">" not in str(found)


RECORD = ringing([(200.0, 1_000.0, 1.0)], 2_000)


@pytest.mark.parametrize(
    ("signal", "options", "message"),
    [
        (RECORD, {"dt": None}, "`dt` must be given with an array"),
        (RECORD, {"dt": 0.0}, "`dt` must be positive and finite, but is 0 s"),
        (RECORD, {"band": BAND[::-1]}, "`band` must be a lower and a higher frequency"),
        (RECORD, {"band": (1.0, 2.0, 3.0)}, r"`band` must be .* but is \(1, 2, 3\)"),
        (RECORD, {"band": (1e14 + 1j, 2e14)}, "`band` must be real"),
        (RECORD, {"band": (0.0, 1e14)}, "`band` must begin above 0 Hz"),
        (
            RECORD,
            {"band": (1.5e-6, 1.6e-6)},
            r"`band` must be in Hz, .* but is \(1.5e-06, 1.6e-06\).* not wavelengths",
        ),
        (
            RECORD,
            {"band": (1e14, 3e15)},
            r"below the Nyquist frequency, 2.5e\+15 Hz .* every 2e-16 s",
        ),
        (
            RECORD,
            {"start": -DT},
            "`start` must be a time of at least 0 s, but is -",
        ),
        (
            RECORD,
            {"start": 1.0},
            "before the last sample, at 3.998e-13 s, but is 1",
        ),
        (RECORD, {"band": 1e14}, r"`band` must be a lower and .* but is \(1e\+14\)"),
        (RECORD, {"dt": 1j}, "`dt` must be real"),
        (RECORD, {"start": 1j}, "`start` must be real"),
        (RECORD, {"tolerance": 1j}, "`tolerance` must be real"),
        (RECORD, {"tolerance": 0.0}, "`tolerance` must be positive, but is 0.0"),
        (RECORD[:70], {}, "at least 100 samples for a band of 1e.14 Hz .* but has 70"),
        (RECORD, {"start": 1_950 * DT}, "at least 100 samples .* but has 50 from"),
        (RECORD[:8], {"band": (1e14, 2.4e15)}, "at least 20 samples"),
        (np.where(np.arange(2_000) == 7, np.nan, RECORD), {}, "its sample 7 is not"),
        (0 * RECORD, {}, "`signal` must not be zero throughout"),
        (np.zeros((0, 3)), {}, r"at least one probe, but has the shape \(0, 3\)"),
        (series(RECORD, DT * np.arange(2_000)), {}, "`dt` must be left out"),
        (
            series(RECORD[:1], np.zeros(1)),
            {"dt": None},
            "`signal` must have at least 2 samples, but has 1",
        ),
        (
            batch(),
            {"dt": None},
            r"`signal` must be from one run, but its times have shape \(2, 30\)",
        ),
    ],
)
def test_what_cannot_be_analysed_is_refused(signal, options, message):
    options = {"band": BAND, "dt": DT} | options
    with pytest.raises(ValueError, match=message):
        em.resonances(signal, options.pop("band"), **options)


def test_without_a_resonance_the_message_says_what_to_try():
    with pytest.raises(RunError, match="the best candidate, .* Run longer") as caught:
        em.resonances(RECORD, BAND, dt=DT, tolerance=1e-30)
    assert caught.value.status is Status.UNDETERMINED
    with pytest.raises(RunError, match="from 400 to 500 THz in 2000 samples"):
        em.resonances(RECORD, (400 * TERA, 500 * TERA), dt=DT)


def test_coinciding_modes_are_told_of():
    # At an exceptional point the field is t exp(-gamma t), which two modes of opposite
    # amplitudes approach the better the larger these are.
    t = DT * np.arange(6_000)
    record = t / t[-1] * np.exp(pole(200.0, 300.0) * t).real
    with pytest.raises(RunError, match=r"cancel, .* \(an exceptional point") as caught:
        em.resonances(record, BAND, dt=DT)
    assert "best candidate, 200 THz," in str(caught.value)
    assert "Run longer" not in str(caught.value)


def test_a_traced_record_is_refused():
    with pytest.raises(ValueError, match="`signal` must be known .* Call `reson"):
        jax.jit(lambda s: em.resonances(s, BAND, dt=DT).frequency)(RECORD)


def test_errors_are_not_below_the_rounding_of_the_times():
    clean = ringing([(200.0, 1_000.0, 1.0)], 2_000)
    exact = em.resonances(clean, BAND, dt=DT)
    assert exact.error[0] < 1e-12 * exact.frequency[0]
    times = (DT * np.arange(2_000)).astype(np.float32)
    narrow = em.TimeSeries({"Ez": jnp.asarray(clean)}, {"Ez": jnp.asarray(times)}, {})
    found = em.resonances(narrow, BAND, tolerance=np.float32(0.1))
    assert 1e-7 < found.error[0] / found.frequency[0] < 2e-7
    assert abs(found.frequency[0] - 200 * TERA) < found.error[0]
