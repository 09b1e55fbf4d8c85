"""Materials: how a medium answers to the fields."""

import warnings
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._checks import ArgumentError, PhysaxWarning, as_array, check


def _values(x: ArrayLike | Sequence[ArrayLike], name: str) -> Float[Array, "..."]:
    """Returns one value or three as floating point numbers."""
    if isinstance(x, Sequence):
        x = jnp.stack([_values(value, name) for value in x])
    elif not isinstance(x, jax.core.Tracer):
        # A constant must stay one under `jit` too: then `rasterise` can see that a
        # property is the same everywhere and store no array for it.
        with jax.ensure_compile_time_eval():
            x = as_array(x)
            if jnp.issubdtype(x.dtype, jnp.integer):
                x = x.astype(float)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise ArgumentError(
            f"`{name}` must be real, but has dtype {x.dtype}. Give losses as "
            "`conductivity`."
        )
    if x.shape not in ((), (3,)):
        raise ArgumentError(
            f"`{name}` must be one number or one per axis (shape (3,)), but has shape "
            f"{x.shape}."
        )
    return x


def _positive(name: str) -> Callable[[ArrayLike], Array]:
    def convert(x):
        x = _values(x, name)
        with jax.ensure_compile_time_eval():
            good = (x > 0) & jnp.isfinite(x)
            return check(x, good, f"`{name}` must be positive and finite")

    return convert


def _conductive(name: str) -> Callable[[ArrayLike], Array]:
    def convert(x):
        x = _values(x, name)
        with jax.ensure_compile_time_eval():
            x = check(x, jnp.isfinite(x), f"`{name}` must be finite")
        if not isinstance(x, jax.core.Tracer) and np.any(np.asarray(x) < 0):
            warnings.warn(
                f"`{name}` is negative ({np.min(np.asarray(x)):g}): the medium "
                "amplifies, and the fields may grow without bound. Make it positive "
                "for a loss.",
                PhysaxWarning,
                stacklevel=4,
            )
        return x

    return convert


class Material(eqx.Module):
    r"""A linear medium, isotropic or diagonal along the axes x, y, z.

    $D = \epsilon_0 \epsilon_r E$, $B = \mu_0 \mu_r H$, with the electric current
    $\sigma E$ and the magnetic current $\sigma_m H$. Differentiable in every attribute.

    Attributes:
        permittivity: Relative permittivity, the square of the refractive index; one
            number or three.
        permeability: Relative permeability, likewise.
        conductivity: Electric conductivity in S/m, likewise. Negative: gain.
        magnetic_conductivity: Magnetic conductivity in ohm/m, likewise.

    Raises:
        ArgumentError: If a value is not finite, not real, or has another shape, or if
            permittivity or permeability is not positive.
    """

    permittivity: Float[Array, "..."] = eqx.field(
        converter=_positive("permittivity"), default=1.0
    )
    permeability: Float[Array, "..."] = eqx.field(
        converter=_positive("permeability"), default=1.0
    )
    conductivity: Float[Array, "..."] = eqx.field(
        converter=_conductive("conductivity"), default=0.0
    )
    magnetic_conductivity: Float[Array, "..."] = eqx.field(
        converter=_conductive("magnetic_conductivity"), default=0.0
    )
