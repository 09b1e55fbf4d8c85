"""The classical Runge-Kutta method through a gridded flow, by hand in NumPy."""

from itertools import product

import numpy as np

from ._serve import serve
from ._tracks_data import DT, LAST, NODES, SNAPSHOTS, flow, seeds


def sample(field, x, t):
    at = np.float32(t / LAST * (SNAPSHOTS - 1))
    it = min(int(at), SNAPSHOTS - 2)
    q = np.clip(x * np.float32(NODES - 1), 0, NODES - 1)
    i = np.minimum(q.astype("i4"), NODES - 2)
    weights = [(1 - (at - it), at - it)]
    weights += [(1 - w, w) for w in (q - i).T]
    total = np.zeros_like(x)
    for k in product((0, 1), repeat=4):
        weight = weights[0][k[0]]
        for axis in range(3):
            weight = weight * weights[axis + 1][k[axis + 1]]
        corner = field[it + k[0], i[:, 0] + k[1], i[:, 1] + k[2], i[:, 2] + k[3]]
        total += weight[:, None].astype("f4") * corner
    return total


def prepare(steps, particles, recorded):
    field, start, h = flow(), seeds(particles), np.float32(DT)

    def run():
        x, rows = start, [start]
        for n in range(steps):
            t = n * DT
            a = sample(field, x, t)
            b = sample(field, x + h / 2 * a, t + DT / 2)
            c = sample(field, x + h / 2 * b, t + DT / 2)
            d = sample(field, x + h * c, t + DT)
            x = x + h / 6 * (a + 2 * b + 2 * c + d)
            if recorded:
                rows.append(x)
        return (x.astype(float) ** 2).mean(0)

    return run


if __name__ == "__main__":
    serve("numpy", np.__version__, prepare)
