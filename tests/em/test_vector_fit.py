from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from physax import ArgumentError, PhysaxWarning, em
from physax.em._vector_fit import Samples, passive_residues
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


pytestmark = pytest.mark.f32

WAVES = np.linspace(0.4, 1.0, 41) * MICRO
FREQUENCIES = SPEED_OF_LIGHT / WAVES

# Gold: wavelength in um, n, k. Johnson and Christy, Phys. Rev. B 6, 4370 (1972).
GOLD = np.array(
    """
    0.3009 1.53 1.889   0.3204 1.54 1.898   0.3425 1.48 1.871   0.3679 1.48 1.895
    0.3974 1.47 1.952   0.4133 1.46 1.958   0.4305 1.45 1.948   0.4509 1.38 1.914
    0.4714 1.31 1.849   0.4959 1.04 1.833   0.5209 0.62 2.081   0.5486 0.43 2.455
    0.5821 0.29 2.863   0.6168 0.21 3.272   0.6595 0.14 3.697   0.7045 0.13 4.103
    0.7560 0.14 4.542   0.8211 0.16 5.083   0.8920 0.17 5.663   0.9840 0.22 6.350
    1.0880 0.27 7.150   1.2160 0.35 8.145   1.3930 0.43 9.519   1.6100 0.56 11.21
    1.9370 0.92 13.78
    """.split(),
    float,
).reshape(-1, 3)


def table(constant, poles, waves=WAVES):
    """n and k of known poles, in float64."""
    f = SPEED_OF_LIGHT / waves
    eps = np.full(f.shape, complex(constant))
    for pole in poles:
        if isinstance(pole, em.Drude):
            plasma, damping = float(pole.frequency), float(pole.damping)
            eps -= plasma**2 / (f * (f + 1j * damping))
        else:
            strength, f0 = float(pole.strength), float(pole.frequency)
            eps += strength * f0**2 / (f0**2 - f**2 - 1j * f * float(pole.damping))
    index = np.sqrt(eps)
    return index.real, index.imag


def losses_far_and_near(material):
    """The loss relative to the permittivity, over ten decades of frequency."""
    f = np.geomspace(1e9, 1e19, 20001)
    eps = np.asarray(em.complex_permittivity(replace(material, valid=None), f))
    return eps.imag / (1 + np.abs(eps))


