"""Contrast and offset: how maps share them."""

import math
from abc import abstractmethod
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, real, single, whole
from ..fit import Mixing, separate, shared
from ._measured import per_map


Limits = tuple[float | None, float | None]
"""A lower and an upper bound, each of which may be None."""

Ends = tuple[float, float]
"""Bounds of the contrasts and of the offsets, infinite for none."""


def linear_bounds(contrast: Any, offset: Any) -> tuple[Ends, Ends]:
    """Returns lower bounds of contrasts and offsets, and upper ones.

    Args:
        contrast: `Limits` of the contrasts.
        offset: `Limits` of the offsets.

    Raises:
        ArgumentError: If they are not pairs of numbers in increasing order.
    """
    lows, highs = zip(
        bound_pair(contrast, "contrast_bounds"),
        bound_pair(offset, "offset_bounds"),
        strict=True,
    )
    return lows, highs


def bound_pair(
    pair: Any, name: str, empty: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float]:
    """Returns a lower and an upper bound as numbers.

    Args:
        pair: `Limits`.
        name: What to call them in messages.
        empty: What `None` means.

    Raises:
        ArgumentError: If it is not a pair of numbers in increasing order.
    """
    if not isinstance(pair, tuple | list | np.ndarray | jax.Array) or len(pair) != 2:
        raise ArgumentError(
            f"`{name}` must be a lower and an upper bound, `None` for no bound, but "
            f"is {pair!r}."
        )
    low, high = (
        none if x is None else float(single(real(x, name), name))
        for x, none in zip(pair, empty, strict=True)
    )
    if not low <= high:
        raise ArgumentError(
            f"`{name}` must be in increasing order, but are {low:g} and {high:g}. "
            "Give the lower one first."
        )
    return low, high


class AbstractScaling(eqx.Module):
    """How the contrast and the offset of the maps follow from coefficients."""

    @property
    @abstractmethod
    def takes_bounds(self) -> bool:
        """Whether its coefficients are contrasts and offsets of maps.

        Only these can be bounded.
        """

    @abstractmethod
    def mixing(self, phi: Float[Array, " maps"]) -> Mixing:
        """Returns the weights of the coefficients in each map.

        Args:
            phi: Directions of the maps in radians.
        """


def check_bounds(scaling: AbstractScaling, bounds: tuple[Ends, Ends]) -> None:
    """Raises if contrasts or offsets have bounds that a scaling does not accept.

    Args:
        scaling: The scaling.
        bounds: From `linear_bounds`.

    Raises:
        ArgumentError: If a bound is finite and the scaling takes none.
    """
    if scaling.takes_bounds:
        return
    for name, low, high in zip(("contrast", "offset"), *bounds, strict=True):
        if math.isfinite(low) or math.isfinite(high):
            raise ArgumentError(
                f"`{name}_bounds` must be left out with the scaling "
                f"`{type(scaling).__name__}`, but are {low:g} and {high:g}: only a "
                f"scaling that fits the {name}s of the maps themselves can bound them. "
                "Leave the bounds out, or take `PerAngle` or `Shared`."
            )


class PerAngle(AbstractScaling):
    """Each map has a contrast and an offset of its own."""

    @property
    def takes_bounds(self):
        return True

    def mixing(self, phi):
        return separate(len(phi))


class Shared(AbstractScaling):
    """All maps have the same contrast and the same offset."""

    @property
    def takes_bounds(self):
        return True

    def mixing(self, phi):
        return shared(len(phi))


class Fourier(AbstractScaling):
    r"""Contrast and offset vary smoothly with the angle.

    $b(\phi) = a_0 + \sum_{l=1}^{K} (a_l \cos l \phi + b_l \sin l \phi)$, and likewise
    the offset. With harmonics, contrasts and offsets cannot be bounded.

    Attributes:
        order: The highest harmonic $K$, at least 0.
    """

    order: int = eqx.field(
        static=True, converter=lambda x: whole(x, "order", 0), default=2
    )

    @property
    def takes_bounds(self):
        return self.order == 0

    def mixing(self, phi):
        phi = np.asarray(phi)
        # A full turn apart is the same direction.
        turned = np.unique(np.round(np.mod(phi, 2 * np.pi), 5) % np.round(2 * np.pi, 5))
        different = len(turned)
        if 2 * self.order + 1 > different:
            raise ArgumentError(
                f"`order` must be at most {(different - 1) // 2} for {different} "
                f"different angles, but is {self.order}."
            )
        waves, names = [np.ones_like(phi)], ["mean"]
        for n in range(1, self.order + 1):
            waves += [np.cos(n * phi), np.sin(n * phi)]
            names += [f"cos {n} phi", f"sin {n} phi"]
        return Mixing(np.stack(waves, axis=1), names)


class Constant(AbstractScaling):
    """Contrast and offset are known.

    Attributes:
        contrast: Of each map, or one for all.
        offset: Of each map, or one for all.
    """

    contrast: Float[Array, "..."] = eqx.field(converter=partial(real, name="contrast"))
    offset: Float[Array, "..."] = eqx.field(
        converter=partial(real, name="offset"), default=1.0
    )

    @property
    def takes_bounds(self):
        return False

    def mixing(self, phi):
        return separate(len(phi))

    def coefficients(self, maps: int) -> Float[Array, "2 maps"]:
        """Returns contrast and offset of each map."""
        both = {"contrast": self.contrast, "offset": self.offset}
        return jnp.stack([per_map(x, maps, name) for name, x in both.items()])
