"""Media that answer with powers of the field."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, as_array, optional, positive
from ..grid import Box
from ..units import EPSILON_0, SPEED_OF_LIGHT
from ._boxes import as_box, size_of
from ._components import KNOWN_ELECTRIC


Coefficient = Float[Array, "..."] | dict[str, Float[Array, "..."]]

COEFFICIENTS = "chi2", "chi3", "sigma3"
"""The attributes of a `Nonlinearity` beside its box, and of a `Material`."""


def _coefficient(name: str, *, passive: bool = False) -> Callable[[Any], Coefficient]:
    """Makes a converter that refuses what is not real and finite, or amplifies."""

    def one(value, where=""):
        value = as_array(value, name)
        value = (
            value if jnp.issubdtype(value.dtype, jnp.inexact) else value.astype(float)
        )
        if jnp.iscomplexobj(value):
            raise ArgumentError(
                f"`{name}`{where} must be real, but has dtype {value.dtype}."
            )
        if isinstance(value, jax.core.Tracer):
            # A factor, so that the derivative is NaN, too.
            return value * jnp.where(value >= 0, 1, jnp.nan) if passive else value
        host = np.asarray(value)
        if not np.all(np.isfinite(host)):
            raise ArgumentError(f"`{name}`{where} must be finite.")
        if passive and np.any(host < 0):
            raise ArgumentError(
                f"`{name}`{where} must be at least 0, or the medium amplifies, but is "
                f"{np.min(host):g}."
            )
        return value

    def convert(value):
        if not isinstance(value, dict):
            return one(value)
        if unknown := sorted(set(value) - set(KNOWN_ELECTRIC)):
            raise ArgumentError(
                f"`{name}` must be keyed by components such as 'Ez', but has the keys "
                f"{unknown}."
            )
        return {key: one(v, f"[{key!r}]") for key, v in value.items()}

    return convert


class Nonlinearity(eqx.Module):
    r"""What powers of the field add to displacement and current in a box of cells.

    $D_i = \epsilon_0 (\epsilon E_i + \chi_2 E_i^2 + \chi_3 |E|^2 E_i)$ and
    $J_i = \sigma E_i + \sigma_3 |E|^2 E_i$, without delay: the equation is solved for E
    in each box and step. Where $\chi_3$ is that of $P = \epsilon_0 \chi^{(3)} E^3$ for
    one polarisation, a wave sees the Kerr index
    $n_2 = 3 \chi_3 / (4 n^2 \epsilon_0 c)$, and pairs of photons are absorbed with
    $\beta = 3 \sigma_3 / (2 n^2 \epsilon_0^2 c^2)$. Reference: Boyd, *Nonlinear
    Optics*, 3rd edition (2008), chapters 1, 4 and 12.

    Attributes:
        box: For each axis the first cell and one past the last.
        chi2: In m/V: one number, an array of the shape of the box, or one of these for
            each electric component.
        chi3: In m^2/V^2, likewise.
        sigma3: In S m/V^2, likewise and not negative; `None` for none.

    Raises:
        ArgumentError: If a value is not real and finite, or not of the shape of the
            box, or `sigma3` is negative. One that is traced gives NaN.
    """

    box: Box = eqx.field(static=True, converter=as_box)
    chi2: Coefficient = eqx.field(converter=_coefficient("chi2"), default=0.0)
    chi3: Coefficient = eqx.field(converter=_coefficient("chi3"), default=0.0)
    sigma3: Coefficient | None = eqx.field(
        converter=optional(_coefficient("sigma3", passive=True)), default=None
    )

    def __check_init__(self):
        for name in self.given():
            given = getattr(self, name)
            for entry in given.values() if isinstance(given, dict) else (given,):
                if entry.ndim and entry.shape != size_of(self.box):
                    raise ArgumentError(
                        f"`{name}` must be a number or have the shape "
                        f"{size_of(self.box)} of its box, but has shape {entry.shape}."
                    )

    def given(self) -> tuple[str, ...]:
        """Returns the names of the coefficients that there are."""
        return tuple(n for n in COEFFICIENTS if getattr(self, n) is not None)

    def at(self, prop: str, component: str) -> Float[Array, "*box"]:
        """Returns a coefficient at each sample of a component in the box."""
        entry = getattr(self, prop) if prop in self.given() else jnp.zeros(())
        if isinstance(entry, dict):
            if component not in entry:
                raise ArgumentError(
                    f"`{prop}` must have an entry for {component!r}, but has "
                    f"{sorted(entry)}."
                )
            entry = entry[component]
        return jnp.broadcast_to(entry, size_of(self.box))


def kerr_susceptibility(
    n2: Float[ArrayLike, "..."], index: Float[ArrayLike, "..."]
) -> Float[Array, "..."]:
    r"""Returns $\chi_3 = \frac{4}{3} n^2 \epsilon_0 c\, n_2$ in m^2/V^2.

    Args:
        n2: Nonlinear index in m^2/W: $n + n_2 I$ at the intensity I.
        index: Linear index.

    Returns:
        The susceptibility for a wave of one polarisation (Boyd, section 4.1).

    Raises:
        ArgumentError: If the index is not positive.
    """
    scale = 4 / 3 * EPSILON_0 * SPEED_OF_LIGHT
    return scale * positive(index, "index") ** 2 * as_array(n2, "n2")


def two_photon_conductivity(
    beta: Float[ArrayLike, "..."], index: Float[ArrayLike, "..."]
) -> Float[Array, "..."]:
    r"""Returns $\sigma_3 = \frac{2}{3} n^2 \epsilon_0^2 c^2 \beta$ in S m/V^2.

    Args:
        beta: Coefficient of two-photon absorption in m/W: $dI/dz = -\beta I^2$.
        index: Linear index.

    Returns:
        The conductivity for a wave of one polarisation (Boyd, section 12.5).

    Raises:
        ArgumentError: If the index is not positive.
    """
    scale = 2 / 3 * (EPSILON_0 * SPEED_OF_LIGHT) ** 2
    return scale * positive(index, "index") ** 2 * as_array(beta, "beta")
