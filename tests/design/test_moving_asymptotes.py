"""The method of moving asymptotes on problems whose optimum is published or known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from physax import PhysaxError
from physax.design import MovingAsymptotes, optimise


METHODS = [MovingAsymptotes(), MovingAsymptotes(conservative=10)]
optimise_quietly = lambda *args, **kwargs: optimise(*args, progress=False, **kwargs)  # noqa: E731

# Float32 rounds objectives and constraints to 1e-7 of their size.
DIGITS = 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_the_cantilever_beam_of_1987(method):
    # Five hollow elements: weight 0.0624 sum x_j under sum c_j / x_j^3 <= 1. Svanberg
    # (1987), section 6: 1.33996 at (6.016, 5.309, 4.494, 3.502, 2.153), from 1.560 at
    # x = 5. By Lagrange: x_j ~ c_j^(1/4), which gives 1.339957 and these digits.
    c = jnp.array([61.0, 37.0, 19.0, 7.0, 1.0])
    result = optimise_quietly(
        lambda x, beta: 0.0624 * jnp.sum(x),
        jnp.full(5, 5.0),
        constraints=lambda x, beta: jnp.sum(c / x**3) - 1,
        optimiser=method,
        bounds=(1.0, 10.0),
        steps=25,
    )
    assert result.history.objective[0] == pytest.approx(1.560, abs=1e-3)
    assert result.history.objective[-1] == pytest.approx(1.339957, rel=DIGITS)
    assert np.abs(result.history.constraints[-1]).max() < DIGITS
    published = [6.016, 5.309, 4.494, 3.502, 2.153]
    assert np.allclose(result.parameters, published, atol=5e-3)


@pytest.mark.x64
@pytest.mark.parametrize("method", METHODS)
def test_the_two_bar_truss_of_1987(method):
    # Svanberg (1987), section 6: weight 1.51 at x = (1.41, 0.38), both stress
    # constraints written out. By hand the first is active and the optimum is 1.5086.
    def weight(x, beta):
        return x[0] * jnp.sqrt(1 + x[1] ** 2)

    def stress(x, beta):
        common = 0.124 * jnp.sqrt(1 + x[1] ** 2)
        return (
            common * jnp.array([8, 8]) / x[0]
            + common * jnp.array([1, -1]) / (x[0] * x[1])
            - 1
        )

    result = optimise_quietly(
        weight,
        jnp.array([1.5, 0.5]),
        constraints=stress,
        optimiser=method,
        bounds=(jnp.array([0.2, 0.1]), jnp.array([4.0, 1.6])),
        steps=25,
    )
    assert result.history.objective[-1] == pytest.approx(1.5087, abs=2e-4)
    assert np.allclose(result.parameters, [1.41, 0.38], atol=0.01)


@pytest.mark.x64
def test_the_largest_of_several_objectives_is_minimised():
    # Three parabolas: by symmetry the largest is least where all three are equal, at
    # the centre of the circle through their vertices, with the squared radius -2 lower.
    vertices = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    result = optimise_quietly(
        lambda x, beta: jnp.sum((x - vertices) ** 2, axis=1) - 2,
        jnp.array([0.9, 0.2]),
        optimiser=MovingAsymptotes(),
        bounds=(-1.0, 2.0),
        steps=40,
    )
    assert result.history.objective[-1] == pytest.approx(0.5 - 2, abs=1e-3)
    assert np.allclose(result.parameters, [0.5, 0.5], atol=2e-3)


@pytest.mark.x64
def test_bounds_without_constraints():
    # A separable parabola: the optimum is its vertex, cut off at the bounds.
    vertex = jnp.array([-1.0, 0.3, 0.7, 2.0])
    result = optimise_quietly(
        lambda x, beta: jnp.sum((x - vertex) ** 2),
        jnp.full(4, 0.5),
        optimiser=MovingAsymptotes(),
        bounds=(0.0, 1.0),
        steps=30,
    )
    assert np.allclose(result.parameters, [0, 0.3, 0.7, 1], atol=1e-3)


@pytest.mark.slow
@pytest.mark.x64
def test_many_parameters_and_two_constraints_agree_with_another_solver():
    # A convex problem of 30 parameters; SLSQP of SciPy solves it to 1e-9.
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 3, 30), rng.uniform(0.5, 2, (2, 30))

    def figure(x):
        return np.sum(a / x)

    exact = scipy.optimize.minimize(
        figure,
        np.full(30, 0.3),
        jac=lambda x: -a / x**2,
        bounds=[(0.05, 1.0)] * 30,
        constraints=[
            {"type": "ineq", "fun": lambda x: 15 - b @ x, "jac": lambda x: -b}
        ],
        options={"ftol": 1e-12, "maxiter": 300},
    )
    result = optimise_quietly(
        lambda x, beta: jnp.sum(a / x),
        jnp.full(30, 0.3),
        constraints=lambda x, beta: jnp.asarray(b) @ x - 15,
        optimiser=MovingAsymptotes(),
        bounds=(0.05, 1.0),
        steps=40,
    )
    assert result.history.objective[-1] == pytest.approx(exact.fun, rel=1e-4)
    assert np.allclose(result.parameters, exact.x, atol=2e-3)


@pytest.mark.slow
@pytest.mark.x64
def test_conservative_steps_descend():
    # Rosenbrock's valley: the plain method jumps across it, the conservative does not.
    result = optimise_quietly(
        lambda x, beta: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2,
        jnp.array([-1.2, 1.0]),
        optimiser=MovingAsymptotes(conservative=15),
        bounds=(-2.0, 2.0),
        steps=60,
    )
    values = np.asarray(result.history.objective)
    assert np.all(np.diff(values) <= 1e-6 * np.abs(values[:-1]) + 1e-9)
    assert values[-1] < 0.2 * values[0]


@pytest.mark.x64
def test_an_infeasible_start_may_be_allowed_and_becomes_feasible():
    result = optimise_quietly(
        lambda x, beta: jnp.sum(x),
        jnp.full(3, 0.1),
        constraints=lambda x, beta: 1.5 - jnp.sum(x),
        optimiser=MovingAsymptotes(),
        bounds=(0.0, 1.0),
        feasible_start=False,
        steps=20,
    )
    assert jnp.sum(result.parameters) == pytest.approx(1.5, abs=1e-3)


@pytest.mark.x64
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"move": 0.0}, r"`move` must lie in \(0, 1\), but is 0"),
        ({"closer": 1.5}, r"`closer` must lie in \(0, 1\), but is 1.5"),
        ({"farther": 0.5}, "`farther` must be at least 1, but is 0.5"),
        (
            {"conservative": -1},
            "`conservative` must be an integer of at least 0, but is -1",
        ),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(PhysaxError, match=message):
        MovingAsymptotes(**options)


@pytest.mark.slow
@pytest.mark.f32
def test_the_precision_of_the_session_stays():
    before = jax.config.jax_enable_x64
    optimise_quietly(
        lambda x, beta: jnp.sum(x**2),
        jnp.full(3, 0.5),
        optimiser=MovingAsymptotes(),
        bounds=(0.0, 1.0),
        steps=2,
    )
    assert jax.config.jax_enable_x64 == before
    assert jnp.ones(1).dtype == jnp.result_type(float)
