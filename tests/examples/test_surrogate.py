"""The data set of gratings and what is learned from it, at a small size."""

import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples import fdtd_dataset, fdtd_surrogate
from examples.fdtd_dataset import Grating, generate, transmission
from physax.runtime import FingerprintError, latest_step


# Nearly all of the time is compilation.
pytestmark = [pytest.mark.f32, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
# Between these widths no edge passes from one row of cells to the next, where the slope
# of the solver jumps.
SMALL = Grating(
    4,
    narrowest=200e-9,
    widest=400e-9,
    wavelengths=(1450e-9, 1600e-9),
    cell=100e-9,
    path=45e-6,
)
SAMPLES, BATCH = 32, 8
# Tests compile with fewer passes, and so must what is to give the same bits.
KILLED = """
import sys
from pathlib import Path
from physax.runtime import compile_quickly
compile_quickly()
from tests.examples.test_surrogate import BATCH, SAMPLES, SMALL, generate
generate(SMALL, Path(sys.argv[1]), SAMPLES, BATCH, 5)
"""


def kill_after_a_batch(folder):
    """Starts a data set in a process and kills it; returns how far it came."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], cwd=ROOT)
    while latest_step(folder / "checkpoints") is None:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    return latest_step(folder / "checkpoints")


def test_a_killed_data_set_resumes_to_the_same_bytes(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    step = kill_after_a_batch(killed)
    assert BATCH <= step < SAMPLES
    assert not (killed / "dataset.h5").exists()
    assert generate(SMALL, killed, SAMPLES, BATCH, 5).first_step == step
    assert generate(SMALL, whole, SAMPLES, BATCH, 5).first_step == 0
    found = (killed / "dataset.h5").read_bytes()
    assert found == (whole / "dataset.h5").read_bytes()
    # Nothing is left to do, and nothing changes.
    assert generate(SMALL, killed, SAMPLES, BATCH, 5).first_step == SAMPLES
    assert found == (killed / "dataset.h5").read_bytes()
    with pytest.raises(FingerprintError, match="`seed` is int 6 here and int 5 there"):
        generate(SMALL, killed, SAMPLES, BATCH, 6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small data set."""
    place = tmp_path_factory.mktemp("gratings")
    generate(SMALL, place, 160, BATCH, 0)
    return place


def test_file_says_what_it_holds(folder):
    with h5py.File(folder / "dataset.h5") as file:
        shapes = {name: (one.shape, one.attrs["units"]) for name, one in file.items()}
        assert file.attrs["cell (m)"] == 100e-9
        assert file["transmission"].dtype == np.complex64
        widths, light = file["widths"][()], file["transmission"][()]
        left = file["residual"][()]
    assert shapes == {
        "widths": ((160, 4), "m"),
        "transmission": ((160, 2), "1"),
        "residual": ((160,), "1"),
        "wavelengths": ((2,), "m"),
    }
    assert 200e-9 <= widths.min() < 205e-9
    assert 395e-9 < widths.max() <= 400e-9
    # Less than 1e-5 of the energy is left: 3e-3 in amplitude.
    assert left.max() < 1e-5
    assert np.abs(light).min() > 0.5
    assert np.abs(light).max() < 1.003


def test_gratings_keep_to_physics():
    widths = jnp.array([[4, 4, 4, 4], [2, 4, 3, 2.5], [2.5, 3, 4, 2]]) * 100e-9
    plain, there, back = jax.jit(jax.vmap(partial(transmission, SMALL)))(widths)[0]
    # Without blocks all light passes; cells are large, one profile serves the band.
    np.testing.assert_allclose(np.abs(plain), 1, atol=2e-3)
    # Reciprocity: as much passes from behind, but for the stray light that a port's
    # line of finite length takes for its mode.
    np.testing.assert_allclose(there, back, atol=1e-3)
    assert np.all(np.abs(there) < 0.999)


@pytest.fixture(scope="module")
def trained(folder):
    """A network, and the samples that it has and has not seen."""
    data, grating = fdtd_surrogate.read(folder / "dataset.h5")
    assert grating == SMALL
    seen, test = fdtd_surrogate.held_out(data)
    options = {"steps": 1000, "batch": 50, "hidden": (32, 32), "progress": False}
    return fdtd_surrogate.train(seen, grating, **options), seen, test


def test_network_beats_the_linear_fit_on_held_out_samples(trained):
    network, seen, test = trained
    mean = seen.transmission.mean(axis=0)
    found = fdtd_surrogate.predict(network, test)
    linear = fdtd_surrogate.polynomial_fit(seen, SMALL, test.widths, 1)
    mine, other = (fdtd_surrogate.error(x, test, mean) for x in (found, linear))
    assert mine < 0.6 * other < 0.6


def test_gradient_of_the_network_is_that_of_the_solver(trained):
    network, _, test = trained
    widths = jnp.asarray(test.widths[:8])

    def bright(light):
        # What leaves an interferometer with the grating in one arm.
        return jnp.sum(jnp.abs(1 + light) ** 2) / 4

    def slopes(function):
        return jax.jit(jax.vmap(jax.grad(lambda w: bright(function(w)))))(widths)

    true = slopes(lambda w: transmission(SMALL, w)[0])
    mine = slopes(network)
    # Over all samples: where it is flat, the direction of a slope says little. Values
    # are off by 3 to 5 % of their deviation from the mean, slopes by some times that;
    # those of the linear fit are by half, a cosine of 0.93.
    assert jnp.linalg.norm(mine - true) < 0.28 * jnp.linalg.norm(true)
    lengths = jnp.linalg.norm(mine) * jnp.linalg.norm(true)
    assert jnp.sum(mine * true) / lengths > 0.96


def test_script_learns_searches_and_checks(folder, tmp_path, capsys):
    small = ["--steps", "300", "--rounds", "2", "--output", str(tmp_path)]
    fdtd_surrogate.main(["--data", str(folder), *small])
    printed = capsys.readouterr().out

    def number(before):
        return float(printed.split(before)[1].split()[0].strip(","))

    assert number("network") < number("linear fit") < 1
    # Learned with what the first search has found, the second finds a better grating
    # than any of the samples, and the solver says so.
    best, found = number("best sample:"), printed.split("search 2:")[1]
    assert float(found.split("FDTD")[1].split()[0]) > best
    assert (tmp_path / "fdtd_surrogate.png").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--samples", "0"], "--samples must be at least 1 and less than 2^31, but is"),
        (["--batch", "-3"], "--batch must be at least 1"),
        (["--seed", "3000000000"], "--seed must be at least 0 and less than 2^31"),
        (["--cell", "70"], "invalid choice: 70"),
    ],
)
def test_options_out_of_range_are_refused(words, said, capsys):
    with pytest.raises(SystemExit):
        fdtd_dataset.main(words)
    assert said in capsys.readouterr().err
