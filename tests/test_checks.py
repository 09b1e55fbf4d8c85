"""What stands for numbers, and what does not."""

import inspect

import numpy as np
import pytest

from physax import ArgumentError
from physax._checks import as_array


pytestmark = pytest.mark.f32


@pytest.mark.parametrize(
    "value",
    [{}, {"a": 1.0}, object(), [[0.1], [0.2, 0.3]], 10**400, [10**400, float]],
    ids=lambda x: type(x).__name__,
)
def test_what_is_no_number_is_refused_by_its_name(value):
    with pytest.raises(ArgumentError, match="`x` must be a number or an array of num"):
        inspect.unwrap(as_array)(value, "x")


def test_whole_numbers_of_any_size_are_floating_point():
    assert np.array_equal(as_array([2 * 10**14, 1]), np.float32([2e14, 1]))
    assert as_array(2**70) == np.float32(2.0**70)
