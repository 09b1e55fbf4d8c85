"""Light: Maxwell's equations in the time domain (FDTD)."""

from ._absorber import Absorber as Absorber
from ._adjoint_bytes import adjoint_bytes as adjoint_bytes
from ._adjoint_seconds import adjoint_seconds as adjoint_seconds
from ._adjoints import (
    AbstractAdjoint as AbstractAdjoint,
    Checkpointed as Checkpointed,
    Direct as Direct,
)
from ._apodised import Apodised as Apodised
from ._beam_overlap import beam_overlap as beam_overlap
from ._boundaries import (
    PEC as PEC,
    PMC as PMC,
    Bloch as Bloch,
    Boundaries as Boundaries,
    Periodic as Periodic,
)
from ._combinations import (
    AbstractShape as AbstractShape,
    Difference as Difference,
    Intersection as Intersection,
    Union as Union,
)
from ._compensation import compensate_dispersion as compensate_dispersion
from ._convergence import (
    Convergence as Convergence,
    converge as converge,
    extrapolate as extrapolate,
)
from ._cpml import (
    CPML as CPML,
    CPMLCoefficients as CPMLCoefficients,
    cpml_coefficients as cpml_coefficients,
)
from ._cross_section import (
    CrossSectionModes as CrossSectionModes,
    cross_section_modes as cross_section_modes,
)
from ._cylindrical import Cylindrical as Cylindrical
from ._describe import describe as describe
from ._diffraction_orders import (
    DiffractionOrders as DiffractionOrders,
    diffraction_orders as diffraction_orders,
)
from ._dispersion import Dispersion as Dispersion
from ._emission import (
    Emission as Emission,
    EmissionMonitor as EmissionMonitor,
    purcell as purcell,
)
from ._explain import explain as explain
from ._far_field import (
    FarField as FarField,
    direction as direction,
    directivity as directivity,
    far_field as far_field,
    k_direction as k_direction,
    radiated_power as radiated_power,
)
from ._flux import FluxMonitor as FluxMonitor, SpectralFlux as SpectralFlux
from ._force import ForceMonitor as ForceMonitor, SpectralForce as SpectralForce
from ._frequency_domain import FrequencyDomain as FrequencyDomain
from ._gaussian_beam import GaussianBeam as GaussianBeam
from ._graded_grid import graded_grid as graded_grid
from ._huygens import HuygensSource as HuygensSource
from ._library import (
    LibraryEntry as LibraryEntry,
    library as library,
    materials as materials,
)
from ._linear_tape import LinearTape as LinearTape
from ._march import Decay as Decay
from ._material_fit import MaterialFit as MaterialFit, fit_material as fit_material
from ._materials import (
    Material as Material,
    complex_permittivity as complex_permittivity,
)
from ._medium import DesignRegion as DesignRegion, Medium as Medium
from ._memory import state_bytes as state_bytes
from ._metal import Metal as Metal
from ._mirror import mirror_sign as mirror_sign, unfold as unfold
from ._mode_monitor import ModeAmplitudes as ModeAmplitudes, ModeMonitor as ModeMonitor
from ._mode_tracking import (
    group_index as group_index,
    mode_overlap as mode_overlap,
    track_modes as track_modes,
)
from ._modes import SlabMode as SlabMode, slab_mode as slab_mode
from ._monitors import (
    AbstractMonitor as AbstractMonitor,
    FieldMonitor as FieldMonitor,
    SpectralFields as SpectralFields,
)
from ._near_field import NearField as NearField, absorbed_power as absorbed_power
from ._near_field_monitor import NearFieldMonitor as NearFieldMonitor
from ._nonlinear import (
    Nonlinearity as Nonlinearity,
    kerr_susceptibility as kerr_susceptibility,
    two_photon_conductivity as two_photon_conductivity,
)
from ._off_diagonal import OffDiagonal as OffDiagonal
from ._pade import PadeSpectra as PadeSpectra, pade as pade
from ._paths import (
    Bend as Bend,
    Bezier as Bezier,
    Path as Path,
    Spline as Spline,
    Taper as Taper,
)
from ._placement import (
    mirror as mirror,
    place as place,
    repeat as repeat,
    rotate as rotate,
    scale as scale,
    translate as translate,
)
from ._plane_wave import PlaneWave as PlaneWave
from ._poles import (
    AbstractPole as AbstractPole,
    Debye as Debye,
    Drude as Drude,
    Lorentz as Lorentz,
    PoleResidue as PoleResidue,
)
from ._ports import Port as Port
from ._prism import Prism as Prism
from ._projection import (
    ProjectedFields as ProjectedFields,
    project_fields as project_fields,
)
from ._pulses import (
    AbstractPulse as AbstractPulse,
    ContinuousWave as ContinuousWave,
    CustomPulse as CustomPulse,
    GaussianPulse as GaussianPulse,
    Ricker as Ricker,
    band_pulse as band_pulse,
)
from ._rasterise import fill_fraction as fill_fraction, rasterise as rasterise
from ._resonances import Resonances as Resonances, resonances as resonances
from ._reversible import Reversible as Reversible
from ._run import (
    RunResult as RunResult,
    advance as advance,
    initial_state as initial_state,
    run as run,
    warm_up as warm_up,
)
from ._s_parameters import SParameters as SParameters, s_parameters as s_parameters
from ._scaling import predict_scaling as predict_scaling, step_cost as step_cost
from ._scatterer import scatterer as scatterer
from ._scene import scene as scene
from ._sellmeier import sellmeier as sellmeier
from ._shapes import (
    Box as Box,
    Circle as Circle,
    Cylinder as Cylinder,
    Polygon as Polygon,
    Sphere as Sphere,
    Structure as Structure,
)
from ._simulate import Result as Result, simulate as simulate
from ._simulation import Simulation as Simulation, with_steps as with_steps
from ._solids import Cone as Cone, Ellipsoid as Ellipsoid, Ring as Ring
from ._sources import (
    AbstractSource as AbstractSource,
    Dipole as Dipole,
    ModeSource as ModeSource,
)
from ._time_monitors import (
    EnergyMonitor as EnergyMonitor,
    EnergySeries as EnergySeries,
    TimeMonitor as TimeMonitor,
    TimeSeries as TimeSeries,
    recorded as recorded,
)
from ._triangle_mesh import TriangleMesh as TriangleMesh
from ._uniaxial import uniaxial as uniaxial
from ._yee_energy import yee_energy as yee_energy
