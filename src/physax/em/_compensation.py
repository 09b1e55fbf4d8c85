"""Permittivities that make up for the numerical dispersion at one frequency."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .._checks import ArgumentError, check
from ..grid import Box, Grid
from ..units import SPEED_OF_LIGHT
from ._boxes import cells_of
from ._clock import stepped
from ._limits import check_step, largest_step
from ._medium import Property, at_component
from ._off_diagonal import OffDiagonal
from ._plane_wave import PlaneWave
from ._poles import susceptibility
from ._resolution import check_section, one_frequency
from ._row import entries_in
from ._simulation import Simulation
from ._sources import AbstractSource
from ._stepper import along


def compensate_dispersion(sim: Simulation, frequency: ArrayLike) -> Simulation:
    r"""Makes up for the numerical dispersion of the grid at one frequency.

    On a grid waves are slow, by up to 2 % at 10 cells per wavelength, and resonances
    shifted by as much. Here every permittivity $\epsilon$ is replaced by one with which
    waves of the index $n = \sqrt{\epsilon\mu}$ have the wavenumber $k = n \omega / c$
    on the grid, on average over all directions u:

    $$\epsilon' \mu \Big(\frac{2}{c \Delta t} \sin\frac{\omega \Delta t}{2}\Big)^2
      = \sum_a \Big\langle\Big(\frac{2}{\Delta_a}
      \sin\frac{k u_a \Delta_a}{2}\Big)^2\Big\rangle_u .$$

    Along a line this is exact. In 2-D and 3-D a part of the error stays as a change of
    the wavenumber with the direction: along an axis, at index 1 to 3.5, 42 to 26 % of
    it in 2-D and 55 to 41 % in 3-D. Fields that propagate in all directions, such as
    the modes of a disk, are right to second order in it. Along an axis of one cell
    nothing counts as propagating. The error of the interfaces remains, and away from
    `frequency` the dispersion comes back: use it for narrow bands, of some 10 %. A step
    costs the same. Method: Juntunen and Tsiboukis, IEEE Transactions on Microwave
    Theory and Techniques 48, 582 (2000), here without the anisotropy.

    Losses and metals are unchanged. Poles count with their permittivity at `frequency`,
    and the error of the time step in it is corrected, too. Tensors are scaled by the
    factor that is right for their diagonal, which suits small off-diagonal entries. Far
    fields use the new permittivity for the wavenumber outside. Call it once: a second
    call takes the result of the first for the material.

    Args:
        sim: The simulation. Its time step is kept and must leave some room below the
            Courant limit, as with `courant=0.9`.
        frequency: In Hz, one number above 0.

    Returns:
        The simulation with another medium. Its plane waves have the permittivity of
        the new background. Differentiable in all arrays and in the frequency.

    Raises:
        ArgumentError: If the frequency is not one positive number or leaves less than 4
            cells per wavelength, coordinates are cylindrical, the permeability varies,
            a plane wave runs over cells of several sizes, the time step is above the
            new limit, or near the resonance of poles the permittivity without them
            would not be positive.
    """
    if sim.cylindrical is not None:
        raise ArgumentError(
            "`sim` must have Cartesian coordinates, but has cylindrical ones. Take "
            "smaller cells there."
        )
    mu = sim.medium.permeability
    if isinstance(mu, dict) or mu.ndim:
        raise ArgumentError(
            "`permeability` of the medium must be one number, but varies. Take smaller "
            "cells there."
        )
    frequency = check_section(
        sim.grid, sim.medium, one_frequency(frequency), rough=True
    )
    exact = _Exact(sim, frequency, mu)
    medium = eqx.tree_at(
        lambda m: (m.permittivity, m.regions),
        sim.medium,
        (
            exact.permittivity(sim.medium.permittivity),
            tuple(
                eqx.tree_at(
                    lambda r: r.permittivity,
                    one,
                    exact.permittivity(one.permittivity, one.box),
                    is_leaf=lambda x: x is None,
                )
                for one in sim.medium.regions
            ),
        ),
    )
    shape = sim.grid.shape
    before, after = (one.merged(shape).permittivity for one in (sim.medium, medium))
    tilted = tuple(_scaled(one, before, after) for one in medium.off_diagonals)
    medium = eqx.tree_at(lambda m: m.off_diagonals, medium, tilted)
    sources = {
        name: _with_background(exact, name, source)
        for name, source in sim.sources.items()
    }
    check_step(sim.dt, largest_step(sim.grid, medium.merged(shape), sim.components))
    return eqx.tree_at(lambda s: (s.medium, s.sources), sim, (medium, sources))


class _Exact(eqx.Module):
    """The permittivities that give waves of one frequency their wavelength."""

    sim: Simulation
    frequency: Float[Array, ""]
    permeability: Float[Array, ""]

    def permittivity(self, value: Property | None, box: Box | None = None) -> Any:
        """Returns what replaces a permittivity in a box, or in the whole grid."""
        if value is None:
            return None
        if not self.sim.medium.dispersions:
            return jax.tree.map(lambda x: self.of(x, box), value)
        found = {}
        for name in self.sim.components.electric:
            known = at_component(value, name)

            def poles(frequency, name=name):
                return entries_in(self._polarised(name, frequency), box)

            found[name] = self.beside(poles, known, box)
        return found

    def beside(
        self, poles: Callable[[Array], Array], known: Array, box: Box | None = None
    ) -> Array:
        """Returns what replaces a permittivity beside poles.

        Args:
            poles: What they add to it, at a frequency in Hz.
            known: The permittivity without them.
            box: Where; the whole grid if `None`.
        """
        # The trapezoidal rule steps poles at another frequency.
        other = stepped(self.frequency, self.sim.dt)
        wanted = known + poles(self.frequency)
        rest = self.of(wanted, box) - poles(other)
        return check(
            jnp.where(wanted > 0, rest, known),
            (wanted <= 0) | (rest > 0),
            "Near the resonances of poles `frequency` needs smaller cells: the "
            "permittivity without the poles must be positive",
        )

    def _polarised(self, component: str, frequency: Array) -> Array:
        """Returns what poles add to the permittivity of every cell."""
        total = jnp.zeros(self.sim.grid.shape, self.sim.dt.dtype)
        for one in self.sim.medium.dispersions:
            if one.covers(component):
                chi = jnp.real(susceptibility(one.poles, frequency))
                more = chi.astype(total.dtype) * one.at(component)
                total = total.at[cells_of(one.box)].add(more)
        return total

    def of(self, permittivity: Array, box: Box | None = None) -> Array:
        """Returns what replaces a permittivity; one of a metal stays."""
        grid, step = self.sim.grid, SPEED_OF_LIGHT * self.sim.dt
        return _exact(
            permittivity, self.permeability, self.frequency, step, grid, box=box
        )


# As one program, where each operation would be one; inside others nothing changes.
@partial(jax.jit, static_argnames="box", inline=True)
def _exact(
    permittivity: Float[Array, "..."],
    mu: Float[Array, ""],
    frequency: Float[Array, ""],
    step: Float[Array, ""],
    grid: Grid,
    *,
    box: Box | None,
) -> Float[Array, "..."]:
    # Along an axis of one cell nothing varies.
    axes = [a for a in range(grid.ndim) if grid.shape[a] > 1] or [0]
    waves = 2 * jnp.pi * frequency / SPEED_OF_LIGHT
    metal = permittivity <= 0
    k = waves * jnp.sqrt(jnp.where(metal, 1, permittivity) * mu)
    square = jnp.zeros(())
    for axis in axes:
        width = grid.widths[axis]
        if box is not None and width.ndim:
            width = width[slice(*box[axis])]
        width = along(width, axis, grid.ndim)
        for cosine, weight in zip(*_rule(len(axes)), strict=True):
            wave = 2 / width * jnp.sin(k * cosine * width / 2)
            square = square + weight * wave**2
    found = square / (mu * (2 / step * jnp.sin(waves * step / 2)) ** 2)
    return jnp.where(metal, permittivity, found)


def _scaled(one: OffDiagonal, before: Property, after: Property) -> OffDiagonal:
    """Scales entries of the inverse like those on the diagonal."""

    def factor(axis):
        old, new = (
            entries_in(at_component(value, f"E{axis}"), one.box)
            for value in (before, after)
        )
        return jnp.sqrt(old / new)

    inverse = {
        pair: entry * factor(pair[0]) * factor(pair[1])
        for pair, entry in one.inverse.items()
    }
    return OffDiagonal(one.box, inverse)


def _with_background(
    exact: _Exact, name: str, source: AbstractSource
) -> AbstractSource:
    if not isinstance(source, PlaneWave):
        return source
    if any(width.ndim for width in exact.sim.grid.widths):
        raise ArgumentError(
            f"`sim` must have cells of one size around the plane wave {name!r}, but "
            "its grid is graded: the background would vary. Take `Grid.uniform`."
        )
    background = exact.beside(
        lambda f: jnp.real(susceptibility(source.poles, f)), source.permittivity
    )
    return eqx.tree_at(lambda s: s.permittivity, source, background)


def _rule(ndim: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns nodes and weights of a mean over directions, by one cosine of them."""
    if ndim == 1:
        return np.ones(1), np.ones(1)
    if ndim == 2:
        return np.cos((np.arange(8) + 0.5) * np.pi / 16), np.full(8, 1 / 8)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    return nodes[8:], weights[8:]
