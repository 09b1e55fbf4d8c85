"""The workload of `benchmarks.particles`, for all tools.

A confined flow without divergence in the unit box: 16 snapshots of 64^3 nodes and 3
components (50 MB in float32), linear between them; 7,500 particles on a grid.
"""

import numpy as np


SNAPSHOTS, NODES, LAST, DT = 16, 64, 3.0, 0.002


def axes():
    """Instants and positions of the nodes along each axis."""
    return np.linspace(0, LAST, SNAPSHOTS), np.linspace(0, 1, NODES)


def flow():
    """Velocities of shape (snapshots, x, y, z, component)."""
    t, x = axes()
    t, x, y, z = np.meshgrid(t, x, x, x, indexing="ij", sparse=True)
    pi = np.pi
    s, g = 1 + 0.3 * np.sin(2 * pi * t), 0.5 * np.cos(2 * pi * t / 3)
    cos_x, cos_y, cos_z = np.cos(pi * x), np.cos(pi * y), np.cos(pi * z)
    sin_x, sin_y, sin_z = np.sin(pi * x), np.sin(pi * y), np.sin(pi * z)
    u = 0.2 * s * sin_x * cos_y * cos_z + g * sin_x**2 * np.sin(2 * pi * y)
    v = 0.2 * s * cos_x * sin_y * cos_z - g * sin_y**2 * np.sin(2 * pi * x)
    w = -0.4 * s * cos_x * cos_y * sin_z
    return np.stack(np.broadcast_arrays(u, v, w), -1).astype("f4")


def seeds(particles=7500):
    """Particles on a grid of 30 x 25 x 10, or finer by a common factor."""
    factor = (particles / 7500) ** (1 / 3)
    counts = [max(round(factor * n), 1) for n in (30, 25, 10)]
    lines = [np.linspace(0.05, 0.95, n, dtype="f4") for n in counts]
    return np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, 3)
