"""Draws from the posterior of a fit, by Hamiltonian Monte Carlo."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from .._checks import PhysaxError, one_key, true_or_false, whole
from .._products import matmul
from .._status import Status, raise_for
from ..runtime import Checkpointing, DriveResult, Progress, drive, fingerprint
from ..runtime._checkpointing import check_checkpoint
from ..runtime._progress import check_progress
from ._diagnostics import bulk_ess, r_hat, tail_ess
from ._fit_result import FitResult
from ._given import probability
from ._log_density import Target, linear_given
from ._problems import AbstractProblem
from ._separable import AbstractSeparable
from ._target import KnownSigma, UnknownSigma, target_of


class MissingExtraError(PhysaxError, ImportError):
    """Something needs a package that is not installed."""


class Posterior(eqx.Module):
    """Draws from a posterior, and whether they are reliable.

    Attributes:
        samples: Draws of the free parameters.
        names: Their names.
        linear: Draws of eliminated linear coefficients; may be empty.
        linear_names: Their names.
        sigma: Draws of the standard deviation of the residuals; None if it was known.
        divergences: Draws at which the integrator failed.
        acceptance: Mean acceptance probability on the way to each draw.
        steps: Steps of the integrator on the way to each draw.
        r_hat: Rank-normalised split R-hat of each parameter.
        bulk_ess: Effective number of draws for their centres.
        tail_ess: Effective number of draws for their 5 % and 95 % quantiles.
        status: Whether all draws were made, a `Status`; after a signal it is
            `INTERRUPTED`, and there are those until then.
        refined: Whether the covariance of a first run was used for a second one.
    """

    samples: Float[np.ndarray, "chains draws params"]
    names: tuple[str, ...] = eqx.field(static=True)
    linear: Float[np.ndarray, "chains draws linear"]
    linear_names: tuple[str, ...] = eqx.field(static=True)
    sigma: Float[np.ndarray, "chains draws"] | None
    divergences: Bool[np.ndarray, "chains draws"]
    acceptance: Float[np.ndarray, "chains draws"]
    steps: np.ndarray
    r_hat: Float[np.ndarray, " params"]
    bulk_ess: Float[np.ndarray, " params"]
    tail_ess: Float[np.ndarray, " params"]
    status: Status = eqx.field(static=True)
    refined: bool = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        """Whether chains agree, are long enough, and did not diverge.

        R-hat below 1.01 and more than 400 effective draws in bulk and tails, of every
        parameter.
        """
        return bool(
            self.status is Status.SUCCESSFUL
            and np.all(self.r_hat < 1.01)
            and np.all(self.bulk_ess > 400)
            and np.all(self.tail_ess > 400)
            and not self.divergences.any()
        )

    @property
    def mean(self) -> Float[np.ndarray, " params"]:
        """Posterior means."""
        return self.samples.mean(axis=(0, 1))

    @property
    def deviation(self) -> Float[np.ndarray, " params"]:
        """Posterior standard deviations."""
        return self.samples.std(axis=(0, 1), ddof=1)

    def quantiles(self, level: float = 0.95) -> Float[np.ndarray, "2 params"]:
        """Returns the ends of the central intervals of a probability, in (0, 1)."""
        part = (1 - probability(level)) / 2
        return np.quantile(self.samples, (part, 1 - part), axis=(0, 1))

    def __str__(self) -> str:
        """Lists parameters with errors, and whether the draws are reliable."""
        chains, draws = self.samples.shape[:2]
        word = "reliable" if self.ok else "not reliable"
        lines = [
            f"{chains} chains of {draws} draws, {int(self.divergences.sum())} "
            f"divergences: they are {word}."
        ]
        if self.status is not Status.SUCCESSFUL:
            lines.append(self.status.sentence)
        width = max(map(len, self.names))
        for i, name in enumerate(self.names):
            lines.append(
                f"  {name:{width}}  {self.mean[i]:.6g} ± {self.deviation[i]:.2g}  "
                f"R-hat {self.r_hat[i]:.3f}, effective draws {self.bulk_ess[i]:.0f} "
                f"(tails {self.tail_ess[i]:.0f})"
            )
        return "\n".join(lines)


def sample_posterior(
    problem: AbstractProblem,
    result: FitResult,
    *,
    key: PRNGKeyArray,
    draws: int = 1000,
    warmup: int = 300,
    chains: int = 4,
    priors: PyTree = None,
    sigma: KnownSigma | UnknownSigma | None = None,
    refine: bool = True,
    checkpoint: Checkpointing | None = None,
    progress: Progress | bool | None = True,
) -> Posterior:
    r"""Draws from the posterior of a problem that was fitted.

    The No-U-Turn sampler moves in coordinates that the Jacobian at the fit has made
    nearly standard normal: bounded parameters are first mapped to numbers without
    bounds (their prior is flat within the bounds, or `priors`), then
    $u = \hat u + L^{-T} z$ with $L L^T = J_u^T J_u / s^2$ and the curvature of the
    priors. Linear coefficients of a `Separable` without bounds are integrated over
    analytically, with flat priors, and drawn afterwards. Parameters with equal bounds
    are constants, also in the draws.

    Needs numpyro: `pip install "physax[bayes]"`.

    Reference: Hoffman and Gelman, *The No-U-Turn sampler*, Journal of Machine Learning
    Research 15, 1593 (2014).

    Args:
        problem: What was fitted, with its data in memory.
        result: Its fit.
        key: Key of the random numbers.
        draws: How many draws each chain has.
        warmup: Draws before those, in which the step size is found.
        chains: How many chains run side by side.
        priors: A tree of priors like the parameters, or its upper part; None for flat
            ones.
        sigma: What is known about the standard deviation of the residuals; by default
            `KnownSigma()` for problems with `absolute_sigma`, else `UnknownSigma()`.
        refine: Whether to sample once more, with the covariance of the draws, if those
            are not reliable, and with smaller steps if some of them diverged.
        checkpoint: Where to keep checkpoints, and to resume from; `every` counts draws,
            those of the warm-up too. Those of a second run are in a folder `refined`
            within.
        progress: Whether and how to show progress.

    Returns:
        The draws; look at `ok`.

    Raises:
        MissingExtraError: If numpyro is not installed.
        ArgumentError: If a number is out of range, the loss is not `Squared`, the data
            are not in memory, or nothing determines some combination of parameters.
        RunError: If a signal came before each chain had four draws.
    """
    sampler = _sampler()
    key = one_key(key)
    check_progress(progress)
    check_checkpoint(checkpoint)
    draws, warmup = whole(draws, "draws", _LEAST_DRAWS), whole(warmup, "warmup", 10)
    chains, refine = whole(chains, "chains"), true_or_false(refine, "refine")
    target = target_of(problem, result, priors, sigma)
    run = (sampler, draws, warmup, chains, progress)
    first, again = jax.random.split(key)
    outcome = _chains(target, run, _AIM, first, checkpoint)
    if outcome.step - warmup < _LEAST_DRAWS:
        advice = (
            "Pass `checkpoint` to be able to resume."
            if checkpoint is None
            else "Run it again with the same checkpoint folder to resume."
        )
        said = f"{outcome.detail} The first {warmup} are the warm-up. {advice}"
        raise_for(outcome.status, said)
    posterior, u = _read_out(target, outcome, warmup, first, refined=False)
    if refine and not posterior.ok and posterior.status is Status.SUCCESSFUL:
        u = u.reshape(-1, u.shape[-1])
        spread = np.linalg.cholesky(np.atleast_2d(np.cov(u.T)))
        target = eqx.tree_at(
            lambda t: (t.centre, t.spread),
            target,
            (
                jnp.asarray(u.mean(axis=0), target.centre.dtype),
                jnp.asarray(spread, target.spread.dtype),
            ),
        )
        aim = _CAREFUL if posterior.divergences.any() else _AIM
        outcome = _chains(target, run, aim, again, _within(checkpoint, "refined"))
        if outcome.step - warmup < _LEAST_DRAWS:
            # Those of the first run are draws, too, if not enough.
            return dataclasses.replace(posterior, status=outcome.status)
        posterior, _ = _read_out(target, outcome, warmup, again, refined=True)
    return posterior


# Of which diagnostics can be made.
_LEAST_DRAWS = 4

# Mean acceptance at which the step size aims; the second where steps of the first were
# too large next to a bound, whose posterior is steep there.
_AIM, _CAREFUL = 0.8, 0.95


def _sampler() -> Any:
    try:
        from numpyro.infer import NUTS
    except ImportError as error:
        raise MissingExtraError(
            "`sample_posterior` needs numpyro, but it is not installed: "
            'pip install "physax[bayes]".'
        ) from error
    return NUTS


class _Chains(eqx.Module):
    """Chains between two draws."""

    state: Any
    u: Float[Array, "chains draws all"]
    diverging: Bool[Array, "chains draws"]
    acceptance: Float[Array, "chains draws"]
    steps: Array


def _kernel(target: Target, sampler, warmup: int, chains: int, aim: Array, key):
    nuts = sampler(
        potential_fn=target.potential,
        adapt_mass_matrix=False,
        max_tree_depth=8,
        target_accept_prob=aim,
    )
    begin, place = jax.random.split(key)
    size = target.centre.size
    z = 2 * jax.random.normal(place, (chains, size), target.centre.dtype)
    # Far out the model may have no value: then nearer to the fit.
    sound = jnp.isfinite(jax.vmap(target.potential)(z))
    z = jnp.where(sound[:, None], z, 0.05 * z)
    with jax.default_matmul_precision("highest"):
        state = nuts.init(jax.random.split(begin, chains), warmup, init_params=z)

    def sample(state):
        with jax.default_matmul_precision("highest"):
            return nuts.sample(state, (), {})

    return state, sample


@eqx.filter_jit
def _begin(
    target: Target, sampler, draws: int, warmup: int, chains: int, aim: Array, key
):
    state, _ = _kernel(target, sampler, warmup, chains, aim, key)
    shape = (chains, draws)
    return _Chains(
        state,
        jnp.zeros((*shape, target.centre.size), target.centre.dtype),
        jnp.zeros(shape, bool),
        jnp.zeros(shape, target.centre.dtype),
        jnp.zeros(shape, int),
    )


@eqx.filter_jit
def _advance(
    target: Target, sampler, warmup: int, aim: Array, run: _Chains, start, stop
):
    chains = run.u.shape[0]
    _, sample = _kernel(target, sampler, warmup, chains, aim, jax.random.key(0))

    def one(step, run: _Chains) -> _Chains:
        state = sample(run.state)
        place = jnp.maximum(step - warmup, 0)
        # What warm-up writes, the first draw writes over.
        return _Chains(
            state,
            run.u.at[:, place].set(jax.vmap(target.unwhitened)(state.z)),
            run.diverging.at[:, place].set(state.diverging),
            run.acceptance.at[:, place].set(state.accept_prob),
            run.steps.at[:, place].set(state.num_steps),
        )

    return jax.lax.fori_loop(start, stop, one, run)


@eqx.filter_jit
def _read(target: Target, u, key):
    """Returns parameters, linear coefficients and deviations of all draws."""
    problem = target.problem
    kept = problem.vector().size - len(problem.parameters.names)

    def one(item):
        u, key = item
        free, log_deviation = target.split(u)
        values = target.transform.forward(free)
        deviation = jnp.exp(log_deviation)
        # No arrays without entries: they cannot be mapped over in batches.
        linear = values[:kept] if kept else None
        if isinstance(problem, AbstractSeparable) and problem.coefficients is None:
            best, root = linear_given(problem, values, chunk=target.chunk)
            noise = jax.random.normal(key, best.shape, best.dtype)
            linear = best + deviation * matmul(root, noise)
        return values[kept:], linear, deviation

    flat = u.reshape(-1, u.shape[-1])
    found = jax.lax.map(one, (flat, jax.random.split(key, len(flat))), batch_size=16)
    return jax.tree.map(lambda x: x.reshape(*u.shape[:2], *x.shape[1:]), found)


def _within(checkpoint: Checkpointing | None, name: str) -> Checkpointing | None:
    if checkpoint is None:
        return None
    return dataclasses.replace(checkpoint, folder=checkpoint.folder / name)


def _chains(
    target: Target, run, aim: float, key, checkpoint: Checkpointing | None
) -> DriveResult:
    """Advances all chains, to the end or a signal."""
    sampler, draws, warmup, chains, progress = run
    acceptance = jnp.asarray(aim, target.centre.dtype)
    if checkpoint is not None:
        mark = checkpoint.fingerprint or fingerprint(target, sizes=run[1:4], key=key)
        checkpoint = checkpoint.completed(mark)
    begin, _ = jax.random.split(key)
    return drive(
        lambda state, start, stop: _advance(
            target, sampler, warmup, acceptance, state, start, stop
        ),
        _begin(target, sampler, draws, warmup, chains, acceptance, begin),
        stop=warmup + draws,
        checkpoint=checkpoint,
        progress=Progress("sample", unit="draws") if progress is True else progress,
        watch=None,
    )


def _read_out(
    target: Target, outcome: DriveResult, warmup: int, key, *, refined: bool
) -> tuple[Posterior, np.ndarray]:
    """Returns what was drawn, and in the coordinates of the sampler."""
    found: _Chains = outcome.state
    done = outcome.step - warmup
    _, after = jax.random.split(key)
    u = found.u[:, :done]
    samples, linear, deviation = _read(target, u, after)
    samples = np.asarray(samples)
    linear = np.zeros((*u.shape[:2], 0)) if linear is None else np.asarray(linear)
    columns = [np.asarray(samples[..., i], float) for i in range(samples.shape[-1])]
    posterior = Posterior(
        samples=samples,
        names=target.problem.parameters.names,
        linear=linear,
        linear_names=target.problem.linear_names,
        sigma=np.asarray(deviation) if target.deviation is None else None,
        divergences=np.asarray(found.diverging[:, :done]),
        acceptance=np.asarray(found.acceptance[:, :done]),
        steps=np.asarray(found.steps[:, :done]),
        r_hat=np.array([r_hat(x) for x in columns]),
        bulk_ess=np.array([bulk_ess(x) for x in columns]),
        tail_ess=np.array([tail_ess(x) for x in columns]),
        status=outcome.status,
        refined=refined,
    )
    return posterior, np.asarray(u, float)
