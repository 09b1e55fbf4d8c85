import jax.numpy as jnp
import numpy as np
import pytest

from examples import mode_converter
from examples.best_binary import BestBinary
from physax.design import StepInfo
from physax.io import load_npz


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
def test_best_binary_device_is_the_best_that_is_wide_enough():
    best = BestBinary(10e-9, 20e-9)
    with pytest.raises(SystemExit, match="wide enough"):
        best.device()
    wide, thin = np.zeros((2, 20, 20), bool)
    wide[5:15, 5:15], thin[9] = True, True
    for solid, objective in ((wide, 0.3), (thin, 0.1), (~wide, 0.2), (wide, 0.25)):
        best(StepInfo(0, None, objective, jnp.zeros(0), 1.0, solid * 0.9))
    np.testing.assert_array_equal(best.device(), ~wide)
