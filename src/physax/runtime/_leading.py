"""The leading axis that the arrays of a tree share."""

import numpy as np
from jax.tree_util import keystr, tree_leaves_with_path
from jaxtyping import PyTree

from .._checks import ArgumentError


def leading_size(tree: PyTree, name: str, required: str) -> int:
    """Returns the size of the leading axis of all arrays of a tree.

    Args:
        tree: The arrays.
        name: Of the argument, for the message.
        required: What the arrays must have, for the message.

    Raises:
        ArgumentError: If they differ, one has no axis or none in it, or there are none.
    """
    sizes = {
        keystr(path): (*np.shape(leaf), 0)[0]
        for path, leaf in tree_leaves_with_path(tree)
    }
    if len(set(sizes.values())) != 1 or 0 in sizes.values():
        found = ", ".join(f"`{name}{path}` {size}" for path, size in sizes.items())
        raise ArgumentError(
            f"The arrays of `{name}` must have {required}, at least 1, but have: "
            f"{found or 'no arrays'}."
        )
    return next(iter(sizes.values()))
