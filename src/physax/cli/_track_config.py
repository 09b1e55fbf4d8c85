"""The command `physax track config`: a template of the YAML file, and its check."""

import argparse

from ._exit import ExitCode
from ._output import write_or_check
from ._track_settings import read_settings


TEMPLATE = """\
# Settings of `physax track --config FILE --output-dir DIR`. Positions are longitude and
# latitude in degrees where the files have these, else metres; velocities are in m/s.
# Times may end in _seconds, _minutes, _hours or _days. What is left out, or null, is
# found. `physax track config --check FILE` examines a file.

velocity:
  files: null  # such as [uwnd.nc, vwnd.nc] or ["ocean_*.nc"]; .nc, .zarr, .h5, .npz
  u: null  # variable along x, or eastward; found by its standard_name or name
  v: null  # variable along y, or northward
  w: null  # vertical variable, upward; without it particles stay at their height
  axes: null  # of .h5 and .npz: names of the coordinates in order, such as [x, y]
  time: null  # of .h5 and .npz: name of the times, the first dimension
  select: null  # one place along other dimensions, such as {depth: 10.0}
  scale: null  # what numbers of all components are in m/s, in place of their units
  gaps_hours: null  # longest gap in time of a node that is bridged; .inf for all
  slip: null  # along land: 1 slides freely, 0 not at all
  period_days: null  # after which the flow repeats
  hold: false  # true: beyond the last instant the flow stays as it is

# Where particles begin: Grid {low, high, shape}, Random {low, high, count, seed},
# Gaussian {centre, spread, count, seed}, Line {start, stop, count}, Points {points},
# such as {type: Grid, low: [-60, 20], high: [-20, 50], shape: [20, 15]}; longitude
# comes before latitude. Without it, a grid over all of the data. Those on land are left
# out.
seeds: null

times:
  start_days: null  # since the first instant; backward the default is the last one
  duration_days: null  # 5 days on the globe, else what crosses the data
  record_every_hours: null  # a whole number of times in the duration
  step_minutes: null  # at most; else from the highest speed, cells and instants
  backward: false

solver: {type: RK4}  # or RK4ThreeEighths, RK2, Euler
coast: strand  # what reaches land ends there; or none

output:
  tracks: null  # such as tracks.nc, tracks.zarr or tracks.npz
  ragged: false  # true: tracks one after another, smaller where many end early
  figures: true
  animation: null  # gif, or mp4 with ffmpeg
  west: null  # smallest longitude of maps, such as -180; else from the data
"""


def run_config(options: argparse.Namespace) -> ExitCode:
    """Writes the template, or checks a file."""
    return write_or_check(options, TEMPLATE, _check)


def _check(file: str) -> str:
    read_settings(file)
    return "valid settings"
