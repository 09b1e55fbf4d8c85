"""The series of a sphere (Bohren and Huffman, chapter 4)."""

import numpy as np
from scipy.special import spherical_jn, spherical_yn


N = np.arange(1, 16)


def mie(x, index):
    """Returns the coefficients a and b of a sphere (Bohren and Huffman, chapter 4)."""

    def regular(z):
        value = spherical_jn(N, z)
        return z * value, value + z * spherical_jn(N, z, True)

    wave = spherical_jn(N, x) + 1j * spherical_yn(N, x)
    turn = wave + x * (spherical_jn(N, x, True) + 1j * spherical_yn(N, x, True))
    (inside, slope), (here, there) = regular(index * x), regular(x)
    a = index * inside * there - here * slope, index * inside * turn - x * wave * slope
    b = inside * there - index * here * slope, inside * turn - index * x * wave * slope
    return a[0] / a[1], b[0] / b[1]


def angular(theta):
    """Returns the functions pi and tau of all orders, along the last axis."""
    pi, tau, cosine = [np.zeros_like(theta), np.ones_like(theta)], [], np.cos(theta)
    for n in N:
        tau.append(n * cosine * pi[n] - (n + 1) * pi[n - 1])
        pi.append(((2 * n + 1) * cosine * pi[n] - (n + 1) * pi[n - 1]) / n)
    return np.array(pi[1:-1]).T, np.array(tau).T


def amplitudes(a, b, theta):
    """Returns S1 and S2 at some angles."""
    pi, tau = angular(theta)
    a, b = ((2 * N + 1) / (N * (N + 1)) * one for one in (a, b))
    return pi @ a + tau @ b, tau @ a + pi @ b


def pressure(a, b, x):
    """Returns the efficiency of radiation pressure."""
    next_a, next_b = (np.append(one[1:], 0) for one in (a, b))
    forward = N * (N + 2) / (N + 1) * (a * np.conj(next_a) + b * np.conj(next_b))
    forward = forward + (2 * N + 1) / (N * (N + 1)) * a * np.conj(b)
    taken = (2 * N + 1) * (a + b)
    return np.sum(2 * taken.real - 4 * forward.real) / x**2
