"""One step of a trust region: the best of a quadratic model within reach."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._products import matmul
from ._sums import Normal


class Step(NamedTuple):
    """A step, and what the model promises of it.

    Attributes:
        change: The step.
        length: Its scaled length |D s|.
        predicted: By how much the model says that the cost decreases.
        slope: The derivative of the cost along the step, at its start; not positive.
        full: Whether the region did not shorten it.
    """

    change: Float[Array, " m"]
    length: Float[Array, ""]
    predicted: Float[Array, ""]
    slope: Float[Array, ""]
    full: Bool[Array, ""]


def held_at_bounds(
    vector: Float[Array, " m"],
    gradient: Float[Array, " m"],
    low: Float[Array, " m"],
    high: Float[Array, " m"],
) -> Bool[Array, " m"]:
    """Returns which parameters are at a bound that the cost pushes them against.

    A parameter with equal bounds is always held.
    """
    pushed = ((vector <= low) & (gradient > 0)) | ((vector >= high) & (gradient < 0))
    return pushed | (low == high)


def within(
    factor: Float[Array, "m m"],
    target: Float[Array, " m"],
    scale: Float[Array, " m"],
    radius: Float[Array, ""],
    free: Bool[Array, " m"],
) -> tuple[Float[Array, " m"], Bool[Array, ""]]:
    r"""Minimises $|R s + c|$ over $|D s| \leq \Delta$, in the free parameters.

    The multiplier solves $|D s(\lambda)| = \Delta$ to 10 %, by Newton steps on the
    secular equation in singular values. Singular values at rounding level are cut: the
    shortest step is taken where the data do not determine one.

    Reference: Moré, *The Levenberg-Marquardt algorithm: implementation and theory*,
    Lecture Notes in Mathematics 630, 105 (1978).

    Returns:
        The step, and whether the region did not shorten it.
    """
    scaled = jnp.where(free, factor / scale, 0)
    left, sigma, right = jnp.linalg.svd(scaled, full_matrices=False)
    wanted = matmul(left.T, target)
    eps = jnp.finfo(scaled.dtype).eps
    sound = sigma > sigma.size * eps * sigma[0]
    safe = jnp.where(sound, sigma, 1)
    newton = jnp.where(sound, wanted / safe, 0)
    pull = jnp.where(sound, sigma * wanted, 0)
    fits = jnp.linalg.norm(newton) <= 1.1 * radius

    def shortened(multiplier):
        return pull / (safe**2 + multiplier)

    def improve(carry):
        multiplier, low, high, turn = carry
        part = shortened(multiplier)
        length = jnp.linalg.norm(part)
        excess = length - radius
        low = jnp.where(excess > 0, multiplier, low)
        high = jnp.where(excess < 0, multiplier, high)
        fall = jnp.sum(part**2 / (safe**2 + multiplier))
        new = multiplier + excess / radius * length**2 / jnp.where(fall > 0, fall, 1)
        middle = jnp.maximum(jnp.sqrt(low * high), 1e-3 * high)
        new = jnp.where((new > low) & (new < high), new, middle)
        return new, low, high, turn + 1

    def unfinished(carry):
        multiplier, _, _, turn = carry
        length = jnp.linalg.norm(shortened(multiplier))
        return (jnp.abs(length - radius) > 0.1 * radius) & (turn < 50)

    highest = jnp.linalg.norm(pull) / radius
    zero = jnp.zeros_like(radius)
    start = jnp.where(fits, zero, 1e-3 * highest)
    # A step that fits needs no turn.
    begin = start, zero, highest, jnp.where(fits, 50, 0)
    multiplier = jax.lax.while_loop(unfinished, improve, begin)[0]
    part = jnp.where(fits, newton, shortened(multiplier))
    return jnp.where(free, -matmul(right.T, part) / scale, 0), fits


def trial_step(
    normal: Normal,
    vector: Float[Array, " m"],
    scale: Float[Array, " m"],
    radius: Float[Array, ""],
    bounds: tuple[Float[Array, " m"], Float[Array, " m"]],
) -> Step:
    """Finds the next step within the region and the bounds.

    A step that crosses bounds is stopped there and the other parameters answer to it;
    where that falls behind the best step along the steepest descent, projected on the
    bounds, it is that one.

    Args:
        normal: The model at `vector`.
        vector: Where the step begins.
        scale: The diagonal of D.
        radius: The radius of the region.
        bounds: Lower and upper ones.
    """
    low, high = bounds
    held = held_at_bounds(vector, normal.gradient, low, high)

    def solve(free, fixed):
        moved = normal.target + matmul(normal.factor, fixed)
        change, full = within(normal.factor, moved, scale, radius, free)
        return jnp.where(free, change, fixed), full

    def crossing(change, free):
        goal = vector + change
        return free & ((goal < low) | (goal > high))

    def turn(carry):
        free, change, _, _ = carry
        fixed = jnp.where(free, 0, jnp.clip(vector + change, low, high) - vector)
        change, full = solve(free, fixed)
        out = crossing(change, free)
        return free & ~out, change, full, jnp.any(out)

    zero = jnp.zeros_like(vector)
    begin = ~held, zero, jnp.zeros((), bool), jnp.ones((), bool)
    _, change, full, _ = jax.lax.while_loop(lambda c: c[3], turn, begin)
    change = jnp.clip(vector + change, low, high) - vector

    bounded = jnp.any(jnp.isfinite(low) | jnp.isfinite(high))
    steep = _cauchy(normal, vector, scale, radius, bounds, held)
    better = bounded & (_promise(normal, steep) > _promise(normal, change))
    change = jnp.where(better, steep, change)
    return Step(
        change,
        jnp.linalg.norm(scale * change),
        _promise(normal, change),
        2 * matmul(normal.gradient, change),
        full & ~better,
    )


def _promise(normal: Normal, change: Float[Array, " m"]) -> Float[Array, ""]:
    bent = matmul(normal.factor, change)
    return -(2 * matmul(normal.gradient, change) + matmul(bent, bent))


def _cauchy(normal, vector, scale, radius, bounds, held):
    """Returns the best step along the scaled descent, stopped at the bounds."""
    way = jnp.where(held, 0, -normal.gradient / scale / scale)
    bent = matmul(normal.factor, way)
    curve = matmul(bent, bent)
    best = -matmul(normal.gradient, way) / jnp.where(curve > 0, curve, 1)
    length = jnp.linalg.norm(scale * way)
    reach = radius / jnp.where(length > 0, length, 1)
    low, high = bounds
    return jnp.clip(vector + jnp.minimum(best, reach) * way, low, high) - vector
