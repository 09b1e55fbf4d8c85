import io

import numpy as np
import pytest
from matplotlib.contour import ContourSet

from physax import ArgumentError
from physax.plot import corner, correlation_matrix, parameter_table
from physax.plot._parameters import rounded


NAMES = ["D0", "alpha", "D_offset"]
MATRIX = np.array([[1, -0.9, 0.2], [-0.9, 1, 0.1], [0.2, 0.1, 1]])


def drawn(figure):
    figure.savefig(io.BytesIO(), dpi=40)
    return figure


def test_correlations_have_colours_and_numbers():
    axes = correlation_matrix(MATRIX, NAMES)
    assert axes.images[0].get_clim() == (-1, 1)
    assert [text.get_text() for text in axes.texts][:3] == ["1.00", "-0.90", "0.20"]
    assert [label.get_text() for label in axes.get_xticklabels()] == NAMES
    drawn(axes.figure)
    # No room for numbers.
    assert not correlation_matrix(np.eye(20), list("abcdefghijklmnopqrst")).texts


@pytest.mark.parametrize(
    ("value", "error", "texts"),
    [
        (12034.123, 12.3, ("12034", "12")),
        (12034.123, 123.0, ("1.203e+04", "1.2e+02")),
        (-0.35123, 0.0021, ("-0.3512", "0.0021")),
        (3.1234e-9, 2.1e-11, ("3.123e-09", "2.1e-11")),
        (0.0, 2.1, ("0.0", "2.1")),
        (1.5, np.inf, ("1.5", "not determined")),
        (1.5, np.nan, ("1.5", "not determined")),
        (1.5, 0.0, ("1.5", "0")),
        (np.nan, 0.1, ("nan", "0.1")),
        (1e-12, 10.0, ("0", "10")),
        (1.0, 1e9, ("0.0e+00", "1.0e+09")),
    ],
)
def test_numbers_have_two_digits_of_their_errors(value, error, texts):
    found = rounded(value, error)
    assert found[1] == texts[1]
    if texts[0] == "0.0e+00":
        # Far below its error: any short form will do.
        assert len(found[0]) < 10
    else:
        assert found[0] == texts[0]


def test_a_table_has_a_row_for_each_parameter():
    axes = parameter_table(NAMES, [12034.1, -0.35, 150.0], [12.0, 0.002, np.inf])
    (table,) = axes.tables
    cells = {at: cell.get_text().get_text() for at, cell in table.get_celld().items()}
    assert cells[0, 0] == "parameter"
    assert [cells[1, k] for k in range(3)] == ["D0", "12034", "12"]
    assert cells[3, 2] == "not determined"
    assert max(at[1] for at in cells) == 2
    units = ["Å²/s", "", "Å²/s"]
    (table,) = parameter_table(NAMES, np.ones(3), np.ones(3), units=units).tables
    assert table.get_celld()[1, 3].get_text().get_text() == "Å²/s"
    drawn(axes.figure)


def samples(count=2000):
    random = np.random.default_rng(0)
    return random.multivariate_normal([1, 2, 3], MATRIX + 0.3 * np.eye(3), count)


def test_a_corner_has_panels_below_the_diagonal():
    figure = drawn(corner(samples(), NAMES, truth=[1, 2, 3]))
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 6
    assert figure.axes[6].get_xlabel() == "D0"
    assert figure.axes[3].get_ylabel() == "alpha"
    # A line across and one up in each pair.
    assert len(figure.axes[3].lines) == 2


def test_contours_enclose_two_fifths_and_six_sevenths():
    figure = corner(samples(20_000), NAMES, bins=25)
    values = samples(20_000)
    (contours,) = figure.axes[3].findobj(ContourSet)
    density, *_ = np.histogram2d(values[:, 0], values[:, 1], 25)
    for level, fraction in zip(
        sorted(contours.levels)[::-1], (0.393, 0.865), strict=True
    ):
        # To the content of one more bin.
        assert density[density >= level].sum() / 20_000 == pytest.approx(
            fraction, abs=0.02
        )


def test_samples_that_are_odd_have_a_corner():
    stuck = np.column_stack([np.arange(10.0), np.ones(10)])
    drawn(corner(stuck, ["a", "b"]))
    one = samples()[:, :1]
    one[0] = np.nan
    drawn(corner(one, ["a"]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: correlation_matrix(MATRIX, ["a"]), r"1 names, but has shape \(3, 3\)"),
        (lambda: correlation_matrix(4 * MATRIX, NAMES), "from -1 to 1, but has 4"),
        (lambda: parameter_table(NAMES, [1.0], [1.0] * 3), "`values` must have one en"),
        (lambda: parameter_table(NAMES, [1.0] * 3, [1.0]), "`errors` must have one en"),
        (lambda: corner(samples(), ["a"]), "one column for each of 1 names"),
        (lambda: corner(samples(), NAMES, truth=[1]), "`truth` must have 3 entries"),
        (lambda: corner(samples(1), NAMES), "at least 2 finite rows, but has 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
