"""Sellmeier formulas as dispersive materials."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Num

from .._checks import ArgumentError, as_array, at_once, check, positive
from ..units import SPEED_OF_LIGHT
from ._materials import Material
from ._poles import Lorentz


# Where materials have resonances, in metres: silicon as far out as 1.1 mm.
_SHORTEST, _LONGEST = 1e-9, 2e-3


def sellmeier(
    strengths: Num[ArrayLike, "..."] | Sequence[Num[ArrayLike, ""]],
    wavelengths: Num[ArrayLike, "..."] | Sequence[Num[ArrayLike, ""]],
    *,
    constant: Num[ArrayLike, ""] = 1.0,
) -> Material:
    r"""Returns the material of a Sellmeier formula.

    $n^2 = A + \sum_i B_i \lambda^2 / (\lambda^2 - \lambda_i^2)$: each term is exactly a
    resonance without damping at $c / \lambda_i$. Many publications print the squares
    $C_i = \lambda_i^2$ in µm²; take their roots. Differentiable in all numbers.

    Args:
        strengths: $B_i$, at least 0.
        wavelengths: $\lambda_i$ in metres.
        constant: $A$, the permittivity at frequencies above all resonances.

    Returns:
        The material, with one pole for each term.

    Raises:
        ArgumentError: If there is not one wavelength for each strength, a strength is
            negative, a wavelength not between 1 nm and 2 mm, or the constant not
            positive.
    """
    b, waves = _listed(strengths, "strengths"), _listed(wavelengths, "wavelengths")
    if b.shape != waves.shape or not b.size:
        raise ArgumentError(
            "`strengths` and `wavelengths` must have one entry for each term, but have "
            f"the shapes {b.shape} and {waves.shape}."
        )
    with at_once([b, waves]):
        good = jnp.isfinite(b) & (b >= 0)
        # A negative energy of a resonance without damping shows in no loss.
        b = check(b, good, "`strengths` must be finite and at least 0")
        waves = positive(waves, "wavelengths")
        good = (waves >= _SHORTEST) & (waves <= _LONGEST)
        # Resonances far from all light would leave a vacuum without a word.
        waves = check(
            waves,
            good,
            "`wavelengths` must lie between 1e-9 and 2e-3 m (in metres; of printed C "
            "in µm² they are `sqrt(C) * 1e-6`)",
        )
        frequencies = SPEED_OF_LIGHT / waves
        poles = tuple(Lorentz(one, f) for one, f in zip(b, frequencies, strict=True))
    return Material(constant, poles=poles)


def _listed(x: ArrayLike | Sequence, name: str) -> Array:
    """Returns numbers as a list of real ones."""
    x = as_array(x, name)
    if x.ndim != 1 or jnp.iscomplexobj(x):
        raise ArgumentError(
            f"`{name}` must be a list of real numbers, but has shape {x.shape} and "
            f"dtype {x.dtype}."
        )
    return x
