"""Signal: X-ray photon correlation spectroscopy (XPCS).

Units are those of the field: wavevectors in 1/angstrom, lengths in angstrom, transport
coefficients in angstrom^2/s, times in seconds, angles in radians.
"""

from ._correlation import (
    AbstractCorrelation as AbstractCorrelation,
    FlowIntegrals as FlowIntegrals,
    LaminarFlow as LaminarFlow,
    Static as Static,
    convert_rate as convert_rate,
)
from ._decays import (
    AbstractDecay as AbstractDecay,
    Double as Double,
    Simple as Simple,
    Stretched as Stretched,
)
from ._diagonals import one_time as one_time
from ._evaluate import (
    c2 as c2,
    g1 as g1,
    g2 as g2,
    two_time as two_time,
)
from ._fit_g2 import (
    G2Fit as G2Fit,
    PowerLaw as PowerLaw,
    fit_g2 as fit_g2,
    power_law as power_law,
)
from ._fit_two_time import (
    TwoTimeFit as TwoTimeFit,
    fit_two_time as fit_two_time,
    fitted_two_time as fitted_two_time,
    two_time_fit as two_time_fit,
)
from ._frame_covariance import frame_covariance as frame_covariance
from ._frames import two_time_from_frames as two_time_from_frames
from ._initial_model import (
    MODES as MODES,
    initial_model as initial_model,
    initial_models as initial_models,
)
from ._multi_tau import (
    MultiTau as MultiTau,
    multi_tau as multi_tau,
    multi_tau_lags as multi_tau_lags,
)
from ._noise import (
    AbstractNoise as AbstractNoise,
    FrameNoise as FrameNoise,
    ShotNoise as ShotNoise,
    WhiteNoise as WhiteNoise,
)
from ._one_time import OneTime as OneTime
from ._positions import (
    field_correlation_from_positions as field_correlation_from_positions,
    two_time_from_positions as two_time_from_positions,
)
from ._quality import (
    QualityReport as QualityReport,
    check_quality as check_quality,
)
from ._scaling import (
    AbstractScaling as AbstractScaling,
    Constant as Constant,
    Fourier as Fourier,
    PerAngle as PerAngle,
    Shared as Shared,
)
from ._selection import (
    frame_range as frame_range,
    in_ranges as in_ranges,
    neighbour_diagonal as neighbour_diagonal,
    select as select,
)
from ._simulate import simulate_two_time as simulate_two_time
from ._speckle_covariance import speckle_covariance as speckle_covariance
from ._transport import (
    AbstractNumericalTransport as AbstractNumericalTransport,
    AbstractTransport as AbstractTransport,
    Diffusion as Diffusion,
    Shear as Shear,
)
from ._two_time import TwoTime as TwoTime
from ._two_time_problem import (
    TwoTimeProblem as TwoTimeProblem,
    two_time_problem as two_time_problem,
)
