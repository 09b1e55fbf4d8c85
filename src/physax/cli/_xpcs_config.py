"""The command `physax xpcs config`: templates of YAML files, and their check."""

import argparse

from ._exit import ExitCode
from ._output import write_or_check
from ._xpcs_settings import LAMINAR, read_settings


_HEAD = """\
# Settings of `physax xpcs fit --config FILE`. Units: q in 1/angstrom, lengths in
# angstrom, D in angstrom^2/s, times in seconds, angles in degrees. What is left out, or
# null, is found from the data. `physax xpcs config --check FILE` examines a file.
"""

_MODES = {
    "static_isotropic": """
# A liquid at rest; all angles share one contrast and one offset:
#   c2 = offset + contrast exp(-q^2 |S|),  S = integral of D0 t^alpha + D_offset
mode: static_isotropic
""",
    "static_anisotropic": """
# A liquid at rest; each angle has a contrast and an offset of its own:
#   c2 = offset + contrast exp(-q^2 |S|),  S = integral of D0 t^alpha + D_offset
mode: static_anisotropic
""",
    "laminar_flow": """
# A liquid that is sheared between two plates:
#   c2 = offset + contrast exp(-q^2 |S|) M,  S = integral of D0 t^alpha + D_offset,
#   G = integral of shear_rate t^beta + shear_offset
mode: laminar_flow
# The factor M of the shear. Their rates are not the same.
#   physical: (sin X / X)^2, X = q gap cos(phi - phi0) G / 2
#   homodyne: (sin Y / Y)^4, Y = q gap cos(phi - phi0) G / (2 pi)
convention: physical
gap: 2.0e6  # distance of the plates
""",
}

_DATA = """
data:
  file: null  # a file or a folder; FILE on the command line takes precedence
  pattern: "*.hdf"  # names of the files in a folder
  q: null  # takes the nearest wavevector; null fits each
  phi_ranges_degrees: null  # such as [[-30, 30], [150, -150]]; ranges may cross 180
  frames: null  # the first and the last, counted from 1, such as [1, 200]
  keep_times: false  # true: they keep the times of the file, for samples that age
  without: null  # frames to leave out, such as [17, 18]
  dt: null  # time between frames, where the file has none
  sigma: null  # standard deviation of one value

# Where the fit starts, its bounds, and what is fixed. Without a start, some are found
# from the data.
parameters:
  D0: {start: null, bounds: [0, 1.0e9], fixed: false}
  alpha: {start: null, bounds: [-0.99, 2], fixed: false}
  D_offset: {start: null, bounds: [-1.0e6, 1.0e6], fixed: false}
"""

_FLOW = """\
  shear_rate: {start: null, bounds: [0, 10], fixed: false}
  beta: {start: null, bounds: [-0.99, 2], fixed: false}
  shear_offset: {start: null, bounds: [-1, 1], fixed: false}
  phi0: {start_degrees: null, bounds_degrees: [-180, 180], fixed: false}
"""

_REST = """
# Contrast and offset enter linearly and need no start. How angles share them: PerAngle,
# Shared, {{type: Fourier, order: 2}} or {{type: Constant, contrast: 0.3, offset: 1}}.
scaling: {{type: {scaling}}}
contrast_bounds: null  # such as [0, 1]; with PerAngle or Shared
offset_bounds: null  # such as [0.5, 1.5]; likewise

fit:
  method: nlsq  # nlsq (least squares), nuts (samples of the posterior), both
  starts: 3  # how many are tried where a parameter has none
  max_evaluations: 300  # passes over the data
  xtol: null  # relative change of the parameters at which the fit ends
  absolute_sigma: null  # true: errors are those of sigma; false: of the residuals
  errors: pairs  # pairs (their noise is independent), speckles (it lasts as they do)

sampling: {{warmup: 500, samples: 1000, chains: 4, seed: 0}}  # of each chain
checkpoint: {{every: 10, keep: 2}}  # in blocks of a million points, for large data
"""


def run_config(options: argparse.Namespace) -> ExitCode:
    """Writes the template of a mode, or checks a file."""
    text = "" if options.mode is None else template(options.mode)
    return write_or_check(options, text, _check)


def _check(file: str) -> str:
    return f"valid settings of the mode {read_settings(file).mode}"


def template(mode: str) -> str:
    """Returns a commented YAML file of settings that a fit of this mode accepts."""
    flow = _FLOW if mode == LAMINAR else ""
    scaling = "Shared" if mode == "static_isotropic" else "PerAngle"
    rest = _REST.format(scaling=scaling)
    return _HEAD + _MODES[mode] + _DATA + flow + rest
