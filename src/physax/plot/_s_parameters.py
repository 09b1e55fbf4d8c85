"""Curves of S-parameters over wavelength."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from .._checks import ArgumentError, instance
from ..em import SParameters
from ._canvas import new_axes
from ._curves import label_wavelengths, style_grid


# What is below this is noise, and an exact zero has no logarithm.
_LOWEST_DB = -120.0
_STYLES = ("-", "--", "-.", ":")


def s_parameters(
    sparameters: SParameters,
    *,
    decibel: bool = True,
    pairs: Sequence[tuple[str, str]] | None = None,
    reference: SParameters | None = None,
    reference_label: str = "reference",
    axes: Axes | None = None,
) -> Axes:
    """Draws the squared moduli of S-parameters over wavelength.

    Args:
        sparameters: The S-parameters.
        decibel: Whether in decibel or as fractions of the power.
        pairs: Which, as (output, input); all if `None`.
        reference: Values to compare with, drawn as circles of the same colours.
        reference_label: How the legend names them.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If a pair does not exist.
    """
    instance(sparameters, "sparameters", SParameters, "Make it by `em.s_parameters`.")
    if pairs is None:
        pairs = [(o, i) for i in sparameters.inputs for o in sparameters.ports]
    for one in (sparameters, sparameters if reference is None else reference):
        for output, source in pairs:
            if output not in one.ports or source not in one.inputs:
                raise ArgumentError(
                    f"`pairs` must be of the outputs {one.ports} and the inputs "
                    f"{one.inputs}, but contains {(output, source)}."
                )
    axes = new_axes(axes)
    unit = label_wavelengths(axes, np.asarray(sparameters.wavelengths))
    # Of a reciprocal device curves coincide; both show if one is dashed.
    inputs = sparameters.inputs
    single = len(sparameters.wavelengths) == 1
    for number, (output, source) in enumerate(pairs):
        colour = f"C{number % 10}"
        x, y = _curve(sparameters, output, source, decibel)
        axes.plot(
            x / unit.size,
            y,
            "x" if single else _STYLES[inputs.index(source) % len(_STYLES)],
            color=colour,
            label=f"{source} → {output}",
        )
        if reference is not None:
            x, y = _curve(reference, output, source, decibel)
            axes.plot(x / unit.size, y, "o", mfc="none", ms=5, color=colour)
    if reference is not None:
        axes.plot([], [], "o", mfc="none", ms=5, color="0.3", label=reference_label)
    axes.set_ylabel("|S|² (dB)" if decibel else "|S|²")
    style_grid(axes)
    axes.legend(fontsize="small")
    return axes


def _curve(sparameters: SParameters, output: str, source: str, decibel: bool):
    x = np.asarray(sparameters.wavelengths)
    order = np.argsort(x)
    power = np.abs(np.asarray(sparameters(output, source)))[order] ** 2
    if decibel:
        power = 10 * np.log10(np.maximum(power, 10 ** (_LOWEST_DB / 10)))
    return x[order], power
