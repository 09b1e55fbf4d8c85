import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError
from physax.grid import Grid, smooth_edges
from physax.units import MICRO, NANO


CASES = [
    (low, high, region, ratio)
    for (low, high, region), ratio in itertools.product(
        [
            (-4e-6, 5e-6, (-1e-6, 1.3e-6)),
            (0.0, 5e-6, (0.0, 1e-6)),
            (0.0, 5e-6, (4e-6, 5e-6)),
            (0.0, 1e-6, (0.0, 1e-6)),
            (0.0, 1e-6, (0.23e-6, 0.77e-6)),
            (-1e-6, 1e-6, (-0.98e-6, 0.93e-6)),
        ],
        [1.05, 1.1, 1.3],
    )
]


@pytest.mark.parametrize(("low", "high", "region", "ratio"), CASES)
@pytest.mark.parametrize("coarse", [10 * NANO, 20 * NANO, 100 * NANO])
def test_widths_keep_their_limits_and_ends_are_met(low, high, region, ratio, coarse):
    edges = smooth_edges(
        low, high, coarse=coarse, fine=10 * NANO, region=region, ratio=ratio
    )
    widths = np.diff(edges)
    # Edges of 5 um round by 1e-21 m, 1e-13 of the smallest width.
    rounding = 1e-11
    assert edges[0] == low
    assert edges[-1] == high
    assert region[0] in edges
    assert region[1] in edges
    assert widths.max() <= coarse * (1 + rounding)
    quotient = widths[1:] / widths[:-1]
    assert np.all(np.maximum(quotient, 1 / quotient) <= ratio * (1 + rounding))
    inside = (edges[:-1] >= region[0]) & (edges[1:] <= region[1])
    assert np.ptp(widths[inside]) <= rounding * widths[inside][0]
    assert widths[inside].max() <= 10 * NANO * (1 + rounding)


def test_far_from_the_region_all_cells_are_coarse():
    edges = smooth_edges(
        -5 * MICRO,
        5 * MICRO,
        coarse=50 * NANO,
        fine=10 * NANO,
        region=(-1 * MICRO, 1 * MICRO),
    )
    widths = np.diff(edges)
    np.testing.assert_allclose(widths[:40], 50 * NANO, rtol=1e-9)
    np.testing.assert_allclose(widths[-40:], 50 * NANO, rtol=1e-9)
    # Growth by 1.1 from 10 to 50 nm takes ln 5 / ln 1.1 = 17 cells and 0.5 um, which
    # leaves 70 coarse cells on each side.
    assert len(widths) < 200 + 2 * (70 + 20)


def test_equal_widths_make_a_uniform_grid():
    edges = smooth_edges(0.0, 1.0, coarse=0.1, fine=0.1, region=(0.3, 0.7))
    np.testing.assert_allclose(edges, np.linspace(0, 1, 11), atol=1e-15)
    grid = Grid.graded([edges])
    np.testing.assert_allclose(grid.cell_widths(0), jnp.full(10, 0.1), rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"fine": 0.0},
            "`fine` must be positive and at most `coarse`, 0.1 m, but is 0",
        ),
        (
            {"fine": 0.2},
            "`fine` must be positive and at most `coarse`, 0.1 m, but is 0",
        ),
        ({"ratio": 1.0}, "`ratio` must be above 1, but is 1"),
        ({"region": (0.7, 0.3)}, r"`region` must increase and lie within \[0, 1\]"),
        ({"region": (0.5, 1.3)}, r"but is \(0.5, 1.3\)"),
        ({"region": (1e-3, 1.0)}, "`region` must leave room for cells that differ by"),
        ({"coarse": float("inf")}, "must be finite"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    arguments = {"coarse": 0.1, "fine": 0.05, "region": (0.3, 0.7), "ratio": 1.1}
    with pytest.raises(PhysaxError, match=message):
        smooth_edges(0.0, 1.0, **(arguments | change))
