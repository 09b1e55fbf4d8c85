"""The examples of lenses, at a small size."""

import numpy as np
import pytest

from examples import focus_3d, lenses, metalens
from physax import io


pytestmark = pytest.mark.f32


def run_small(script, folder, capsys):
    """Runs a script on coarse cells; returns what it saved, printed and drew."""
    script.main(["--steps", "6", "--cells", "100", "--output", str(folder)])
    (saved,) = folder.glob("*.npz")
    pictures = {picture.name for picture in folder.glob("*.png")}
    return io.load_npz(saved), capsys.readouterr().out, pictures


def assert_gathers(made, printed):
    # The binary lens, simulated again, beats its own grey start and the empty scene.
    gain = made["gain"]
    assert gain.shape == (3,)
    assert made["course"].shape == (6,)
    assert min(gain) > 2 * max(1, made["course"][0])
    assert f"Gain {min(gain):.1f} to {max(gain):.1f}" in printed


# Nearly all of the time is compilation.
@pytest.mark.slow
def test_metalens(tmp_path, capsys):
    made, printed, pictures = run_small(metalens, tmp_path, capsys)
    assert_gathers(made, printed)
    solid = made["solid"]
    assert solid.dtype == bool
    assert np.array_equal(solid, solid[::-1])
    assert pictures == {"metalens.png", "metalens_convergence.png"}


@pytest.mark.slow
def test_focus_in_three_dimensions(tmp_path, capsys):
    made, printed, pictures = run_small(focus_3d, tmp_path, capsys)
    assert_gathers(made, printed)
    solid = made["solid"]
    assert solid.dtype == bool
    assert np.array_equal(solid, np.rot90(solid))
    assert np.array_equal(solid, solid.T)
    names = ("focus_3d", "focus_3d_above", "focus_3d_convergence")
    assert pictures == {f"{name}.png" for name in names}


def test_each_component_sees_the_cells_around_its_points():
    # One solid cell: Ex lies on four of its edges and in no other cell.
    found = focus_3d.permittivity(np.ones((1, 1, 1)))
    excess = {name: np.asarray(value) - 1 for name, value in found.items()}
    quarter = (focus_3d.NITRIDE - 1) / 4
    assert np.allclose(excess["Ex"][0], quarter)
    assert np.allclose(excess["Ey"][:, 0], quarter)
    assert np.allclose(excess["Ez"][:, :, 0], quarter)
    assert all(np.isclose(value.sum(), 4 * quarter) for value in excess.values())


def test_width_of_a_focus_is_that_at_half_of_its_peak():
    x = np.arange(-40, 41)
    bells = np.exp(-np.log(2) * (x / np.array([[4.0], [7.5]])) ** 2)
    # Twice the distance at which it has fallen to a half; linear between samples.
    assert np.allclose(lenses.half_width(bells), [8, 15], atol=0.05)
