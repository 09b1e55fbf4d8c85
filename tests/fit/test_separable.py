"""Linear coefficients that are eliminated, against fits of all parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax._status import Status
from physax.fit import (
    LeastSquares,
    Mixing,
    Separable,
    identifiability,
    least_squares,
    shared,
)
from physax.fit._used import first_used
from tests.fit.decays import SIGMA, X, Y, problem


def decay(p, x):
    return jnp.exp(-p["b"] * x)


def test_one_set_is_the_joint_fit():
    apart = least_squares(Separable(decay, {"b": 2.0}, X, Y, offset=True), throw=True)
    joint = least_squares(problem(), throw=True)
    assert apart.linear_names == ("amplitude", "offset")
    rows = str(apart).splitlines()[-3:]
    assert [row.split()[0] for row in rows] == ["b", "amplitude", "offset"]
    assert all(" ± 0.00" in row and "bound" not in row for row in rows)
    np.testing.assert_allclose(apart.values, joint.values[1:2], rtol=1e-9)
    np.testing.assert_allclose(apart.linear, joint.values[jnp.array([0, 2])], rtol=1e-9)
    np.testing.assert_allclose(apart.chi2, joint.chi2, rtol=1e-10)
    order = np.array([0, 2, 1])
    np.testing.assert_allclose(
        apart.full_covariance, joint.covariance[order][:, order], rtol=1e-7
    )


@pytest.mark.slow
def test_known_deviations_are_weights():
    sigma = np.linspace(0.5, 2, X.size) * SIGMA
    apart = least_squares(
        Separable(
            decay, {"b": 2.0}, X, Y, offset=True, sigma=sigma, absolute_sigma=True
        ),
        throw=True,
    )
    joint = least_squares(
        problem(weights=1 / sigma**2, absolute_sigma=True), throw=True
    )
    np.testing.assert_allclose(apart.values, joint.values[1:2], rtol=1e-9)
    np.testing.assert_allclose(
        apart.standard_errors, joint.standard_errors[1:2], rtol=1e-7
    )


# Three curves with heights and offsets of their own and one rate.
HEIGHTS, OFFSETS = np.array([1.0, 2.0, 0.5]), np.array([0.1, 0.3, 0.2])
NOISE = np.random.default_rng(3).normal(size=(X.size, 3)) * SIGMA
CURVES = np.exp(-1.3 * X)[:, None] * HEIGHTS + OFFSETS + NOISE


def in_groups(p, x):
    return jnp.broadcast_to(jnp.exp(-p["b"] * x)[:, None], (x.size, 3))


def all_together(p, data):
    x, y = data
    return jnp.exp(-p["b"] * x)[:, None] * p["heights"] + p["offsets"] - y


def test_groups_have_coefficients_of_their_own():
    apart = least_squares(
        Separable(in_groups, {"b": 2.0}, X, CURVES, groups=3, offset=True), throw=True
    )
    start = {"b": 2.0, "heights": np.ones(3), "offsets": np.zeros(3)}
    joint = least_squares(LeastSquares(all_together, start, (X, CURVES)), throw=True)
    assert apart.linear_names == (
        *(f"amplitude[{i}]" for i in range(3)),
        *(f"offset[{i}]" for i in range(3)),
    )
    np.testing.assert_allclose(apart.values, joint.values[:1], rtol=1e-9)
    np.testing.assert_allclose(apart.linear, joint.values[1:], rtol=1e-9)
    order = np.array([1, 2, 3, 4, 5, 6, 0])
    np.testing.assert_allclose(
        apart.full_covariance, joint.covariance[order][:, order], rtol=1e-7
    )


@pytest.mark.slow
def test_mixing_of_all_groups_alike_is_one_group():
    apart = least_squares(
        Separable(
            in_groups, {"b": 2.0}, X, CURVES, groups=3, mixing=shared(3), offset=True
        ),
        throw=True,
    )
    flat = least_squares(
        Separable(decay, {"b": 2.0}, np.repeat(X, 3), CURVES.ravel(), offset=True),
        throw=True,
    )
    np.testing.assert_allclose(apart.values, flat.values, rtol=1e-9)
    np.testing.assert_allclose(apart.linear, flat.linear, rtol=1e-9)


@pytest.mark.slow
def test_coefficients_may_be_a_line_over_groups():
    place = np.array([-1.0, 0.0, 1.0])
    rows = np.stack([np.ones(3), place], axis=1)
    exact = np.exp(-1.3 * X)[:, None] * (2 + 0.5 * place) + (0.3 - 0.1 * place)
    result = least_squares(
        Separable(
            in_groups, {"b": 2.0}, X, exact, groups=3, mixing=Mixing(rows), offset=True
        ),
        throw=True,
    )
    np.testing.assert_allclose(result.values, [1.3], rtol=1e-10)
    np.testing.assert_allclose(result.linear, [2, 0.5, 0.3, -0.1], rtol=1e-9)


@pytest.mark.slow
def test_coefficients_out_of_bounds_become_parameters():
    # The offset would be 0.495.
    limits = (None, 0), (None, 0.4)
    apart = least_squares(
        Separable(decay, {"b": 2.0}, X, Y, offset=True, linear_bounds=limits),
        throw=True,
    )
    bounds = None, {"a": None, "b": None, "c": 0.4}
    joint = least_squares(problem(bounds=bounds), throw=True)
    assert float(apart.linear[1]) == 0.4
    np.testing.assert_allclose(apart.values, joint.values[1:2], rtol=1e-9)
    np.testing.assert_allclose(apart.linear[0], joint.values[0], rtol=1e-9)
    assert list(apart.held) == [False, True, False]
    np.testing.assert_allclose(
        apart.standard_errors, joint.standard_errors[1:2], rtol=1e-7
    )


def test_coefficients_between_equal_bounds_are_constants():
    # No value of the second curve counts, so that nothing pushes its coefficients.
    mask = np.broadcast_to([True, False, True], CURVES.shape)
    options = {"groups": 3, "offset": True, "mask": mask}
    limits = (2.0, 0.3), (2.0, 0.3)
    made = Separable(in_groups, {"b": 2.0}, X, CURVES, linear_bounds=limits, **options)
    result = least_squares(made, throw=True)
    assert list(result.held) == [True] * 6 + [False]
    np.testing.assert_array_equal(result.linear, [2.0] * 3 + [0.3] * 3)
    np.testing.assert_array_equal(result.linear_errors, np.zeros(6))
    assert int(result.degrees_of_freedom) == mask.sum() - 1
    assert made.needs_joint_fit(result.linear)


@pytest.mark.slow
def test_masked_values_may_be_nan():
    y = CURVES.copy()
    y[::7, 1] = np.nan
    mask = np.isfinite(y)
    result = least_squares(
        Separable(in_groups, {"b": 2.0}, X, y, groups=3, offset=True, mask=mask),
        throw=True,
    )
    assert int(result.count) == mask.sum()
    assert abs(float(result.values[0]) - 1.3) < 4 * float(result.standard_errors[0])


@pytest.mark.parametrize("fill", [np.nan, 1e12, 1e20])
def test_the_first_value_may_be_masked(fill):
    y = Y.copy()
    y[0] = fill
    made = Separable(decay, {"b": 2.0}, X, y, offset=True, mask=np.arange(X.size) > 0)
    rest = Separable(decay, {"b": 2.0}, X[1:], Y[1:], offset=True)
    found, wanted = (least_squares(one, throw=True) for one in (made, rest))
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-9)
    np.testing.assert_allclose(found.linear, wanted.linear, rtol=1e-9)


def test_the_first_value_that_counts_is_found_wherever_it_is():
    values = np.arange(12.0).reshape(4, 3)
    mask = np.zeros((4, 3), bool)
    mask[2, 1] = mask[3, 0] = True
    for used in (mask, jnp.asarray(mask)):
        assert first_used(values, used) == 7
        assert jax.jit(first_used)(values, used) == 7
    assert first_used(values, mask[:, 1:2]) == 6
    assert first_used(values) == 0


TWINS = {
    "equal": lambda p, x: jnp.stack([jnp.exp(-p["b"] * x)] * 2, -1),
    "zero": lambda p, x: jnp.stack([jnp.exp(-p["b"] * x), 0 * x], -1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_functions_that_depend_on_each_other_are_undetermined(name):
    names = ("one", "two")
    made = Separable(TWINS[name], {"b": 2.0}, X, Y - 0.5, functions=names)
    result = least_squares(made)
    assert result.status == Status.UNDETERMINED
    np.testing.assert_allclose(result.values, [1.3], atol=0.1)
    assert np.isinf(result.linear_errors[1])
    assert "two" in str(identifiability(result))


ERRORS = {
    "`start` must have a free parameter, .* `jnp.linalg.lstsq`": {
        "fixed": lambda p: p["b"]
    },
    "`sigma` must be positive, but is 0": {"sigma": np.zeros(X.size)},
    r"`sigma` must be finite where .* inf \(20 of 200\). .* `mask=np.isfinite\(sigma": {
        "sigma": np.where(np.arange(X.size) % 10, SIGMA, np.inf)
    },
    "`sigma` must be real, but has dtype complex128. Take": {"sigma": SIGMA + 0j},
    "`linear_bounds` must be in increasing order, but are 1 and 0": {
        "linear_bounds": (1.0, 0.0)
    },
    "`linear_bounds` must be numbers or None, but one of them is NaN": {
        "linear_bounds": (np.nan, None)
    },
    r"`linear_bounds` .* for each of the 1 coeff.* has 3\.": {
        "linear_bounds": (None, [0.0, 1.0, 2.0])
    },
    "`linear_bounds` must be a number, but is 'low'": {"linear_bounds": ("low", None)},
    r"`groups` must be .* `observed`, of shape \(200,\), but is 2\. Leave it out": {
        "groups": 2
    },
    "`mixing` must have a row for each of 1 groups, but has 2": {"mixing": shared(2)},
}


@pytest.mark.parametrize("message", ERRORS)
def test_what_does_not_fit_is_refused(message):
    with pytest.raises(ArgumentError, match=message):
        Separable(decay, {"b": 2.0}, X, Y, **ERRORS[message])


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_groups_are_the_second_axis_of_what_was_observed(groups):
    # Of 2 groups the fit would mix points and columns: 600 values also have 300 rows.
    with pytest.raises(ArgumentError, match=f"is {groups}. Write `groups=3`, or leave"):
        Separable(in_groups, {"b": 2.0}, X, CURVES, groups=groups)


def test_values_of_infinite_deviation_are_left_out_by_a_mask():
    sigma = np.where(np.arange(X.size) % 10, SIGMA, np.inf)
    made = Separable(decay, {"b": 2.0}, X, Y, sigma=sigma, mask=np.isfinite(sigma))
    assert int(least_squares(made).degrees_of_freedom) == 180 - 2


def wave(p, x):
    return jnp.exp(1j * p["k"] * x)


def parts_of_wave(p, x):
    e = wave(p, x)
    return jnp.stack([e, 1j * e], axis=-1).view(float).reshape(-1, 2, 2).mT


def test_complex_data_are_given_as_real_and_imaginary_parts():
    # All of a e^{i k x} with a = 2 e^{0.7 i}, which a real part alone does not show.
    observed = 2 * np.exp(1j * (1.3 * X + 0.7))
    message = r"`observed` must be real, but has dtype complex128. .*np.stack\(\[x.real"
    with pytest.raises(ArgumentError, match=message):
        Separable(wave, {"k": 1.2}, X, observed)
    with pytest.raises(ArgumentError, match="`basis` must be real, but has dtype comp"):
        least_squares(Separable(wave, {"k": 1.2}, X, np.real(observed)))
    apart = Separable(
        parts_of_wave,
        {"k": 1.2},
        X,
        np.stack([np.real(observed), np.imag(observed)], axis=-1),
        functions=["real", "imag"],
    )
    result = least_squares(apart, throw=True)
    np.testing.assert_allclose(result.values, [1.3], rtol=1e-9)
    expected = 2 * np.cos(0.7), 2 * np.sin(0.7)
    np.testing.assert_allclose(result.linear, expected, rtol=1e-9)


@pytest.mark.parametrize("columns", [2, 40])
def test_a_mask_of_points_is_not_one_of_values(columns):
    x, mask = np.linspace(0, 3, 40), np.ones(40, bool)
    values = np.exp(-x)[:, None] * np.ones(columns)
    with pytest.raises(ArgumentError, match=r"`mask` must have the shape \(40, .*None"):
        Separable(
            lambda p, x: jnp.exp(-p * x)[:, None] * jnp.ones(columns),
            0.5,
            x,
            values,
            functions=["a"],
            mask=mask,
        )


def test_errors_of_numpy_within_a_model_are_its_own():
    def basis(p, x):
        return [1.0, 2.0][np.array([0, 1])] * jnp.exp(-p * x)

    x = np.linspace(0, 3, 40)
    with pytest.raises(TypeError, match="only integer scalar arrays can be converted"):
        least_squares(Separable(basis, 0.5, x, np.exp(-x), functions=["a"]))
