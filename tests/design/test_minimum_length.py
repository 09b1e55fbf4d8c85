from pathlib import Path

import numpy as np
import pytest
import scipy.ndimage

from physax import PhysaxError
from physax.design import minimum_length, narrow_cells, remove_narrow
from physax.units import NANO


pytestmark = pytest.mark.f32

# What the program imageruler 0.3.0 (NanoComp) gives for `smoothed_noise` with these
# seeds, solid and void, and again with a periodic first axis.
IMAGERULER = [
    ((1, 1), (1, 1)),
    ((1, 1), (1, 1)),
    ((1, 1), (1, 1)),
    ((1, 2), (1, 2)),
    ((1, 1), (1, 1)),
    ((2, 3), (2, 3)),
    ((4, 5), (4, 5)),
    ((1, 2), (1, 2)),
    ((3, 7), (3, 5)),
    ((7, 5), (4, 3)),
    ((7, 10), (7, 5)),
    ((8, 2), (4, 2)),
]
# The same for `painted` with discs of these sizes.
PAINTED = {5: (5, 2), 8: (8, 7), 11: (11, 1), 14: (14, 3), 17: (17, 1)}


def smoothed_noise(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(30, 90, 2))
    noise = scipy.ndimage.gaussian_filter(rng.standard_normal(shape), 0.6 + 0.5 * seed)
    return noise > 0.3 * noise.std()


def painted(seed, size):
    rng = np.random.default_rng(seed)
    touches = np.zeros((70, 80), bool)
    touches[rng.integers(0, 70, 9), rng.integers(0, 80, 9)] = True
    from_centre = np.arange(size) - (size - 1) / 2
    disc = np.hypot(from_centre[:, None], from_centre) < size / 2
    return scipy.ndimage.binary_dilation(touches, disc)


def cells(report):
    return report.solid_cells, report.void_cells


@pytest.mark.slow(after=3)
@pytest.mark.parametrize("seed", range(12))
def test_lengths_agree_with_imageruler(seed):
    device = smoothed_noise(seed)
    alone, periodic = IMAGERULER[seed]
    assert cells(minimum_length(device, 1.0)) == alone
    assert cells(minimum_length(device, 1.0, periodic=(True, False))) == periodic


@pytest.mark.parametrize("seed", range(5))
def test_what_is_painted_with_a_disc_has_its_size(seed):
    size, expected = list(PAINTED.items())[seed]
    assert cells(minimum_length(painted(seed, size), 1.0)) == expected


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("width", [1, 2, 3, 6, 11, 16])
def test_a_bar_and_a_slit_have_their_width(width, axis):
    device = np.zeros((50, 50), bool)
    device[20 : 20 + width] = True
    device = device if axis == 0 else device.T
    report = minimum_length(device, 10 * NANO)
    assert report.solid == pytest.approx(width * 10 * NANO)
    # Each side of the bar is a void that goes on beyond the edge.
    assert report.void_cells > width
    assert report.smallest == report.solid
    other = minimum_length(~device, 10 * NANO)
    assert cells(other) == cells(report)[::-1]


def test_a_device_without_parts_has_the_length_of_its_side():
    report = minimum_length(np.zeros((20, 30), bool), 1.0)
    assert cells(report) == (30, 30)


def test_narrow_cells_are_where_the_narrow_part_is():
    device = np.zeros((40, 60), bool)
    device[10:30, :20] = True
    device[10:30, 40:] = True
    device[18:22] = True
    solid, void = narrow_cells(device, 80 * NANO, 10 * NANO)
    # The bridge is 4 cells wide; its rim does not count.
    assert solid[19:21, 25:35].all()
    assert solid[:, 25:35].sum() == 20
    assert not solid[:, :18].any()
    assert not solid[:, 42:].any()
    assert not void.any()
    assert not narrow_cells(device, 40 * NANO, 10 * NANO)[0].any()


def test_what_is_too_narrow_goes_and_the_rest_stays():
    device = np.zeros((60, 60), bool)
    device[10:50, 20:35] = True
    part = remove_narrow(device, 60 * NANO, 10 * NANO)
    spiked = device.copy()
    spiked[28:30, 35:50] = True  # A spike, 20 nm wide.
    spiked[5:8, 5:8] = True  # A speck.
    mended = remove_narrow(spiked, 60 * NANO, 10 * NANO)
    np.testing.assert_array_equal(mended, part)
    # Only the four corners of the bar are rounded.
    assert 0 < np.sum(part != device) <= 4 * 4
    assert minimum_length(mended, 10 * NANO).smallest >= 60 * NANO
    np.testing.assert_array_equal(remove_narrow(mended, 60 * NANO, 10 * NANO), mended)


def test_wrong_cells_of_a_device_are_mended():
    folder = Path(__file__).parents[2] / "examples" / "data" / "designs"
    device = np.loadtxt(folder / "mode_converter_seed1.csv.gz", delimiter=",") > 0.5
    wrong = device ^ (np.random.default_rng(0).random(device.shape) < 0.003)
    assert minimum_length(wrong, 10 * NANO).smallest < 20 * NANO
    mended = remove_narrow(wrong, 100 * NANO, 10 * NANO)
    assert minimum_length(mended, 10 * NANO).smallest > 99.9 * NANO
    assert np.mean(mended != device) < 0.02


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: minimum_length(np.ones((5, 5)), 1.0),
            "must be a two-dimensional array",
        ),
        (
            lambda: minimum_length(np.ones(5, bool), 1.0),
            "must be a two-dimensional arr",
        ),
        (lambda: minimum_length(np.ones((5, 5), bool), 0.0), "`spacing` must be posit"),
        (lambda: narrow_cells(np.ones((5, 5), bool), -1.0, 1.0), "`length` must be po"),
    ],
)
def test_bad_devices_are_refused(make, message):
    with pytest.raises(PhysaxError, match=message):
        make()


def test_a_length_between_two_numbers_of_cells_takes_the_larger():
    bar = np.zeros((20, 20), bool)
    bar[4:16, 7:13] = True
    assert not remove_narrow(bar, 64e-9, 10e-9).any()
    assert narrow_cells(bar, 64e-9, 10e-9)[0].any()
    assert remove_narrow(bar, 60e-9, 10e-9).any()
    assert not narrow_cells(bar, 60e-9, 10e-9)[0].any()
