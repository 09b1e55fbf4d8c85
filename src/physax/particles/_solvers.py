"""Steps of fixed length for many particles at once."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from .._products import tensordot


class Trial(NamedTuple):
    """Where a step leads, before walls have been asked.

    Attributes:
        y: The new states.
        memory: What the fields remember.
        stages: Time, states and memory at which the stages asked for derivatives, where
            nudges were given.
    """

    y: Float[Array, "*particles width"]
    memory: PyTree
    stages: PyTree = None


Rate = Callable[[Array, Array, PyTree], tuple[Array, PyTree]]


Tableau = tuple[tuple[float, ...], ...]


class AbstractRungeKutta(eqx.Module):
    r"""An explicit Runge-Kutta method of fixed step.

    $k_i = f(t + c_i h, y + h \sum_{j<i} a_{ij} k_j)$, then
    $y \gets y + h \sum_i b_i k_i$.

    Attributes:
        a: For each stage the weights of the stages before it.
        b: The weights of the stages.
        order: The order of the error.
    """

    a: eqx.AbstractClassVar[Tableau]
    b: eqx.AbstractClassVar[tuple[float, ...]]
    order: eqx.AbstractClassVar[int]


class Euler(AbstractRungeKutta):
    """Euler's method, of order 1."""

    a: ClassVar[Tableau] = ((),)
    b: ClassVar[tuple[float, ...]] = (1.0,)
    order: ClassVar[int] = 1


class RK2(AbstractRungeKutta):
    """The midpoint method, of order 2."""

    a: ClassVar[Tableau] = ((), (1 / 2,))
    b: ClassVar[tuple[float, ...]] = (0.0, 1.0)
    order: ClassVar[int] = 2


class RK4(AbstractRungeKutta):
    """The classical method of Runge and Kutta, of order 4."""

    a: ClassVar[Tableau] = ((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0))
    b: ClassVar[tuple[float, ...]] = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
    order: ClassVar[int] = 4


class RK4ThreeEighths(AbstractRungeKutta):
    """Kutta's method of the 3/8 rule, of order 4 and a smaller error than `RK4`."""

    a: ClassVar[Tableau] = ((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0))
    b: ClassVar[tuple[float, ...]] = (1 / 8, 3 / 8, 3 / 8, 1 / 8)
    order: ClassVar[int] = 4


def moved(
    y: Float[Array, "..."], h: Float[Array, "..."], slope: Float[Array, "..."]
) -> Float[Array, "..."]:
    """Returns `y + h slope`; NaN, without a derivative, where the slope is not finite.

    Args:
        y: The state.
        h: The length of the step.
        slope: The derivative of the state by time.
    """
    return jnp.where(jnp.isfinite(slope), y + h * finite(slope), jnp.nan)


def finite(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Returns `x`, with 0 where it is not finite.

    A step that fails is thrown away. Places that are not finite on its way would give
    NaN to the derivatives of what all particles share.

    Args:
        x: Numbers.
    """
    return jnp.where(jnp.isfinite(x), x, 0)


def runge_kutta_step(
    solver: AbstractRungeKutta,
    rate: Rate,
    t: Float[Array, "..."],
    h: Float[Array, "..."],
    y: Float[Array, "particles width"],
    memory: PyTree,
    nudges: Float[Array, "stages particles width"] | None = None,
) -> Trial:
    """Makes one step.

    Args:
        solver: The method.
        rate: Maps time, states and memory to derivatives and memory.
        t: The time, one for all or one for each particle.
        h: The length of the step, likewise.
        y: The states.
        memory: What the fields remember.
        nudges: What to add to the derivative of each stage. Derivatives with respect to
            it are what each stage's derivative is worth.
    """
    # The stages are a loop although they are few: written out, they are fused into the
    # reads of the field, which the compiler then repeats; 10 times slower on CPUs.
    wide = jnp.reshape(h, (-1, 1)) if jnp.ndim(h) else h
    nodes = np.array([sum(row) for row in solver.a])
    rows: tuple = (
        jnp.asarray(nodes, y.dtype),
        jnp.asarray(np.array(solver.b), y.dtype),
        nudges,
    )

    def look(at, c, memory, nudge):
        slope, later = rate(t + c * h, at, memory)
        if nudge is None:
            return slope, later, None
        return slope + nudge, later, (t + c * h, at, memory)

    if all(not any(row[:-1]) for row in solver.a):

        def stage(carry, row):
            slope, total, memory = carry
            c, b, nudge = row
            at = y + (c * wide) * finite(slope)
            slope, memory, asked = look(at, c, memory, nudge)
            return (slope, total + b * slope, memory), asked

        zero = jnp.zeros_like(y)
        carry, asked = lax.scan(stage, (zero, zero, memory), rows)
        return Trial(moved(y, wide, carry[1]), carry[2], asked)

    stages = len(solver.b)
    lower = np.array([[*row, *(0.0,) * (stages - len(row))] for row in solver.a])

    def full_stage(carry, row):
        slopes, memory = carry
        (c, _, nudge), weights, i = row
        at = y + wide * tensordot(weights, finite(slopes), 1)
        slope, memory, asked = look(at, c, memory, nudge)
        return (slopes.at[i].set(slope), memory), asked

    slopes = jnp.zeros((stages, *y.shape), y.dtype)
    table = (rows, jnp.asarray(lower, y.dtype), jnp.arange(stages))
    (slopes, memory), asked = lax.scan(full_stage, (slopes, memory), table)
    total = tensordot(rows[1], slopes, 1)
    return Trial(moved(y, wide, total), memory, asked)
