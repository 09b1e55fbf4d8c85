"""Pictures: every function draws one thing and returns the matplotlib axes."""

from ._animate import animate as animate
from ._convergence import convergence as convergence
from ._field import field as field
from ._mode import mode as mode
from ._s_parameters import s_parameters as s_parameters
from ._simulation import simulation as simulation
from ._spectrum import spectrum as spectrum
from ._time_series import time_series as time_series
