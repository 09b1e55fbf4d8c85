import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.em import (
    EnergySeries,
    ModeAmplitudes,
    SlabMode,
    SParameters,
    SpectralFields,
    SpectralFlux,
    TimeSeries,
)
from physax.plot import convergence, mode, s_parameters, spectrum, time_series
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


def test_mode_amplitudes_are_drawn_as_powers_both_ways():
    both = jnp.asarray([1j, 2.0, 3.0]), jnp.asarray([0.5j, 0.0, 0.0])
    result = ModeAmplitudes(FREQUENCIES, *(a + 0j for a in both), jnp.ones(3))
    axes = spectrum(result, label="port 1")
    assert np.allclose(axes.lines[0].get_ydata(), [4, 9, 1])
    assert labels(axes) == ["port 1 along the port", "port 1 against the port"]
    assert "W" in axes.get_ylabel()
    # A second result on the same axes.
    spectrum(result, label="port 2", axes=axes)
    assert len(axes.lines) == 4


def test_spectra_of_fields_are_the_largest_in_the_region():
    values = {"Hx": jnp.asarray([[1.0, -2j], [3, 4], [5, 0]])}
    result = SpectralFields(FREQUENCIES, values, {"Hx": (jnp.zeros(2),)})
    axes = spectrum(result)
    assert np.allclose(axes.lines[0].get_ydata(), [4, 5, 2])
    assert labels(axes) == ["|η₀Hx|"]


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
    assert axes.get_ylabel().startswith("energy (J")
    axes.figure.draw_without_rendering()


def test_convergence_counts_iterations():
    axes = convergence([0.1, 0.5, 0.9], label="transmission")
    assert np.allclose(axes.lines[0].get_xdata(), [0, 1, 2])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "transmission")
    axes = convergence({"a": [1.0, 0.1], "b": [2.0]}, logarithmic=True)
    assert labels(axes) == ["a", "b"]
    assert axes.get_yscale() == "log"
    with pytest.raises(ArgumentError, match=r"but has shape \(0,\)"):
        convergence([])


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
