"""From a density to the material of each cell."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Inexact

from .._checks import as_array, at_least, positive, single
from ..units import EPSILON_0
from ._argument_checks import as_density


def linear_material(
    density: Float[Array, "*cells"],
    void: Inexact[ArrayLike, ""] | int,
    solid: Inexact[ArrayLike, ""] | int,
) -> Inexact[Array, "*cells"]:
    """Interpolates a property linearly.

    Args:
        density: Values in [0, 1].
        void: The property at density 0: a relative permittivity, real or complex, or a
            conductivity.
        solid: The property at density 1.

    Returns:
        The property in each cell.
    """
    density = as_density(density)
    return _between(density, void, solid, density)


def simp_material(
    density: Float[Array, "*cells"],
    void: Inexact[ArrayLike, ""] | int,
    solid: Inexact[ArrayLike, ""] | int,
    power: Float[ArrayLike, ""] | int = 3,
) -> Inexact[Array, "*cells"]:
    r"""Interpolates a property as $\rho^p$, which makes grey cells poor material.

    Reference: Bendsoe and Sigmund, *Material interpolation schemes in topology
    optimization*, Archive of Applied Mechanics 69, 635 (1999).

    Args:
        density: Values in [0, 1].
        void: The property at density 0.
        solid: The property at density 1.
        power: $p$, at least 1.

    Returns:
        The property in each cell.

    Raises:
        ArgumentError: If `power` is less than 1.
    """
    density = as_density(density)
    power = single(at_least("power", 1.0)(power), "power").astype(density.dtype)
    # The slope of rho^p at 0 is that of p log rho, NaN, unless 0 is kept away.
    filled = density > 0
    penalised = jnp.where(filled, jnp.where(filled, density, 1) ** power, 0)
    return _between(density, void, solid, penalised)


def _between(density, void, solid, fraction):
    low, high = as_array(void, "void"), as_array(solid, "solid")
    kind = jnp.complex64 if jnp.iscomplexobj(low + high) else jnp.float32
    # The precision is the density's, whatever a Python number becomes.
    dtype = jnp.promote_types(density.dtype, kind)
    low, high = low.astype(dtype), high.astype(dtype)
    return low + (high - low) * fraction


def index_material(
    density: Float[Array, "*cells"],
    void: Inexact[ArrayLike, ""] | int,
    solid: Inexact[ArrayLike, ""] | int,
) -> Inexact[Array, "*cells"]:
    r"""Interpolates the refractive index $n + i\kappa$ linearly, and squares it.

    Between a dielectric and a metal this avoids the grey densities at which a linear
    permittivity passes 0 and resonates. Reference: Christiansen, Vester-Petersen,
    Madsen and Sigmund, *A non-linear material interpolation for design of metallic
    nano-particles using topology optimization*, Computer Methods in Applied Mechanics
    and Engineering 343, 23 (2019).

    Args:
        density: Values in [0, 1].
        void: Refractive index at density 0; the imaginary part is the loss.
        solid: Refractive index at density 1.

    Returns:
        The relative permittivity in each cell.
    """
    density = as_density(density)
    return _between(density, void, solid, density) ** 2


def permittivity_and_conductivity(
    permittivity: Inexact[Array, "*cells"], omega: Float[ArrayLike, ""]
) -> tuple[Float[Array, "*cells"], Float[Array, "*cells"]]:
    r"""Splits a complex permittivity into what a time stepper takes.

    With the time sign $\exp(-i \omega t)$,
    $\epsilon = \epsilon' + i \sigma / (\omega \epsilon_0)$.

    Args:
        permittivity: Relative permittivity at one frequency; a positive imaginary part
            is loss.
        omega: The angular frequency, in rad/s.

    Returns:
        The real relative permittivity, and the conductivity in S/m.

    Raises:
        ArgumentError: If `omega` is not positive.
    """
    permittivity = as_array(permittivity, "permittivity")
    real = jnp.real(permittivity)
    factor = (single(positive(omega, "omega"), "omega") * EPSILON_0).astype(real.dtype)
    return real, factor * jnp.imag(permittivity)
