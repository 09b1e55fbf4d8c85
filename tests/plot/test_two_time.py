import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from physax import ArgumentError
from physax.plot import angle_cuts, g2, quality, two_time, two_time_fit
from physax.xpcs import (
    Diffusion,
    G2Fit,
    OneTime,
    Shared,
    Static,
    TwoTime,
    check_quality,
    fit_two_time,
    fitted_two_time,
)


FRAMES = 20
TIMES = 1e-3 * np.arange(FRAMES)
LAG = np.abs(np.subtract.outer(TIMES, TIMES))
C2 = np.stack([1 + 0.2 * np.exp(-LAG / tau) for tau in (4e-3, 8e-3)])
DEGREES = np.array([0.0, 45.0])
PEAK = C2 + 3 * np.eye(FRAMES)
DATA = TwoTime(PEAK, 0.005, np.radians(DEGREES), TIMES, 0.01)


def test_of_errors_that_nobody_stated_residuals_are_not_in_units():
    data = TwoTime(PEAK, 0.005, np.radians(DEGREES), TIMES)
    figure = two_time_fit(data, C2 + 0.02, index=1)
    shown = np.asarray(figure.axes[2].images[0].get_array(), float)
    off = ~np.eye(FRAMES, dtype=bool)
    assert np.nanmax(np.abs(shown[off] + 0.02)) < 1e-6
    assert "data − fit" in [text.get_text() for text in drawn(figure).findobj(Text)]


def test_a_fit_is_drawn_as_its_maps_are():
    found = fit_two_time(DATA, Static(Diffusion(9000.0)), scaling=Shared())
    maps = fitted_two_time(found, DATA)
    images = [two_time_fit(DATA, x).axes[1].images[0] for x in (found, maps)]
    assert np.array_equal(*(image.get_array() for image in images))
    lines = [angle_cuts(DATA, x).lines for x in (found, maps)]
    for pair in zip(*lines, strict=True):
        assert np.array_equal(*(line.get_ydata() for line in pair))


def drawn(figure):
    """Draws a figure as a file would: matplotlib finds some faults then only."""
    figure.savefig(io.BytesIO(), dpi=40)
    return figure


def test_a_map_is_an_image_over_two_times():
    axes = two_time(DATA, 1)
    (image,) = axes.images
    # The peak of the diagonal is not shown: it would set the colours.
    shown = np.asarray(image.get_array())
    assert shown.max() < 1.2
    off = ~np.eye(FRAMES, dtype=bool)
    assert np.allclose(shown[off], C2[1][off], rtol=1e-5)
    # Pixels are centred on their times.
    assert image.get_extent() == pytest.approx([-0.5, 19.5, -0.5, 19.5], abs=1e-4)
    assert axes.get_xlabel() == "$t_1$ (ms)"
    assert axes.get_title() == "q = 0.005 Å⁻¹, φ = 45°"
    drawn(axes.figure)


def test_the_first_time_runs_along_x():
    values = np.ones((3, 3))
    values[0, 2] = 2
    (image,) = two_time(values, limits=(0, 3)).images
    # t1 = 1, t2 = 3: the left upper corner.
    assert np.asarray(image.get_array())[2, 0] == 2
    assert image.get_clim() == (0, 3)


def test_times_that_are_uneven_are_drawn_where_they_are():
    axes = two_time(C2[0], times=TIMES**2)
    assert not axes.images
    assert len(axes.collections) == 1
    drawn(axes.figure)


def test_what_is_masked_is_left_out():
    mask = np.ones((FRAMES, FRAMES), bool)
    mask[5] = mask[:, 5] = False
    (image,) = two_time(
        TwoTime(PEAK, 0.005, np.radians(DEGREES), TIMES, 0.01, mask)
    ).images
    hidden = np.ma.getmaskarray(np.ma.masked_invalid(image.get_array()))
    assert hidden[5].sum() == FRAMES - 1


def test_data_fit_and_residuals_share_what_they_can():
    figure = drawn(two_time_fit(DATA, C2 + 0.02, index=1))
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["data", "fit", "residuals"]
    data, fit, residuals = (axes.images[0] for axes in panels)
    assert data.get_clim() == fit.get_clim()
    low, high = residuals.get_clim()
    assert low == -high
    # In standard deviations; the diagonal is not fitted.
    values = np.asarray(residuals.get_array(), float)
    assert np.isnan(values[3, 3])
    assert values[3, 7] == pytest.approx(-2, rel=1e-3)


