"""A directional coupler of two silicon guides: theory, simulation, circuit component.

In 2-D with Ez. All lengths are in um unless said otherwise. Gap and length of the
coupler change the permittivity of a box of cells, through shapes whose edges are
smoothed, so that S-parameters are differentiable by them.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike
from scipy.optimize import root_scalar

from physax import em, graph
from physax.units import FEMTO, MICRO, SPEED_OF_LIGHT


SILICON, OXIDE = 3.48, 1.444  # refractive indices
WIDTH = 0.22  # a slab has no second mode below 0.245
APART = 0.75  # from the middle line to a guide at the ports
POINTS = 17  # wavelengths from 1.53 to 1.57
FIRST, SECOND = 8, 12  # the channels, 1.55 and 1.56
# The coupler looks the same from each of its four ports.
SIDES = {"in0": "out0", "out0": "in0", "in1": "out1", "out1": "in1"}
ARMS = {"in0": "in1", "in1": "in0", "out0": "out1", "out1": "out0"}


def waves(points: int = POINTS) -> np.ndarray:
    """Returns a number of wavelengths in the band."""
    return np.linspace(1.53, 1.57, points)


def slab_index(wave: float, gap: float = np.inf, *, odd: bool = False) -> float:
    r"""Returns the effective index of a guide, or of a supermode of two.

    Between the guides the field is a cosh or a sinh, so that in a core
    $\kappa w = \arctan(\gamma / \kappa) + \arctan(\gamma T / \kappa)$ with $T$ the
    tanh of $\gamma g / 2$, or its inverse for the odd mode.

    Args:
        wave: Wavelength in vacuum.
        gap: Between two guides.
        odd: Which of the two modes.
    """

    def mismatch(index):
        core, clad = np.sqrt(SILICON**2 - index**2), np.sqrt(index**2 - OXIDE**2)
        tanh = np.tanh(np.pi / wave * clad * gap)
        inner = clad / core * (1 / tanh if odd else tanh)
        turn = np.arctan(clad / core) + np.arctan(inner)
        return 2 * np.pi / wave * core * WIDTH - turn

    return root_scalar(mismatch, bracket=(OXIDE + 1e-9, SILICON - 1e-9)).root


INDEX = slab_index(1.55)
GROUP_INDEX = INDEX - 1.55 * (slab_index(1.551) - slab_index(1.549)) / 0.002


def crossing(gap: float, length: float, bend: float = 0.0) -> float:
    r"""Returns the fraction of the power coupled over, by coupled-mode theory.

    Supermodes that differ by $\Delta n$ exchange $\sin^2(\pi \Delta n L / \lambda)$. At
    its end a bend is a parabola, and coupling decreases as $\exp(-\gamma g)$: by a
    Gaussian integral two bends are equivalent to the length
    $B \sqrt{2 / (\pi \gamma A)}$, with $A$ the offset of one.

    Args:
        gap: Between the guides.
        length: Of the straight part.
        bend: Length $B$ of a bend; 0 ignores bends.
    """
    decay = 2 * np.pi / 1.55 * np.sqrt(INDEX**2 - OXIDE**2)
    offset = APART - (gap + WIDTH) / 2
    whole = length + bend * np.sqrt(2 / (np.pi * decay * offset))
    difference = slab_index(1.55, gap) - slab_index(1.55, gap, odd=True)
    return float(np.sin(np.pi * difference * whole / 1.55) ** 2)


def even_gap(length: float) -> float:
    """Returns the widest gap at which straight guides of a length split evenly."""
    gaps = np.linspace(0.5, 0.1, 401)
    return float(next(gap for gap in gaps if crossing(gap, length) >= 0.5))


class Chip(NamedTuple):
    """A simulation with room for a coupler.

    Attributes:
        sim: Of two guides far apart.
        box: The cells in which a coupler differs from it.
        ports: By name.
        bend: Length of a bend.
        length: Of the first coupler between its bends.
    """

    sim: em.Simulation
    box: tuple[tuple[int, int], ...]
    ports: dict[str, em.Port]
    bend: float
    length: float


def chip(cell: float, bend: float, length: float) -> Chip:
    """Makes a simulation with room for a coupler.

    Args:
        cell: Width of the cells in metres.
        bend: Length of a bend.
        length: Between the bends; a design may change it by 0.3.
    """
    reach = (bend + length / 2 + 0.2, APART + WIDTH / 2 + 0.1)  # of the box
    half = (reach[0] + 0.8, APART + 0.9)  # of the scene
    inside, whole = ([round(h * MICRO / cell) for h in each] for each in (reach, half))
    passage = 2 * half[0] * MICRO * GROUP_INDEX / SPEED_OF_LIGHT
    straight = [
        em.Structure(
            em.Box((0.0, side * APART * MICRO), (np.inf, WIDTH * MICRO)),
            em.Material(SILICON**2),
        )
        for side in (1, -1)
    ]
    sim = em.scene(
        straight,
        [2 * cells * cell for cells in whole],
        [1.55 * MICRO],
        background=em.Material(OXIDE**2),
        polarisation="Ez",
        spacing=cell,
        # The pulse takes 200 fs.
        steps=round((passage + 200 * FEMTO) * SPEED_OF_LIGHT / (0.7 * cell)),
    )
    middle = [cells // 2 for cells in sim.grid.shape]
    ports = {
        f"{name}{number}": em.Port(
            (sign * (half[0] - 0.15) * MICRO, side * APART * MICRO),
            1.3 * MICRO,
            "-x" if sign > 0 else "+x",
            offset=0.3 * MICRO,
        )
        for name, sign in (("in", -1), ("out", 1))
        for number, side in enumerate((1, -1))
    }
    box = tuple((m - n, m + n + 1) for m, n in zip(middle, inside, strict=True))
    return Chip(sim, box, ports, bend, length)


def guides(gap: ArrayLike, length: ArrayLike, bend: float) -> em.Structure:
    """Returns two guides that come near each other between bends."""
    rise = (1 + np.cos(np.pi * np.linspace(0, 1, 25))) / 2
    near = (jnp.asarray(gap) + WIDTH) / 2
    x = bend * jnp.linspace(-1, 0, 25) - jnp.asarray(length) / 2
    x = jnp.concatenate([jnp.array([-50.0]), x])  # from beyond the scene
    y = jnp.concatenate([jnp.array([APART]), near + (APART - near) * rise])
    x, y = jnp.concatenate([x, -x[::-1]]), jnp.concatenate([y, y[::-1]])
    low, high = (jnp.stack([x, y + side * WIDTH / 2], 1) for side in (-1, 1))
    upper = jnp.concatenate([low, high[::-1]])
    lower = (upper * jnp.array([1.0, -1.0]))[::-1]
    vertices = jnp.concatenate([upper, lower]) * MICRO
    outlines = (len(upper), len(lower))
    return em.Structure(
        em.Polygon(vertices, outlines=outlines), em.Material(SILICON**2)
    )


def permittivity(gap: ArrayLike, length: ArrayLike, *, chip: Chip) -> Array:
    """Returns the permittivity in the box of a chip."""
    painted = em.rasterise(
        [guides(gap, length, chip.bend)],
        chip.sim.grid,
        em.Material(OXIDE**2),
        components=("Ez",),
    ).permittivity
    assert isinstance(painted, dict)
    return painted["Ez"][tuple(slice(*span) for span in chip.box)]


def filled(permittivity: Array, chip: Chip) -> em.Simulation:
    """Returns the simulation with a permittivity in the box."""
    region = em.DesignRegion(chip.box, permittivity)
    medium = em.Medium(chip.sim.medium.permittivity, regions=region)
    return eqx.tree_at(lambda sim: sim.medium, chip.sim, medium)


def s_parameters(
    permittivity: Array, *, chip: Chip, inputs: tuple[str, ...] = ("in0",)
) -> em.SParameters:
    """Simulates a coupler at all `waves()`."""
    return em.s_parameters(
        filled(permittivity, chip),
        chip.ports,
        waves() * MICRO,
        inputs=inputs,
    )


def coupler(permittivity: Array, *, chip: Chip) -> graph.Scatterer:
    """Returns a coupler as a part of a circuit: one run, the rest by symmetry."""
    return em.scatterer(s_parameters(permittivity, chip=chip), [SIDES, ARMS])


class Solvers(NamedTuple):
    """From gap and length to the coupler; compiled once for all circuits.

    Attributes:
        medium: Takes gap and length to the permittivity in the box.
        light: Takes that to the coupler.
    """

    medium: Callable[[ArrayLike, ArrayLike], Array]
    light: Callable[[Array], graph.Scatterer]


def solvers(chip: Chip) -> Solvers:
    """Returns the solvers of a chip."""
    medium, light = partial(permittivity, chip=chip), partial(coupler, chip=chip)
    return Solvers(jax.jit(medium), jax.jit(light))


class Verdict(NamedTuple):
    """What a coupler does with the power at 1550 nm.

    Attributes:
        lost: The fraction that leaves no port.
        crossed: The fraction coupled over.
        reflected: The fraction reflected at either arm.
    """

    lost: float
    crossed: float
    reflected: float


def judged(part: graph.Scatterer) -> Verdict:
    """Judges a coupler."""
    power = {port: float(abs(part(port, "in0")[FIRST]) ** 2) for port in part.ports}
    return Verdict(1 - sum(power.values()), power["out1"], power["in0"] + power["in1"])


def asymmetry(part: graph.Scatterer, driven: em.SParameters) -> float:
    """Compares a coupler with a run in which `out1` was driven.

    Returns:
        The largest difference of a transmitted amplitude from reciprocity and from the
        mirror symmetry that `coupler` assumes.
    """
    pairs = [(port, "out1") for port in ("in0", "in1")]
    return max(float(np.max(np.abs(part(*p) - driven(*p)))) for p in pairs)
