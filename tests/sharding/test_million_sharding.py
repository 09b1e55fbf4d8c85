"""A million points on several devices, and in processes: the same answer."""

import dataclasses

import numpy as np
import pytest

from physax import runtime
from physax.fit import least_squares, plan_for
from physax.runtime import Checkpointing, checkpoint_steps
from tests.fit.exponentials import X, Y, assert_same, problem
from tests.sharding.processes import together


pytestmark = pytest.mark.x64


@pytest.fixture(scope="module")
def expected():
    result = least_squares(problem(), throw=True)
    return np.asarray(result.values), np.asarray(result.covariance)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    file = tmp_path_factory.mktemp("million") / "data.npy"
    np.save(file, [X, Y])
    return file


@pytest.mark.parametrize("devices", [2, 4])
def test_devices_agree(expected, devices):
    assert_same(least_squares(problem(), mesh=runtime.mesh(devices)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 4])
def test_devices_agree_block_by_block(expected, saved, devices):
    data = np.load(saved, mmap_mode="r")
    streamed = problem((data[0], data[1]))
    # 17 blocks, the last of which overlaps the one before.
    blocks = dataclasses.replace(plan_for(streamed), block=60_000, chunk=20_000)
    found = least_squares(
        streamed, plan=blocks, mesh=runtime.mesh(devices), progress=False
    )
    assert_same(found, expected)


@pytest.mark.slow
def test_a_fit_goes_on_with_fewer_devices(expected, saved, tmp_path):
    data = np.load(saved, mmap_mode="r")
    streamed = problem((data[0], data[1]))
    blocks = dataclasses.replace(plan_for(streamed), block=60_002, chunk=20_000)

    def fit(devices):
        return least_squares(
            streamed,
            plan=blocks,
            mesh=runtime.mesh(devices),
            checkpoint=Checkpointing(tmp_path, 20, keep=100),
            progress=False,
        )

    assert_same(fit(4), expected)
    first, *later = checkpoint_steps(tmp_path)
    # Within the second pass: what four devices have added up is stored as one.
    assert first == 20
    for step in later:
        (tmp_path / f"step-{step:012d}.checkpoint").unlink()
    # Three do not divide a block.
    assert_same(fit(3), expected)
    assert checkpoint_steps(tmp_path) == (first, *later)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_processes_agree(expected, saved, count):
    found = together("tests.sharding.fit_together", str(saved), count=count)
    assert all(other == found[0] for other in found)
    for values, covariance in found[0]:
        np.testing.assert_allclose(values, expected[0], rtol=1e-9)
        np.testing.assert_allclose(covariance, expected[1], rtol=1e-7)
