"""A plain NumPy Yee loop, float32, no absorber: what a few lines by hand reach.

Unit cell, fields E and eta0 H, permittivity random per cell.
"""

import numpy as np

from benchmarks.peers._protocol import DX, WAVELENGTH, serve


COURANT = 0.5
# Component written, axis of the derivative, component read, sign, of both curls.
TERMS = {
    "2d": ([(0, 1, 0, -1), (1, 0, 0, 1)], [(0, 0, 1, 1), (0, 1, 0, -1)]),
    "3d": (
        [(i, (i + s) % 3, (i - s) % 3, -s) for i in range(3) for s in (1, -1)],
        [(i, (i + s) % 3, (i - s) % 3, s) for i in range(3) for s in (1, -1)],
    ),
}


def along(axis: int, part: slice) -> tuple[slice, ...]:
    """Returns the index of a part of an axis."""
    return (slice(None),) * axis + (part,)


def prepare(case: str, n: int, steps: int):
    """Sets up a box with a point source of Ez at the centre."""
    dimensions = int(case[0])
    shape = (n,) * dimensions
    permittivity = np.random.default_rng(0).uniform(1, 4, shape).astype("f4")
    coefficient = np.float32(COURANT) / permittivity
    terms_h, terms_e = TERMS[case]
    low, high = slice(None, -1), slice(1, None)
    phase = 2 * np.pi * DX / WAVELENGTH * COURANT

    def run():
        e = [np.zeros(shape, "f4") for _ in range(2 * dimensions - 3)]
        h = [np.zeros(shape, "f4") for _ in range(dimensions)]
        for step in range(steps):
            e[-1][(n // 2,) * dimensions] += np.sin(phase * step)
            for out, axis, read, sign in terms_h:
                a, b = along(axis, low), along(axis, high)
                change = e[read][b] - e[read][a]
                change *= np.float32(sign * COURANT)
                h[out][a] += change
            for out, axis, read, sign in terms_e:
                a, b = along(axis, low), along(axis, high)
                change = h[read][b] - h[read][a]
                change *= coefficient[b]
                e[out][b] += change if sign > 0 else -change
        return e

    return run, 0.0


if __name__ == "__main__":
    serve("numpy", np.__version__, prepare)
