"""The workload of `benchmarks.xpcs`: maps of a sheared liquid.

The model is that of homodyne, in its convention and with trapezoids between frames, so
that every tool fits the model that made the data.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


# D0, alpha, D_offset, rate, beta, rate offset, phi0 in degrees.
TRUTH = (12000.0, -0.35, 150.0, 3e-3, -0.2, 2e-4, -4.0)
START = (18000.0, -0.245, 75.0, 4.8e-3, -0.12, 3e-4, 0.0)
Q, GAP, DT = 0.0054, 2e6, 0.1
CONTRAST, OFFSET, NOISE = 0.25, 1.0, 0.01


class Maps(NamedTuple):
    """Simulated maps.

    Attributes:
        c2: Of shape (angles, frames, frames), symmetric.
        phi: Angles in degrees.
        times: In seconds.
    """

    c2: np.ndarray
    phi: np.ndarray
    times: np.ndarray


def maps(angles: int, frames: int) -> Maps:
    """Returns maps with noise of 1 %."""
    times = DT * np.arange(1, frames + 1)
    empty = np.zeros((angles, frames, frames))
    given = Maps(empty, np.linspace(-90, 90, angles), times)
    noise = np.triu(np.random.default_rng(0).standard_normal(empty.shape), 1)
    noise = NOISE * (noise + noise.transpose(0, 2, 1))
    return given._replace(c2=OFFSET + CONTRAST * factor(TRUTH, given) + noise)


def factor(parameters: Sequence[float], given: Maps) -> np.ndarray:
    """Returns what the contrast multiplies, like the maps.

    Args:
        parameters: As `TRUTH`.
        given: Whose angles and times to take.
    """
    d0, alpha, d_offset, rate, beta, rate_offset, phi0 = parameters
    spread = _between(d0 * given.times**alpha + d_offset)
    strain = _between(rate * given.times**beta + rate_offset)
    turn = np.cos(np.radians(phi0 - given.phi))[:, None, None]
    argument = Q * GAP * turn * strain / (2 * np.pi)
    return np.exp(-(Q**2) * spread) * np.sinc(argument / np.pi) ** 4


def _between(rate: np.ndarray) -> np.ndarray:
    """Integrates a rate between all pairs of frames, by trapezoids."""
    steps = DT * (rate[1:] + rate[:-1]) / 2
    total = np.append(0.0, np.cumsum(steps))
    return np.abs(total[:, None] - total)
