"""Pictures: every function draws one thing and returns the matplotlib axes.

Those with several panels return the figure.
"""

from ._animate import animate as animate
from ._convergence import convergence as convergence
from ._corner import corner as corner
from ._cross_section import cross_section_mode as cross_section_mode
from ._far_field import far_field as far_field
from ._field import field as field
from ._graph import graph as graph
from ._grid_convergence import grid_convergence as grid_convergence
from ._material import material as material
from ._mode import mode as mode
from ._one_time import g2 as g2
from ._parameters import (
    correlation_matrix as correlation_matrix,
    parameter_table as parameter_table,
)
from ._quality import quality as quality
from ._s_parameters import s_parameters as s_parameters
from ._simulation import simulation as simulation
from ._spectrum import spectrum as spectrum
from ._time_series import time_series as time_series
from ._track_animation import animate_tracks as animate_tracks
from ._track_maps import density as density, ftle_map as ftle_map
from ._tracks import tracks as tracks
from ._two_time import (
    angle_cuts as angle_cuts,
    two_time as two_time,
    two_time_fit as two_time_fit,
)
