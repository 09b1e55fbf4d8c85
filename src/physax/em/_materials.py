"""Materials: how a medium answers to the fields."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Complex, Float, Num

from .._checks import (
    ArgumentError,
    as_array,
    at_once,
    check,
    positive,
    traced,
    warn,
)
from ..grid import AXES
from ..units import EPSILON_0, MICRO, SPEED_OF_LIGHT
from ._poles import AbstractPole, as_poles, check_poles, susceptibility


def _values(
    x: ArrayLike | Sequence, name: str, *, tensor: bool = False
) -> Float[Array, "..."]:
    """Returns one value or three, or a tensor, as floating point numbers."""
    if isinstance(x, str):
        raise ArgumentError(
            f"`{name}` must be numbers, but is {x!r}. Look up a material by its name "
            "with `library(name)`."
        )
    if isinstance(x, Sequence) and len(x):
        x = jnp.stack([_values(value, name, tensor=tensor) for value in x])
    elif not isinstance(x, jax.core.Tracer):
        # A constant must stay one under `jit` too: then `rasterise` can see that a
        # property is the same everywhere and store no array for it.
        with jax.ensure_compile_time_eval():
            x = as_array(x, name)
            if jnp.issubdtype(x.dtype, jnp.integer):
                x = x.astype(float)
    elif jnp.issubdtype(x.dtype, jnp.integer):
        x = x.astype(float)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise ArgumentError(
            f"`{name}` must be real, but has dtype {x.dtype}. Give losses as "
            "`conductivity`."
        )
    if x.shape not in ((), (3,)) and not (tensor and x.shape == (3, 3)):
        more = "a tensor (3, 3), " if tensor else ""
        raise ArgumentError(
            f"`{name}` must be {more}one number or one per axis (shape (3,)), but has "
            f"shape {x.shape}."
        )
    return x


def _positive(name: str) -> Callable[[ArrayLike], Array]:
    def convert(x):
        x = _values(x, name)
        with jax.ensure_compile_time_eval():
            good = (x > 0) & jnp.isfinite(x)
            return check(x, good, f"`{name}` must be positive and finite")

    return convert


def _dielectric(x: ArrayLike | Sequence) -> Array:
    x = _values(x, "permittivity", tensor=True)
    if x.ndim < 2:
        try:
            return _positive("permittivity")(x)
        except ArgumentError as error:
            raise ArgumentError(f"{error} Metals have poles, as `Drude`.") from error
    with jax.ensure_compile_time_eval():
        even = jnp.abs(x - x.T) <= 1e-6 * jnp.abs(x[0, 0])
        what = "`permittivity` must be finite and symmetric"
        x = check(x, jnp.isfinite(x), what)
        if not traced(x) and not jnp.all(even):
            i, j = np.argwhere(~np.asarray(even))[0]
            raise ArgumentError(
                f"{what}, but its entries [{i}, {j}] and [{j}, {i}] are {x[i, j]:g} "
                f"and {x[j, i]:g}. Make them equal."
            )
        x = check(x, jnp.all(even), what)
        least = jnp.linalg.eigvalsh(x)[0]
        factor = check(
            least, least > 0, "The smallest principal permittivity must be positive"
        )
        return jnp.where(factor > 0, (x + x.T) / 2, jnp.nan)


def _conductive(name: str) -> Callable[[ArrayLike], Array]:
    def convert(x):
        x = _values(x, name)
        with jax.ensure_compile_time_eval():
            x = check(x, jnp.isfinite(x), f"`{name}` must be finite")
        if not isinstance(x, jax.core.Tracer) and np.any(np.asarray(x) < 0):
            warn(
                f"`{name}` is negative ({np.min(np.asarray(x)):g}): the medium "
                "amplifies, and the fields may grow without bound. Make it positive "
                "for a loss.",
            )
        return x

    return convert


def _power(name: str, *, passive: bool = False) -> Callable[[ArrayLike], Array]:
    def convert(x):
        x = _values(x, name)
        if x.ndim:
            raise ArgumentError(
                f"`{name}` must be one number, but has shape {x.shape}."
            )
        with jax.ensure_compile_time_eval():
            if passive:
                good = jnp.isfinite(x) & (x >= 0)
                return check(x, good, f"`{name}` must be finite and at least 0")
            return check(x, jnp.isfinite(x), f"`{name}` must be finite")

    return convert


_Poles = tuple[AbstractPole, ...]


def _poles(value: Any) -> tuple:
    """Returns poles as a tuple, or as three of those along the axes."""
    several = value if isinstance(value, tuple | list) else ()
    nested = [isinstance(one, tuple | list) for one in several]
    if not any(nested):
        return as_poles(value)
    if len(several) != 3 or not all(nested):
        raise ArgumentError(
            "`poles` must be three tuples, those along x, y and z, where one entry is "
            f"a tuple, but has {len(several)} entries, {sum(nested)} of them tuples. "
            "Write `(pole,)` for a single one and `()` for none."
        )
    along = tuple(map(as_poles, several))
    return along if any(along) else ()


class Material(eqx.Module):
    r"""A linear medium.

    $D = \epsilon_0 (\epsilon_r + \chi(\omega)) E$, $B = \mu_0 \mu_r H$, with the
    electric current $\sigma E$ and the magnetic current $\sigma_m H$; poles give
    $\chi$. Differentiable in every attribute.

    Attributes:
        permittivity: Relative permittivity, the square of the refractive index; one
            number, three along the axes x, y, z, or a symmetric tensor (3, 3).
        permeability: Relative permeability, one number or three.
        conductivity: Electric conductivity in S/m, one number or three. Negative: gain.
        magnetic_conductivity: Magnetic conductivity in ohm/m, likewise.
        poles: One pole or several: `Lorentz`, `Drude`, `Debye`, `PoleResidue`; or
            three tuples of those along the axes x, y, z, any of which may be empty.
            With them `permittivity` is that at high frequencies. Whether their sum
            amplifies is checked where all are concrete: with traced ones fields may
            grow.
        chi2: Susceptibility of second order in m/V; see `Nonlinearity`.
        chi3: Of third order in m^2/V^2; from a Kerr index by `kerr_susceptibility`.
        sigma3: Conductivity of third order in S m/V^2, not negative; from a coefficient
            of two-photon absorption by `two_photon_conductivity`.
        valid: Shortest and longest wavelength in vacuum, in metres, at which the
            numbers hold: those of `library` and of `fit_material` have it, and `scene`,
            `graded_grid` and `complex_permittivity` refuse others. `None` if unknown.

    Raises:
        ArgumentError: If a value is not finite, not real, or has another shape, if
            permittivity or permeability is not positive, if the poles amplify, or if
            `valid` is reversed.
    """

    permittivity: Float[Array, "..."] = eqx.field(converter=_dielectric, default=1.0)
    permeability: Float[Array, "..."] = eqx.field(
        converter=_positive("permeability"), default=1.0
    )
    conductivity: Float[Array, "..."] = eqx.field(
        converter=_conductive("conductivity"), default=0.0
    )
    magnetic_conductivity: Float[Array, "..."] = eqx.field(
        converter=_conductive("magnetic_conductivity"), default=0.0
    )
    poles: tuple[AbstractPole, ...] | tuple[_Poles, _Poles, _Poles] = eqx.field(
        converter=_poles, default=()
    )
    chi2: Float[Array, ""] = eqx.field(converter=_power("chi2"), default=0.0)
    chi3: Float[Array, ""] = eqx.field(converter=_power("chi3"), default=0.0)
    sigma3: Float[Array, ""] = eqx.field(
        converter=_power("sigma3", passive=True), default=0.0
    )
    valid: tuple[float, float] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.poles_differ():
            for axis, name in enumerate(AXES):
                check_poles(self.poles_along(axis), f" along {name}")
        else:
            check_poles(self.poles_along(0))
        ends = self.valid
        if ends is None:
            return
        pair = isinstance(ends, tuple | list) and len(ends) == 2
        if not (pair and all(isinstance(end, Real) for end in ends)) or not (
            0 <= ends[0] <= ends[1]
        ):
            raise ArgumentError(
                "`valid` must be the shortest and then the longest wavelength in "
                f"metres, but is {ends!r}."
            )

    def poles_differ(self) -> bool:
        """Returns whether the poles are given along each axis."""
        return bool(self.poles) and isinstance(self.poles[0], tuple)

    def is_isotropic(self) -> bool:
        """Returns whether permittivity and poles are alike along all axes."""
        return not self.permittivity.ndim and not self.poles_differ()

    def poles_along(self, axis: int) -> tuple[AbstractPole, ...]:
        """Returns the poles along an axis, 0 for x (or r) to 2 for z."""
        own: tuple = self.poles
        return own[axis] if self.poles_differ() else own

    def susceptibility(
        self, frequency: Num[ArrayLike, "*freqs"]
    ) -> Complex[Array, "*freqs"] | Complex[Array, "*freqs 3"]:
        """Returns what the poles add to the relative permittivity.

        Args:
            frequency: In Hz.

        Returns:
            One number for each frequency; three where poles differ along the axes.
        """
        along = range(3 if self.poles_differ() else 1)
        each = [susceptibility(self.poles_along(axis), frequency) for axis in along]
        return jnp.stack(each, axis=-1) if self.poles_differ() else each[0]


def check_range(
    wavelengths: Num[np.ndarray, "..."], valid: tuple[float, float], what: str
) -> None:
    """Refuses wavelengths at which the numbers of a material do not hold.

    Args:
        wavelengths: In vacuum, in metres.
        valid: The shortest and the longest one that is allowed.
        what: The material, for the message.

    Raises:
        ArgumentError: Names the first wavelength out of the range.
    """
    # A limit that went through float32 is still inside.
    slack = 1e-6
    low, high = valid[0] * (1 - slack), valid[1] * (1 + slack)
    waves = np.ravel(wavelengths)
    bad = waves[~((waves >= low) & (waves <= high))]
    if bad.size:
        raise ArgumentError(
            f"`wavelengths` must lie between {valid[0] / MICRO:g} and "
            f"{valid[1] / MICRO:g} µm for {what}, but one is {bad[0] / MICRO:g} µm. "
            "Are the units right (metres, Hz)? If so, fit a wider table with "
            "`fit_material`."
        )


def complex_permittivity(
    material: Material, frequency: Float[ArrayLike, "*freqs"] | Sequence[float]
) -> Complex[Array, "*freqs"] | Complex[Array, "*freqs 3"]:
    r"""Returns the relative permittivity of a material with all its losses.

    $\epsilon_r + \chi(\omega) + i \sigma / (\omega \epsilon_0)$; its square root is the
    index $n + i k$ of a material that is not magnetic.

    Args:
        material: The material.
        frequency: In Hz.

    Returns:
        One number for each frequency; three where the material differs along the axes.

    Raises:
        ArgumentError: If a frequency is not positive or one at which `material` does
            not hold (see `valid`), it is perfect metal, or its tensor has off-diagonal
            entries.
    """
    if not isinstance(material, Material):
        raise ArgumentError(
            f"`material` must be a `Material`, but is {material!r}. Perfect metal has "
            "no permittivity, and materials are looked up by name with `library`."
        )
    f = positive(frequency, "frequency")
    if material.valid is not None and not isinstance(f, jax.core.Tracer):
        waves = np.atleast_1d(SPEED_OF_LIGHT / np.asarray(f))
        check_range(waves, material.valid, "`material`")
    eps, sigma = material.permittivity, material.conductivity
    eps = _diagonal(eps) if eps.ndim == 2 else eps
    chi = material.susceptibility(f)
    if eps.ndim or sigma.ndim or material.poles_differ():
        f, chi = f[..., None], chi if material.poles_differ() else chi[..., None]
    return eps + chi + 1j * sigma / EPSILON_0 / (2 * jnp.pi * f)


def _diagonal(tensor: Float[Array, "3 3"]) -> Float[Array, "3"]:
    """Returns the diagonal of a tensor that has no other entries."""
    with at_once(tensor):
        entries = jnp.diagonal(tensor)
        beside = jnp.max(jnp.abs(tensor - jnp.diag(entries)))
        beside = check(
            beside,
            beside <= 1e-6 * jnp.max(entries),
            "The largest off-diagonal entry of `permittivity` (the principal ones are "
            "`numpy.linalg.eigvalsh(permittivity)`) must be 0",
        )
        return entries + 0 * beside
