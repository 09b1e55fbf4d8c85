"""Crystals with one optic axis, from what their two waves see."""

import jax.numpy as jnp
from jaxtyping import Array

from .._checks import ArgumentError, at_once, check, instance
from ..grid import AXES
from ..units import MICRO
from ._canvas import all_equal
from ._materials import Material
from ._nonlinear import COEFFICIENTS
from ._shape_fields import check_axis


_DIAGONAL = "permittivity", "permeability", "conductivity", "magnetic_conductivity"


def uniaxial(ordinary: Material, extraordinary: Material, axis: str = "z") -> Material:
    """Makes a crystal with an optic axis, from what its two waves see.

    Pairs of the library have names that end in `-o` and `-e`. Coefficients of
    nonlinearity are those of the ordinary one.

    Args:
        ordinary: The medium of fields across the optic axis.
        extraordinary: The medium of fields along it.
        axis: The optic axis, "x", "y" or "z".

    Returns:
        The material, `valid` where both are.

    Raises:
        ArgumentError: If one of them is anisotropic, their nonlinearities differ,
            `axis` is not an axis, or they are valid at no common wavelength.
    """
    check_axis(axis)
    pair = ordinary, extraordinary
    for name, one in zip(("ordinary", "extraordinary"), pair, strict=True):
        instance(one, name, Material, "Look one up with `library`.")
        if one.poles_differ() or any(getattr(one, p).ndim for p in _DIAGONAL):
            raise ArgumentError(
                f"`{name}` must be isotropic. Give `Material` the entries along the "
                "three axes."
            )
    along, poles = AXES.index(axis), [ordinary.poles] * 3
    poles[along] = extraordinary.poles
    with at_once(pair):
        found = {prop: _spread(prop, pair, along) for prop in _DIAGONAL}
        for prop in COEFFICIENTS:
            own, other = (getattr(one, prop) for one in pair)
            what = f"`{prop}` of `ordinary` must be that of `extraordinary`"
            found[prop] = check(own, own == other, what)
    return Material(**found, poles=tuple(poles), valid=_common(pair))


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
