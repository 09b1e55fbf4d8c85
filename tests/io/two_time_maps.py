"""Maps of two times and a measurement of four of them."""

import numpy as np

from physax.xpcs import TwoTime


FRAMES, DT = 12, 0.1
rng = np.random.default_rng(0)


def maps(count, frames=FRAMES, dtype=np.float32):
    """Symmetric maps, each of other values."""
    lag = np.abs(np.subtract.outer(np.arange(frames), np.arange(frames)))
    smooth = 1 + 0.2 * np.exp(-lag / 3)
    noise = np.triu(rng.normal(size=(count, frames, frames)), 1) * 0.01
    return (smooth + noise + noise.transpose(0, 2, 1)).astype(dtype)


Q = np.array([0.005, 0.005, 0.01, 0.01])
DEGREES = np.array([-170.0, 10.0, -170.0, 10.0])


def measurement(**changes):
    times = DT * np.arange(FRAMES)
    given = {"c2": maps(4), "q": Q, "phi": np.radians(DEGREES), "times": times}
    return TwoTime(**given | changes)
