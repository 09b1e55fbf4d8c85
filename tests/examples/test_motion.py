"""The examples of motion, at a small size."""

import jax
import pytest

from examples import double_gyre_ftle, wind


pytestmark = [pytest.mark.f32, pytest.mark.slow]


def test_double_gyre(tmp_path, capsys):
    before = jax.config.read("jax_enable_x64")
    try:
        double_gyre_ftle.main(["--nodes", "20", "--output", str(tmp_path)])
    finally:
        jax.config.update("jax_enable_x64", before)
    assert (tmp_path / "double_gyre_ftle.png").exists()
    assert "repelling: largest exponent 0." in capsys.readouterr().out


def test_wind(tmp_path, capsys):
    wind.main(["--days", "1", "--output", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"wind.png", "wind.gif"}
    printed = capsys.readouterr().out
    assert "6 reference parcels after 20 days: within 1" in printed
    assert "'alive': 612" in printed
