"""Light: Maxwell's equations in the time domain (FDTD)."""

from ._adjoints import (
    AbstractAdjoint as AbstractAdjoint,
    Checkpointed as Checkpointed,
    Direct as Direct,
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
from ._explain import adjoint_bytes as adjoint_bytes, explain as explain
from ._flux import FluxMonitor as FluxMonitor, SpectralFlux as SpectralFlux
from ._frequency_domain import FrequencyDomain as FrequencyDomain
from ._linear_tape import LinearTape as LinearTape
from ._march import Decay as Decay
from ._materials import Material as Material
from ._medium import DesignRegion as DesignRegion, Medium as Medium
from ._memory import state_bytes as state_bytes
from ._mirror import mirror_sign as mirror_sign, unfold as unfold
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
from ._rasterise import fill_fraction as fill_fraction, rasterise as rasterise
from ._reversible import Reversible as Reversible
from ._run import (
    RunResult as RunResult,
    advance as advance,
    initial_state as initial_state,
    run as run,
    warm_up as warm_up,
    yee_energy as yee_energy,
)
from ._s_parameters import SParameters as SParameters, s_parameters as s_parameters
from ._scaling import predict_scaling as predict_scaling, step_cost as step_cost
from ._scatterer import scatterer as scatterer
from ._scene import describe as describe, scene as scene
from ._shapes import (
    AbstractShape as AbstractShape,
    Box as Box,
    Circle as Circle,
    Cylinder as Cylinder,
    Polygon as Polygon,
    Sphere as Sphere,
    Structure as Structure,
)
from ._simulate import Result as Result, simulate as simulate
from ._simulation import Simulation as Simulation, with_steps as with_steps
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