@pytest.mark.parametrize("sigma", [np.array([0.01, 0.02]), 0.02 + 0 * C2])
def test_residuals_are_divided_by_the_errors_of_the_map(sigma):
    data = TwoTime(PEAK, 0.005, np.radians(DEGREES), TIMES, sigma)
    figure = two_time_fit(data, C2 + 0.02, index=1)
    shown = np.asarray(figure.axes[2].images[0].get_array(), float)
    assert shown[3, 7] == pytest.approx(-1, rel=1e-3)


def test_residuals_may_be_given_and_vanish():
    figure = drawn(two_time_fit(DATA, C2, 0 * C2))
    assert figure.axes[2].images[0].get_clim() == (-1, 1)


def test_cuts_start_at_an_age():
    axes = angle_cuts(DATA, C2, age=5e-3)
    points, line = axes.lines[:2]
    assert len(axes.lines) == 4
    assert points.get_xdata() == pytest.approx(1e-3 * np.arange(1, 15), rel=1e-4)
    assert points.get_ydata() == pytest.approx(C2[0][5, 6:], rel=1e-5)
    assert line.get_ydata() == pytest.approx(C2[0][5, 6:])
    assert axes.get_xscale() == "log"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["0°", "45°"]
    assert len(angle_cuts(DATA, maps=[1]).lines) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: two_time(DATA, 2), "`index` must be one of 2 maps, but is 2"),
        (lambda: two_time(C2), r"must be a square map, but has shape \(2, 20, 20\)"),
        (lambda: two_time_fit(DATA, C2[0]), r"`fitted` must have the shape \(2, 20"),
        (lambda: two_time_fit(DATA, C2, C2[0]), "`residuals` must have the shape"),
        (lambda: angle_cuts(DATA, maps=[2]), "`index` must be one of 2 maps"),
        (lambda: angle_cuts(DATA, age=1.0), "before the last frame at 0.019 s"),
        (lambda: g2(CURVES, C2), r"`fitted` must have the shape \(2, 3\)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


CURVES = OneTime(
    np.array([0.1, 1.0, 10.0]), 1 + 0.1 * np.ones((2, 3)), 0.01, np.array([0.01, 0.02])
)


def test_one_time_curves_have_errors_and_a_logarithmic_lag():
    fit = G2Fit(CURVES.q, (), CURVES.q, CURVES.q, CURVES.g2, ())
    assert len(g2(CURVES, fit).get_lines()) == len(g2(CURVES, CURVES.g2).get_lines())
    axes = g2(CURVES, CURVES.g2)
    assert axes.get_xscale() == "log"
    assert len(axes.containers) == 2
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["0.01", "0.02"]
    drawn(axes.figure)
    with_angle = OneTime(CURVES.lags, CURVES.g2, 0.01, CURVES.q, np.array([0.0, 1.0]))
    texts = g2(with_angle).get_legend().get_texts()
    assert texts[1].get_text() == "0.02, 57.3°"


def test_a_report_is_drawn_with_its_objections():
    dead = PEAK.copy()
    dead[:, 7] = dead[:, :, 7] = 1
    found = check_quality(TwoTime(dead, 0.005, 0.0, TIMES, 0.5))
    figure = drawn(quality(found))
    assert isinstance(figure, Figure)
    assert figure.axes[3].get_title() == "1 dead of 20 frames"
    assert "Frames 8 are constant" in figure.get_supxlabel()


@pytest.mark.parametrize("size", [0.13, 0.03, 0.013, 9e-4])
def test_labels_of_residuals_without_errors_stay_within_the_figure(size):
    # Those of the colours have most digits.
    data = TwoTime(PEAK, 0.005, np.radians(DEGREES), 123.4 * np.asarray(TIMES))
    figure = two_time_fit(data, C2 + size)
    renderer = FigureCanvasAgg(figure).get_renderer()
    first, second, third = (a.get_tightbbox(renderer) for a in figure.axes)
    assert first.x0 > 0
    assert first.x1 < second.x0
    assert second.x1 < third.x0
    assert third.x1 < figure.bbox.width
