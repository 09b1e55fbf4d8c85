"""One of two processes that fit together: `fit_in_two RANK PORT`."""

import json
import sys

import jax


jax.config.update("jax_enable_x64", True)
jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", 2, int(sys.argv[1]))

from physax import runtime  # noqa: E402
from physax.fit import least_squares  # noqa: E402
from tests.fit.exponentials import problem  # noqa: E402


result = least_squares(problem(), mesh=runtime.mesh(2), throw=True)
assert jax.process_count() == 2
print(json.dumps([result.values.tolist(), result.covariance.tolist()]))
