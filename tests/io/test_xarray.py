import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.em import (
    Emission,
    EnergySeries,
    ModeAmplitudes,
    Resonances,
    SParameters,
    SpectralFields,
    SpectralFlux,
    SpectralForce,
    TimeSeries,
)
from physax.grid import Field, Grid
from physax.io import MissingPackageError, to_xarray
from physax.units import SPEED_OF_LIGHT


xarray = pytest.importorskip("xarray")

FREQUENCIES = jnp.asarray([1.9e14, 2.0e14], float)
X, X_HALF = jnp.asarray([0.0, 1e-7, 2e-7]), jnp.asarray([0.5e-7, 1.5e-7])
Y, Y_HALF = jnp.asarray([0.0]), jnp.asarray([0.5e-7])


def assert_labelled(data):
    for variable in (*data.data_vars.values(), *data.coords.values()):
        assert "units" in variable.attrs
        assert variable.attrs["long_name"]


def test_spectra_of_staggered_components_have_axes_of_their_own():
    values = {
        "Ez": jnp.arange(6.0).reshape(2, 3, 1) + 1j,
        "Hy": jnp.arange(4.0).reshape(2, 2, 1) * 1j,
    }
    data = to_xarray(
        SpectralFields(FREQUENCIES, values, {"Ez": (X, Y), "Hy": (X_HALF, Y)})
    )
    assert data.Ez.dims == ("frequency", "x", "y")
    assert data.Hy.dims == ("frequency", "x_half", "y")
    assert np.array_equal(data.Ez.values, values["Ez"])
    assert np.array_equal(data.x, X)
    assert np.array_equal(data.x_half, X_HALF)
    assert data.Ez.attrs["units"] == "V s/m"
    assert np.allclose(data.wavelength, SPEED_OF_LIGHT / FREQUENCIES, atol=0)
    assert data.sel(frequency=2e14, method="nearest").Ez[1, 0] == 4 + 1j
    assert_labelled(data)


def test_times_of_e_and_h_differ_by_half_a_step():
    data = to_xarray(
        TimeSeries(
            {"Ez": jnp.ones((4, 1, 1)), "Hx": jnp.ones((4, 1, 1))},
            {"Ez": jnp.arange(4.0), "Hx": jnp.arange(4.0) - 0.5},
            {"Ez": (X[:1], Y), "Hx": (X[:1], Y_HALF)},
        )
    )
    assert data.Ez.dims == ("time", "x", "y")
    assert data.Hx.dims == ("time_half", "x", "y_half")
    assert np.allclose(data.time - data.time_half.values, 0.5)
    assert data.time.attrs["units"] == "s"
    assert_labelled(data)


def test_s_parameters_are_found_by_port():
    values = jnp.arange(12.0).reshape(2, 3, 2) * (1 + 1j)
    waves = jnp.asarray([1.5e-6, 1.6e-6], float)
    s = SParameters(values, waves, ("a", "b", "c"), ("a", "c"), {})
    data = to_xarray(s)
    assert data.S.dims == ("wavelength", "output", "input")
    assert np.array_equal(data.S.sel(output="b", input="c"), s("b", "c"))
    assert data.wavelength.attrs["units"] == "m"
    assert_labelled(data)


@pytest.mark.parametrize(
    ("result", "name", "dims"),
    [
        (SpectralFlux(FREQUENCIES, jnp.ones(2)), "flux", ("frequency",)),
        (EnergySeries(jnp.arange(3.0), jnp.ones(3)), "energy", ("time",)),
        (Emission(FREQUENCIES, *[jnp.ones(2)] * 4), "ldos", ("frequency",)),
        (
            Resonances(
                np.array([1.9e14, 2e14]),
                np.array([1e11, 2e11]),
                np.array([1e6, 1e6]),
                np.ones((2, 3)) * 1j,
                1e-13,
            ),
            "amplitude",
            ("mode", "probe"),
        ),
        (
            ModeAmplitudes(
                FREQUENCIES, jnp.ones(2) * 1j, jnp.ones(2) * 1j, FREQUENCIES
            ),
            "incoming",
            ("frequency",),
        ),
    ],
)
def test_curves_are_labelled(result, name, dims):
    data = to_xarray(result)
    assert data[name].dims == dims
    assert np.array_equal(data[name], getattr(result, name))
    assert_labelled(data)


def test_forces_are_found_by_axis():
    forces = {"x": jnp.arange(2.0), "y": -jnp.arange(2.0)}
    data = to_xarray(SpectralForce(FREQUENCIES, forces))
    assert data.force_y.dims == ("frequency",)
    assert np.array_equal(data.force_y, forces["y"])
    assert data.force_x.attrs["units"].startswith("N fs^2")
    assert_labelled(data)


def test_a_field_has_the_points_of_its_grid():
    grid = Grid.uniform((3, 2), 1e-7)
    data = to_xarray(Field(jnp.arange(12.0).reshape(2, 3, 2), (0.5, 0.0), grid))
    assert data["values"].dims == ("free_0", "x_half", "y")
    assert np.allclose(data.x_half, [0.5e-7, 1.5e-7, 2.5e-7], atol=0)


def test_other_things_are_refused():
    with pytest.raises(ArgumentError, match="but is a dict"):
        to_xarray({})


def test_a_missing_package_is_named(without):
    without("xarray")
    with pytest.raises(MissingPackageError, match=r"pip install 'physax\[xarray\]'"):
        to_xarray(SpectralFlux(FREQUENCIES, jnp.ones(2)))
