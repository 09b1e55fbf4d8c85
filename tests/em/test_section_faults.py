"""Frequencies and lines that do not fit the mode solvers: refused, in words."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.em._modes import check_line
from physax.em._resolution import one_frequency
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT


CELL = 40e-9
FREQUENCY = SPEED_OF_LIGHT / 1.55e-6
GRID = Grid.centred((32, 28), CELL)
MEDIUM = em.Medium(jnp.full(GRID.shape, 2.1).at[10:22, 10:18].set(12.0))


def solve(frequency):
    return em.cross_section_modes(GRID, MEDIUM, frequency)


def index(frequency):
    return solve(frequency).effective_index


def test_a_wavelength_taken_for_a_frequency_is_told_of():
    message = r"`frequency` must be at least 2\.34e\+11 Hz, .* 1\.55e-06\. Is it in Hz"
    with pytest.raises(ArgumentError, match=message):
        solve(1.55e-6)

    # A derivative is told of it, too; a compiled program has NaN, of the slope as well.
    with pytest.raises(ArgumentError, match=message):
        em.group_index(index, 1.55e-6)
    for run in (index, lambda f: em.group_index(index, f)):
        assert np.all(np.isnan(jax.jit(run)(1.55e-6)))


def test_sections_of_too_few_cells_per_wavelength_are_refused_or_warned_of():
    told = r"cells per wavelength where the medium has index 3\.46, at `frequency`, but"
    with pytest.raises(ArgumentError, match=rf"at least 4 {told} has 3\.9"):
        solve(SPEED_OF_LIGHT / (3.9 * 3.4641 * CELL))
    with pytest.raises(ArgumentError, match="at least 4 cells"):
        em.group_index(index, 1e18)
    with pytest.warns(PhysaxWarning, match=rf"should have at least 10 {told} has 9\.9"):
        solve(SPEED_OF_LIGHT / (9.9 * 3.4641 * CELL))


def test_a_crystal_turned_about_the_guide_is_refused():
    def solved(entry):
        # A turn of the crystal turns the mode of a round core. Without these entries
        # its index would change.
        turned = em.OffDiagonal(((9, 22), (9, 18)), {"xy": jnp.full((13, 9), entry)})
        medium = em.Medium(MEDIUM.permittivity, off_diagonals=turned)
        return em.cross_section_modes(GRID, medium, FREQUENCY).effective_index[0]

    told = r"no `off_diagonals` .*averaging='volume'.*must be 0, but is 0\.6"
    with pytest.raises(ArgumentError, match=told):
        solved(0.05)
    # What is left of a turn by 90 degrees is rounding.
    assert solved(1e-8) == index(FREQUENCY)[0]
    run = jax.jit(solved)
    assert np.isfinite(run(0.0))
    assert np.isnan(run(0.05))
    # The corners of a box that is averaged with its directions are no crystal.
    box = em.Structure(em.Box((0, 0), (8.5 * CELL, 6.3 * CELL)), em.Material(4.0))
    averaged = em.rasterise(
        [box],
        GRID,
        em.Material(1.0),
        components=("Ex", "Ey", "Ez"),
        averaging="polarised",
    )
    assert averaged.off_diagonals
    em.cross_section_modes(GRID, averaged, FREQUENCY)


def test_several_frequencies_at_once_are_refused():
    message = r"`frequency` must be one number, but has shape \(2,\)"
    for value in ([1e14, 2e14], np.array([1e14, 2e14])):
        # Not by the solvers: the type checker of the tests would be faster.
        with pytest.raises(ArgumentError, match=message):
            one_frequency(value)


def line(frequency=FREQUENCY, **changes):
    """The mode of a slab of index 2, 40 cells of 40 nm."""
    one = jnp.ones(40)
    arrays = {
        "own": one.at[15:25].set(4.0),
        "along": one,
        "across": one,
        "widths": CELL * one,
        "gaps": CELL * one,
    }
    given = {**arrays, "frequency": frequency, "polarisation": "Ez", **changes}
    return inspect.unwrap(em.slab_mode)(**given)


@pytest.mark.slow
def test_a_slab_wants_a_frequency_that_fits_its_line():
    assert 1 < line().effective_index < 2
    with pytest.raises(
        ArgumentError, match=r"at least 1\.87e\+11 Hz, at which `widths`"
    ):
        line(1.55e-6)
    with pytest.raises(
        ArgumentError, match=r"`widths` must have at least 4 .* has 3\.9"
    ):
        line(SPEED_OF_LIGHT / (3.9 * 2 * CELL))
    with pytest.warns(PhysaxWarning, match=r"`widths` should have at least 10 .* 9\.9"):
        line(SPEED_OF_LIGHT / (9.9 * 2 * CELL))
    # Beside metal, too, where no waves go.
    metal = jnp.ones(40).at[:15].set(-20.0).at[15:25].set(4.0)
    with pytest.raises(ArgumentError, match=r"at least 4 .* has index 2.* has 3\.9"):
        line(SPEED_OF_LIGHT / (3.9 * 2 * CELL), own=metal)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "own",
            4.0,
            r"`own` must be an array of at least 4 points, but has shape \(\)",
        ),
        ("own", np.ones(3), "`own` must be an array of at least 4 points"),
        ("across", np.ones(39), r"`across` must have the shape \(40,\) of `own`, but"),
        ("across", np.full(40, np.nan), "`across` must be finite, but is nan"),
        ("own", np.ones(40) * 1j, "`own` must be real, .* Leave losses out"),
    ],
)
def test_the_line_of_a_slab_wants_arrays_of_one_shape(name, value, message):
    # Not by `slab_mode`: the type checker of the tests would be faster.
    arrays = {"own": np.ones(40), "across": np.ones(40)}
    with pytest.raises(ArgumentError, match=message):
        check_line({**arrays, name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"polarisation": "ez"}, "`polarisation` must be 'Ez' or 'Hz', but is 'ez'"),
        ({"polarisation": None}, "`polarisation` must be 'Ez' or 'Hz', but is None"),
        ({"order": 1.5}, "`order` must be an integer of at least 1, but is 1.5"),
        ({"order": 41}, "`order` must lie between 1 and 40, but is 41"),
    ],
)
def test_a_slab_has_modes_of_two_polarisations_by_number(change, message):
    with pytest.raises(ArgumentError, match=message):
        line(**change)
