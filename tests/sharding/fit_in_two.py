"""One of two processes that fit together."""

import json

import jax


jax.config.update("jax_enable_x64", True)

from physax import runtime  # noqa: E402


runtime.initialize()

from physax.fit import least_squares  # noqa: E402
from tests.fit.exponentials import problem  # noqa: E402


result = least_squares(problem(), mesh=runtime.mesh(2), throw=True)
assert jax.process_count() == 2
print(json.dumps([result.values.tolist(), result.covariance.tolist()]))
