import jax.numpy as jnp
import numpy as np
import pytest

from examples import mode_converter
from examples.best_binary import BestBinary
from examples.published_designs import coarser
from physax.design import Stages, StepInfo, filter_radius
from physax.io import load_npz
from physax.units import NANO


@pytest.mark.f32
@pytest.mark.slow
def test_mode_converter_is_designed_in_four_stages(tmp_path, capsys):
    options = ["--steps", "4", "--cells", "80", "40", "--least", "40"]
    mode_converter.main([*options, "--output", str(tmp_path)])
    made = load_npz(tmp_path / "mode_converter.npz")
    solid, loss = made["solid"], made["loss"]
    # Each strength has a step of its own, then come the stages with least widths.
    assert loss.shape == (4 + 3 + 1 + 3,)
    assert loss.min() < 0.9 * loss[0]
    assert solid.shape == (40, 40)
    assert 0.1 < np.mean(solid) < 0.9
    for name in ("mode_converter.png", "mode_converter_convergence.png"):
        assert (tmp_path / name).stat().st_size > 1000
    assert "Converts 0." in capsys.readouterr().out


@pytest.mark.f32
@pytest.mark.slow
def test_first_stage_converts_more_at_the_last_strength_than_at_the_first():
    problem = coarser(mode_converter.PUBLISHED.problem, 80)
    start, radius = mode_converter.grey_start(problem, 1), filter_radius(120 * NANO)
    raised = Stages((8, 16, 32, 64), every=1)
    _, loss = mode_converter.stage(start, problem, 1750, 4, raised, radius)
    assert loss[3] < 0.9 * loss[0]


@pytest.mark.f32
def test_best_binary_device_is_the_best_that_is_wide_enough():
    # Whole cells no shorter than 18 nm.
    best = BestBinary(10e-9, 18e-9)
    with pytest.raises(SystemExit, match="wide enough"):
        best.device()
    wide, thin = np.zeros((2, 20, 20), bool)
    wide[5:15, 5:15], thin[9] = True, True
    speck = wide.copy()
    speck[1, 1] = True
    for solid, objective in ((wide, 0.3), (thin, 0.1), (~wide, 0.2), (wide, 0.25)):
        best(StepInfo(0, None, objective, jnp.zeros(0), 1.0, solid * 0.9))
    np.testing.assert_array_equal(best.device(), ~wide)
    # One cell is mended, and what is kept is what was measured.
    best(StepInfo(0, None, 0.15, jnp.zeros(0), 1.0, speck * 0.9))
    np.testing.assert_array_equal(best.device(), wide)
