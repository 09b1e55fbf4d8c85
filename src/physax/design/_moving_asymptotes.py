"""The method of moving asymptotes: many parameters, few constraints."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._checks import at_least, between, single, whole
from ._asymptote_subproblem import Approximation, Subproblem, separable_minimum


# What leaving an inequality costs, where all gradients have a mean modulus of 1: more
# than any multiplier, so that none is left unless there is no other way.
_ELASTIC = 1000.0


def _share(name: str) -> Callable[[Any], Array]:
    convert = between(name, 0.0, 1.0)
    return lambda x: single(convert(x), name)


class MovingAsymptotes(eqx.Module):
    r"""Replaces objective and constraints in each step by convex, separable ones.

    These have asymptotes on both sides of each parameter, which move closer where the
    parameter oscillates and away where it keeps its direction. Handles inequality
    constraints, and the largest of several objectives (minimax).

    References: Svanberg, *The method of moving asymptotes*, International Journal for
    Numerical Methods in Engineering 24, 359 (1987), and *A class of globally convergent
    optimization methods based on conservative convex separable approximations*, SIAM
    Journal on Optimization 12, 555 (2002).

    Attributes:
        move: The share of its range that a parameter may move in one step, in (0, 1).
        initial: First distance of the asymptotes, as a share of the range.
        closer: Factor of the distance where a parameter oscillates, in (0, 1).
        farther: Factor where it keeps its direction, at least 1.
        conservative: How often a step may be taken back and made shorter because the
            approximations were too low there. 0 is the method of 1987; with 10 each
            step descends (the method of 2002), at the price of one more evaluation, and
            usually no more.

    Raises:
        ArgumentError: If a number is out of its range.
    """

    move: Float[Array, ""] = eqx.field(converter=_share("move"), default=0.5)
    initial: Float[Array, ""] = eqx.field(converter=_share("initial"), default=0.5)
    closer: Float[Array, ""] = eqx.field(converter=_share("closer"), default=0.7)
    farther: Float[Array, ""] = eqx.field(
        converter=lambda x: single(at_least("farther", 1.0)(x), "farther"), default=1.2
    )
    conservative: int = eqx.field(
        static=True, default=0, converter=lambda x: whole(x, "conservative", 0)
    )


class Asymptotes(eqx.Module):
    """What the method remembers, all in units of the range of each parameter.

    Attributes:
        before: Parameters of the step before.
        earlier: Those of the step before that.
        low: Lower asymptotes of the step before.
        high: Upper asymptotes.
        count: Steps since the start.
    """

    before: Float[Array, " n"]
    earlier: Float[Array, " n"]
    low: Float[Array, " n"]
    high: Float[Array, " n"]
    count: Int[Array, ""]


class Rows(NamedTuple):
    """Values and gradients of the objectives, then of the constraints.

    Attributes:
        values: The values.
        gradients: The gradients.
        objectives: How many objectives there are.
    """

    values: Float[Array, " rows"]
    gradients: Float[Array, "rows n"]
    objectives: int


class Proposal(NamedTuple):
    """A step that the method proposes.

    Attributes:
        x: The parameters there.
        asymptotes: What to remember if the step is taken.
        predicted: The approximate objectives and constraints there.
        gauge: By how much each unit of `rho` has raised them.
    """

    x: Float[Array, " n"]
    asymptotes: Asymptotes
    predicted: Float[Array, " rows"]
    gauge: Float[Array, ""]


def first_asymptotes(x: Float[Array, " n"]) -> Asymptotes:
    """Returns the memory before the first step."""
    return Asymptotes(x, x, x, x, jnp.zeros((), jnp.int32))


def first_rho(rows: Rows, width: Float[Array, " n"]) -> Float[Array, " rows"]:
    """Returns how conservative the approximations of a step begin.

    Args:
        rows: Values and gradients.
        width: The range of each parameter.

    Returns:
        The factor of each row: a tenth of its mean gradient.
    """
    return 0.1 * jnp.mean(jnp.abs(rows.gradients * width), axis=1)


def propose(
    method: MovingAsymptotes,
    memory: Asymptotes,
    x: Float[Array, " n"],
    rows: Rows,
    bounds: tuple[Float[Array, " n"], Float[Array, " n"]],
    rho: Float[Array, " rows"],
) -> Proposal:
    """Solves the convex problem of one step.

    Args:
        method: The settings.
        memory: What is remembered.
        x: The parameters.
        rows: Values and gradients there.
        bounds: The least and the largest value of each parameter.
        rho: How conservative the approximation of each row is.

    Returns:
        The step.
    """
    least, width = bounds[0], bounds[1] - bounds[0]
    u = (x - least) / width
    low, high = _asymptotes(method, memory, u)
    # No nearer to an asymptote than a tenth of the way, where its term would dominate.
    alpha = jnp.maximum(jnp.maximum(low + 0.1 * (u - low), u - method.move), 0)
    beta = jnp.minimum(jnp.minimum(high - 0.1 * (high - u), u + method.move), 1)
    # A parameter at its bound would have no interior.
    alpha, beta = jnp.minimum(alpha, u - 1e-6), jnp.maximum(beta, u + 1e-6)

    scale = _scales(rows, width)
    slopes = rows.gradients * width / scale[:, None]
    approximation = _approximate(
        u, low, high, rows.values / scale, slopes, rho / scale, method
    )
    new = _minimise(approximation, rows.objectives, alpha, beta)
    new = jnp.clip(new, 0, 1)
    squares = (new - u) ** 2 * (high - low) / ((high - new) * (new - low))
    return Proposal(
        x=least + new * width,
        asymptotes=Asymptotes(u, memory.before, low, high, memory.count + 1),
        predicted=approximation.values(new) * scale,
        gauge=jnp.sum(squares),
    )


def _asymptotes(method: MovingAsymptotes, memory: Asymptotes, u: Array):
    trend = (u - memory.before) * (memory.before - memory.earlier)
    factor = jnp.where(trend > 0, method.farther, 1)
    factor = jnp.where(trend < 0, method.closer, factor)
    below = factor * (memory.before - memory.low)
    above = factor * (memory.high - memory.before)
    fresh = memory.count < 2
    below = jnp.where(fresh, method.initial, jnp.clip(below, 1e-3, 10))
    above = jnp.where(fresh, method.initial, jnp.clip(above, 1e-3, 10))
    return u - below, u + above


def _scales(rows: Rows, width: Array) -> Array:
    """Makes the mean modulus of each gradient 1; one scale for all objectives."""
    size = jnp.mean(jnp.abs(rows.gradients * width), axis=1)
    size = size.at[: rows.objectives].set(jnp.max(size[: rows.objectives]))
    return jnp.where(size > 0, size, 1)


def _approximate(u, low, high, values, slopes, rho, method) -> Approximation:
    """Equations 4.2 to 4.6 of the reference of 2002."""
    up, down = high - u, u - low
    rise, fall = jnp.maximum(slopes, 0), jnp.maximum(-slopes, 0)
    # Without conservative steps a trace of convexity suffices.
    extra = rho[:, None] if method.conservative else 1e-5
    p = up**2 * (1.001 * rise + 0.001 * fall + extra)
    q = down**2 * (0.001 * rise + 1.001 * fall + extra)
    r = values - jnp.sum(p / up + q / down, axis=1)
    return Approximation(low, high, p, q, r)


def _minimise(rows: Approximation, objectives: int, alpha, beta) -> Array:
    count = rows.r.size
    if count == 1:
        return separable_minimum(rows, alpha, beta)
    first = jnp.arange(count) < objectives
    several = objectives > 1
    dtype = rows.r.dtype
    ones = jnp.ones(count, dtype)
    alone = first.astype(dtype)
    return Subproblem(
        rows=rows,
        objective=0 * ones if several else alone,
        shared=alone if several else 0 * ones,
        bound=ones if several else 1 - alone,
        alpha=alpha,
        beta=beta,
        elastic=_ELASTIC,
    ).solve()


def too_low(
    values: Float[Array, " rows"], proposal: Proposal
) -> tuple[Bool[Array, " rows"], Float[Array, " rows"]]:
    """Compares a proposal with the actual values.

    Args:
        values: Objectives and constraints at the proposed parameters.
        proposal: The proposal.

    Returns:
        Which rows were predicted too low, and by how much `rho` must grow for that.
    """
    gap = values - proposal.predicted
    slack = 1e-7 * jnp.maximum(jnp.abs(values), jnp.abs(proposal.predicted))
    return gap > slack, gap / jnp.maximum(proposal.gauge, 1e-30)


def raise_rho(
    rho: Float[Array, " rows"],
    low: Bool[Array, " rows"],
    needed: Float[Array, " rows"],
) -> Float[Array, " rows"]:
    """Returns more conservative factors, as equation 4.8 of the reference of 2002.

    Args:
        rho: The factors.
        low: Which rows were predicted too low.
        needed: How much was missing.

    Returns:
        The new factors.
    """
    more = jnp.minimum(10 * rho, 1.1 * (rho + needed))
    return jnp.where(low, more, rho)
