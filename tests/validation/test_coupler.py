"""A published directional coupler, from runs of its bends and modes of its middle."""

from pathlib import Path

import pytest

from benchmarks import _rows, coupler


ROWS = Path(__file__).parents[2] / "benchmarks" / "results" / "coupler.json"
# 7 cells per wavelength in silicon are the coarsest of the series, and meant
COARSE = pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")


def recorded(case, unit, tool=_rows.OURS):
    (value,) = (
        row.value
        for row in _rows.read(ROWS)
        if (row.case, row.unit, row.tool) == (case, unit, tool)
    )
    return value


@COARSE
def test_supermodes_are_those_of_the_ports_of_the_runs():
    case = coupler.CASE.format(coupler.cells_a_wavelength(2))
    seen = recorded(case, "difference of the indices")
    # Indices of 2.5 in float32 differ by 2e-7, some 1e-5 of their difference.
    assert coupler.supermodes(2) == pytest.approx(seen, rel=2e-4)


@COARSE
def test_coupled_modes_explain_what_goes_over():
    # The theory, without the curvature of the bends, is a tenth off in their part. That
    # is an eighth of the length, of which the power over goes as the power of 1.7.
    length = coupler.LENGTH + coupler.bends_by_modes(2)
    limit = recorded("extrapolated", "difference of the indices")
    predicted = coupler.over(limit, length)
    assert predicted == pytest.approx(recorded("extrapolated", "power over"), rel=0.03)


def test_two_bends_joined_are_the_whole_device():
    case = coupler.CASE.format(coupler.cells_a_wavelength(2)) + ", 4 um straight, "
    joined, whole = (
        recorded(case + k, "power over") for k in ("joined", "whole device")
    )
    # Light that goes to and fro between the bends is 0.4 % of the amplitude.
    assert joined == pytest.approx(whole, rel=5e-3)


def test_recorded_power_over_lies_among_the_published_or_within_its_error_of_them():
    powers = [power for tool in coupler.PUBLISHED.values() for power in tool.values()]
    for parts in (4, 5):
        case = coupler.CASE.format(coupler.cells_a_wavelength(parts))
        assert min(powers) < recorded(case, "power over") < max(powers)
    limit = recorded("extrapolated", "power over")
    error = recorded("extrapolated", "error bar")
    assert error < 0.02 * limit
    assert min(powers) - error < limit < max(powers)
