"""Light: Maxwell's equations in the time domain (FDTD)."""

from ._adjoints import (
    AbstractAdjoint as AbstractAdjoint,
    Checkpointed as Checkpointed,
    Stored as Stored,
)
from ._boundaries import (
    PEC as PEC,
    PMC as PMC,
    Bloch as Bloch,
    Boundaries as Boundaries,
    Periodic as Periodic,
)
from ._cpml import (
    CPML as CPML,
    CPMLCoefficients as CPMLCoefficients,
    cpml_coefficients as cpml_coefficients,
)
from ._flux import FluxMonitor as FluxMonitor, SpectralFlux as SpectralFlux
from ._medium import Medium as Medium
from ._mode_monitor import ModeAmplitudes as ModeAmplitudes, ModeMonitor as ModeMonitor
from ._modes import SlabMode as SlabMode, slab_mode as slab_mode
from ._monitors import (
    AbstractMonitor as AbstractMonitor,
    FieldMonitor as FieldMonitor,
    SpectralFields as SpectralFields,
)
from ._plane_wave import PlaneWave as PlaneWave
from ._ports import Port as Port
from ._pulses import (
    AbstractPulse as AbstractPulse,
    ContinuousWave as ContinuousWave,
    CustomPulse as CustomPulse,
    GaussianPulse as GaussianPulse,
    Ricker as Ricker,
    band_pulse as band_pulse,
)
from ._simulate import Decay as Decay, Result as Result, simulate as simulate
from ._simulation import Simulation as Simulation
from ._sources import (
    AbstractSource as AbstractSource,
    Dipole as Dipole,
    GaussianBeam as GaussianBeam,
    ModeSource as ModeSource,
)
from ._time_monitors import (
    EnergyMonitor as EnergyMonitor,
    EnergySeries as EnergySeries,
    TimeMonitor as TimeMonitor,
    TimeSeries as TimeSeries,
)
