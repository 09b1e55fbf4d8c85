import os
import signal
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from physax import PhysaxError
from physax.design import (
    ConicFilter,
    DesignError,
    EarlyStop,
    MovingAsymptotes,
    PixelDensity,
    Stages,
    grey_start,
    optimise,
    subpixel_projection,
)
from physax.design._design_state import first_state, pack_design, unpack_design
from physax.runtime import (
    CheckpointError,
    Checkpointing,
    FingerprintError,
    Progress,
    Status,
    checkpoint_steps,
    count_compiles,
    no_recompile,
)


pytestmark = pytest.mark.f32

SHAPE = (16, 16)
TARGET = jnp.asarray(
    np.hypot(*np.meshgrid(np.arange(16) - 7.5, np.arange(16) - 7.5)) < 4.5, float
)
FILTER = ConicFilter(2.5, 1.0)
SCHEDULE = Stages((4, 16, float("inf")), every=6)
WHOLE = 40
OPTIMISERS = [optax.adam(0.05), MovingAsymptotes(), MovingAsymptotes(conservative=3)]

quietly = partial(optimise, progress=False)


def device(density, beta):
    return subpixel_projection(FILTER(density()), beta)


def misfit(density, beta):
    return jnp.mean((device(density, beta) - TARGET) ** 2)


def amount(density, beta):
    """At most three tenths of the cells may be solid."""
    return jnp.mean(device(density, beta)) / 0.3 - 1


def start(seed=0):
    return grey_start(SHAPE, 0.2, noise=0.05, key=jax.random.key(seed))


def design(steps, optimiser=OPTIMISERS[0], **options):
    return quietly(
        misfit, start(), steps=steps, optimiser=optimiser, schedule=SCHEDULE, **options
    )


@cache
def uninterrupted(number):
    """The whole design by one of the optimisers, for the tests that compare with it."""
    return design(WHOLE, OPTIMISERS[number])


def same(one, other):
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(OPTIMISERS)))
def test_a_disc_is_found_through_filter_and_projection(number):
    result = uninterrupted(number)
    assert result.status == Status.SUCCESSFUL
    assert result.step == len(result.history.objective) == WHOLE
    assert result.history.objective[-1] < 0.2 * result.history.objective[0]
    beta = result.history.strength
    assert jnp.array_equal(beta[:13], jnp.array([4.0] * 6 + [16.0] * 6 + [jnp.inf]))
    # The last row of the history is that of the parameters.
    now = misfit(result.parameters, jnp.inf)
    assert now == pytest.approx(float(result.history.objective[-1]), rel=1e-4)
    assert result.best_objective == pytest.approx(
        float(result.history.objective[12:].min())
    )
    assert jnp.all((result.parameters() >= 0) & (result.parameters() <= 1))


@pytest.mark.slow
def test_a_constraint_is_met():
    result = design(30, MovingAsymptotes(), constraints=amount)
    assert result.history.constraints.shape == (30, 1)
    assert result.history.constraints[-1, 0] < 1e-2
    assert amount(result.best, jnp.inf) <= 1e-4
    assert result.design is result.best
    assert result.history.objective[-1] < 0.5 * result.history.objective[0]


@pytest.mark.slow
def test_maximising_is_minimising_the_negative():
    up = quietly(
        lambda d, b: -misfit(d, b),
        start(),
        steps=5,
        maximise=True,
        schedule=4.0,
    )
    down = quietly(misfit, start(), steps=5, schedule=4.0)
    assert same(up.parameters, down.parameters)
    assert jnp.array_equal(up.history.objective, -down.history.objective)
    assert up.best_objective == -down.best_objective


def kill_at(step, number=signal.SIGTERM):
    def hook(info):
        if info.step == step:
            os.kill(os.getpid(), number)

    return hook


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("number", range(len(OPTIMISERS)))
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path, number):
    whole, again = uninterrupted(number), partial(design, WHOLE, OPTIMISERS[number])
    checkpoint = Checkpointing(tmp_path, every=4)
    with pytest.raises(DesignError, match="A signal ended the run") as caught:
        again(checkpoint=checkpoint, on_step=kill_at(9))
    assert caught.value.result.step == 10
    assert checkpoint_steps(tmp_path)[-1] == 10
    resumed = again(checkpoint=checkpoint)
    assert resumed.drive.first_step == 10
    assert same(resumed.parameters, whole.parameters)
    assert same(resumed.best, whole.best)
    assert same(resumed.history, whole.history)


def test_a_finished_run_may_be_continued(tmp_path):
    checkpoint = Checkpointing(tmp_path, every=5)
    design(10, checkpoint=checkpoint)
    longer = design(WHOLE, checkpoint=checkpoint)
    assert longer.drive.first_step == 10
    assert same(longer.history, uninterrupted(0).history)


