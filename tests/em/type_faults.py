"""Arguments of wrong types, and what is said of them.

Tests check annotations as they run, which refuses most of these before physax does:
this file runs as a user's would, and prints the errors as JSON.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np

from physax import em, plot
from physax.grid import Grid
from physax.io import GDSLayer, read_gds, save_npz, write_csv, write_touchstone


PULSE = em.GaussianPulse(2e14, 4e13)
BOX = em.Box((0.0, 0.0), (1e-6, 1e-6))
GLASS = em.Material(2.25)
GRID = Grid.uniform((20, 20), 2e-8)
PORT = em.Port((2e-7, 2e-7), 2e-7, "+x", offset=4e-8)
DOT = em.Dipole("Ez", (2e-7, 2e-7), PULSE)
FLUX = em.SpectralFlux(jnp.array([2e14]), jnp.array([1.0]))
BLOCK = em.Simulation(Grid.uniform((4, 4, 4), 2e-8), steps=1)
SEEN = em.SpectralFields(
    jnp.array([2e14]), {"Ez": jnp.ones((1, 2, 2)) + 0j}, {"Ez": 2 * (jnp.arange(2.0),)}
)
EYE = em.FieldMonitor(("Ez",), (2e-7, 2e-7), (0.0, 0.0), 2e14)


def sim(**options):
    return em.Simulation(GRID, steps=1, polarisation="Ez", **options)


def scene(structures=(), size=(1e-6, 1e-6), **options):
    return em.scene(structures, size, [1.5e-6], polarisation="Ez", **options)


def silent(make):
    """A function that throws away what another one returns, which JAX cannot hold."""

    def made(x):
        make(x)
        return jnp.zeros(())

    return made


FAULTS = {
    "layer for boundaries of a scene": (
        lambda: scene(boundaries=em.CPML(10)),
        r"`boundaries` must be a `Boundaries`, but is a CPML\. Write `Boundaries\.all",
    ),
    "list for boundaries of a scene": (
        lambda: scene(boundaries=[em.CPML(10)]),
        r"`boundaries` must be a `Boundaries`, but is a list\. Write `Boundaries\.all",
    ),
    "structures for scattering parameters": (
        lambda: em.s_parameters([], {"a": PORT}, [1.5e-6]),
        r"`sim` must be a `Simulation`, but is a list\. Make one .* by `scene`",
    ),
    "number for a state": (
        lambda: em.run(sim(), state=3),
        r"`state` must be a `State`, but is an int\. Pass the `state` of a `RunResult`",
    ),
    "fraction for the last step": (
        lambda: em.advance(sim(), em.initial_state(sim()), 0, 10.5),
        r"`stop` must be an integer, the number of a step, but has the dtype float32",
    ),
    "index by NumPy": (
        lambda: em.group_index(lambda f: np.sqrt(f) * 1e-7, 2e14),
        r"`index` must be written with `jax\.numpy`, but hands its arguments to NumPy",
    ),
    "number for an index": (
        lambda: em.group_index(2.4, 2e14),
        r"`index` must be a function from a frequency .*, but is a float\. Write `lam",
    ),
    "traced description": (
        lambda: jax.jit(silent(em.describe))(sim()),
        r"`sim` must be known here, but is traced by .*\. Describe it outside",
    ),
    "traced picture": (
        lambda: jax.jit(silent(plot.simulation))(sim()),
        r"`sim` must be known here, but is traced by .*\. Draw it outside",
    ),
    "traced file": (
        lambda: jax.jit(silent(lambda x: save_npz("never.npz", {"a": x})))(1.0),
        r"`results` must be known here, but is traced by .*\. Save what the compiled",
    ),
    "traced steps": (
        lambda: jax.jit(silent(lambda n: em.with_steps(sim(), n)))(3),
        r"`steps` must be known here, but is traced by .*\. Give a Python integer",
    ),
    "text for components of a monitor": (
        lambda: sim(monitors={"a": em.FieldMonitor("Ez", (0, 0), (0, 0), 2e14)}),
        r"`components` of monitor 'a' must be a list of names, .*Write `\('Ez',\)`",
    ),
    "text for components of a medium": (
        lambda: em.rasterise([], GRID, components="Ez"),
        r"`components` must be a list of names, but is the text 'Ez'\. Write `\('Ez'",
    ),
    "none for corners": (
        lambda: em.Polygon(None),
        r"`vertices` must be corners, of the shape \(n, 2\), but are None",
    ),
    "number as medium": (
        lambda: em.Simulation(GRID, 2.0, steps=1, polarisation="Ez"),
        r"`medium` must be a `Medium`, but is a float\. Write `Medium\(2\.25\)`",
    ),
    "material as medium": (
        lambda: em.Simulation(GRID, GLASS, steps=1, polarisation="Ez"),
        "`medium` must be a `Medium`, but is a Material",
    ),
    "one face as boundaries": (
        lambda: sim(boundaries=em.CPML(4)),
        r"`boundaries` must be a `Boundaries`, .* Write `Boundaries.all\(CPML\(10\)\)",
    ),
    "shape as grid": (
        lambda: em.rasterise([], (20, 20), components=("Ez", "Hx", "Hy")),
        r"`grid` must be a `Grid`, but is a tuple\. Write `Grid.centred\(shape",
    ),
    "medium as simulation": (
        lambda: em.simulate(em.Medium(2.0)),
        "`sim` must be a `Simulation`, but is a Medium",
    ),
    "folder as checkpoint": (
        lambda: em.run(sim(), checkpoint="folder"),
        r"`checkpoint` must be a `Checkpointing`, .* Write `Checkpointing\(folder, e",
    ),
    "name as precision": (
        lambda: sim(precision="float64"),
        r"`precision` must be a `Precision`, but is a str\. Write `runtime\.Precision",
    ),
    "number as rule of a run": (
        lambda: em.run(sim(), until=1e-6),
        r"`until` must be a `Decay`, but is a float\. Write `Decay\(1e-6\)`",
    ),
    "number as rule of a warm-up": (
        lambda: em.warm_up(sim(), until=1e-6),
        "`until` must be a `Decay`, but is a float",
    ),
    "number as layout": (
        lambda: em.simulate(sim(), layout=2),
        r"`layout` must be a `Layout`, but is an int\. Write `grid\.Layout\(runtime",
    ),
    "axis as layout": (
        lambda: em.run(sim(), layout="x"),
        "`layout` must be a `Layout`, but is a str",
    ),
    "ports in a list": (
        lambda: em.s_parameters(sim(), [PORT], [1.5e-6]),
        r"`ports` must be a dict of ports by name, but is a list",
    ),
    "number as simulation": (
        lambda: em.describe(3),
        "`sim` must be a `Simulation`, but is an int",
    ),
    "pulse": (
        lambda: em.Dipole("Ez", (0.0, 0.0), 2e14),
        r"`pulse` of a Dipole must be a pulse, but is 2\d+\.0\. Give the frequency to",
    ),
    "sources in a list": (
        lambda: sim(sources=[DOT]),
        r"`sources` must be a dict of sources by name, but is a list\. Write `sources=",
    ),
    "one monitor": (
        lambda: sim(monitors=EYE),
        "`monitors` must be a dict of monitors by name, but is a FieldMonitor",
    ),
    "monitor as source": (
        lambda: sim(sources={"in": EYE}),
        "`sources` must hold sources, but 'in' is a FieldMonitor",
    ),
    "source of a scene": (
        lambda: scene(sources=DOT),
        "`sources` must be a dict of sources by name, but is a Dipole",
    ),
    "size of a scene": (
        lambda: scene(size=1e-6),
        r"`size` must have one length in metres for each axis, .* but is 1e-06",
    ),
    "complex size": (
        lambda: scene(size=(1e-6, 1e-6 + 0j)),
        r"`size` must be real numbers, but is \(1e-06, \(1e-06\+0j\)\)",
    ),
    "complex wavelengths": (
        lambda: em.scene([], (1e-6,), [1.5e-6 + 0j]),
        r"`wavelengths` must be real numbers, but is \[\(1.5e-06\+0j\)\]",
    ),
    "traced size": (
        lambda: jax.jit(lambda x: scene(size=(x, 1e-6)).medium)(1e-6),
        "`size` must be known here, but is traced .* Make the scene outside",
    ),
    "traced wavelengths": (
        lambda: jax.jit(lambda x: em.scene([], (1e-6,), x).medium)(1.5e-6),
        "`wavelengths` must be known here, but is traced",
    ),
    "traced spacing": (
        lambda: jax.jit(lambda x: scene(spacing=x).medium)(2e-8),
        "`spacing` must be known here, but is traced",
    ),
    "spacing of a scene": (
        lambda: scene(spacing=(2e-8, 2e-8)),
        r"`spacing` must be one positive and finite number, but is \(2e-08, 2e-08\)",
    ),
    "cells of a grid": (
        lambda: Grid.centred((4.0, 4), 2e-8),
        r"`shape` must be a tuple of whole numbers of cells, but is \(4\.0, 4\)",
    ),
    "one axis of a grid": (
        lambda: Grid.uniform(4, 2e-8),
        "`shape` must be a tuple of whole numbers of cells, but is 4",
    ),
    "complex spacing of a grid": (
        lambda: Grid.uniform((10, 10), 2e-8 + 1j),
        "`spacing` must be real, but has dtype complex64. Take its real part.",
    ),
    "complex position": (
        lambda: em.Dipole("Ez", (0.0, 1j), PULSE),
        "`position` must be real, but has dtype complex64. Take its real part.",
    ),
    "moment": (
        lambda: em.Dipole("Ez", (0.0, 0.0), PULSE, "a"),
        "`moment` must be a number, but is 'a'",
    ),
    "moments": (
        lambda: em.Dipole("Ez", (0.0, 0.0), PULSE, [1.0, 2.0]),
        r"`moment` must be one number, but has shape \(2,\)",
    ),
    "pulses": (
        lambda: em.GaussianPulse([2e14, 2.1e14], 1e13),
        r"`frequency` must be one number, but has shape \(2,\)",
    ),
    "inputs": (
        lambda: em.s_parameters(sim(), {"left": PORT}, 1e-6, inputs="left"),
        r"`inputs` must be a list of names, but is the text 'left'\. Write \['left'\]",
    ),
    "another result as S-parameters": (
        lambda: write_csv("a.csv", EYE),
        "`sparameters` must be `em.SParameters`, but is FieldMonitor",
    ),
    "background of a scene": (
        lambda: scene(background=2.1),
        r"`background` must be a `Material` or `PEC\(\)`, but is 2\.1\. Write a permi",
    ),
    "background of a medium": (
        lambda: em.rasterise([], GRID, "SiO2", ("Ez",)),
        r"`background` must be a .*, but is 'SiO2'\. Look it up: `library\('SiO2'\)`",
    ),
    "one structure": (
        lambda: em.rasterise(em.Structure(BOX, GLASS), GRID, None, ("Ez",)),
        "`structures` must be a list of .* but is a Structure",
    ),
    "material in a union": (
        lambda: BOX | GLASS,
        r"`shapes\[1\]` must be a shape such as `Box`, but is a Material\. Combine ",
    ),
    "number in an intersection": (
        lambda: BOX & 3,
        r"`shapes\[1\]` must be a shape such as `Box`, but is an int",
    ),
    "number as hole": (
        lambda: BOX - 3,
        r"`hole` must be a shape such as `Box`, but is an int\. Combine shapes, then ",
    ),
    "class as hole": (
        lambda: BOX - em.Box,
        r"`hole` must be a shape such as `Box`, but is the class Box\. Did you forget",
    ),
    "structure with a hole": (
        lambda: em.Difference(em.Structure(BOX, GLASS), BOX),
        "`shape` must be a shape such as `Box`, but is a Structure. Combine shapes",
    ),
    "text as union": (
        lambda: em.Union("a"),
        r"`shapes\[0\]` must be a shape such as `Box`, but is a str",
    ),
    "shape as union": (
        lambda: em.Union(BOX),
        r"`shapes` must be a list of shapes, but is a Box\. Write `\[a, b\]`",
    ),
    "moved structure": (
        lambda: em.translate(em.Structure(BOX, GLASS), (1e-6,)),
        "`shape` must be a shape such as `Box`, but is a Structure",
    ),
    "structure to place": (
        lambda: em.place(em.Structure(BOX, GLASS), BOX),
        "`shape` must be a shape such as `Box`, but is a Structure",
    ),
    "place on a structure": (
        lambda: em.place(BOX, em.Structure(BOX, GLASS)),
        "`other` must be a shape such as `Box`, but is a Structure",
    ),
    "text as a point to place": (
        lambda: em.place(BOX, BOX, own="a"),
        "`own` must be a number, but is 'a'",
    ),
    "materials by layer": (
        lambda: read_gds("a.gds", {(1, 0): GLASS}),
        r"`layers\[\(1, 0\)\]` must be a `GDSLayer`, but is a Material\. Write `\{",
    ),
    "layers by number": (
        lambda: read_gds("a.gds", {1: GDSLayer(GLASS)}),
        r"`layers` must have pairs of integers \(layer, datatype\) as keys, .* is 1\.",
    ),
    "layers by name": (
        lambda: read_gds("a.gds", {"WG": GDSLayer(GLASS)}),
        r"`layers` must have pairs of integers .* one is 'WG'\. Write `\{\(1, 0\): GDS",
    ),
    "layers in a list": (
        lambda: read_gds("a.gds", [(1, 0)]),
        r"`layers` must be a dict of `GDSLayer` by \(layer, datatype\), but is a list",
    ),
    "shapes alone": (
        lambda: scene([em.Structure(BOX, GLASS), BOX]),
        r"`structures` must be a list of .* but `structures\[1\]` is a Box",
    ),
    "counts": (
        lambda: em.repeat(BOX, 2, [(1e-6,)]),
        r"`counts` must have one integer for each vector .* such as \(2,\), but is 2",
    ),
    "text in a size": (
        lambda: em.Box((0.0, 0.0), ("1", 1e-6)),
        r"`size` must be numbers, but is \('1', 1e-06\)",
    ),
    "text as radius": (
        lambda: em.Circle((0.0, 0.0), "1e-6"),
        "`radius` must be a number, but is '1e-6'",
    ),
    "text as corners": (
        lambda: em.Polygon(np.array([["0", "0"], ["1", "0"], ["1", "1"]])),
        r"`vertices` must be numbers, but is array\(",
    ),
    "text in a pole": (
        lambda: em.Drude("1e15", 1e13),
        "`frequency` must be a number, but is '1e15'",
    ),
    "text as the width of a port": (
        lambda: em.Port((0.0, 0.0), "1e-6", "+x"),
        "`width` must be a number, but is '1e-6'",
    ),
    "text as spacing": (
        lambda: Grid.uniform((4, 4), "1e-8"),
        "`spacing` must be a number, but is '1e-8'",
    ),
    "text in the wavelengths of a scene": (
        lambda: em.scene([], (1e-6, 1e-6), ["1.5"], polarisation="Ez"),
        r"`wavelengths` must be numbers, but is \['1.5'\]",
    ),
    "permittivity of metal": (
        lambda: em.complex_permittivity(em.PEC(), 2e14),
        r"`material` must be a `Material`, but is PEC\(\)\. Perfect metal has no perm",
    ),
    "name for a port": (
        lambda: em.ModeSource("west", PULSE),
        r"`port` must be a `Port`, but is a str\. Write `Port\(centre, width, direct",
    ),
    "name for a dipole": (
        lambda: em.EmissionMonitor("dot", 2e14),
        r"`dipole` must be a `Dipole`, but is a str\. Give one of the sources\.",
    ),
    "flux for an emission": (
        lambda: em.purcell(FLUX),
        r"`emission` must be an `Emission`, but is a SpectralFlux\. Give what an `Em",
    ),
    "intervals for a record": (
        lambda: em.resonances(np.ones(50), (1e14, 2e14), dt=np.full(2, 1e-16)),
        r"`dt` must be one number, but has shape \(2,\)",
    ),
    "text for the start of a record": (
        lambda: em.resonances(np.ones(50), (1e14, 2e14), dt=1e-16, start="a"),
        "`start` must be a number, but is 'a'",
    ),
    "tolerances of resonances": (
        lambda: em.resonances(np.ones(50), (1e14, 2e14), tolerance=np.ones(2)),
        r"`tolerance` must be one number, but has shape \(2,\)",
    ),
    "flux to unfold": (
        lambda: em.unfold(FLUX, sim(boundaries=em.Boundaries(x=em.PMC()))),
        r"`fields` must be what a `FieldMonitor` or a `TimeMonitor` recorded, but is a "
        r"SpectralFlux.* A flux through a plane that a mirror cuts counts twice",
    ),
    "flux for a near field": (
        lambda: em.absorbed_power(FLUX),
        r"`near` must be what a `NearFieldMonitor` recorded, but is a SpectralFlux",
    ),
    "flux for a time series": (
        lambda: em.pade(FLUX, 2e14),
        r"`series` must be a `TimeSeries`, but is a SpectralFlux",
    ),
    "flux for scattering parameters": (
        lambda: write_touchstone("never.s2p", FLUX),
        r"`sparameters` must be a `SParameters`, but is a SpectralFlux\. `save_npz`",
    ),
    "number for the function of a pulse": (
        lambda: em.CustomPulse(3, 2e14, 1e-14),
        r"`function` must be a function of the time in seconds, .*, but is 3",
    ),
    "truth value for a mode": (
        lambda: em.Port((2e-7, 2e-7), 2e-7, "+x", mode=True),
        r"`mode` must be an integer of at least 1, but is True",
    ),
    "grid for a mode": (
        lambda: plot.mode(GRID, [0.0]),
        r"`mode` must be a `SlabMode`, but is a Grid\. .*_section_mode`",
    ),
    "number for modes": (
        lambda: em.mode_overlap(3, 3),
        r"`one` must be a `CrossSectionModes`, but is an int\. `cross_section_modes`",
    ),
    "indices for tracked modes": (
        lambda: em.track_modes(lambda f: jnp.ones(2), [2e14]),
        r"`solve\(frequency\)` must be a `CrossSectionModes`, .* not their index",
    ),
    "shapes for the medium of a cross-section": (
        lambda: em.cross_section_modes(GRID, [em.Structure(BOX, GLASS)], 2e14),
        r"`medium` must be a `Medium`, but is a list\. Write .* `rasterise` shapes",
    ),
    "number for cylindrical coordinates": (
        lambda: em.Simulation(GRID, steps=1, cylindrical=3),
        r"`cylindrical` must be a `Cylindrical`, but is an int\. Write `Cylindrical\(m",
    ),
    "none for modes of a cross-section": (
        lambda: plot.cross_section_mode(None),
        r"`modes` must be a `CrossSectionModes`, but is None\. Draw .* by `mode`",
    ),
    "letter for the plane of a simulation": (
        lambda: plot.simulation(BLOCK, plane="x"),
        r"`plane` must be an axis and a position in metres, such as .*, but is 'x'",
    ),
    "axis alone for the plane of a simulation": (
        lambda: plot.simulation(BLOCK, plane=("x",)),
        r"`plane` must be an axis and a position in metres, .*, but is \('x',\)",
    ),
    "letter for a position": (
        lambda: plot.simulation(BLOCK, plane=("x", "a")),
        r"`plane` must be an axis and a position in metres, .*, but is \('x', 'a'\)",
    ),
    "letter for the plane of a field": (
        lambda: plot.field(SEEN, plane="z"),
        r"`plane` must be an axis and a position in metres, .*, but is 'z'",
    ),
    "fraction for an index": (
        lambda: plot.field(SEEN, index=0.5),
        r"`index` must be an integer .* but is 0\.5",
    ),
    "letter for an outline": (
        lambda: plot.field(SEEN, outline="x"),
        r"`outline` must be a `Simulation`, but is a str\.",
    ),
    "numbers for states": (
        lambda: em.yee_energy(sim(), 1, 2),
        r"`before` must be a `State`, but is an int\. Pass the `state` of a `RunResult",
    ),
    "number for a range": (
        lambda: em.Material(valid=3),
        "`valid` must be the shortest and then the longest wavelength in metres, but",
    ),
    "flux to cut": (
        lambda: em.recorded(FLUX),
        r"`series` must be a `TimeSeries` or `EnergySeries`, but is a SpectralFlux",
    ),
    "fields for a far field": (
        lambda: plot.far_field({}),
        r"`far` must be a `FarField`, but is a dict\. Make one by `em\.far_field`",
    ),
}


def said(make):
    """Returns the kind and the text of the error that a function raises."""
    try:
        make()
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        return type(error).__name__, str(error)
    return "none", ""


if __name__ == "__main__":
    # These are no faults.
    em.repeat(BOX, np.array([2, 1]), [(1e-6,), (0.0, 1e-6)])
    sim(sources=None, monitors={})
    print(json.dumps({name: said(make) for name, (make, _) in FAULTS.items()}))
