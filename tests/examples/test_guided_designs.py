import numpy as np
import pytest

from examples import bend, demultiplexer, splitter
from physax.io import load_npz


# Nearly all of the time is compilation.
pytestmark = [pytest.mark.f32, pytest.mark.slow]


def run_small(script, folder):
    """Runs a script on coarse cells; returns what it saved and the pictures it drew."""
    script.main(["--steps", "8", "--cells", "42", "--output", str(folder)])
    (saved,) = folder.glob("*.npz")
    return load_npz(saved), {picture.name for picture in folder.glob("*.png")}


def assert_better_and_passive(made):
    assert made["solid"].dtype == bool
    assert 0.1 < made["solid"].mean() < 0.9
    assert made["loss"].shape == (8,)
    # The projection is as strong in the second step as in the first.
    assert made["loss"][1] < 0.9 * made["loss"][0]
    # One port sees all that it can see: no more light leaves than has come in, but for
    # the profile of the mode, which is that of one wavelength.
    assert np.all(made["powers"] >= 0)
    assert np.all(made["powers"].sum(axis=1) < 1.005)


def test_bend_guides_more_light_and_is_its_own_mirror_image(tmp_path):
    made, pictures = run_small(bend, tmp_path)
    assert pictures == {"bend_1550nm.png", "bend_convergence.png"}
    assert_better_and_passive(made)
    np.testing.assert_array_equal(made["solid"], made["solid"].T)


def test_arms_of_the_splitter_stay_alike(tmp_path):
    made, pictures = run_small(splitter, tmp_path)
    assert pictures == {"splitter_1550nm.png", "splitter_convergence.png"}
    assert_better_and_passive(made)
    np.testing.assert_array_equal(made["solid"], made["solid"][:, ::-1])
    # The scene is symmetric to the bit; the order of additions in float32 is not.
    _, upper, lower = made["powers"].T
    np.testing.assert_allclose(upper, lower, atol=1e-4)


def test_demultiplexer_gets_better_at_the_worst_of_two_wavelengths(tmp_path):
    made, pictures = run_small(demultiplexer, tmp_path)
    ends = ("1500nm", "1600nm", "convergence")
    assert pictures == {f"demultiplexer_{end}.png" for end in ends}
    assert_better_and_passive(made)
    np.testing.assert_allclose(made["wavelengths"], [1500e-9, 1600e-9])
