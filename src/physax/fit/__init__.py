"""Least squares of any size: fits, their uncertainty, and posteriors."""

from ._arviz import to_arviz as to_arviz
from ._curve_fit import CurveFit as CurveFit, curve_fit as curve_fit
from ._diagnostics import bulk_ess as bulk_ess, r_hat as r_hat, tail_ess as tail_ess
from ._eliminate import (
    Mixing as Mixing,
    Parts as Parts,
    separate as separate,
    shared as shared,
)
from ._fit_result import FitResult as FitResult
from ._global_search import (
    DifferentialEvolution as DifferentialEvolution,
    global_search as global_search,
)
from ._least_squares import (
    FitError as FitError,
    least_squares as least_squares,
    plan_for as plan_for,
)
from ._linear_limits import linear_limits as linear_limits
from ._losses import (
    AbstractLoss as AbstractLoss,
    Arctan as Arctan,
    Cauchy as Cauchy,
    Huber as Huber,
    SoftL1 as SoftL1,
    Squared as Squared,
)
from ._multistart import (
    MultistartResult as MultistartResult,
    multistart as multistart,
)
from ._parameters import Parameters as Parameters
from ._plan import Plan as Plan, Strategy as Strategy, plan as plan
from ._posterior import (
    MissingExtraError as MissingExtraError,
    Posterior as Posterior,
    sample_posterior as sample_posterior,
)
from ._priors import (
    AbstractPrior as AbstractPrior,
    LogNormal as LogNormal,
    Normal as Normal,
    PriorResiduals as PriorResiduals,
    TruncatedNormal as TruncatedNormal,
    Uniform as Uniform,
)
from ._problems import AbstractProblem as AbstractProblem, LeastSquares as LeastSquares
from ._profile import Profile as Profile, profile_likelihood as profile_likelihood
from ._sampling import (
    AbstractSampling as AbstractSampling,
    AdditiveRecurrence as AdditiveRecurrence,
    LatinHypercube as LatinHypercube,
)
from ._separable import (
    AbstractSeparable as AbstractSeparable,
    Separable as Separable,
    projected_cost as projected_cost,
)
from ._sources import DataError as DataError, Skip as Skip, Stream as Stream
from ._sums import Columns as Columns
from ._target import (
    KnownSigma as KnownSigma,
    UnknownSigma as UnknownSigma,
    target_of as target_of,
)
from ._ties import Tie as Tie
from ._trust_region import TrustRegion as TrustRegion
from ._uncertainty import (
    Identifiability as Identifiability,
    Interval as Interval,
    confidence_intervals as confidence_intervals,
    identifiability as identifiability,
)
