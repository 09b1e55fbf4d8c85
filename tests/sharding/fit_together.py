"""One of some processes that fit together: `fit_together FILE`."""

import json
import sys

import jax
import numpy as np


jax.config.update("jax_enable_x64", True)

from physax import runtime  # noqa: E402


me = runtime.initialize()

from physax.fit import least_squares  # noqa: E402
from tests.fit.exponentials import problem  # noqa: E402


x, y = np.load(sys.argv[1], mmap_mode="r")
found = []
for data in ((np.asarray(x), np.asarray(y)), (x, y)):
    result = least_squares(
        problem(data), mesh=runtime.mesh(me.count), progress=False, throw=True
    )
    found.append([result.values.tolist(), result.covariance.tolist()])
print(json.dumps(found))
