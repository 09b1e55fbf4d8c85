"""The command `physax em config`: a template of the YAML file, and its check."""

import argparse

from .._checks import warn
from ..em._simulate import late_pulse
from ._em_run import prepared
from ._exit import ExitCode
from ._output import write_or_check


TEMPLATE = """\
# Settings of `physax em run FILE --output-dir DIR`. Numbers are in SI units; keys of
# lengths may end in _nm, _um or _mm, of times in _fs, of frequencies in _THz, of angles
# in _degrees. What is left out, or null, is found. `physax em config --check FILE`
# examines a file.

size_um: [4, 2]  # of the scene without absorbing layers: one, two or three lengths
wavelengths_um: [1.5, 1.525, 1.55, 1.575, 1.6]  # of monitors, and of pulses
centre_um: null  # the origin
spacing_nm: 40  # null: a twentieth of the shortest wavelength in the densest material
polarisation: Ez  # in 2-D: Ez or Hz

# Materials are names of the library (SiO2, Si, Au, ...: `em.materials()`), PEC (perfect
# metal), or mappings {permittivity, permeability, conductivity, magnetic_conductivity,
# poles}: numbers, or three along the axes; poles are a list, or three lists along the
# axes, of Lorentz {strength, frequency, damping}, Drude {frequency, damping}, Debye
# {strength, time}.
background: {permittivity: 2.09}

averaging: volume  # of cells that an interface cuts, or polarised, staircase

# Box {centre, size}, Circle {centre, radius}, Cylinder {centre, radius, axis, length},
# Sphere {centre, radius}, Ellipsoid {centre, radii}, Cone {centre, radii, length,
# axis}, Ring {centre, radius, width, axis, length}, Prism {vertices, low, high,
# sidewall}, Polygon {vertices, axis, low, high}; the same, along curves: Path {points,
# width}, Taper {start, stop, widths}, Bend {centre, radius, width, start, stop}, Bezier
# and Spline {points, width}; from files: STL {path, unit, centre: where its middle
# goes}, GDS {path, layer, low, high, sidewall, cell, centre: the point of the layout
# that becomes the origin}. Later ones cover earlier ones.
structures:
  - shape: {type: Box, centre_um: [0, 0], size_um: [.inf, 0.4]}
    material: {permittivity: 12.1}
  - shape: {type: Cylinder, centre_um: [0, 0], radius_um: 0.1}
    material: {permittivity: 2.09}

# x, y, z: one face for both ends, or [low, high]. CPML {cells} (outside of size),
# Absorber {cells} (for metals that reach the end), PEC, PMC, Periodic, Bloch
# {wavevector}. Left out: layers of half a wavelength.
boundaries:
  x: {type: CPML, cells: 12}
  y: {type: CPML, cells: 12}

# By name: Dipole {component, position, moment}, PlaneWave {direction, component,
# centre, size, amplitude, permittivity, exit, poles}, ModeSource {port, power,
# frequency}, GaussianBeam {port, waist, distance, tilt, power, azimuth, polarisation}.
# Ports are {centre, width, direction, mode, offset}.
# Pulses: GaussianPulse {frequency, bandwidth}, ContinuousWave {frequency, rise: in
# periods}, Ricker {frequency}; without `pulse` one that covers the wavelengths.
sources:
  in:
    type: ModeSource
    port: {centre_um: [-1.7, 0], width_um: 1.6, direction: +x}

# By name: FieldMonitor {components, centre, size}, FluxMonitor {axis, centre, size},
# ModeMonitor {port}, NearFieldMonitor {centre, size, faces}, ForceMonitor {centre,
# size}, EmissionMonitor {dipole: name of the only source}, each with `wavelengths` of
# its own if given; TimeMonitor {components, centre, size, every}, EnergyMonitor
# {every}. A size of 0 takes the nearest samples, .inf all.
monitors:
  through: {type: FluxMonitor, axis: x, centre_um: [1.7, 0], size_um: [0, 1.6]}
  fields:
    type: FieldMonitor
    components: [Ez]
    centre_um: [0, 0]
    size_um: [.inf, .inf]
    wavelengths_um: [1.55]
  energy: {type: EnergyMonitor, every: 20}

run:
  time_fs: null  # or `steps`; else the pulse and eight passages of the scene
  decay: 1.0e-7  # end when this part of the largest energy is left; null: never
  checkpoint_every: 10000  # steps

precision: float32  # or float64

output:
  results: results.npz  # or results.h5
  figures: true
  animation: null  # gif, or mp4 with ffmpeg: of time monitors on an area
"""


def run_config(options: argparse.Namespace) -> ExitCode:
    """Writes the template, or checks a file."""
    return write_or_check(options, TEMPLATE, _check)


def _check(path: str) -> str:
    with prepared(path, figures=True, dry=False) as ready:
        # A run tells it when it ends.
        for told in late_pulse(ready.sim):
            warn(told)
        return "valid settings"
