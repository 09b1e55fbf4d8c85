"""physax's side of `benchmarks.gradient`: the default adjoint of `em.simulate`."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from physax import em
from physax.grid import Grid

from .peers._gradient import block
from .peers._protocol import (
    BAND,
    DX,
    LAYER,
    LENGTH,
    LIGHT_SPEED,
    OBSERVED,
    SOURCE,
    WAVELENGTH,
)


def designed(sim: em.Simulation):
    """Returns the permittivity of the design cells."""
    return sim.medium.regions[0].permittivity


def objective(
    case: str, n: int, steps: int, design: int, method: str
) -> Callable[[Float[Array, "..."]], Float[Array, ""]]:
    """Makes the objective of `peers/_gradient.py`.

    Args:
        case: `"2d"` (Ez, n x n) or `"3d"` (n x n x n).
        n: Cells along an edge.
        steps: Time steps, at half of the Courant number of the cell.
        design: Design cells along an edge.
        method: Not used: `em.simulate` serves the forward run and the gradient.

    Returns:
        The function of the permittivity of the design cells.
    """
    del method
    ndim, width = int(case[0]), n * DX
    frequency = LIGHT_SPEED / WAVELENGTH
    box = tuple((part.start, part.stop) for part in block(case, n, design))
    middle = (0.0,) * (ndim - 1)
    sim = em.Simulation(
        Grid.centred((n,) * ndim, DX),
        em.Medium(regions=em.DesignRegion(box, jnp.ones((design,) * ndim))),
        em.Boundaries.all(em.CPML(LAYER)),
        sources={
            "dipole": em.Dipole(
                component="Ez",
                position=((SOURCE - 0.5) * width, *middle),
                pulse=em.GaussianPulse(frequency, BAND * frequency),
            )
        },
        monitors={
            "observed": em.FieldMonitor(
                components=("Ez",),
                centre=((OBSERVED - 0.5) * width, *middle),
                size=(0.0, *(LENGTH * width for _ in middle)),
                frequencies=frequency,
            )
        },
        dt=0.5 * DX / LIGHT_SPEED,
        steps=steps,
        polarisation="Ez" if ndim == 2 else None,
    )

    def value(permittivity):
        changed = eqx.tree_at(designed, sim, permittivity)
        fields = em.simulate(changed).monitors["observed"]
        return jnp.sum(jnp.abs(fields.values["Ez"]) ** 2)

    return value
