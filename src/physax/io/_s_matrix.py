"""S-parameters between arrays and the numbers of a text."""

import jax.numpy as jnp
import numpy as np

from ..em import SParameters


def text_of(value: np.floating) -> str:
    """Returns the shortest text from which the same number of its dtype is read."""
    return np.format_float_scientific(value, unique=True, trim="-")


def s_parameters_of(
    values: np.ndarray,
    wavelengths: np.ndarray,
    outputs: tuple[str, ...],
    inputs: tuple[str, ...],
) -> SParameters:
    """Makes S-parameters that come from no run, in the default precision.

    Args:
        values: Shape (wavelength, output, input).
        wavelengths: In metres.
        outputs: Names of the outputs.
        inputs: Names of the inputs.

    Returns:
        The S-parameters, without results.
    """
    return SParameters(
        jnp.asarray(values, complex),
        jnp.asarray(wavelengths, float),
        tuple(outputs),
        tuple(inputs),
        {},
    )
