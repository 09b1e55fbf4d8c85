"""Memory against time: which intermediate values a gradient keeps."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax

from .._checks import ArgumentError
from ._benchmark import benchmark
from ._memory import memory


_POLICIES = (
    "everything_saveable",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "nothing_saveable",
)
_NAMING = (
    "save_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
)


class RematCost(eqx.Module):
    """What a gradient costs under a policy.

    Attributes:
        policy: The policy.
        temporary: Bytes on each device besides arguments and results, as the compiled
            program reserves them.
        seconds: Median time of a run.
    """

    policy: str
    temporary: int
    seconds: float


def remat(
    function: Callable, policy: str = "nothing_saveable", names: Sequence[str] = ()
) -> Callable:
    """Makes the gradient of a function compute again what it does not keep.

    Wrap a layer, a block or a step, many of which follow one another. Around a whole
    loss it saves nothing: its backward pass needs everything at once.

    Args:
        function: The function; its arguments are kept.
        policy: What else is kept. `"none"` leaves the function as it is, and so keeps
            what JAX chooses; `"nothing_saveable"` keeps nothing, `"dots_saveable"` the
            results of matrix products, `"dots_with_no_batch_dims_saveable"` those of
            products with weights, `"everything_saveable"` all. The policies with names,
            `"save_only_these_names"`, `"save_any_names_but_these"` and
            `"save_anything_except_these_names"`, go by the `names` that
            `jax.ad_checkpoint.checkpoint_name` gave to values.
        names: These names.

    Returns:
        The function, with the same values and gradients.

    Raises:
        ArgumentError: If there is no such policy, or it has `names` but takes none, or
            takes some but has none.
    """
    known = ("none", *_POLICIES, *_NAMING)
    if policy not in known:
        raise ArgumentError(
            f"`policy` must be one of {', '.join(known)}, but is {policy}."
        )
    if bool(names) != (policy in _NAMING):
        expected = "at least one entry" if policy in _NAMING else "no entries"
        raise ArgumentError(
            f"`names` must have {expected} for the policy {policy}, but is "
            f"{list(names)}."
        )
    if policy == "none":
        return function
    rule = getattr(jax.checkpoint_policies, policy)
    return eqx.filter_checkpoint(function, policy=rule(*names) if names else rule)


def explain_remat(
    function: Callable[..., Any],
    *args: Any,
    policies: Sequence[str] = ("none", *_POLICIES),
    repeats: int = 5,
) -> tuple[RematCost, ...]:
    """Compares the memory and the time that a gradient takes under policies.

    Args:
        function: Takes the name of a policy, which it hands to `remat` where it wraps
            its blocks, and `args`, to a real scalar.
        *args: Its arguments; the gradient is with respect to the first.
        policies: The names to compare.
        repeats: How many runs of each are timed, at least 1.

    Returns:
        A row for each policy, in their order.

    Raises:
        ArgumentError: If there is no such policy, or `repeats` is less than 1.
    """
    rows = []
    for policy in policies:
        slope = eqx.filter_value_and_grad(partial(function, policy))
        jitted = eqx.filter_jit(slope)
        rows.append(
            RematCost(
                policy,
                temporary=memory(jitted, *args).temporary,
                seconds=benchmark(jitted, *args, repeats=repeats).median,
            )
        )
    return tuple(rows)
