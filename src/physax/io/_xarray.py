"""Results as labelled arrays of xarray."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from .._checks import ArgumentError
from ..em import (
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
from ..em._components import staggered
from ..grid import AXES, Field
from ..particles import RunResult, Tracks
from ..units import SPEED_OF_LIGHT
from ._gds import MissingPackageError


def to_xarray(result: Any) -> Any:
    """Turns a result into a labelled dataset of xarray.

    Dimensions are `frequency`, `wavelength`, `time`, `x`, `y`, `z`, `output` and
    `input`. Samples half a cell on, or half a time step before, are along `x_half`,
    `time_half` and so on: components of the Yee grid do not share points, and xarray
    would align them. Every variable and coordinate has `units` and `long_name`. Needs
    `pip install physax[xarray]`.

    Args:
        result: The result of a monitor, `SParameters` or a `grid.Field`.

    Returns:
        The `xarray.Dataset`, with copies of the arrays on the host. Spectra also have
        `wavelength` as a coordinate.

    Raises:
        MissingPackageError: If xarray is not installed.
        ArgumentError: If `result` is something else.
    """
    try:
        import xarray
    except ImportError as error:
        raise MissingPackageError(
            "Labelled arrays need the package xarray: pip install 'physax[xarray]'."
        ) from error

    variables, coordinates = _labelled(result)
    return xarray.Dataset(variables, coordinates)


_Parts = tuple[Mapping[str, tuple], Mapping[str, tuple]]


@singledispatch
def _labelled(result) -> _Parts:
    """Returns variables and coordinates: dimensions, values and attributes of each."""
    remedy = "From a `Result`, convert each of `monitors`."
    if isinstance(result, Tracks | RunResult):
        remedy = "Tracks are written by `write_tracks`, and xarray opens the file."
    raise ArgumentError(
        "`result` must be the result of a monitor, `SParameters` or a `Field`, but is "
        f"a {type(result).__name__}. {remedy}"
    )


def _attributes(units: str, name: str) -> dict[str, str]:
    return {"units": units, "long_name": name}


def _spectral(frequencies) -> dict[str, tuple]:
    frequencies = np.asarray(frequencies)
    wavelengths = SPEED_OF_LIGHT / frequencies
    return {
        "frequency": (("frequency",), frequencies, _attributes("Hz", "frequency")),
        "wavelength": (
            ("frequency",),
            wavelengths,
            _attributes("m", "wavelength in vacuum"),
        ),
    }


def _where(coordinates, halves, axes=AXES) -> dict[str, tuple]:
    """Returns the coordinates of samples, named for where they lie in their cells."""
    found = {}
    for axis, points, half in zip(axes, coordinates, halves, strict=False):
        name = f"{axis}_half" if half else axis
        text = (
            f"{axis}, half a cell after the nodes" if half else f"{axis} of the nodes"
        )
        found[name] = ((name,), np.asarray(points), _attributes("m", text))
    return found


def _field_name(component: str) -> str:
    return component if component[0] == "E" else f"eta0 {component}"


@_labelled.register
def _(result: SpectralFields) -> _Parts:
    variables, coordinates = {}, _spectral(result.frequencies)
    for name, values in result.values.items():
        points = result.coordinates[name]
        axes = result.axes[: len(points)]
        where = _where(points, staggered(name, axes), axes)
        coordinates |= where
        label = _attributes("V s/m", f"spectrum of {_field_name(name)}")
        variables[name] = (("frequency", *where), np.asarray(values), label)
    return variables, coordinates


@_labelled.register
def _(result: TimeSeries) -> _Parts:
    variables, coordinates = {}, {}
    for name, values in result.values.items():
        points = result.coordinates[name]
        axes = result.axes[: len(points)]
        where = _where(points, staggered(name, axes), axes)
        time = "time" if name[0] == "E" else "time_half"
        times = np.asarray(result.times[name])
        coordinates |= {time: ((time,), times, _attributes("s", "time")), **where}
        label = _attributes("V/m", _field_name(name))
        variables[name] = ((time, *where), np.asarray(values), label)
    return variables, coordinates


@_labelled.register
def _(result: SpectralFlux) -> _Parts:
    label = _attributes("W fs^2 per metre of each missing dimension", "spectral flux")
    flux = (("frequency",), np.asarray(result.flux), label)
    return {"flux": flux}, _spectral(result.frequencies)


@_labelled.register
def _(result: SpectralForce) -> _Parts:
    units = "N fs^2 per metre of each missing dimension"
    forces = {
        f"force_{axis}": (
            ("frequency",),
            np.asarray(force),
            _attributes(units, f"spectral force along {axis}"),
        )
        for axis, force in result.force.items()
    }
    return forces, _spectral(result.frequencies)


@_labelled.register
def _(result: ModeAmplitudes) -> _Parts:
    amplitude, units = "amplitude of the wave", "sqrt(W) fs, in 2-D over sqrt(m)"
    labels = {
        "incoming": _attributes(units, f"{amplitude} along the port"),
        "outgoing": _attributes(units, f"{amplitude} against the port"),
        "effective_index": _attributes("1", "effective index"),
    }
    variables = {
        name: (("frequency",), np.asarray(getattr(result, name)), label)
        for name, label in labels.items()
    }
    return variables, _spectral(result.frequencies)


@_labelled.register
def _(result: Emission) -> _Parts:
    units = "ohm (magnetic: S) per metre of each dimension but one"
    labels = {
        "resistance": _attributes(units, "radiation resistance of the dipole"),
        "homogeneous": _attributes(units, "resistance in a homogeneous medium"),
        "power": _attributes("W fs^2 per metre of each missing dimension", "emission"),
        "ldos": _attributes(
            "s per metre of each dimension", "local density of states along the dipole"
        ),
    }
    variables = {
        name: (("frequency",), np.asarray(getattr(result, name)), label)
        for name, label in labels.items()
    }
    return variables, _spectral(result.frequencies)


@_labelled.register
def _(result: Resonances) -> _Parts:
    labels = {
        "frequency": _attributes("Hz", "frequency"),
        "error": _attributes("Hz", "standard deviation of the frequency"),
        "decay": _attributes("1/s", "decay of the amplitude"),
        "quality": _attributes("1", "quality factor"),
    }
    variables: dict[str, tuple] = {
        name: (("mode",), getattr(result, name), label)
        for name, label in labels.items()
    }
    label = _attributes("unit of the record", "amplitude, time sign exp(-i w t)")
    variables["amplitude"] = (("mode", "probe"), result.amplitude, label)
    start = _attributes("s", "time of the amplitude")
    return variables, {"time": ((), result.time, start)}


@_labelled.register
def _(result: EnergySeries) -> _Parts:
    label = _attributes("J per metre of each missing dimension", "energy in the grid")
    times = (("time",), np.asarray(result.times), _attributes("s", "time"))
    return {"energy": (("time",), np.asarray(result.energy), label)}, {"time": times}


@_labelled.register
def _(result: SParameters) -> _Parts:
    wavelengths = np.asarray(result.wavelengths)
    dimensions = ("wavelength", "output", "input")
    label = _attributes("1", "scattering parameter, time sign exp(-i w t)")
    coordinates = {
        "wavelength": (
            ("wavelength",),
            wavelengths,
            _attributes("m", "wavelength in vacuum"),
        ),
        "frequency": (
            ("wavelength",),
            SPEED_OF_LIGHT / wavelengths,
            _attributes("Hz", "frequency"),
        ),
        "output": (("output",), list(result.ports), _attributes("", "output port")),
        "input": (("input",), list(result.inputs), _attributes("", "input port")),
    }
    return {"S": (dimensions, np.asarray(result.values), label)}, coordinates


@_labelled.register
def _(result: Field) -> _Parts:
    where = _where(result.coordinates(), result.stagger)
    values = np.asarray(result.values)
    free = tuple(f"free_{i}" for i in range(values.ndim - len(where)))
    return {"values": ((*free, *where), values, {"long_name": "values"})}, where
