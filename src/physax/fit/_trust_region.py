"""Trust-region search: which parameters to try next, given the sums at the last."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._checks import at_least, positive, true_or_false, whole
from ._search import (
    AGAIN,
    DONE,
    POLISH,
    SEARCH,
    START,
    Search,
    better_unit,
    finite,
    noise,
    tiny,
)
from ._sums import Factored, Normal, column_norms, norms_of
from ._trial_step import held_at_bounds, trial_step


def _factor(x) -> Float[Array, ""]:
    return positive(x, "factor")


class TrustRegion(eqx.Module):
    r"""The method of Levenberg and Marquardt with a trust region.

    Steps minimise the linearised residuals within $|D s| \leq \Delta$, where D holds
    the largest norm that each column of the Jacobian has had, but not so much more than
    its present one that rounding would hide the column; the ratio of actual to
    predicted reduction moves the radius. Bounds are obeyed by an active set. In the
    end undamped steps take the parameters to rounding level.

    Reference: Moré, Garbow and Hillstrom, *User guide for MINPACK-1*, ANL-80-74 (1980).

    Attributes:
        factor: The initial radius, in units of |D p|.
        ftol: The search ends when the cost decreases by less than this fraction, twice.
        xtol: It ends when the radius is below this fraction of |D p|.
        gtol: It ends when no column of the Jacobian has a larger cosine with the
            residuals.
        max_evaluations: It ends after this many passes over the data.
        polish: Whether to take undamped steps in the end.

    Raises:
        ArgumentError: If `factor` or `max_evaluations` is not positive, a tolerance is
            negative, or `polish` is neither True nor False.
    """

    factor: Float[Array, ""] = eqx.field(converter=_factor, default=1.0)
    ftol: Float[Array, ""] = eqx.field(converter=at_least("ftol", 0.0), default=1e-8)
    xtol: Float[Array, ""] = eqx.field(converter=at_least("xtol", 0.0), default=1e-8)
    gtol: Float[Array, ""] = eqx.field(converter=at_least("gtol", 0.0), default=1e-8)
    max_evaluations: int = eqx.field(
        static=True, converter=lambda x: whole(x, "max_evaluations"), default=2000
    )
    polish: bool = eqx.field(
        static=True, converter=lambda x: true_or_false(x, "polish"), default=True
    )


# A polishing step of this part of a standard deviation changes nothing that is known.
_NEGLIGIBLE = 1e-9


def search_to_end(
    method: TrustRegion,
    bounds: tuple[Float[Array, " m"], Float[Array, " m"]],
    search: Search,
    normal_at: Callable[[Float[Array, " m"], Factored, Float[Array, ""]], Normal],
    *,
    factored: bool | None = None,
) -> Search:
    """Searches, all data at hand.

    Args:
        method: Tolerances.
        bounds: Lower and upper ones.
        search: Where it begins.
        normal_at: Takes parameters, whether to form triangular factors, and the unit
            of residuals, to the model there.
        factored: Whether to form those in all passes: it ends where that has to change.
            None: as the search asks for, until it is done.
    """

    def goes_on(search: Search) -> Bool[Array, ""]:
        return ~search.done & ((factored is None) | (search.factored == factored))

    def one_pass(search: Search) -> Search:
        how = search.factored if factored is None else factored
        return advance(
            method, bounds, search, normal_at(search.trial, how, search.unit)
        )

    # Inner iterations of an algorithm: how many follows from the data.
    return jax.lax.while_loop(goes_on, one_pass, search)


def advance(
    method: TrustRegion,
    bounds: tuple[Float[Array, " m"], Float[Array, " m"]],
    search: Search,
    new: Normal,
) -> Search:
    """Judges the trial that was evaluated, and chooses the next one.

    Args:
        method: Tolerances.
        bounds: Lower and upper ones.
        search: The state of the search.
        new: The model at its trial.
    """
    evaluations = search.evaluations + 1
    search = eqx.tree_at(lambda s: s.evaluations, search, evaluations)
    redo = ~new.conditioned & jnp.isfinite(new.cost) & ~search.factored

    unit = jnp.where(
        search.phase == START, better_unit(search, new, search.trial), search.unit
    )
    # What is divided for the sake of some columns must not be lost in others.
    lost = (search.phase == START) & (unit == search.unit) & (unit < 1) & tiny(new)
    new = eqx.tree_at(lambda n: n.cost, new, jnp.where(lost, jnp.nan, new.cost))

    def repeat(search):
        changed = search.factored | redo, jnp.where(redo, search.unit, unit)
        return eqx.tree_at(lambda s: (s.factored, s.unit), search, changed)

    def judge(search):
        polishing = search.phase == POLISH
        taken, ended = jax.lax.cond(
            polishing,
            lambda s: _polish(s, new),
            lambda s: _judge(method, bounds, s, new),
            search,
        )
        return _in_range(method, _propose(method, bounds, taken, ended, polishing))

    return jax.lax.cond(redo | (unit != search.unit), repeat, judge, search)


def _in_range(method, search: Search) -> Search:
    """Evaluates again where squares of residuals are out of range by now."""
    unit = better_unit(search, search.normal, search.vector)
    spent = search.evaluations >= method.max_evaluations
    changed = (unit != search.unit) & ~spent
    ratio = jnp.where(changed, unit / search.unit, 1)
    return eqx.tree_at(
        lambda s: (s.unit, s.phase, s.trial, s.radius, s.largest),
        search,
        (
            search.unit * ratio,
            jnp.where(changed, AGAIN, search.phase),
            jnp.where(changed, search.vector, search.trial),
            search.radius * ratio,
            search.largest * ratio,
        ),
    )


def _judge(method, bounds, search: Search, new: Normal) -> tuple[Search, Array]:
    """Accepts the trial or not, and tells whether the search has ended."""
    start = search.phase == START
    first = start | (search.phase == AGAIN)
    cost, predicted = search.normal.cost, search.predicted
    actual = cost - new.cost
    sound = finite(new)
    ratio = actual / jnp.where(predicted > 0, predicted, 1)
    ratio = jnp.where(sound & (predicted > 0), ratio, -jnp.inf)
    norms = column_norms(new)

    accept = sound & (first | (ratio > 1e-4))
    radius = jnp.where(first, search.radius, _new_radius(search, actual, ratio, sound))
    search = _moved(search, new, accept)
    largest = jnp.where(start, jnp.where(norms > 0, norms, 1), search.largest)
    largest = jnp.where(accept, jnp.maximum(largest, norms), largest)
    scale = _scaling(largest, column_norms(search.normal))
    size = norms_of(scale * search.vector)
    radius = jnp.where(start, method.factor * jnp.where(size > 0, size, 1), radius)

    cost = jnp.where(start, new.cost, cost)
    ftol = jnp.where(search.strict, _rounding(cost), method.ftol) * cost
    small = (predicted <= ftol) & (jnp.abs(actual) <= ftol)
    calm = jnp.where(~first & small & (ratio <= 2), search.calm + 1, 0)
    search = eqx.tree_at(
        lambda s: (s.scale, s.largest, s.radius, s.calm, s.phase),
        search,
        (scale, largest, radius, calm, jnp.asarray(SEARCH, jnp.int32)),
    )
    ended = (calm >= 2) | (radius <= method.xtol * size)
    ended = ended | (~first & (predicted <= noise(search)))
    ended = ended | (_cosine(search, bounds) <= method.gtol)
    return search, ended | (first & ~sound)


def _scaling(largest: Float[Array, " m"], norms: Float[Array, " m"]) -> Array:
    """Returns the diagonal of D: the largest norms, where they are not far above."""
    # A column far below its D has no singular value above rounding in R / D: no step
    # would ever move along it again.
    most = norms / jnp.sqrt(jnp.finfo(norms.dtype).eps)
    return jnp.where(norms > 0, jnp.minimum(largest, most), largest)


def _polish(search: Search, new: Normal) -> tuple[Search, Array]:
    """Accepts an undamped step unless the cost grows by more than rounding."""
    limit = search.normal.cost * (1 + 1e-9) + noise(search)
    good = finite(new) & (new.cost <= limit)
    # A step that was refused must not look as if the next one were shorter.
    length = jnp.where(good, search.length, 0)
    search = _moved(search, new, good)
    search = eqx.tree_at(lambda s: s.length, search, length)
    return search, jnp.ones((), bool)


def _propose(method, bounds, search: Search, ended, polishing) -> Search:
    """Chooses the next trial: within the region, or undamped once the search ended."""
    spent = search.evaluations >= method.max_evaluations
    # At the end the undamped step tells how far from the minimum it is.
    radius = jnp.where(ended | spent, jnp.inf, search.radius)
    step = trial_step(search.normal, search.vector, search.scale, radius, bounds)
    cost, free = search.normal.cost, search.normal.count - search.vector.size
    variance = cost / jnp.maximum(free, 1)
    size = norms_of(search.scale * search.vector)
    tiny = (step.predicted <= _NEGLIGIBLE**2 * variance) | (
        step.length <= jnp.finfo(size.dtype).eps * size
    )
    # Steps that do not shrink any more are rounding, or the model is not good enough
    # here for undamped ones: a narrow valley is followed further with a region, and in
    # triangular factors, as the cost that sums of squares leave may be rounding, too.
    failed = polishing & (step.length > 0.999 * search.length)
    rounding = step.predicted <= _rounding(cost) * cost
    again = failed & ~tiny & ~rounding & ~search.strict & ~spent
    finished = spent | (ended & (tiny | failed | (not method.polish)))
    phase = jnp.where(
        again,
        AGAIN,
        jnp.where(finished, DONE, jnp.where(ended, POLISH, search.phase)),
    )
    # What is not finite at the start stays so.
    phase = jnp.where(finite(search.normal), phase, DONE)
    trial = _snapped(search.vector + jnp.where(again, 0, step.change), bounds)
    return eqx.tree_at(
        lambda s: (
            *(s.trial, s.length, s.predicted, s.slope, s.full),
            *(s.phase, s.strict, s.factored, s.calm),
        ),
        search,
        (
            trial,
            *(step.length, step.predicted, step.slope, step.full),
            *(phase, search.strict | again, search.factored | again),
            jnp.where(again, 0, search.calm),
        ),
    )


def _snapped(vector: Float[Array, " m"], bounds) -> Float[Array, " m"]:
    """Puts values that rounding has left next to a bound onto it."""
    low, high = bounds
    slack = 4 * jnp.finfo(vector.dtype).eps * jnp.abs(vector)
    vector = jnp.where(vector <= low + slack, low, vector)
    return jnp.where(vector >= high - slack, high, vector)


def _moved(search: Search, new: Normal, accept) -> Search:
    """Goes to the trial where it is accepted."""
    keep = lambda n, o: jnp.where(accept, n, o)  # noqa: E731
    # A first evaluation that is not finite must be seen, too.
    normal = jax.tree.map(keep, new, search.normal)
    begun = search.phase != START
    unsound = ~begun & ~finite(new)
    normal = eqx.tree_at(
        lambda n: n.cost, normal, jnp.where(unsound, jnp.nan, normal.cost)
    )
    return eqx.tree_at(
        lambda s: (s.vector, s.normal, s.iterations),
        search,
        (
            jnp.where(accept, search.trial, search.vector),
            normal,
            search.iterations + (accept & begun),
        ),
    )


def _rounding(like) -> float:
    return 8 * float(jnp.finfo(like.dtype).eps)


def _new_radius(search: Search, actual, ratio, sound) -> Float[Array, ""]:
    # A first step that was free to be long tells how long steps are here.
    fresh = search.evaluations <= 2
    length = search.length
    radius = jnp.where(fresh, jnp.minimum(search.radius, length), search.radius)
    # The minimum of the parabola through cost, slope and the new cost.
    bend = -actual - search.slope
    part = -0.5 * search.slope / jnp.where(bend > 0, bend, 1)
    part = jnp.clip(jnp.where(actual >= 0, 0.5, part), 0.1, 0.5)
    poor = part * jnp.minimum(radius, 10 * length)
    radius = jnp.where(
        ratio <= 0.25,
        poor,
        jnp.where((ratio >= 0.75) | search.full, 2 * length, radius),
    )
    return jnp.where(sound, radius, 0.25 * jnp.minimum(search.radius, length))


def _cosine(search: Search, bounds) -> Float[Array, ""]:
    """Returns the largest cosine between a free column and the residuals."""
    normal = search.normal
    held = held_at_bounds(search.vector, normal.gradient, *bounds)
    norms = column_norms(normal) * jnp.sqrt(normal.cost)
    cosines = jnp.abs(normal.gradient) / jnp.where(norms > 0, norms, 1)
    return jnp.max(jnp.where(held, 0, cosines))
