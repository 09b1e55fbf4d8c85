"""Which formula of the shear factor is right: particles in Couette flow decide."""

import jax
import numpy as np
import pytest

from examples import couette


# Programs that draw many numbers are slow without optimisation, as float64 tests run.
pytestmark = pytest.mark.f32


@pytest.fixture(scope="module")
def found():
    """Correlations of 1e5 particles, in 100 blocks that are independent."""
    return np.asarray(couette.simulated(jax.random.key(1), 100), float)


def test_shear_argument_passes_its_first_zero():
    last = (
        couette.Q * couette.GAP * couette.RATE * (couette.FRAMES - 1) * couette.DT / 2
    )
    assert last > 1.5 * np.pi


@pytest.mark.slow
def test_physical_convention_agrees_with_particles(found):
    verdict = couette.judge(found, couette.predicted("physical"))
    # 72 values, neighbours strongly correlated: the largest of so many normal numbers
    # exceeds 4 in one of 200 runs. The mean square of 24 has a deviation of 0.29.
    assert verdict.largest < 4
    assert verdict.chi2 < 2


def test_homodyne_convention_is_rejected_at_the_rate_of_the_particles(found):
    verdict = couette.judge(found, couette.predicted("homodyne"))
    assert verdict.largest > 100


@pytest.mark.slow
def test_homodyne_convention_is_rejected_at_any_rate(found):
    # Even with rate and diffusion fitted, its best attempt is far off.
    rate, d0 = couette.fit(found, "homodyne")
    verdict = couette.judge(found, couette.predicted("homodyne", rate, d0))
    assert verdict.largest > 20
    assert verdict.chi2 > 100
    # The ratio of rates for small arguments is 2.22, and an approximation only.
    assert 2.2 < rate / couette.RATE < 2.5


def test_example_saves_its_picture(tmp_path, capsys, monkeypatch, found):
    monkeypatch.setattr(couette, "simulated", lambda key, blocks: found)
    monkeypatch.setattr(couette, "fit", lambda found, convention: (2.4e-4, 2e3))
    couette.main(["--output", str(tmp_path)])
    assert (tmp_path / "couette.png").stat().st_size > 10_000
    assert "X from 0 to 5.70" in capsys.readouterr().out
