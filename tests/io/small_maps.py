"""A small measurement of two maps, to be spoilt."""

import numpy as np

from physax.xpcs import TwoTime


FRAMES = 8
TIMES = 0.1 * np.arange(FRAMES)
LAG = np.abs(np.subtract.outer(np.arange(FRAMES), np.arange(FRAMES)))
C2 = np.stack([1 + 0.2 * np.exp(-LAG / k) for k in (2, 3)]).astype(np.float32)
DATA = TwoTime(C2, np.array([0.005, 0.01]), np.radians([0.0, 45.0]), TIMES, 0.01)
