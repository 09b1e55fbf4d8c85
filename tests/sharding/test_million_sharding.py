"""A million points on several devices, and in two processes: the same answer."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from physax import runtime
from physax.fit import least_squares
from tests.fit.exponentials import assert_same, problem


pytestmark = pytest.mark.x64

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def expected():
    result = least_squares(problem(), throw=True)
    return np.asarray(result.values), np.asarray(result.covariance)


@pytest.mark.parametrize("devices", [2, 4])
def test_devices_agree(expected, devices):
    assert_same(least_squares(problem(), mesh=runtime.mesh(devices)), expected)


def test_two_processes_agree(expected):
    # The processes talk to each other within this machine.
    port = str(20_000 + os.getpid() % 20_000)
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_NUM_CPU_DEVICES": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.sharding.fit_in_two", str(rank), port],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        found = [worker.communicate(timeout=300)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0]
    first, second = (json.loads(text.splitlines()[-1]) for text in found)
    assert first == second
    values, covariance = first
    np.testing.assert_allclose(values, expected[0], rtol=1e-9)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-7)
