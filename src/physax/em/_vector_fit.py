"""Vector fitting: poles and residues of a passive permittivity, on the host.

Everything is in units of a reference frequency, and with the sign `exp(+i w t)` that
the method is written in: with $s = i x$ the values to fit are conjugates of the
permittivity.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares, nnls


class Samples(NamedTuple):
    """A permittivity to fit.

    Attributes:
        x: Angular frequencies over the reference, ascending.
        values: Conjugates of the relative permittivity.
        weights: What errors are multiplied by.
    """

    x: np.ndarray
    values: np.ndarray
    weights: np.ndarray


class Model(NamedTuple):
    r"""$d + \sum_k c_k / (s - p_k) + c_k^* / (s - p_k^*)$.

    Attributes:
        constant: $d$.
        poles: $p_k$ in the upper half plane, real part negative.
        residues: $c_k$.
    """

    constant: float
    poles: np.ndarray
    residues: np.ndarray

    def at(self, x: np.ndarray) -> np.ndarray:
        """Returns the values at frequencies."""
        columns = _columns(x, self.poles)
        parts = np.stack(
            [np.real(self.residues), np.imag(self.residues)], axis=-1
        ).ravel()
        return self.constant + columns @ parts


def fit_poles(samples: Samples, pairs: int) -> Model | None:
    """Fits a number of pairs of poles.

    Args:
        samples: The data.
        pairs: How many pairs.

    Returns:
        The best passive model, or `None` if there was none.
    """
    found = []
    for below in (False, True):
        poles = start(samples, pairs, below=below)
        for _ in range(12):
            poles = relocate(samples, poles)
            found.append(passive_residues(samples, poles))
    models = [model for model in found if model is not None]
    if not models:
        return None
    return min(models, key=lambda model: error(samples, model))


def error(samples: Samples, model: Model) -> float:
    """Returns the root mean square of the weighted errors."""
    return float(np.sqrt(np.mean(np.abs(_misfit(samples, model)) ** 2)))


def _misfit(samples: Samples, model: Model) -> np.ndarray:
    return (model.at(samples.x) - samples.values) * samples.weights


def refined(samples: Samples, model: Model) -> Model:
    """Moves the poles of a model until its error is least, in about a second."""
    count = len(model.poles)
    best = [model]

    def misfit(places: np.ndarray) -> np.ndarray:
        poles = -np.exp(places[:count]) + 1j * np.exp(places[count:])
        here = passive_residues(samples, _supported(poles, samples.x))
        if here is None:
            return np.full(2 * len(samples.x), 1e3)
        if error(samples, here) < error(samples, best[0]):
            best[0] = here
        left = _misfit(samples, here)
        return np.concatenate([np.real(left), np.imag(left)])

    begin = np.log(np.concatenate([-np.real(model.poles), np.imag(model.poles)]))
    least_squares(misfit, begin, max_nfev=20)
    return best[0]


def start(samples: Samples, pairs: int, *, below: bool) -> np.ndarray:
    """Returns poles to begin with.

    Args:
        samples: The data.
        pairs: How many pairs of poles.
        below: Whether they begin far below the band, as free charges want it.
    """
    low, high = samples.x[0], 1.3 * samples.x[-1]
    if below:
        places = np.geomspace(0.05 * low, high, pairs)
    else:
        places = np.linspace(low, high, pairs + 2)[1:-1]
    return (-0.1 + 1j) * places


def relocate(samples: Samples, poles: np.ndarray) -> np.ndarray:
    r"""Moves the poles to better places, all of them stable.

    Fits $\sigma h$ and $\sigma$ by one set of poles and returns the zeros of $\sigma$.

    References: Gustavsen and Semlyen, *Rational approximation of frequency domain
    responses by vector fitting*, IEEE Transactions on Power Delivery 14, 1052 (1999);
    Gustavsen, *Improving the pole relocating properties of vector fitting*, the same
    21, 1587 (2006).

    Args:
        samples: The data.
        poles: In the upper half plane.

    Returns:
        As many poles.
    """
    x, h, weights = samples
    columns = _columns(x, poles)
    count = columns.shape[1]
    ones = np.ones((len(x), 1))
    rows = np.concatenate([columns, ones, -h[:, None] * columns, -h[:, None]], axis=1)
    rows = rows * weights[:, None]
    # Of all multiples of a solution take the one whose sigma is 1 on average.
    size = np.linalg.norm(weights * h) / len(x)
    relax = np.zeros(rows.shape[1])
    relax[count + 1 : -1] = np.sum(np.real(columns), axis=0) * size
    relax[-1] = len(x) * size
    matrix = np.concatenate([rows.real, rows.imag, relax[None]])
    target = np.zeros(len(matrix))
    target[-1] = len(x) * size
    lengths = np.linalg.norm(matrix, axis=0)
    lengths[lengths == 0] = 1
    solution = np.linalg.lstsq(matrix / lengths, target)[0] / lengths
    sigma, offset = solution[count + 1 : -1], solution[-1]
    # A sigma that vanishes far away has a zero at infinity: keep it finite.
    offset = np.copysign(max(abs(offset), 1e-6), offset)
    turn = np.zeros((count, count))
    for k, p in enumerate(poles):
        turn[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [
            [p.real, p.imag],
            [-p.imag, p.real],
        ]
    inflow = np.tile([2.0, 0.0], len(poles))
    return _stable(np.linalg.eigvals(turn - np.outer(inflow, sigma / offset)), x)


def _stable(zeros: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Mirrors poles to the stable side, and makes pairs of real ones."""
    near_axis = np.abs(np.imag(zeros)) <= 1e-9 * np.abs(zeros)
    real = np.sort(np.abs(np.real(zeros[near_axis])))
    pairs = zeros[~near_axis & (np.imag(zeros) > 0)]
    # The pair with the same sum, as free charges need it.
    mean, apart = (real[0::2] + real[1::2]) / 2, (real[1::2] - real[0::2]) / 2
    joined = [-np.abs(np.real(pairs)) + 1j * np.imag(pairs), -mean + 1j * apart]
    return _supported(np.concatenate(joined), x)


