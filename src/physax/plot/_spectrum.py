"""Curves of power, force and fields over wavelength."""

from functools import singledispatch

import numpy as np
from matplotlib.axes import Axes

from .._checks import ArgumentError, kind_of
from ..em import (
    Emission,
    ModeAmplitudes,
    SpectralFields,
    SpectralFlux,
    SpectralForce,
    purcell,
)
from ..units import SPEED_OF_LIGHT
from ._canvas import new_axes
from ._curves import label_wavelengths, style_grid


def spectrum(
    result: SpectralFlux | ModeAmplitudes | SpectralForce | Emission | SpectralFields,
    *,
    relative_to: SpectralFlux | None = None,
    label: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draws a spectrum over wavelength.

    For a flux it draws the spectral energy, for mode amplitudes the squared moduli of
    the waves along and against the port, for a force its parts along the axes, for an
    emission the Purcell factor, for fields the largest modulus of each component.

    Args:
        result: The result of a monitor.
        relative_to: A flux to divide a power or a force by, for example that of the
            incident wave.
        label: Name of the curve in the legend.
        axes: Where to draw, also for a second curve; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If `result` is something else, the frequencies of two fluxes
            differ, or `relative_to` is given for what is neither power nor force.
    """
    curves, axis_label = _curves(result)
    wavelengths = SPEED_OF_LIGHT / np.asarray(result.frequencies)
    if relative_to is not None:
        curves = {name: _quotient(result, y, relative_to) for name, y in curves.items()}
        fraction = "fraction of the reference flux"
        force = isinstance(result, SpectralForce)
        axis_label = "force over the reference flux (s/m)" if force else fraction
    axes = new_axes(axes)
    unit = label_wavelengths(axes, wavelengths)
    order = np.argsort(wavelengths)
    style = "x" if len(order) == 1 else "-"
    for name, y in curves.items():
        text = " ".join(part for part in (label, name) if part)
        x = wavelengths[order] / unit.size
        axes.plot(x, y[order], style, label=text or None)
        if text:
            axes.legend(fontsize="small")
    axes.set_ylabel(axis_label)
    style_grid(axes)
    return axes


def _quotient(result, flux: np.ndarray, reference: SpectralFlux) -> np.ndarray:
    if isinstance(result, SpectralFields | Emission):
        raise ArgumentError(
            "`relative_to` must be left out where `result` is neither a power nor a "
            f"force, but `result` is a {type(result).__name__}."
        )
    frequencies = np.asarray(result.frequencies)
    if not np.array_equal(frequencies, np.asarray(reference.frequencies)):
        raise ArgumentError("`relative_to` must have the same frequencies as `result`.")
    return flux / np.asarray(reference.flux)


@singledispatch
def _curves(result) -> tuple[dict[str, np.ndarray], str]:
    """Returns curves by name, and the label of their axis."""
    raise ArgumentError(
        "`result` must be `SpectralFlux`, `ModeAmplitudes`, `SpectralForce`, "
        f"`Emission` or `SpectralFields`, but is {kind_of(result)} From a `Result`, "
        "pass one of `monitors`."
    )


@_curves.register
def _(result: SpectralFlux):
    curves = {"": np.asarray(result.flux)}
    return curves, "spectral flux (W fs²/m$^k$, $k$ missing axes)"


@_curves.register
def _(result: ModeAmplitudes):
    curves = {
        "along the port": np.abs(np.asarray(result.incoming)) ** 2,
        "against the port": np.abs(np.asarray(result.outgoing)) ** 2,
    }
    return curves, "flux of the mode (W fs²/m$^k$, $k$ missing axes)"


@_curves.register
def _(result: SpectralForce):
    curves = {f"along {a}": np.asarray(force) for a, force in result.force.items()}
    return curves, "spectral force (N fs²/m$^k$, $k$ missing axes)"


@_curves.register
def _(result: Emission):
    return {"": np.asarray(purcell(result))}, "Purcell factor"


@_curves.register
def _(result: SpectralFields):
    curves = {}
    for name, values in result.values.items():
        modulus = np.abs(np.asarray(values)).reshape(len(values), -1)
        text = name if name[0] == "E" else f"η₀{name}"
        label = f"|{text}|" if modulus.shape[1] == 1 else f"max |{text}|"
        curves[label] = modulus.max(axis=1)
    return curves, "spectrum (V s/m)"
