import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.em import (
    Emission,
    EnergySeries,
    ModeAmplitudes,
    SlabMode,
    SParameters,
    SpectralFields,
    SpectralFlux,
    SpectralForce,
    TimeSeries,
    extrapolate,
)
from physax.plot import (
    convergence,
    grid_convergence,
    mode,
    s_parameters,
    spectrum,
    time_series,
)
from physax.units import SPEED_OF_LIGHT


WAVES = jnp.asarray([1.6e-6, 1.5e-6, 1.55e-6])
FREQUENCIES = SPEED_OF_LIGHT / WAVES


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def parameters(scale=1.0):
    values = scale * jnp.asarray([[[0.1], [0.0]], [[0.2], [1.0]], [[0.3], [0.5]]]) * 1j
    return SParameters(values, WAVES, ("west", "east"), ("west",), {})


def test_s_parameters_are_in_decibel_over_nanometres():
    axes = s_parameters(parameters())
    reflection, transmission = axes.lines
    # In ascending order whatever the order of the wavelengths.
    assert reflection.get_xdata() == pytest.approx([1500, 1550, 1600])
    decibel = [20 * np.log10(v) for v in (0.2, 0.3, 0.1)]
    assert reflection.get_ydata() == pytest.approx(decibel, rel=1e-5)
    assert transmission.get_ydata()[0] == pytest.approx(0, abs=1e-5)
    # Zero power has no logarithm; it must not be infinite.
    assert transmission.get_ydata()[2] == pytest.approx(-120)
    assert labels(axes) == ["west → west", "west → east"]
    assert axes.get_xlabel() == "wavelength (nm)"
    assert axes.get_ylabel() == "|S|² (dB)"


def test_a_reference_has_circles_of_the_same_colours():
    pairs = [("east", "west")]
    axes = s_parameters(
        parameters(),
        decibel=False,
        pairs=pairs,
        reference=parameters(0.5),
        reference_label="published",
    )
    ours, theirs, _ = axes.lines
    assert theirs.get_marker() == "o"
    assert theirs.get_color() == ours.get_color()
    assert np.allclose(theirs.get_ydata(), ours.get_ydata() / 4)
    assert labels(axes) == ["west → east", "published"]
    assert axes.get_ylabel() == "|S|²"


def test_an_unknown_pair_is_refused():
    with pytest.raises(ArgumentError, match=r"contains \('west', 'east'\)"):
        s_parameters(parameters(), pairs=[("west", "east")])


def test_flux_is_drawn_relative_to_another():
    flux = SpectralFlux(FREQUENCIES, jnp.asarray([1.0, 2.0, 3.0]))
    axes = spectrum(flux, relative_to=SpectralFlux(FREQUENCIES, jnp.full(3, 4.0)))
    assert np.allclose(axes.lines[0].get_xdata(), [1500, 1550, 1600])
    assert np.allclose(axes.lines[0].get_ydata(), [0.5, 0.75, 0.25])
    other = SpectralFlux(FREQUENCIES * 2, jnp.ones(3))
    with pytest.raises(ArgumentError, match="must have the same frequencies"):
        spectrum(flux, relative_to=other)


def check_label_fits(axes):
    """The label of the vertical axis is not cut off."""
    axes.figure.draw_without_rendering()
    label = axes.yaxis.label.get_window_extent()
    assert label.y0 >= 0
    assert label.y1 <= axes.figure.bbox.height


def test_mode_amplitudes_are_drawn_as_powers_both_ways():
    both = jnp.asarray([1j, 2.0, 3.0]), jnp.asarray([0.5j, 0.0, 0.0])
    result = ModeAmplitudes(FREQUENCIES, *(a + 0j for a in both), jnp.ones(3))
    axes = spectrum(result, label="port 1")
    assert np.allclose(axes.lines[0].get_ydata(), [4, 9, 1])
    assert labels(axes) == ["port 1 along the port", "port 1 against the port"]
    assert axes.get_ylabel().endswith("mode (W fs²/m$^k$, $k$ missing axes)")
    check_label_fits(axes)
    # A second result on the same axes.
    spectrum(result, label="port 2", axes=axes)
    assert len(axes.lines) == 4


def test_spectra_of_fields_are_the_largest_in_the_region():
    values = {"Hx": jnp.asarray([[1.0, -2j], [3, 4], [5, 0]])}
    result = SpectralFields(FREQUENCIES, values, {"Hx": (jnp.zeros(2),)})
    axes = spectrum(result)
    assert np.allclose(axes.lines[0].get_ydata(), [4, 5, 2])
    assert labels(axes) == ["max |η₀Hx|"]
    point = SpectralFields(
        FREQUENCIES, {"Hx": values["Hx"][:, :1]}, {"Hx": (jnp.zeros(1),)}
    )
    axes = spectrum(point)
    assert np.allclose(axes.lines[0].get_ydata(), [3, 5, 1])
    assert labels(axes) == ["|η₀Hx|"]


