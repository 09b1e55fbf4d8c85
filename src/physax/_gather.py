"""Reads single entries of arrays at numbers known to be within them."""

from typing import Any

from jaxtyping import Array, Num


def gather(values: Num[Array, "..."], *at: Any) -> Num[Array, "..."]:
    """Returns `values[at]` without asking whether the numbers are there, or negative.

    Args:
        values: The array.
        *at: The numbers along its leading axes, or `...`.
    """
    return values.at[at].get(mode="promise_in_bounds", wrap_negative_indices=False)
