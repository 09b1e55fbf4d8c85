"""Absorbing by loss that sets in slowly: a layer that no medium makes unstable."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import between, whole
from ..units import SPEED_OF_LIGHT


class Absorber(eqx.Module):
    r"""A lossy layer on one face of the grid, for media that a `CPML` amplifies.

    Fields decay at the rate $\gamma$, which grows as $d^m$ with depth $d$ from 0 at the
    inner edge to 1 at the outer edge: the electric conductivity is
    $\epsilon \epsilon_0 \gamma$, the magnetic one $\mu \mu_0 \gamma$, so that the
    impedance of the medium is kept, except for poles and off-diagonal entries of
    tensors. It only absorbs energy, whatever lies in it: metals, guides of backward
    waves, waves along its border. It reflects less the more slowly it sets in: it needs
    several times the cells of a `CPML`. Reference: Oskooi et al., *The failure of
    perfectly matched layers, and towards their redemption by adiabatic absorbers*,
    Optics Express 16, 11376 (2008).

    Attributes:
        cells: Thickness in grid cells, at least 4. 40 is usual.
        order: The power $m$ of the grading, at least 1.
        reflection: Amplitude that the wall behind it reflects at normal incidence in
            vacuum, in (0, 1); sets $\gamma$.

    Raises:
        ArgumentError: If an attribute is out of its range.
    """

    cells: int = eqx.field(static=True, converter=lambda n: whole(n, "cells", 4))
    order: int = eqx.field(
        static=True, converter=lambda m: whole(m, "order"), default=3
    )
    reflection: Float[Array, ""] = eqx.field(
        converter=between("reflection", 0.0, 1.0), default=1e-4
    )


def decay_rate(
    layer: Absorber, depth: Float[Array, " cells"], length: Float[Array, ""]
) -> Float[Array, " cells"]:
    """Returns at what rate fields decay.

    Args:
        layer: The layer.
        depth: Places in it, from 0 to 1.
        length: Its thickness in metres.

    Returns:
        The rate in 1/s at each place.
    """
    most = -jnp.log(layer.reflection) * (layer.order + 1) * SPEED_OF_LIGHT
    return most / (2 * length) * depth**layer.order
