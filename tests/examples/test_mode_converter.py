import numpy as np
import pytest

from examples import mode_converter
from physax.io import load_npz


@pytest.mark.f32
@pytest.mark.slow
def test_mode_converter_is_designed_in_four_stages(tmp_path, capsys):
    options = ["--steps", "4", "--cells", "80", "40", "--output", str(tmp_path)]
    mode_converter.main(options)
    made = load_npz(tmp_path / "mode_converter.npz")
    solid, loss = made["solid"], made["loss"]
    # Each strength has a step of its own, then come the stages with least widths.
    assert loss.shape == (4 + 3 + 3 + 1,)
    assert loss[3] < 0.9 * loss[0]
    assert solid.shape == (40, 40)
    assert 0.1 < np.mean(solid) < 0.9
    for name in ("mode_converter.png", "mode_converter_convergence.png"):
        assert (tmp_path / name).stat().st_size > 1000
    assert "Converts 0." in capsys.readouterr().out
