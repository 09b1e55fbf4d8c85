"""Least squares of any size: fits, their uncertainty, and posteriors."""

from ._eliminate import Mixing as Mixing, separate as separate, shared as shared
from ._fit_result import (
    FitResult as FitResult,
    Identifiability as Identifiability,
    Interval as Interval,
    confidence_intervals as confidence_intervals,
    identifiability as identifiability,
)
from ._least_squares import FitError as FitError, least_squares as least_squares
from ._losses import (
    AbstractLoss as AbstractLoss,
    Arctan as Arctan,
    Cauchy as Cauchy,
    Huber as Huber,
    SoftL1 as SoftL1,
    Squared as Squared,
)
from ._parameters import Tie as Tie
from ._plan import Plan as Plan, Strategy as Strategy, plan as plan
from ._problems import AbstractProblem as AbstractProblem, LeastSquares as LeastSquares
from ._separable import Separable as Separable
from ._sources import DataError as DataError, Skip as Skip, Stream as Stream
from ._trust_region import TrustRegion as TrustRegion
