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
_OFFLOADING = (
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
)
_HOST = "pinned_host"
NAMELESS = ("none", *_POLICIES, "offload_dot_with_no_batch_dims")
"""Policies that need no names of values."""


class RematCost(eqx.Module):
    """What a gradient costs under a policy.

    Attributes:
        policy: The policy.
        temporary: Bytes on each device besides arguments and results, as the compiled
            program reserves them.
        seconds: Time of the fastest run, which the machine disturbed least.
    """

    policy: str
    temporary: int
    seconds: float


def remat(
    function: Callable,
    policy: str = "nothing_saveable",
    names: Sequence[str] = (),
    *,
    offloaded: Sequence[str] = (),
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
            `jax.ad_checkpoint.checkpoint_name` gave to values. Two more keep values in
            the memory of the host, from which the gradient fetches them:
            `"offload_dot_with_no_batch_dims"` the results of products with weights, and
            `"save_and_offload_only_these_names"` those in `offloaded`, besides the ones
            in `names` that stay on the device.
        names: These names.
        offloaded: Names of values that go to the host.

    Returns:
        The function, with the same values and gradients.

    Raises:
        ArgumentError: If there is no such policy, it has `names` or `offloaded` but
            takes none, or takes some but has none; or if it offloads, and the devices
            can't reach memory of the host.
    """
    known = ("none", *_POLICIES, *_NAMING, *_OFFLOADING)
    if policy not in known:
        raise ArgumentError(
            f"`policy` must be one of {', '.join(known)}, but is {policy}."
        )
    both = policy == "save_and_offload_only_these_names"
    _check_names("names", names, policy, policy in _NAMING, optional=both)
    _check_names("offloaded", offloaded, policy, both)
    if policy == "none":
        return function
    rule = getattr(jax.checkpoint_policies, policy)
    if policy in _OFFLOADING:
        _check_host(policy)
        places: dict[str, Any] = {"offload_src": "device", "offload_dst": _HOST}
        if both:
            places["names_which_can_be_saved"] = list(names)
            places["names_which_can_be_offloaded"] = list(offloaded)
        rule = rule(**places)
    elif names:
        rule = rule(*names)
    return eqx.filter_checkpoint(function, policy=rule)


def _check_names(
    argument: str,
    given: Sequence[str],
    policy: str,
    needed: bool,
    *,
    optional: bool = False,
) -> None:
    if not optional and bool(given) != needed:
        expected = "at least one entry" if needed else "no entries"
        raise ArgumentError(
            f"`{argument}` must have {expected} for the policy {policy}, but is "
            f"{list(given)}."
        )


def _check_host(policy: str) -> None:
    device = jax.local_devices()[0]
    kinds = [space.kind for space in device.addressable_memories()]
    if _HOST not in kinds:
        raise ArgumentError(
            f"`policy` must keep values on the device where this has no memory "
            f"{_HOST}, but is {policy}, and {device.platform} has only "
            f"{', '.join(kinds)}. Take dots_with_no_batch_dims_saveable or "
            "save_only_these_names."
        )


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
        repeats: How many runs of each are timed, at least 1, and for half a second.

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
                seconds=benchmark(jitted, *args, repeats=repeats, at_least=0.5).min,
            )
        )
    return tuple(rows)