def test_another_problem_does_not_resume(tmp_path):
    checkpoint = Checkpointing(tmp_path, every=5)
    design(5, checkpoint=checkpoint)
    with pytest.raises(FingerprintError, match="belongs to another"):
        design(10, OPTIMISERS[1], checkpoint=checkpoint)
    with pytest.raises(CheckpointError, match="`resume` is False"):
        design(10, checkpoint=Checkpointing(tmp_path, every=5, resume=False))


def burst(after):
    """An objective that is not finite once the mean has come above a value."""

    def figure(density, beta):
        mean = jnp.mean(density())
        return jnp.where(mean > after, jnp.nan, (mean - 1) ** 2)

    return figure


@pytest.mark.parametrize("optimiser", [optax.sgd(0.2), MovingAsymptotes(move=0.1)])
def test_an_objective_that_is_not_finite_stops_and_keeps_the_last_design(optimiser):
    begin = PixelDensity(jnp.full((4,), 0.3))
    with pytest.raises(
        DesignError, match="not finite at step [0-9]+: the des"
    ) as caught:
        quietly(burst(0.6), begin, steps=50, optimiser=optimiser)
    result = caught.value.result
    assert result.status == Status.DIVERGED
    assert 1 < result.step < 50
    assert (
        f"at step {result.step}: the design of step {result.step - 1} is kept"
        in str(caught.value)
    )
    assert 0.3 < jnp.mean(result.parameters()) <= 0.6
    assert jnp.all(jnp.isfinite(result.history.objective))
    assert len(result.history.objective) == result.step


def test_without_throw_the_status_tells():
    begin = PixelDensity(jnp.full((4,), 0.3))
    result = quietly(burst(0.0), begin, steps=5, throw=False)
    assert result.status == Status.DIVERGED
    assert result.step == 0
    assert "step 0: nothing is kept" in result.detail
    assert same(result.parameters, begin)
    assert result.best is None
    assert result.design is result.parameters
    assert np.isnan(result.best_objective)


def test_gradients_that_are_not_finite_stop_too():
    with pytest.raises(DesignError, match="not finite at step 0"):
        quietly(lambda x, beta: jnp.sum(jnp.sqrt(x)), jnp.zeros(3), steps=5)


@pytest.mark.slow
def test_it_ends_early_at_the_last_strength():
    with count_compiles() as compiles:
        result = quietly(
            lambda x, beta: jnp.sum((x - 0.3) ** 2) + 0 * beta,
            jnp.full(3, 0.5),
            steps=500,
            schedule=Stages((1, 2), every=40),
            stop=EarlyStop(patience=10, tolerance=1e-4),
        )
    # None for each step.
    assert len(compiles) < 50
    assert result.status == Status.CONVERGED
    assert 50 <= result.step < 200
    again = quietly(
        lambda x, beta: jnp.sum((x - 0.3) ** 2) + 0 * beta,
        jnp.full(3, 0.5),
        steps=20,
        stop=EarlyStop(patience=10, tolerance=0.0),
    )
    assert again.status == Status.MAX_STEPS


@pytest.mark.slow
def test_it_does_not_end_on_the_way_to_what_is_allowed():
    result = quietly(
        lambda x, beta: jnp.mean(x**2),
        jnp.full(6, 0.1),
        bounds=(0.0, 1.0),
        steps=200,
        optimiser=MovingAsymptotes(move=0.02),
        constraints=lambda x, beta: 0.9 - jnp.mean(x),
        feasible_start=False,
        stop=EarlyStop(patience=5),
    )
    assert result.status == Status.CONVERGED
    assert result.history.constraints[-1] <= 1e-4
    np.testing.assert_allclose(result.parameters, 0.9, atol=1e-3)


def test_each_step_is_told():
    seen = []

    def figure(x, beta):
        return jnp.sum(x**2), {"mean": jnp.mean(x)}

    result = quietly(
        figure, jnp.full(3, 0.5), steps=4, has_aux=True, on_step=seen.append
    )
    assert [info.step for info in seen] == [0, 1, 2, 3]
    assert seen[0].aux["mean"] == pytest.approx(0.5)
    assert seen[3].objective == pytest.approx(float(result.history.objective[3]))
    assert same(seen[3].parameters, result.parameters)


def test_any_tree_may_be_optimised_and_what_is_no_number_stays():
    tree = {"a": jnp.ones(2), "n": 3, "mask": jnp.array([True, False])}
    result = quietly(
        lambda t, beta: jnp.sum(jnp.where(t["mask"], t["a"], 0) ** t["n"]),
        tree,
        steps=3,
    )
    assert result.parameters["n"] == 3
    assert result.parameters["a"][0] < 1
    assert result.parameters["a"][1] == 1
    assert result.parameters["a"].dtype == tree["a"].dtype


def test_nothing_compiles_again_after_the_first_step():
    traces = []

    def figure(density, beta):
        traces.append(1)
        return misfit(density, beta)

    quietly(figure, start(), steps=8, schedule=SCHEDULE)
    # Once for the shapes, once to compile.
    assert len(traces) <= 2


