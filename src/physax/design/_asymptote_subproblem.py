"""The convex, separable problem that each step of moving asymptotes solves."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._products import matmul


class Approximation(NamedTuple):
    r"""Convex functions $r_i + \sum_j p_{ij} / (U_j - x_j) + q_{ij} / (x_j - L_j)$.

    Attributes:
        low: The lower asymptotes $L$.
        high: The upper asymptotes $U$.
        p: Strengths of the upper asymptotes, none negative.
        q: Strengths of the lower asymptotes.
        r: Constants.
    """

    low: Float[Array, " n"]
    high: Float[Array, " n"]
    p: Float[Array, "rows n"]
    q: Float[Array, "rows n"]
    r: Float[Array, " rows"]

    def values(self, x: Float[Array, " n"]) -> Float[Array, " rows"]:
        """Returns the approximate functions at a point."""
        terms = self.p / (self.high - x) + self.q / (x - self.low)
        return self.r + jnp.sum(terms, axis=1)

    def gradients(self, x: Float[Array, " n"]) -> Float[Array, "rows n"]:
        """Returns their gradients there."""
        return self.p / (self.high - x) ** 2 - self.q / (x - self.low) ** 2

    def curvatures(self, x: Float[Array, " n"]) -> Float[Array, "rows n"]:
        """Returns their second derivatives there; all mixed ones are 0."""
        return 2 * (self.p / (self.high - x) ** 3 + self.q / (x - self.low) ** 3)


class _Point(NamedTuple):
    """Unknowns of the conditions of optimality, and their multipliers."""

    x: Array
    y: Array
    z: Array
    price: Array  # of the inequalities, lambda
    at_low: Array  # of x >= alpha, xi
    at_high: Array  # of x <= beta, eta
    of_y: Array  # of y >= 0, mu
    slack: Array  # of the inequalities, s


class Subproblem(NamedTuple):
    r"""Minimises $w^T f(x) + z + \sum_i c y_i + \frac12 y_i^2$.

    Subject to $f_i - a_i z - y_i \le 0$ in the rows of the inequalities, $y \ge 0$ and
    $\alpha \le x \le \beta$. The elastic $y$ make it solvable for any rows. The
    term z is there only where some a is 1: then it is the largest of those rows.

    Reference: Svanberg, *A class of globally convergent optimization methods based on
    conservative convex separable approximations*, SIAM Journal on Optimization 12, 555
    (2002), section 5, and the primal-dual method of his *MMA and GCMMA* (2007).

    Attributes:
        rows: The approximate functions.
        objective: 1 for the row that is minimised, 0 elsewhere: $w$.
        shared: 1 for rows whose largest is minimised, 0 elsewhere: $a$.
        bound: 1 for rows that are inequalities.
        alpha: The least x.
        beta: The largest x.
        elastic: The price c of leaving an inequality.
    """

    rows: Approximation
    objective: Float[Array, " rows"]
    shared: Float[Array, " rows"]
    bound: Float[Array, " rows"]
    alpha: Float[Array, " n"]
    beta: Float[Array, " n"]
    elastic: float | int

    def solve(self) -> Float[Array, " n"]:
        """Returns the minimiser, by a primal-dual method of interior points."""
        return _solve(self)


# 20 to 50 suffice, whatever the numbers of parameters and rows.
_MAX_NEWTON = 200


def _solve(problem: Subproblem) -> Array:
    point = _start(problem)
    dtype = point.x.dtype
    last = 1e-7 if dtype == jnp.float64 else 1e-4

    def unfinished(carry):
        _, barrier, count = carry
        return (barrier > last) & (count < _MAX_NEWTON)

    def iterate(carry):
        point, barrier, count = carry
        direction = _newton(problem, point, barrier)
        point = _step(problem, point, direction)
        parts = jnp.concatenate(_errors(problem, point, barrier))
        error = jnp.max(jnp.abs(parts))
        barrier = jnp.where(error < 0.9 * barrier, barrier * 0.1, barrier)
        return point, barrier, count + 1

    one = jnp.ones((), dtype)
    return lax.while_loop(unfinished, iterate, (point, one, jnp.int32(0)))[0].x


def _start(problem: Subproblem) -> _Point:
    x = (problem.alpha + problem.beta) / 2
    ones = jnp.ones_like(problem.bound)
    values = problem.rows.values(x)
    shared = problem.shared > 0
    joint = jnp.any(shared)
    z = jnp.where(joint, jnp.max(jnp.where(shared, values, -jnp.inf)), 0)
    # Prices of shared rows sum to 1, and rows far from their limit have much slack.
    price = jnp.where(joint & shared, problem.shared / jnp.sum(problem.shared), ones)
    slack = problem.shared * z + ones - values
    return _Point(
        x=x,
        y=ones,
        z=z,
        price=jnp.where(problem.bound > 0, price, ones),
        at_low=jnp.maximum(1 / (x - problem.alpha), 1),
        at_high=jnp.maximum(1 / (problem.beta - x), 1),
        of_y=ones * max(1.0, problem.elastic / 2),
        slack=jnp.where(problem.bound > 0, jnp.maximum(slack, 1), ones),
    )


def _weights(problem: Subproblem, point: _Point) -> Array:
    """The factor of each row in the Lagrangian."""
    return problem.objective + problem.bound * point.price


def _errors(problem: Subproblem, point: _Point, barrier: Array) -> list[Array]:
    """By how much each condition of optimality is missed."""
    weights = _weights(problem, point)
    values = problem.rows.values(point.x)
    level = problem.shared * point.z
    total = jnp.where(jnp.any(problem.shared > 0), 1.0, 0.0)
    return [
        matmul(weights, problem.rows.gradients(point.x)) - point.at_low + point.at_high,
        problem.bound * (problem.elastic + point.y - point.price - point.of_y),
        jnp.atleast_1d(total - matmul(problem.shared, point.price)),
        # A value is a sum over all parameters, and rounded like one.
        problem.bound * (values - level - point.y + point.slack) / point.x.size,
        point.at_low * (point.x - problem.alpha) - barrier,
        point.at_high * (problem.beta - point.x) - barrier,
        problem.bound * (point.of_y * point.y - barrier),
        problem.bound * (point.price * point.slack - barrier),
    ]


def _newton(problem: Subproblem, point: _Point, barrier: Array) -> _Point:
    """Solves the linearised conditions, reduced to as many unknowns as rows and one."""
    bound, shared = problem.bound, problem.shared
    below, above = point.x - problem.alpha, problem.beta - point.x
    weights = _weights(problem, point)
    slopes = problem.rows.gradients(point.x)
    steep = matmul(weights, problem.rows.curvatures(point.x))
    steep = steep + point.at_low / below + point.at_high / above
    pull = matmul(weights, slopes) - barrier / below + barrier / above

    stiff = 1 + point.of_y / point.y
    push = problem.elastic + point.y - point.price - barrier / point.y
    give = point.slack / point.price
    miss = problem.rows.values(point.x) - shared * point.z - point.y
    miss = miss + barrier / point.price

    inner = bound[:, None] * slopes
    matrix = matmul(inner / steep, inner.T) + jnp.diag(1 / stiff + give)
    # Rows that are not inequalities must leave the others alone.
    matrix = jnp.where((bound[:, None] * bound) > 0, matrix, jnp.eye(bound.size))
    known = bound * (miss + push / stiff) - matmul(inner, pull / steep)
    joint = jnp.any(shared > 0)
    corner = jnp.where(joint, 0.0, 1.0)
    whole = jnp.block(
        [[matrix, shared[:, None]], [shared[None, :], corner[None, None]]]
    )
    rest = jnp.where(joint, 1 - matmul(shared, point.price), 0.0)
    solution = jnp.linalg.solve(whole, jnp.append(known, rest))
    price, z = bound * solution[:-1], solution[-1]

    x = -(pull + matmul(inner.T, price)) / steep
    y = bound * (price - push) / stiff
    return _Point(
        x=x,
        y=y,
        z=z,
        price=price,
        at_low=-point.at_low + (barrier - point.at_low * x) / below,
        at_high=-point.at_high + (barrier + point.at_high * x) / above,
        of_y=bound * (-point.of_y + (barrier - point.of_y * y) / point.y),
        slack=bound * (-point.slack + barrier / point.price - give * price),
    )


def _step(problem: Subproblem, point: _Point, direction: _Point) -> _Point:
    """Goes as far as all that must be positive stays so.

    The line search of the reference is left out: with it, 20,000 parameters and an
    inequality that cannot be met took more than 300 iterations, without it 45.
    """

    def room(value, change):
        # A hundredth of the way to the wall is left.
        return jnp.max(-1.01 * change / value)

    walls = jnp.stack(
        [
            room(point.x - problem.alpha, direction.x),
            room(problem.beta - point.x, -direction.x),
            room(point.y, direction.y),
            room(point.price, direction.price),
            room(point.at_low, direction.at_low),
            room(point.at_high, direction.at_high),
            room(point.of_y, direction.of_y),
            room(point.slack, direction.slack),
        ]
    )
    length = 1 / jnp.maximum(jnp.max(walls), 1)

    return jax.tree.map(lambda a, b: a + length * b, point, direction)


def separable_minimum(
    rows: Approximation, alpha: Float[Array, " n"], beta: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Minimises the first row where there is no inequality; in closed form.

    Args:
        rows: The approximate functions.
        alpha: The least x.
        beta: The largest x.

    Returns:
        The minimiser.
    """
    up, down = jnp.sqrt(rows.p[0]), jnp.sqrt(rows.q[0])
    x = (rows.low * up + rows.high * down) / (up + down)
    return jnp.clip(x, alpha, beta)
