"""Grids, fields on them, and their layout on many devices."""

from ._block import Block as Block, Box as Box
from ._difference import (
    backward_difference as backward_difference,
    forward_difference as forward_difference,
)
from ._edges import smooth_edges as smooth_edges
from ._field import Field as Field, GridMismatchError as GridMismatchError
from ._grid import AXES as AXES, Grid as Grid
from ._layout import Layout as Layout, crop as crop, pad as pad
from ._sampling import (
    AbstractInterpolation as AbstractInterpolation,
    AbstractOutside as AbstractOutside,
    Clamp as Clamp,
    Cubic as Cubic,
    CubicHermite as CubicHermite,
    Fill as Fill,
    Linear as Linear,
    Nearest as Nearest,
    sample as sample,
)