def test_a_second_run_compiles_nothing_with_the_default_optimiser():
    target = lambda x, strength: jnp.sum((x - strength) ** 2)  # noqa: E731
    optimise(target, jnp.zeros(3), steps=2, progress=False)
    with no_recompile():
        optimise(target, jnp.zeros(3), steps=2, progress=False)


def test_progress_shows_the_objective(capsys):
    optimise(
        misfit,
        start(),
        steps=3,
        schedule=8.0,
        progress=Progress("disc", line_every=0.0),
    )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("disc: 3/3, objective ")
    assert "strength 8" in lines[-1]


@pytest.mark.parametrize("optimiser", [optax.adam(0.1), MovingAsymptotes()])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "`steps` must be an integer of at least 1, but is 0"),
        ({"bounds": (0.0,)}, r"`bounds` must .* but have the shapes \[\(\)\]"),
        ({"bounds": (0.0, np.ones(4))}, r"have the shapes \[\(\), \(4,\)\]"),
        ({"bounds": (1.0, 0.0)}, "`bounds` must be a lower and a higher one"),
        ({"bounds": (0.6, 1.0)}, "`parameters` must lie between their bounds, but one"),
        ({"parameters": {"n": 3}}, "must hold floating point JAX arrays"),
        (
            {"objective": lambda x, b: jnp.ones((2, 2)) * x[0]},
            "`objective` must return",
        ),
        ({"schedule": -3.0}, "`schedule` must be at least 0, but is -3"),
        (
            {"objective": lambda x: jnp.sum(x**2)},
            r"`objective` must be a function `f\(parameters, strength\)`, .* takes \(x",
        ),
        (
            {"constraints": lambda x: x},
            r"`constraints` must be a function `g\(parameters, strength\)`",
        ),
        ({"on_step": lambda: None}, r"`on_step` must be a function `on_step\(info\)`"),
    ],
)
def test_bad_input_is_refused(optimiser, options, message):
    given = {
        "objective": lambda x, beta: jnp.sum(x**2),
        "parameters": jnp.full(3, 0.5),
        "bounds": (0.0, 1.0),
        "steps": 3,
        **options,
    }
    objective, parameters = given.pop("objective"), given.pop("parameters")
    with pytest.raises(PhysaxError, match=message):
        quietly(objective, parameters, optimiser=optimiser, **given)


def test_what_an_optimiser_cannot_do_is_refused():
    square = lambda x, beta: jnp.sum(x**2)  # noqa: E731
    with pytest.raises(PhysaxError, match="`constraints` must be None with optimisers"):
        quietly(square, jnp.ones(3), constraints=lambda x, b: x - 2, steps=2)
    with pytest.raises(PhysaxError, match="`objective` must return one number with"):
        quietly(lambda x, beta: x**2, jnp.ones(3), steps=2)
    with pytest.raises(PhysaxError, match="returned a tuple of 2. Pass `has_aux=True`"):
        quietly(lambda x, beta: (jnp.sum(x**2), x[0]), jnp.ones(3), steps=2)
    with pytest.raises(PhysaxError, match="`bounds` must be given with"):
        quietly(square, jnp.ones(3), optimiser=MovingAsymptotes(), steps=2)


def test_a_start_that_breaks_a_constraint_is_refused(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(PhysaxError, match="number 1 is 0.5 .1 of 2 are positive") as e:
        quietly(
            lambda x, beta: jnp.sum(x),
            jnp.full(3, 0.5),
            constraints=lambda x, beta: jnp.array([-1.0, x[0]]),
            optimiser=MovingAsymptotes(),
            bounds=(0.0, 1.0),
            steps=5,
            checkpoint=Checkpointing(folder, every=1),
        )
    assert "feasible_start=False" in str(e.value)
    assert checkpoint_steps(folder) == ()


def test_modules_of_equinox_may_be_closed_over(tmp_path):
    # The fingerprint reads what a function encloses, compiled functions included.
    network = eqx.nn.Linear(3, 1, key=jax.random.key(0))
    compiled = jax.jit(lambda x: jnp.sum(network(x) ** 2))
    checkpoint = Checkpointing(tmp_path, every=2)
    for _ in range(2):
        quietly(
            lambda x, beta: compiled(x), jnp.ones(3), steps=4, checkpoint=checkpoint
        )
    assert checkpoint_steps(tmp_path)[-1] == 4


def test_states_of_earlier_checkpoints_are_read():
    state = first_state(jnp.ones(3), jnp.zeros(3), 4, 1)
    arrays = pack_design(state)
    arrays[".good"] = 2 * arrays.pop(".last_finite")
    found = unpack_design(arrays, state)
    assert found.last_finite.tolist() == [2, 2, 2]
    assert found.vector.tolist() == [1, 1, 1]
