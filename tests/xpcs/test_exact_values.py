"""Two-time correlations beside 40 values computed to 20 digits, not by physax."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from physax import xpcs


X64 = jnp.result_type(float) == jnp.float64
PATH = Path(__file__).parents[1] / "validation" / "data" / "xpcs_exact.json"
ROWS = [
    {name: float(value) for name, value in row.items()}
    for row in json.loads(PATH.read_text())["rows"]
]
# Rows of a set share everything but angle and times.
SETS = [[row for row in ROWS if row["set"] == number] for number in (0, 1)]


def model(row, convention):
    diffusion = xpcs.Diffusion(row["D0"], row["alpha"], row["D_offset"])
    phi0 = np.deg2rad(row["phi0"])
    shear = xpcs.Shear(row["gamma0"], row["beta"], row["gamma_offset"], phi0)
    return xpcs.LaminarFlow(diffusion, shear, row["L"], convention)


def column(rows, name):
    return np.array([row[name] for row in rows])


def pairs(rows):
    """Arguments of the functions that take pairs of times."""
    names = ("t1", "t2", "q")
    return *(column(rows, n) for n in names), np.deg2rad(column(rows, "phi"))


@pytest.mark.parametrize("rows", SETS, ids=["diffusion", "both"])
@pytest.mark.parametrize(
    ("convention", "key"), [("homodyne", "c2"), ("physical", "c2_gap_average")]
)
def test_correlations_are_exact(rows, convention, key):
    found = xpcs.c2(
        model(rows[0], convention),
        *pairs(rows),
        contrast=column(rows, "contrast"),
        offset=column(rows, "offset"),
    )
    tolerance = {"rtol": 1e-10} if X64 else {"rtol": 0, "atol": 1e-5}
    np.testing.assert_allclose(found, column(rows, key), **tolerance)


@pytest.mark.parametrize("rows", SETS, ids=["diffusion", "both"])
def test_field_correlations_are_exact(rows):
    flow = model(rows[0], "homodyne")
    tolerance = {"rtol": 1e-9} if X64 else {"rtol": 0, "atol": 1e-5}
    spread = xpcs.g1(xpcs.Static(flow.diffusion), *pairs(rows))
    np.testing.assert_allclose(spread, column(rows, "g1_diff"), **tolerance)
    product = column(rows, "g1_diff") * column(rows, "g1_shear")
    np.testing.assert_allclose(xpcs.g1(flow, *pairs(rows)), product, **tolerance)
