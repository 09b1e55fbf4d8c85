"""A simulation in words: grid, resolution, medium, faces, sources and monitors."""

import jax.numpy as jnp
import numpy as np

from .._byte_text import byte_text
from .._checks import (
    instance,
    refuse_traced,
)
from ..units import SPEED_OF_LIGHT
from ._boundaries import Layer
from ._boxes import size_of
from ._limits import largest_step
from ._medium import at_component
from ._memory import state_bytes
from ._simulation import Simulation


def describe(sim: Simulation) -> str:
    """Returns what a simulation is, in lines of text with units.

    Args:
        sim: The simulation.

    Returns:
        Grid, resolution, time step, duration, faces, sources, monitors and memory.
    """
    grid = instance(sim, "sim", Simulation).grid
    refuse_traced(sim, "sim", "Describe it outside.")
    lengths = " x ".join(f"{float(grid.size(a)) * 1e6:.4g}" for a in range(grid.ndim))
    widths = ", ".join(
        f"{float(jnp.min(w)) * 1e9:.4g}"
        + ("" if grid.is_uniform(a) else f" to {float(jnp.max(w)) * 1e9:.4g}")
        for a, w in enumerate(grid.widths)
    )
    parts = sim.components
    names, medium = parts.names, sim.medium.merged(grid.shape)
    dt = float(sim.dt)
    limit = float(largest_step(grid, medium, parts))
    electric = [n for n in names if n[0] == "E"]
    eps = [at_component(medium.permittivity, n) for n in electric]
    low, high = (float(f(jnp.stack([f(e) for e in eps]))) for f in (jnp.min, jnp.max))
    lines = [
        f"grid          {' x '.join(map(str, grid.shape))} cells, {lengths} um, "
        f"cells of {widths} nm",
        f"components    {' '.join(names)}, {sim.precision.storage}"
        + ("" if parts.m is None else f", in cylindrical coordinates, m = {parts.m}"),
        f"permittivity  {low:.4g} to {high:.4g}"
        + (" at high frequencies" if medium.dispersions else ""),
        f"time step     {dt * 1e15:.4g} fs, {dt / limit:.3f} of the Courant limit",
        f"run           {sim.steps} steps, {dt * sim.steps * 1e15:.5g} fs",
        f"memory        {byte_text(state_bytes(sim))} of state",
    ]
    if medium.metal is not None:
        edges = [np.asarray(medium.metal.open[name]) for name in electric]
        part = np.mean([np.mean(edge == 0) for edge in edges])
        lines.append(f"metal         perfect, over {part:.2%} of the edges")
    for one in medium.dispersions:
        kinds = ", ".join(type(pole).__name__ for pole in one.poles)
        cells = " x ".join(map(str, size_of(one.box)))
        own = [name for name in electric if one.covers(name)]
        along = "" if own == electric else f" of {' '.join(own)}"
        lines.append(f"poles         {kinds} in {cells} cells{along}")
    for one in medium.off_diagonals:
        cells = " x ".join(map(str, size_of(one.box)))
        lines.append(f"tensors       {', '.join(one.inverse)} in {cells} cells")
    for one in medium.nonlinearities:
        cells = " x ".join(map(str, size_of(one.box)))
        lines.append(f"nonlinear     in {cells} cells")
    for axis, name in enumerate(parts.axes):
        kinds = [
            f"{kind} of {f.cells} cells" if isinstance(f, Layer) else kind
            for f in sim.boundaries.axis(axis)
            if f is not None
            for kind in [type(f).__name__]
        ]
        both = " and ".join(dict.fromkeys(kinds))
        lines.append(f"faces {name}       {both}")
    for name, source in sim.sources.items():
        frequency = float(source.pulse.frequency)
        wave = SPEED_OF_LIGHT / frequency
        cells = wave / np.sqrt(high) / max(float(jnp.max(w)) for w in grid.widths)
        lines.append(
            f"source        {name}: {type(source).__name__}, {wave * 1e9:.5g} nm "
            f"({frequency / 1e12:.5g} THz), {cells:.3g} cells per wavelength in the "
            "densest medium"
        )
    for name, monitor in sim.monitors.items():
        lines.append(f"monitor       {name}: {type(monitor).__name__}")
    return "\n".join(lines)
