"""Inverse design: densities, filters, projections, constraints, optimisation."""

from ._boundaries import (
    Fill as Fill,
    Renormalise as Renormalise,
    Replicate as Replicate,
    Surround as Surround,
    Wrap as Wrap,
)
from ._connectivity import Connectivity as Connectivity, connectivity as connectivity
from ._connectivity_penalty import (
    hole_penalty as hole_penalty,
    island_penalty as island_penalty,
)
from ._contours import (
    Contours as Contours,
    SolidPart as SolidPart,
    contours as contours,
)
from ._densities import (
    AbstractDensity as AbstractDensity,
    NeuralDensity as NeuralDensity,
    PixelDensity as PixelDensity,
    grey_start as grey_start,
)
from ._design_result import (
    DesignError as DesignError,
    DesignResult as DesignResult,
    StepInfo as StepInfo,
)
from ._design_state import History as History
from ._early_stop import EarlyStop as EarlyStop
from ._extrusion import extrude as extrude, offset_outline as offset_outline
from ._filters import (
    AbstractFilter as AbstractFilter,
    ConicFilter as ConicFilter,
    GaussianFilter as GaussianFilter,
)
from ._fixed_regions import FixedRegions as FixedRegions
from ._interpolation import (
    index_material as index_material,
    linear_material as linear_material,
    permittivity_and_conductivity as permittivity_and_conductivity,
    simp_material as simp_material,
)
from ._length_constraints import (
    length_constraints as length_constraints,
    narrow_solid as narrow_solid,
    narrow_void as narrow_void,
)
from ._minimum_length import (
    LengthReport as LengthReport,
    minimum_length as minimum_length,
    narrow_cells as narrow_cells,
    remove_narrow as remove_narrow,
)
from ._moving_asymptotes import MovingAsymptotes as MovingAsymptotes
from ._optimise import optimise as optimise
from ._projections import (
    straight_through as straight_through,
    subpixel_projection as subpixel_projection,
    tanh_projection as tanh_projection,
)
from ._robust import (
    RobustDensities as RobustDensities,
    erosion_threshold as erosion_threshold,
    filter_radius as filter_radius,
    greyness as greyness,
    robust_densities as robust_densities,
)
from ._schedules import (
    AbstractSchedule as AbstractSchedule,
    Constant as Constant,
    Geometric as Geometric,
    Stages as Stages,
)
from ._soft_extremes import soft_max as soft_max, soft_min as soft_min
from ._symmetries import (
    AbstractSymmetry as AbstractSymmetry,
    Mirror as Mirror,
    Rotation as Rotation,
    Transposition as Transposition,
    symmetrise as symmetrise,
)
