"""The examples of motion, at a small size."""

import jax
import pytest

from examples import (
    double_gyre_ftle,
    optical_trap,
    pipe_flow,
    release_point,
    wind,
)


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


def printed_number(text, before):
    """The number that follows some words."""
    return float(text.split(before)[1].split()[0])


def test_pipe_flow(tmp_path, capsys):
    pipe_flow.main(["--particles", "200", "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    # 200 particles are 0.005 apart, and the wall is a polygon.
    assert printed_number(printed, "left; within") < 0.02
    assert "with an inlet: 200 of 200 in the pipe" in printed
    assert (tmp_path / "pipe_flow.png").exists()


def test_release_point(tmp_path, capsys):
    release_point.main(["--steps", "60", "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed_number(printed, "): ") < 0.15
    assert (tmp_path / "release_point.png").exists()


def test_optical_trap(tmp_path, capsys):
    optical_trap.main(["--particles", "1000", "--output", str(tmp_path)])
    # 2000 coordinates at 26 times, of which some 10 are independent: 3 sigma are 3 %,
    # and the softer flanks add 4 %.
    variance = printed_number(capsys.readouterr().out, "variance")
    assert 0.97 < variance < 1.08
    assert (tmp_path / "optical_trap.png").exists()
