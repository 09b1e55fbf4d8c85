"""Particles carried by fields: velocities, walls, tracks and their statistics."""

from ._adjoints import (
    AbstractAdjoint as AbstractAdjoint,
    Checkpointed as Checkpointed,
    FieldAdjoint as FieldAdjoint,
)
from ._along import (
    sample_along as sample_along,
)
from ._axis import Axis as Axis, make_axis as make_axis
from ._boundaries import (
    AbstractBoundary as AbstractBoundary,
    Passage as Passage,
    Turn as Turn,
    end as end,
)
from ._box import Box as Box
from ._c_grid import (
    CGridField as CGridField,
)
from ._cell_field import (
    CellField as CellField,
)
from ._connectivity import (
    connectivity_matrix as connectivity_matrix,
)
from ._density import (
    cloud_in_cell as cloud_in_cell,
    histogram_density as histogram_density,
)
from ._diffrax import (
    Diffrax as Diffrax,
    classical_runge_kutta as classical_runge_kutta,
)
from ._diffusivity import Diffusivity as Diffusivity
from ._dispersion import (
    absolute_dispersion as absolute_dispersion,
    cloud_covariance as cloud_covariance,
    neighbour_pairs as neighbour_pairs,
    relative_dispersion as relative_dispersion,
    unwrap_periodic as unwrap_periodic,
)
from ._faces import (
    Absorb as Absorb,
    AbstractFace as AbstractFace,
    Hold as Hold,
    Inlet as Inlet,
    Outlet as Outlet,
    Periodic as Periodic,
    Reflect as Reflect,
    Stick as Stick,
)
from ._fields import (
    AbstractField as AbstractField,
    Components as Components,
    Everywhere as Everywhere,
    Look as Look,
    Masked as Masked,
    Sum as Sum,
    as_field as as_field,
)
from ._forces import (
    AbstractForce as AbstractForce,
    Gravity as Gravity,
    OpticalForce as OpticalForce,
    StokesDrag as StokesDrag,
    sphere_polarizability as sphere_polarizability,
)
from ._ftle import (
    FlowMap as FlowMap,
    Tangent as Tangent,
    cauchy_green as cauchy_green,
    flow_map as flow_map,
    flow_map_gradient as flow_map_gradient,
    ftle as ftle,
)
from ._ftle_on_grid import (
    flow_map_gradient_on_grid as flow_map_gradient_on_grid,
    ftle_on_grid as ftle_on_grid,
)
from ._gridded import GriddedField as GriddedField, from_fields as from_fields
from ._inlets import (
    AbstractPlacement as AbstractPlacement,
    FluxWeighted as FluxWeighted,
    Pattern as Pattern,
    Uniform as Uniform,
)
from ._instants import Leave as Leave
from ._kde import (
    AbstractBandwidth as AbstractBandwidth,
    ScottRule as ScottRule,
    SilvermanRule as SilvermanRule,
    kernel_density as kernel_density,
)
from ._land import (
    Coast as Coast,
    Land as Land,
    fill_land as fill_land,
)
from ._mesh import (
    Mesh as Mesh,
)
from ._mesh_field import (
    MeshField as MeshField,
)
from ._mixing import (
    mix_norm as mix_norm,
    mixing_entropy as mixing_entropy,
    segregation_intensity as segregation_intensity,
)
from ._motions import (
    AbstractMotion as AbstractMotion,
    Carried as Carried,
    Entry as Entry,
    MaxeyRiley as MaxeyRiley,
    Newtonian as Newtonian,
    Overdamped as Overdamped,
)
from ._obstacles import (
    Obstacle as Obstacle,
)
from ._point_cloud import (
    PointCloud as PointCloud,
)
from ._regions import (
    AbstractRegion as AbstractRegion,
    BoxRegion as BoxRegion,
    LevelRegion as LevelRegion,
    PolygonRegion as PolygonRegion,
)
from ._release import (
    release_repeatedly as release_repeatedly,
)
from ._residence import (
    ages as ages,
    first_passage as first_passage,
    inside_region as inside_region,
    lifetimes as lifetimes,
    residence_time as residence_time,
)
from ._run import RunResult as RunResult, run as run
from ._seed_checks import (
    check_seeds as check_seeds,
)
from ._seeding import (
    seed_density as seed_density,
    seed_gaussian as seed_gaussian,
    seed_grid as seed_grid,
    seed_line as seed_line,
    seed_mask as seed_mask,
    seed_random as seed_random,
    seed_sobol as seed_sobol,
)
from ._seeding_shapes import (
    seed_ball as seed_ball,
    seed_circle as seed_circle,
    seed_disk as seed_disk,
    seed_polygon as seed_polygon,
    seed_sphere as seed_sphere,
    seed_surface as seed_surface,
)
from ._slip import (
    SlipField as SlipField,
)
from ._solvers import (
    RK2 as RK2,
    RK4 as RK4,
    AbstractRungeKutta as AbstractRungeKutta,
    Euler as Euler,
    RK4ThreeEighths as RK4ThreeEighths,
)
from ._sph import (
    AbstractSmoothingKernel as AbstractSmoothingKernel,
    CubicSpline as CubicSpline,
    QuinticSpline as QuinticSpline,
    WendlandC2 as WendlandC2,
    sph_density as sph_density,
)
from ._sphere import (
    EARTH_RADIUS as EARTH_RADIUS,
    OnSphere as OnSphere,
    wrap_globe as wrap_globe,
)
from ._state import Particles as Particles
from ._status import ParticleStatus as ParticleStatus
from ._stochastic import (
    AbstractStochastic as AbstractStochastic,
    EulerMaruyama as EulerMaruyama,
    Milstein as Milstein,
    StochasticHeun as StochasticHeun,
)
from ._track import track as track
from ._tracks import Tracks as Tracks
from ._variables import Variable as Variable, WithVariables as WithVariables
from ._windows import Series as Series, Windows as Windows
