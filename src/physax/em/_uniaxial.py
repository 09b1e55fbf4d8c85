"""Crystals with one optic axis, from what their two waves see."""

import jax.numpy as jnp
from jaxtyping import Array

from .._checks import ArgumentError, at_once, instance
from ..grid import AXES
from ..units import MICRO
from ._canvas import all_equal, is_zero
from ._materials import Material
from ._nonlinear import COEFFICIENTS
from ._shape_fields import check_axis


_DIAGONAL = "permittivity", "permeability", "conductivity", "magnetic_conductivity"


def uniaxial(ordinary: Material, extraordinary: Material, axis: str = "z") -> Material:
    """Makes a crystal with an optic axis, from what its two waves see.

    Pairs of the library have names that end in `-o` and `-e`.

    Args:
        ordinary: The medium of fields across the optic axis.
        extraordinary: The medium of fields along it.
        axis: The optic axis, "x", "y" or "z".

    Returns:
        The material, `valid` where both are.

    Raises:
        ArgumentError: If one of them is anisotropic or nonlinear, `axis` is not an
            axis, or they are valid at no common wavelength.
    """
    check_axis(axis)
    pair = ordinary, extraordinary
    for name, one in zip(("ordinary", "extraordinary"), pair, strict=True):
        instance(one, name, Material, "Look one up with `library`.")
        _check_simple(one, name)
    along, poles = AXES.index(axis), [ordinary.poles] * 3
    poles[along] = extraordinary.poles
    with at_once(pair):
        spread = {prop: _spread(prop, pair, along) for prop in _DIAGONAL}
    return Material(**spread, poles=tuple(poles), valid=_common(pair))


def _check_simple(one: Material, name: str) -> None:
    directed = one.poles_differ() or any(getattr(one, p).ndim for p in _DIAGONAL)
    if directed or not all(is_zero(getattr(one, prop)) for prop in COEFFICIENTS):
        kind = "anisotropic" if directed else "nonlinear"
        raise ArgumentError(
            f"`{name}` must be isotropic and linear, but is {kind}. Give `Material` "
            "the entries along the three axes."
        )


def _spread(prop: str, pair: tuple[Material, Material], along: int) -> Array:
    """Returns the entries of a property along the axes, or one if all are the same."""
    across, own = (getattr(one, prop) for one in pair)
    if all_equal((across, own)):
        return across
    return jnp.stack([across] * 3).at[along].set(own)


def _common(pair: tuple[Material, Material]) -> tuple[float, float] | None:
    ends = [one.valid for one in pair if one.valid is not None]
    if not ends:
        return None
    low, high = max(one[0] for one in ends), min(one[1] for one in ends)
    if low > high:
        told = " and ".join(f"{a / MICRO:g} to {b / MICRO:g}" for a, b in ends)
        raise ArgumentError(
            "`ordinary` and `extraordinary` must hold at common wavelengths, but do at "
            f"{told} µm."
        )
    return low, high