KNOWN = {
    "one line": (2.0, [em.Lorentz(0.8, 5e14, 4e13)], 1),
    "free charges": (1.5, [em.Drude(2e15, 3e13)], 1),
    "a metal": (1.2, [em.Drude(2e15, 2e13), em.Lorentz(1.1, 6.2e14, 9e13)], 2),
    "two lines": (
        2.2,
        [em.Lorentz(0.3, 4.2e14, 2e13), em.Lorentz(0.5, 6.1e14, 5e13)],
        2,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_table_of_known_poles_is_recovered_by_as_many(name):
    constant, poles, count = KNOWN[name]
    n, k = table(constant, poles)
    fit = em.fit_material(WAVES, n, k, tolerance=2e-3)
    assert len(fit.material.poles) == count
    assert float(fit.rms_error) <= 2e-3
    assert np.allclose(np.asarray(fit.table), n + 1j * k, rtol=1e-6)
    # The material itself has these values, not only the curve that is reported.
    found = np.sqrt(np.asarray(em.complex_permittivity(fit.material, FREQUENCIES)))
    assert np.abs(found - np.asarray(fit.fitted)).max() < 1e-4
    assert float(fit.rms_n) < 5e-3
    assert float(fit.rms_k) < 5e-3
    assert losses_far_and_near(fit.material).min() > -1e-6


def test_poles_and_strength_of_a_line_are_found():
    line = em.Lorentz(0.8, 5e14, 4e13)
    fit = em.fit_material(WAVES, *table(2.0, [line]), poles=1)
    (pole,) = fit.material.poles
    decay = 2 * np.pi * 2e13
    assert float(pole.pole.real) == pytest.approx(-decay, rel=1e-3)
    assert abs(complex(pole.pole)) == pytest.approx(2 * np.pi * 5e14, rel=1e-4)
    assert float(fit.material.permittivity) == pytest.approx(2.0, rel=1e-3)
    wide = replace(fit.material, valid=None)
    static = complex(em.complex_permittivity(wide, 1e9))
    assert static.real == pytest.approx(2.8, rel=1e-3)


@pytest.mark.parametrize("k", [None, 0.1 * np.ones(41)])
def test_a_fit_holds_where_its_table_does(k):
    fit = em.fit_material(WAVES, np.linspace(1.6, 1.5, 41), k, poles=1)
    assert fit.material.valid == pytest.approx((0.4 * MICRO, 1.0 * MICRO), rel=1e-12)
    assert np.all(np.isfinite(em.complex_permittivity(fit.material, FREQUENCIES)))
    for wave in (0.39, 1.01):
        with pytest.raises(
            ArgumentError, match=r"between 0\.4 and 1 µm for `material`"
        ):
            em.complex_permittivity(fit.material, SPEED_OF_LIGHT / wave / MICRO)


def test_measured_gold_is_fitted_within_its_noise_and_absorbs_everywhere():
    waves, n, k = GOLD.T
    fit = em.fit_material(waves * MICRO, n, k, tolerance=0.03)
    # The table has errors of 0.02 in n and k: 1 to 4 % of the permittivity.
    assert float(fit.rms_error) <= 0.03
    assert len(fit.material.poles) <= 5
    assert float(fit.rms_n) < 0.05
    assert float(fit.rms_k) < 0.05
    assert float(fit.material.permittivity) >= 1
    assert losses_far_and_near(fit.material).min() > -1e-6


def test_unconstrained_residues_amplify_where_passive_ones_do_not():
    # A loss that ends inside the table: the fit swings below 0 beside it.
    x = np.linspace(0.6, 1.4, 41)
    loss = np.where(np.abs(x - 1) < 0.1, 1.0, 0.0)
    samples = Samples(x, 2.0 - 1j * loss, np.ones(len(x)))
    poles = np.array([-0.05 + 0.9j, -0.05 + 1.0j, -0.05 + 1.1j])
    one = 1 / (1j * x[:, None] - poles)
    other = 1 / (1j * x[:, None] - poles.conj())
    rows = np.concatenate([one + other, 1j * (one - other), np.ones((41, 1))], axis=1)
    matrix = np.concatenate([rows.real, rows.imag])
    wanted = np.concatenate([samples.values.real, samples.values.imag])
    free = rows @ np.linalg.lstsq(matrix, wanted)[0]
    assert (-free.imag).min() < -1e-2

    model = passive_residues(samples, poles)
    assert model is not None
    wide = np.concatenate([np.geomspace(1e-3, 1e3, 4001), np.linspace(0.5, 1.5, 4001)])
    assert (-model.at(wide).imag).min() > -1e-6
    assert model.constant >= 1
    # Among passive residues they are the best: another method finds none better.
    bound = np.geomspace(0.3, 3, 400)
    sides = 1 / (1j * bound[:, None] - poles), 1 / (1j * bound[:, None] - poles.conj())
    losses = -np.concatenate([sides[0] + sides[1], 1j * (sides[0] - sides[1])], 1).imag
    other = minimize(
        lambda y: np.sum((matrix @ y - wanted) ** 2),
        np.append(np.zeros(6), 1.5),
        jac=lambda y: 2 * matrix.T @ (matrix @ y - wanted),
        constraints=[
            {"type": "ineq", "fun": lambda y: losses @ y[:6]},
            {"type": "ineq", "fun": lambda y: y[6:] - 1},
        ],
        method="SLSQP",
        options={"maxiter": 500},
    )
    assert other.success
    missed = np.sum(np.abs(model.at(x) - samples.values) ** 2)
    assert missed == pytest.approx(other.fun, rel=1e-3)


@pytest.mark.parametrize("name", ["SiO2", "LiNbO3-o", "N-SF11"])
def test_without_losses_a_sellmeier_formula_is_found(name):
    waves = np.linspace(0.45, 1.6, 30) * MICRO
    eps = em.complex_permittivity(em.library(name), SPEED_OF_LIGHT / waves)
    n = np.sqrt(np.asarray(eps).real)
    fit = em.fit_material(waves, n)
    assert float(fit.rms_error) <= 1e-4
    assert all(isinstance(pole, em.Lorentz) for pole in fit.material.poles)
    assert np.abs(np.asarray(fit.fitted) - n).max() < 5e-4
    assert float(fit.rms_k) == 0
    # No resonance lies in the table.
    between = SPEED_OF_LIGHT / np.linspace(waves[0], waves[-1], 500)
    found = np.asarray(em.complex_permittivity(fit.material, between))
    assert np.all(found.real > 1)
    # Zeros of k are the same as none.
    same = em.fit_material(waves, n, np.zeros_like(n))
    assert float(same.rms_error) == float(fit.rms_error)


def test_an_index_without_dispersion_needs_no_poles():
    fit = em.fit_material(WAVES, np.full(41, 1.5))
    assert fit.material.poles == ()
    assert float(fit.material.permittivity) == pytest.approx(2.25)


def test_a_number_of_poles_is_taken_whatever_it_reaches():
    waves, n, k = GOLD.T
    fit = em.fit_material(waves * MICRO, n, k, poles=2)
    assert len(fit.material.poles) == 2
    assert 0.03 < float(fit.rms_error) < 0.2
    assert float(fit.rms_error) < float(fit.max_error)


@pytest.mark.parametrize(
    ("name", "longest", "rows", "tolerance", "count"),
    [("Ag", 1.0, 5, 2e-3, 2), ("Pt", 2.0, 7, 0.02, 3)],
)
def test_the_fewest_poles_that_reach_a_tolerance_are_found(
    name, longest, rows, tolerance, count
):
    waves = np.linspace(0.3, longest, rows) * MICRO
    frequencies = SPEED_OF_LIGHT / waves
    eps = np.asarray(em.complex_permittivity(em.library(name), frequencies))
    n, k = np.sqrt(eps).real, np.sqrt(eps).imag
    fit = em.fit_material(waves, n, k, tolerance=tolerance)
    assert len(fit.material.poles) == count
    found = np.asarray(em.complex_permittivity(fit.material, frequencies))
    assert np.sqrt(np.mean(np.abs(found / eps - 1) ** 2)) < tolerance
    fewer = em.fit_material(waves, n, k, poles=count - 1)
    assert float(fewer.rms_error) > tolerance
    # With all poles that so many rows allow it says what they reach.
    least = em.fit_material(waves, n, k, poles=count).rms_error
    message = f"with at most {count} poles.* error is {float(least):.3g}, with {count} "
    with pytest.raises(ArgumentError, match=message):
        em.fit_material(waves, n, k, tolerance=0.99 * float(least))


@pytest.mark.slow
def test_given_numbers_of_poles_are_refined():
    waves, n, k = GOLD[(GOLD[:, 0] > 0.49) & (GOLD[:, 0] < 1.1)].T
    fits = [em.fit_material(waves * MICRO, n, k, poles=count) for count in (3, 4, 5)]
    errors = np.array([float(fit.rms_error) for fit in fits])
    unrefined = np.array([0.0084, 0.0203, 0.0097])
    assert np.all(errors < 0.8 * unrefined), errors


def test_wavelengths_that_are_not_in_metres_are_warned_of():
    with pytest.warns(PhysaxWarning, match="should be in metres, but begin at 0.4 m"):
        em.fit_material(WAVES / MICRO, np.full(41, 1.5))


@pytest.mark.slow
def test_a_table_that_no_passive_medium_has_is_refused():
    # Strong absorption and no dispersion contradict Kramers and Kronig.
    k = np.where(np.arange(41) % 2, 2.0, 0.1)
    with pytest.raises(
        ArgumentError, match="reached with at most 8 poles.*best error is"
    ):
        em.fit_material(WAVES, np.full(41, 1.5), k)


ONES = np.ones(41)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wavelengths": WAVES[::-1]}, "positive and increasing, but entry 1"),
        ({"wavelengths": WAVES - 0.4 * MICRO}, "but entry 0 is 0 m"),
        ({"wavelengths": WAVES[:3]}, "have 3, 41 and 41 entries"),
        ({"wavelengths": WAVES.reshape(1, -1)}, r"has shape \(1, 41\)"),
        ({"n": np.where(np.arange(41) == 7, np.nan, 1.5)}, "entry 7 is nan"),
        ({"n": -ONES}, "`n` must be at least 0, but is -1 at 0.4 µm"),
        ({"n": ONES + 1j}, "must be a list of real numbers"),
        ({"n": 0 * ONES, "k": 0 * ONES}, "must not both be 0"),
        ({"k": -0.1 * ONES}, "`k` must be at least 0.*the medium is active"),
        ({"k": np.where(np.arange(41) == 3, np.inf, 0)}, "entry 3 is inf"),
        ({"poles": 0}, "`poles` must be an integer of at least 1, but is 0"),
        ({"poles": 21}, "must have at least 43 entries for 21 poles, but have 41"),
        ({"tolerance": 0.0}, r"`tolerance` must lie in \(0, 1\)"),
        ({"tolerance": float("nan")}, r"`tolerance` must lie in \(0, 1\)"),
    ],
)
def test_a_bad_table_is_refused(change, message):
    given = {"wavelengths": WAVES, "n": 1.5 * ONES, "k": 0.1 * ONES, **change}
    waves, n, k = (given.pop(name) for name in ("wavelengths", "n", "k"))
    with pytest.raises(ArgumentError, match=message):
        em.fit_material(waves, n, k, **given)


def test_two_rows_are_too_few():
    with pytest.raises(ArgumentError, match="of at least 3, but have 2, 2 and 2"):
        em.fit_material([500 * NANO, 600 * NANO], [1.5, 1.5])


def test_a_traced_table_is_refused():
    with pytest.raises(ArgumentError, match="`n` must be known here"):
        jax.jit(lambda n: em.fit_material(WAVES, n).rms_error)(jnp.ones(41))
