"""Reads NIST's nonlinear regression sets and evaluates their models."""

import re
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np


FOLDER = Path(__file__).parent / "data" / "nist_strd"


def _gauss(b, x):
    peaks = [b[2] * jnp.exp(-(((x - b[3]) / b[4]) ** 2))]
    peaks.append(b[5] * jnp.exp(-(((x - b[6]) / b[7]) ** 2)))
    return b[0] * jnp.exp(-b[1] * x) + sum(peaks)


def _lanczos(b, x):
    return sum(b[i] * jnp.exp(-b[i + 1] * x) for i in (0, 2, 4))


def _cubics(b, x):
    over = b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3
    return over / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3)


def _enso(b, x):
    turn = 2 * jnp.pi * x
    waves = b[0] + b[1] * jnp.cos(turn / 12) + b[2] * jnp.sin(turn / 12)
    for i in (3, 6):
        waves += b[i + 1] * jnp.cos(turn / b[i]) + b[i + 2] * jnp.sin(turn / b[i])
    return waves


def _chwirut(b, x):
    return jnp.exp(-b[0] * x) / (b[1] + b[2] * x)


def _saturation(b, x):
    return b[0] * (1 - jnp.exp(-b[1] * x))


MODELS = {
    "Bennett5": lambda b, x: b[0] * (b[1] + x) ** (-1 / b[2]),
    "BoxBOD": _saturation,
    "Chwirut1": _chwirut,
    "Chwirut2": _chwirut,
    "DanWood": lambda b, x: b[0] * x ** b[1],
    "ENSO": _enso,
    "Eckerle4": lambda b, x: b[0] / b[1] * jnp.exp(-0.5 * ((x - b[2]) / b[1]) ** 2),
    "Gauss1": _gauss,
    "Gauss2": _gauss,
    "Gauss3": _gauss,
    "Hahn1": _cubics,
    "Kirby2": lambda b, x: (
        (b[0] + b[1] * x + b[2] * x**2) / (1 + b[3] * x + b[4] * x**2)
    ),
    "Lanczos1": _lanczos,
    "Lanczos2": _lanczos,
    "Lanczos3": _lanczos,
    "MGH09": lambda b, x: b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3]),
    "MGH10": lambda b, x: b[0] * jnp.exp(b[1] / (x + b[2])),
    "MGH17": lambda b, x: b[0] + b[1] * jnp.exp(-x * b[3]) + b[2] * jnp.exp(-x * b[4]),
    "Misra1a": _saturation,
    "Misra1b": lambda b, x: b[0] * (1 - (1 + b[1] * x / 2) ** -2),
    "Misra1c": lambda b, x: b[0] * (1 - (1 + 2 * b[1] * x) ** -0.5),
    "Misra1d": lambda b, x: b[0] * b[1] * x * (1 + b[1] * x) ** -1,
    "Nelson": lambda b, x1, x2: b[0] - b[1] * x1 * jnp.exp(-b[2] * x2),
    "Rat42": lambda b, x: b[0] / (1 + jnp.exp(b[1] - b[2] * x)),
    "Rat43": lambda b, x: b[0] / (1 + jnp.exp(b[1] - b[2] * x)) ** (1 / b[3]),
    "Roszman1": lambda b, x: b[0] - b[1] * x - jnp.arctan(b[2] / (x - b[3])) / jnp.pi,
    "Thurber": _cubics,
}


class Problem(NamedTuple):
    """One set: response and predictors, starts and certified results."""

    name: str
    data: tuple
    starts: tuple
    values: np.ndarray
    errors: np.ndarray

    def residual(self, parameters, data):
        response, *predictors = data
        return MODELS[self.name](parameters, *predictors) - response


def read(name):
    lines = (FOLDER / f"{name}.dat").read_text().splitlines()
    header = "\n".join(lines[:60])
    first, last = map(
        int, re.search(r"Data\s+\(lines (\d+) to (\d+)\)", header).groups()
    )
    rows = np.array([line.split() for line in lines[first - 1 : last]], float)
    table = np.array(
        [
            line.split("=")[1].split()
            for line in lines[:60]
            if re.match(r"\s*b\d+ =", line)
        ],
        float,
    )
    response, *predictors = rows.T
    # Nelson's model is of the logarithm.
    response = np.log(response) if name == "Nelson" else response
    return Problem(
        name,
        (response, *predictors),
        (table[:, 0], table[:, 1]),
        table[:, 2],
        table[:, 3],
    )


def problems():
    return [read(name) for name in MODELS]
