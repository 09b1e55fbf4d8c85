"""A data set made by several devices, or processes, is that of one."""

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from examples.fdtd_dataset import Grating, generate
from physax import runtime


pytestmark = [pytest.mark.f32, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def stored(folder):
    with h5py.File(folder / "dataset.h5") as file:
        return {name: one[()] for name, one in file.items()}


def assert_same(found, expected):
    # What is drawn does not depend on devices or batches.
    np.testing.assert_array_equal(found["widths"], expected["widths"])
    # A compiler rounds batches of other sizes otherwise.
    np.testing.assert_allclose(
        found["transmission"], expected["transmission"], atol=1e-5
    )


def test_four_devices_and_other_batches_give_the_same_samples(tmp_path):
    grating = Grating(2, wavelengths=(1550e-9,), cell=100e-9, path=30e-6)
    generate(grating, tmp_path / "one", 10, 4, 1, runtime.mesh(1))
    # Six are rounded up to eight, and the last batch has two samples for four devices.
    result = generate(grating, tmp_path / "four", 10, 6, 1, runtime.mesh(4))
    assert len(result.state.widths.sharding.device_set) == 4
    found, expected = stored(tmp_path / "four"), stored(tmp_path / "one")
    assert np.all(expected["residual"] > 0)
    assert_same(found, expected)


def test_two_processes_make_one_data_set(tmp_path):
    options = ["--samples", "6", "--batch", "4", "--cell", "100", "--seed", "2"]
    script = [str(ROOT / "examples" / "fdtd_dataset.py"), *options]
    launch = [sys.executable, "-m", "physax", "launch", "-n", "2", "--"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "JAX_NUM_CPU_DEVICES": "1",
    }
    done = subprocess.run(
        [*launch, *script, "--out", str(tmp_path / "two")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "on 2 devices" in done.stdout
    assert "[1] 6 samples" not in done.stdout
    generate(Grating(cell=100e-9), tmp_path / "one", 6, 4, 2, runtime.mesh(1))
    assert_same(stored(tmp_path / "two"), stored(tmp_path / "one"))
