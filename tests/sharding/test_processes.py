"""Light and training by several processes: the numbers of one."""

import numpy as np
import pytest

from tests.sharding.processes import together
from tests.sharding.solvers import results


pytestmark = [pytest.mark.x64, pytest.mark.slow]


@pytest.mark.parametrize("count", [2, 4])
def test_s_parameters_gradients_and_training_agree_with_one_process(count):
    expected = results(1)
    found = together("tests.sharding.solve_together", count=count)
    assert all(other == found[0] for other in found)
    for (value, array), (mine, wanted) in zip(found[0], expected, strict=True):
        np.testing.assert_allclose(value, mine, rtol=1e-12)
        largest = np.max(np.abs(wanted))
        np.testing.assert_allclose(array, wanted, rtol=0, atol=1e-12 * largest)
