"""A fit for tests that kill its process: `fit_run.py FOLDER`.

Prints a line after the first checkpoint, and at the end the digest of the result.
"""

import dataclasses
import sys
import time
from pathlib import Path

from physax.fit import Stream, least_squares, plan
from physax.runtime import Checkpointing, fingerprint
from tests.fit.decays import points, problem


COUNT, PIECE = 4000, 250
X, Y = points(COUNT, seed=6)


def pieces():
    for begin in range(0, COUNT, PIECE):
        # Slow enough for a kill to fall into a pass.
        time.sleep(0.01)
        yield X[begin : begin + PIECE], Y[begin : begin + PIECE]


def fit(folder):
    blocks = dataclasses.replace(
        plan(COUNT, 3, resident=False), block=PIECE, chunk=PIECE
    )
    result = least_squares(
        problem(data=Stream(pieces, COUNT)),
        plan=blocks,
        checkpoint=Checkpointing(folder, 1),
        progress=False,
        throw=True,
    )
    values = result.values, result.factor, result.chi2, result.evaluations
    return fingerprint(values).digest


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    print(fit(sys.argv[1]), flush=True)