def _supported(poles: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Returns poles moved to where the samples can tell one from another."""
    # Far ones act as a constant; at 20 times the band they are as good.
    far = np.minimum(1.0, 20 * x[-1] / np.abs(poles))
    damping, place = -np.real(poles) * far, np.imag(poles) * far
    # The two of a pair cancel where they nearly coincide, to the digits of float32.
    place = np.maximum(place, np.maximum(0.02 * x[0], 0.01 * damping))
    # A line between two samples is no data.
    gaps = np.interp(place, (x[1:] + x[:-1]) / 2, np.diff(x)) / 2
    inside = (place > x[0]) & (place < x[-1])
    damping = np.maximum(damping, np.where(inside, gaps, 1e-3 * place))
    return -damping + 1j * place


def passive_residues(samples: Samples, poles: np.ndarray) -> Model | None:
    r"""Fits the residues of given poles such that the model never amplifies.

    Least squares with $\operatorname{Im} \epsilon \ge 0$ at all frequencies and
    $d \ge 1$. The frequencies at which the loss would be negative are added one after
    the other.

    Args:
        samples: The data.
        poles: In the upper half plane.

    Returns:
        The model, whose loss is negative by rounding at most; `None` if that was not
        reached.
    """
    columns = _columns(samples.x, poles)
    rows = np.concatenate([columns, np.ones((len(columns), 1))], axis=1)
    rows, target = rows * samples.weights[:, None], samples.weights * samples.values
    matrix = np.concatenate([rows.real, rows.imag])
    lengths = np.linalg.norm(matrix, axis=0)
    matrix, wanted = (
        matrix / lengths,
        np.concatenate([np.real(target), np.imag(target)]),
    )
    grid = _everywhere(samples.x, poles)
    losses = _losses(grid, poles, lengths)
    bounds, limits = [np.eye(len(lengths))[-1]], [lengths[-1]]
    for _ in range(20):
        parts = _bounded(matrix, wanted, np.stack(bounds), np.array(limits))
        margin = 1e-7 * float(np.linalg.norm(parts[:-1]))
        loss = losses @ parts
        left, right = np.append(np.inf, loss[:-1]), np.append(loss[1:], np.inf)
        lowest = np.flatnonzero((loss < left) & (loss <= right))
        # A minimum lies between two points of the grid, and only touches zero.
        ends = (
            grid[np.maximum(lowest - 1, 0)],
            grid[np.minimum(lowest + 1, len(grid) - 1)],
        )
        fine = _losses(np.linspace(*ends, 65).ravel(), poles, lengths)
        deep = (fine @ parts).reshape(65, -1)
        found = np.argmin(deep, axis=0)
        worst = np.take_along_axis(deep, found[None], axis=0)[0]
        if np.all(worst >= -0.1 * margin):
            parts = parts / lengths
            return Model(float(parts[-1]), poles, parts[:-1:2] + 1j * parts[1:-1:2])
        fine = fine.reshape(65, len(lowest), -1)
        for k in np.flatnonzero(worst < -0.1 * margin):
            bounds.append(fine[found[k], k])
            limits.append(margin)
    return None


def _losses(x: np.ndarray, poles: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns rows that give the loss, each of length 1."""
    rows = -np.imag(_columns(x, poles)) / lengths[:-1]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.concatenate([rows, np.zeros((len(x), 1))], axis=1)


def _bounded(
    matrix: np.ndarray, target: np.ndarray, bounds: np.ndarray, limits: np.ndarray
) -> np.ndarray:
    """Minimises `|matrix y - target|` with `bounds @ y >= limits`.

    Reference: Lawson and Hanson, *Solving Least Squares Problems* (1974), chapter 23.
    """
    # Columns of coinciding poles are alike; a little weight on all keeps them apart.
    size = matrix.shape[1]
    weight = 1e-9 * np.linalg.norm(matrix)
    matrix = np.concatenate([matrix, weight * np.eye(size)])
    q, r = np.linalg.qr(matrix)
    centre = np.linalg.solve(r, q[: len(target)].T @ target)
    if np.all(bounds @ centre >= limits):
        return centre
    turned = np.linalg.solve(r.T, bounds.T)
    missing = limits - bounds @ centre
    scale = np.linalg.norm(missing)
    system = np.concatenate([turned, missing[None] / scale])
    unit = np.append(np.zeros(size), 1.0)
    multipliers, _ = nnls(system, unit, maxiter=100 * system.shape[1])
    residual = system @ multipliers - unit
    step = -residual[:-1] / residual[-1] * scale
    return centre + np.linalg.solve(r, step)


def _everywhere(x: np.ndarray, poles: np.ndarray) -> np.ndarray:
    """Returns frequencies at which a loss could be negative."""
    reach = np.geomspace(1e-6 * x[0], 1e4 * x[-1], 1500)
    steps = np.linspace(-8, 8, 65)
    near = np.add.outer(np.imag(poles), 0 * steps) - np.outer(np.real(poles), steps)
    return np.unique(np.concatenate([reach, x, near[near > 0].ravel()]))


def _columns(x: np.ndarray, poles: np.ndarray) -> np.ndarray:
    """Returns what the two parts of each residue multiply."""
    one = 1 / (1j * x[:, None] - poles)
    other = 1 / (1j * x[:, None] - poles.conj())
    return np.stack([one + other, 1j * (one - other)], axis=-1).reshape(len(x), -1)
