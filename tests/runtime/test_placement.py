import inspect

import jax.numpy as jnp
import pytest

from physax._checks import ArgumentError
from physax.runtime import mesh, round_up, shardings


@pytest.mark.parametrize(
    ("n", "multiple", "expected"),
    [(0, 4, 0), (1, 4, 4), (4, 4, 4), (5, 4, 8), (129, 128, 256), (7, 1, 7)],
)
def test_round_up_gives_the_next_multiple(n, multiple, expected):
    assert round_up(n, multiple) == expected


def test_multiple_is_checked():
    with pytest.raises(
        ArgumentError, match="`multiple` must be an integer of at least 1, but is 0"
    ):
        round_up(3, 0)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"a": "x"},
            r"'a' must give a `PartitionSpec`, .* a str. Write .*\('x'\)",
        ),
        ({"a": None}, "'a' must give a `PartitionSpec`, but gives None"),
        ("x", "`rules` must be a `Mapping`, but is a str"),
    ],
)
def test_rules_of_another_kind_are_refused(rules, message):
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(shardings)({"a": jnp.ones(2)}, mesh(1), rules)
