import pytest

from physax._checks import ArgumentError
from physax.runtime import round_up


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