def test_forces_are_drawn_by_axis_and_over_a_flux():
    force = {"x": jnp.asarray([1.0, 2.0, 3.0]), "y": -jnp.ones(3)}
    result = SpectralForce(FREQUENCIES, force)
    axes = spectrum(result)
    assert labels(axes) == ["along x", "along y"]
    assert "N" in axes.get_ylabel()
    axes = spectrum(result, relative_to=SpectralFlux(FREQUENCIES, jnp.full(3, 4.0)))
    assert np.allclose(axes.lines[0].get_ydata(), [0.5, 0.75, 0.25])
    assert axes.get_ylabel() == "force over the reference flux (s/m)"


def test_of_an_emission_the_purcell_factor_is_drawn():
    rows = [jnp.asarray(row) for row in ([2.0, 6.0, 4.0], [2.0, 3.0, 1.0])]
    result = Emission(FREQUENCIES, *rows, jnp.ones(3), jnp.ones(3))
    axes = spectrum(result)
    assert np.allclose(axes.lines[0].get_ydata(), [2, 4, 1])
    assert axes.get_ylabel() == "Purcell factor"
    with pytest.raises(ArgumentError, match="`relative_to` must be left out .* Emi"):
        spectrum(result, relative_to=SpectralFlux(FREQUENCIES, jnp.ones(3)))


def trace(values):
    times = jnp.arange(3) * 1e-15
    return TimeSeries({"Ez": values}, {"Ez": times}, {"Ez": (jnp.zeros(1),)})


def test_a_trace_is_drawn_over_femtoseconds():
    axes = time_series(trace(jnp.asarray([[1.0], [-2.0], [3.0]])))
    assert np.allclose(axes.lines[0].get_xdata(), [0, 1, 2])
    assert np.allclose(axes.lines[0].get_ydata(), [1, -2, 3])
    assert axes.get_xlabel() == "time (fs)"
    assert axes.get_ylabel() == "field (V/m)"


def test_of_a_region_the_largest_modulus_is_drawn():
    axes = time_series(trace(jnp.asarray([[1.0, 0], [-2.0, 1], [3.0, -4]])), "Ez")
    assert np.allclose(axes.lines[0].get_ydata(), [1, 2, 4])
    assert labels(axes) == ["max |Ez|"]


def test_energy_has_a_logarithmic_axis_and_may_be_zero():
    times = jnp.arange(3) * 1e-12
    axes = time_series(EnergySeries(times, jnp.asarray([0.0, 1e-15, 1e-16])))
    assert axes.get_yscale() == "log"
    assert axes.get_xlabel() == "time (ps)"
    # J in 3-D, J/m in 2-D, J/m^2 in 1-D.
    assert axes.get_ylabel() == "energy (J/m$^k$, $k$ missing axes)"
    check_label_fits(axes)


def test_convergence_counts_iterations():
    axes = convergence([0.1, 0.5, 0.9], label="transmission")
    assert np.allclose(axes.lines[0].get_xdata(), [0, 1, 2])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "transmission")
    axes = convergence({"a": [1.0, 0.1], "b": [2.0]}, logarithmic=True)
    assert labels(axes) == ["a", "b"]
    assert axes.get_yscale() == "log"
    with pytest.raises(ArgumentError, match=r"but has shape \(0,\)"):
        convergence([])


def test_grid_convergence_draws_distances_and_the_observed_order():
    r = np.array([10, 20, 40])
    axes = grid_convergence(extrapolate(r, np.stack([3 + 5 / r**2, 1 - 2 / r], 1)))
    points, line, *_ = axes.lines
    assert points.get_ydata() == pytest.approx(5 / r**2, rel=1e-4)
    assert line.get_ydata() == pytest.approx(5 / r**2, rel=1e-4)
    assert labels(axes) == ["0: order 2.00", "1: order 1.00"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["10", "20", "40"]
    axes.figure.draw_without_rendering()
    flat = extrapolate(r, 3 + 5 / r**2)
    assert labels(grid_convergence(flat)) == ["order 2.00"]
    with pytest.raises(ArgumentError, match=r"have the shape \(1, 1\)"):
        grid_convergence(extrapolate(r, (3 + 5 / r**2)[:, None, None]))


def test_mode_profiles_lie_over_their_points():
    profile = jnp.asarray([0.0, 1.0, 0.0])
    slab = SlabMode(jnp.asarray(2.85), profile, 3 * profile, jnp.asarray(True))
    axes = mode(slab, jnp.asarray([-1e-6, 0.0, 1e-6]))
    assert np.allclose(axes.lines[1].get_xdata(), [-1, 0, 1])
    assert np.allclose(axes.lines[1].get_ydata(), [0, 3, 0])
    assert labels(axes) == ["E", "η₀H"]
    assert axes.get_xlabel() == "y (µm)"
    assert axes.get_title() == "effective index 2.85000"
    with pytest.raises(ArgumentError, match=r"must have the shape \(3,\)"):
        mode(slab, jnp.zeros(2))


@pytest.mark.parametrize("draw", [spectrum, time_series])
def test_other_results_are_refused(draw):
    # Type checks of the tests come first where the signature says it.
    with pytest.raises((ArgumentError, TypeError)):
        draw({"a": 1})
